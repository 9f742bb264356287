#include "tls/gnutls_library.h"

#include "base/dylib.h"
#include "base/format.h"

namespace hawser::tls {
namespace {

/// The first with all of TLS 1.3 that is used here, and with the fix of CVE-2020-11501.
constexpr const char* kVersionMin = "3.6.13";

Result<Gnutls> open_gnutls() {
  auto opened = base::Dylib::open({"libgnutls.so.30"});
  if (!opened) {
    return Status(Code::kUnsupported, "GnuTLS, which encrypts what leaves this host, cannot be opened")
        .with_advice("install it (Debian, Ubuntu: libgnutls30; Fedora, RHEL: gnutls)")
        .because(opened.error());
  }
  base::Dylib library = *std::move(opened);
  library.keep_loaded();  // Sessions of any agent may use it until the process ends.
  Gnutls table;
  Status missing;
#define HAWSER_GNUTLS_BIND(name) library.bind("gnutls_" #name, &table.name, &missing);
  HAWSER_GNUTLS_FUNCTIONS(HAWSER_GNUTLS_BIND)
#undef HAWSER_GNUTLS_BIND
  const char* version = missing.ok() ? table.check_version(kVersionMin) : nullptr;
  if (version == nullptr) {
    const Status why(Code::kUnsupported,
                     base::format("{} is too old: version {} or later is needed", library.name(), kVersionMin));
    return missing.ok() ? why : why.because(missing);
  }
  table.version = version;
  return table;
}

}  // namespace

Status Gnutls::error(Code code, std::string_view doing, int result) const {
  return Status(code, base::format("{}: {} (GnuTLS {})", doing, strerror(result), result));
}

Result<const Gnutls*> gnutls() {
  static const Result<Gnutls> library = open_gnutls();
  if (!library) return library.error();
  return &*library;
}

}  // namespace hawser::tls
