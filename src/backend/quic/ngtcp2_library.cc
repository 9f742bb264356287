#include "backend/quic/ngtcp2_library.h"

#include <string>
#include <utility>
#include <vector>

#include "base/dylib.h"
#include "base/format.h"
#include "base/own_folder.h"
#include "base/try.h"

namespace hawser::backend::quic {
namespace {

constexpr std::string_view kCore = HAWSER_NGTCP2_CORE;
constexpr std::string_view kBinding = HAWSER_NGTCP2_BINDING;

std::string advice() {
#ifdef HAWSER_NGTCP2_BUNDLED
  return "ngtcp2 lies beside Hawser, but needs GnuTLS 3.7.2 or later (Debian: libgnutls30): install that, or use tcp";
#else
  return base::format("install ngtcp2 {} or later of the same series ({}: {}), or use tcp", kLeastText,
                      HAWSER_NGTCP2_SYSTEM, HAWSER_NGTCP2_PACKAGES);
#endif
}

/// Where the two may lie, each with a slash: where the loader looks, which gets the system's updates, and then the
/// place of what was packed with this.
std::vector<std::string> places() {
  std::vector<std::string> all = {""};
#ifdef HAWSER_NGTCP2_BUNDLED
  // A program in `bin` holds the library itself.
  if (const std::string own = base::own_folder(); !own.empty()) all.push_back(own + "/../lib/");
#endif
  return all;
}

struct Both {
  base::Dylib core, binding;
};

/// The binding takes the core that is open already, whatever folder that is from.
Result<Both> open_in(const std::string& place) {
  HAWSER_TRY_ASSIGN(base::Dylib core, base::Dylib::open({place + std::string(kCore)}));
  HAWSER_TRY_ASSIGN(base::Dylib binding, base::Dylib::open({place + std::string(kBinding)}));
  return Both{.core = std::move(core), .binding = std::move(binding)};
}

Result<Ngtcp2> table_of(const base::Dylib& core, const base::Dylib& binding) {
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

Result<Ngtcp2> open_at(const std::string& place) {
  HAWSER_TRY_ASSIGN(Both both, open_in(place));
  HAWSER_TRY_ASSIGN(Ngtcp2 table, table_of(both.core, both.binding));
  both.core.keep_loaded();  // Connections of any agent may use them until the process ends.
  both.binding.keep_loaded();
  if (!place.empty()) table.version_text += " (beside Hawser)";
  return table;
}

Result<Ngtcp2> open_first() {
  Status why = Status(Code::kUnsupported, base::format("{} and {}, which speak QUIC, cannot be used", kCore, kBinding))
                   .with_advice(advice());
  for (const std::string& place : places()) {
    Result<Ngtcp2> opened = open_at(place);
    if (opened) return opened;
    why = why.because(opened.error());
  }
  return why;
}

}  // namespace

Status is_new_enough(std::string_view name, int number, std::string_view text) {
  if (number >= kLeastNumber) return {};
  return Status(Code::kUnsupported, base::format("{} is of version {}, which is older than {}", name, text, kLeastText))
      .with_advice(advice());
}

Result<const Ngtcp2*> ngtcp2() {
  static const Result<Ngtcp2> library = open_first();
  if (!library) return library.error();
  return &*library;
}

}  // namespace hawser::backend::quic
