#include "backend/quic/ngtcp2_library.h"

#include <string>

#include "base/dylib.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::quic {
namespace {

constexpr std::string_view kCore = HAWSER_NGTCP2_CORE;
constexpr std::string_view kBinding = HAWSER_NGTCP2_BINDING;

std::string advice() {
  return base::format("install ngtcp2 {} or later of the same series ({}: {}), or use tcp", kLeastText,
                      HAWSER_NGTCP2_SYSTEM, HAWSER_NGTCP2_PACKAGES);
}

Result<base::Dylib> open_one(std::string_view name) {
  auto opened = base::Dylib::open({name});
  if (!opened) {
    return Status(Code::kUnsupported, base::format("{}, which speaks QUIC, cannot be opened", name))
        .with_advice(advice())
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
  core.bind("ngtcp2_version", &table.version, &missing);
  if (missing.ok()) {
    const ngtcp2_info* const info = table.version(0);  // Of any version.
    table.version_text = info->version_str;
    HAWSER_TRY(is_new_enough(core.name(), info->version_num, table.version_text));
  }
#define HAWSER_NGTCP2_BIND(name) core.bind("ngtcp2_" #name, &table.name, &missing);
  HAWSER_NGTCP2_FUNCTIONS(HAWSER_NGTCP2_BIND)
  HAWSER_NGTCP2_HANDSHAKE_FUNCTIONS(HAWSER_NGTCP2_BIND)
#undef HAWSER_NGTCP2_BIND
#define HAWSER_NGTCP2_BIND(member, name) core.bind("ngtcp2_" #name, &table.member, &missing);
  HAWSER_NGTCP2_VERSION_FUNCTIONS(HAWSER_NGTCP2_BIND)
#undef HAWSER_NGTCP2_BIND
#define HAWSER_NGTCP2_CRYPTO_BIND(name) binding.bind("ngtcp2_crypto_" #name, &table.crypto.name, &missing);
  HAWSER_NGTCP2_CRYPTO_FUNCTIONS(HAWSER_NGTCP2_CRYPTO_BIND)
#undef HAWSER_NGTCP2_CRYPTO_BIND
  if (!missing.ok()) {
    return Status(Code::kUnsupported,
                  base::format("{} and {} are not of one version of ngtcp2", core.name(), binding.name()))
        .with_advice(advice())
        .because(missing);
  }
  return table;
}

}  // namespace

Status is_new_enough(std::string_view name, int number, std::string_view text) {
  if (number >= kLeastNumber) return {};
  return Status(Code::kUnsupported, base::format("{} is of version {}, which is older than {}", name, text, kLeastText))
      .with_advice(advice());
}

Result<const Ngtcp2*> ngtcp2() {
  static const Result<Ngtcp2> library = open_both();
  if (!library) return library.error();
  return &*library;
}

}  // namespace hawser::backend::quic
