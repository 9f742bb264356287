#include "metrics/http_library.h"

#include "base/dylib.h"

namespace hawser::metrics {
namespace {

Result<HttpLibrary> open_library() {
  const Status unsupported =
      Status(Code::kUnsupported, "GNU libmicrohttpd, which serves the metrics, cannot be opened")
          .with_advice("install it (Debian, Ubuntu: libmicrohttpd12; Fedora, RHEL: libmicrohttpd)");
  auto opened = base::Dylib::open({"libmicrohttpd.so.12"});
  if (!opened) return unsupported.because(opened.error());
  base::Dylib library = *std::move(opened);
  library.keep_loaded();  // It has a thread.
  HttpLibrary table;
  Status missing;
#define HAWSER_MICROHTTPD_BIND(name) library.bind("MHD_" #name, &table.name, &missing);
  HAWSER_MICROHTTPD_FUNCTIONS(HAWSER_MICROHTTPD_BIND)
#undef HAWSER_MICROHTTPD_BIND
  if (!missing.ok()) return unsupported.because(missing);
  return table;
}

}  // namespace

Result<const HttpLibrary*> http_library() {
  static const Result<HttpLibrary> library = open_library();
  if (!library) return library.error();
  return &*library;
}

}  // namespace hawser::metrics
