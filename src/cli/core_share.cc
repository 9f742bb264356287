#include "cli/core_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <tuple>

#include "base/small_file.h"

namespace hawser::cli {
namespace {

/// `otherwise`, where the file is not there or holds no number.
int number_in(const std::string& path, int otherwise) {
  std::array<char, 32> room;
  const std::string_view text = base::read_small_file(path.c_str(), room);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : otherwise;
}

bool is_same_core(const Processor& a, const Processor& b) { return a.package == b.package && a.core == b.core; }

}  // namespace

std::vector<Processor> processors() {
  std::vector<Processor> all;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return all;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (!CPU_ISSET(number, &allowed)) continue;
    const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", number);
    all.push_back({.number = number,
                   .package = number_in(topology + "physical_package_id", 0),
                   .core = number_in(topology + "core_id", number)});
  }
  return all;
}

Result<cpu_set_t> share_of(std::span<const Processor> all, LocalPlace place) {
  std::vector<Processor> sorted(all.begin(), all.end());
  std::ranges::sort(sorted, {}, [](const Processor& one) { return std::tuple(one.package, one.core, one.number); });
  std::vector<std::span<const Processor>> cores;
  for (std::span<const Processor> rest = sorted; !rest.empty(); rest = rest.subspan(cores.back().size())) {
    const auto end = std::ranges::find_if(rest, [&](const Processor& one) { return !is_same_core(one, rest.front()); });
    cores.push_back(rest.first(static_cast<std::size_t>(end - rest.begin())));
  }
  if (place.rank >= place.size || place.size > cores.size()) {
    return Status(Code::kInvalid, fmt::format("hawser run: --bind-to core: there are {} ranks on a host, and {} cores "
                                              "that they may use",
                                              place.size, cores.size()))
        .with_advice("start fewer ranks there, or leave out --bind-to");
  }
  const std::size_t each = cores.size() / place.size, more = cores.size() % place.size;
  const std::size_t first = place.rank * each + std::min<std::size_t>(place.rank, more);
  cpu_set_t share;
  CPU_ZERO(&share);
  for (std::size_t i = 0; i < each + (place.rank < more ? 1 : 0); ++i) {
    for (const Processor& one : cores[first + i]) CPU_SET(one.number, &share);
  }
  return share;
}

}  // namespace hawser::cli
