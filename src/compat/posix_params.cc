#include "compat/posix_params.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/format.h"
#include "base/quantity.h"
#include "base/try.h"
#include "compat/refusal.h"
#include "compat/switch_word.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::uint64_t kDepthMax = 4096;  ///< Of the backend file.

struct EngineFlag {
  std::string_view key, engine;
};
/// Both kinds of aio are done by threads here: the kernel's blocks in places, glibc's is threads itself.
constexpr std::array<EngineFlag, 3> kEngines = {
    {{"use_uring", "io_uring"}, {"use_aio", "threads"}, {"use_posix_aio", "threads"}}};

Status wrong(std::string_view key, std::string_view value, std::string_view advice) {
  return refusal(NixlCode::kInvalidParam, "create_backend", base::format("POSIX: {}={}", key, value))
      .with_advice(advice);
}

Result<bool> flag(std::string_view key, std::string_view value) {
  if (base::trim(value).empty()) return false;
  if (const std::optional<bool> on = parse_switch(value)) return *on;
  return wrong(key, value, base::format("give {}", kSwitchWords));
}

Status choose_engine(const Params& given, PosixChoice& choice) {
  std::string_view by;
  for (const EngineFlag& one : kEngines) {
    const auto found = given.find(one.key);
    if (found == given.end()) continue;
    HAWSER_TRY_ASSIGN(const bool wanted, flag(one.key, found->second));
    if (!wanted) continue;
    if (!by.empty()) {
      choice.warnings.push_back(base::format("{} changes nothing: {} is set, too", one.key, by));
      continue;
    }
    by = one.key;
    choice.file.insert_or_assign("engine", std::string(one.engine));
  }
  return {};
}

}  // namespace

Result<PosixChoice> choose_for_posix(const Params& given) {
  PosixChoice choice;
  HAWSER_TRY(choose_engine(given, choice));
  // How many operations NIXL keeps ready. Here each takes its place when it is submitted, so only its form matters.
  if (const auto pool = given.find("ios_pool_size"); pool != given.end()) {
    const std::optional<std::uint64_t> count = base::parse_count(pool->second);
    if (!count || *count == 0) return wrong(pool->first, pool->second, "give a number from 1");
  }
  if (const auto size = given.find("kernel_queue_size"); size != given.end()) {
    const std::optional<std::uint64_t> depth = base::parse_count(size->second);
    if (!depth || *depth == 0) return wrong(size->first, size->second, "give a number from 1");
    choice.file.emplace("depth", std::to_string(std::min(*depth, kDepthMax)));
  }
  return choice;
}

}  // namespace compat
HAWSER_NAMESPACE_END
