#include "backend/quic/ngtcp2_library.h"

#include "base/dylib.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::quic {
namespace {

constexpr std::string_view kCore = "libngtcp2.so.9";
constexpr std::string_view kBinding = "libngtcp2_crypto_gnutls.so.2";

Result<base::Dylib> open_one(std::string_view name) {
  auto opened = base::Dylib::open({name});
  if (!opened) {
    return Status(Code::kUnsupported, base::format("{}, which speaks QUIC, cannot be opened", name))
        .with_advice("install version 0.12 of ngtcp2 (Debian 12: libngtcp2-9 and libngtcp2-crypto-gnutls2), or use tcp")
        .because(opened.error());
  }
  base::Dylib library = *std::move(opened);
  library.keep_loaded();  // Connections of any agent may use it until the process ends.
  return library;
}

Result<Ngtcp2> open_both() {
  HAWSER_TRY_ASSIGN(const base::Dylib core, open_one(kCore));
  HAWSER_TRY_ASSIGN(const base::Dylib binding, open_one(kBinding));
  Ngtcp2 table;
  Status missing;
#define HAWSER_NGTCP2_BIND(name) core.bind("ngtcp2_" #name, &table.name, &missing);
  HAWSER_NGTCP2_FUNCTIONS(HAWSER_NGTCP2_BIND)
#undef HAWSER_NGTCP2_BIND
#define HAWSER_NGTCP2_CRYPTO_BIND(name) binding.bind("ngtcp2_crypto_" #name, &table.crypto.name, &missing);
  HAWSER_NGTCP2_CRYPTO_FUNCTIONS(HAWSER_NGTCP2_CRYPTO_BIND)
#undef HAWSER_NGTCP2_CRYPTO_BIND
  if (!missing.ok()) {
    return Status(Code::kUnsupported, base::format("{} is not of version {}", core.name(), NGTCP2_VERSION))
        .because(missing);
  }
  const ngtcp2_info* info = table.version(NGTCP2_VERSION_NUM);
  if (info == nullptr) {
    return Status(Code::kUnsupported, base::format("{} is older than version {}", core.name(), NGTCP2_VERSION));
  }
  table.version_text = info->version_str;
  return table;
}

}  // namespace

Result<const Ngtcp2*> ngtcp2() {
  static const Result<Ngtcp2> library = open_both();
  if (!library) return library.error();
  return &*library;
}

}  // namespace hawser::backend::quic
