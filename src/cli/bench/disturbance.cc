#include "cli/bench/disturbance.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>

#include "cli/system_limits.h"

namespace hawser::cli::bench {
namespace {

constexpr std::uint64_t kTicksMin = 50;  // Half a second of one core: within less, the ticks themselves are the noise.
constexpr const char* kProc = "/proc";

// The numbers of a text that blanks part; it ends at the first that is none.
std::vector<std::int64_t> numbers_of(std::string_view text) {
  std::vector<std::int64_t> numbers;
  const char *at = text.data(), *const end = at + text.size();
  while (at != end) {
    if (*at == ' ') {
      ++at;
      continue;
    }
    std::int64_t number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    if (error != std::errc()) break;
    numbers.push_back(number);
    at = after;
  }
  return numbers;
}

std::uint64_t from_number(std::int64_t number) { return number > 0 ? static_cast<std::uint64_t>(number) : 0; }

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

std::vector<ProcessTicks> all_processes() {
  std::vector<ProcessTicks> processes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(kProc, error)) {
    if (!is_number(entry.path().filename().string())) continue;
    const auto text = read_file((entry.path() / "stat").string());
    const auto process = text ? process_ticks_of(*text) : std::nullopt;
    if (process) processes.push_back(*process);
  }
  return processes;
}

}  // namespace

std::optional<CpuTicks> cpu_ticks_of(std::string_view text) {
  constexpr std::string_view kHead = "cpu ";
  if (!text.starts_with(kHead)) return std::nullopt;
  // user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user's already.
  constexpr std::size_t kIdle = 3, kWaiting = 4, kKinds = 8;
  const std::vector<std::int64_t> kinds = numbers_of(text.substr(kHead.size(), text.find('\n') - kHead.size()));
  if (kinds.size() < kKinds) return std::nullopt;
  CpuTicks ticks;
  for (std::size_t i = 0; i < kKinds; ++i) {
    ticks.all += from_number(kinds[i]);
    if (i != kIdle && i != kWaiting) ticks.busy += from_number(kinds[i]);
  }
  return ticks;
}

std::optional<ProcessTicks> process_ticks_of(std::string_view text) {
  // The name stands in brackets and may hold anything, brackets too.
  const std::size_t name_end = text.rfind(')');
  const std::vector<std::int64_t> head = numbers_of(text.substr(0, text.find('(')));
  if (name_end == std::string_view::npos || head.size() != 1 || text.size() < name_end + 4) return std::nullopt;
  // After the name: the state's letter, then the parent and all else as numbers.
  const std::vector<std::int64_t> rest = numbers_of(text.substr(name_end + 3));
  constexpr std::size_t kParent = 0, kUser = 10, kSystem = 11, kEndedUser = 12, kEndedSystem = 13;
  if (rest.size() <= kEndedSystem) return std::nullopt;
  return ProcessTicks{.id = static_cast<int>(head[0]),
                      .parent = static_cast<int>(rest[kParent]),
                      .own = from_number(rest[kUser]) + from_number(rest[kSystem]),
                      .ended = from_number(rest[kEndedUser]) + from_number(rest[kEndedSystem])};
}

std::uint64_t family_ticks(const std::vector<ProcessTicks>& processes, int root) {
  std::vector<int> family = {root};
  std::uint64_t ticks = 0;
  for (std::size_t at = 0; at < family.size(); ++at) {
    for (const ProcessTicks& process : processes) {
      if (process.id == family[at]) ticks += process.own + process.ended;
      const bool is_new = std::ranges::find(family, process.id) == family.end();
      if (process.parent == family[at] && is_new) family.push_back(process.id);
    }
  }
  return ticks;
}

std::optional<CpuReading> read_cpu() {
  const auto text = read_file(std::string(kProc) + "/stat");
  const auto machine = text ? cpu_ticks_of(*text) : std::nullopt;
  if (!machine) return std::nullopt;
  return CpuReading{*machine, family_ticks(all_processes(), ::getpid())};
}

std::optional<double> others_share(const CpuReading& before, const CpuReading& after) {
  if (after.machine.all < before.machine.all + kTicksMin) return std::nullopt;
  const auto all = static_cast<double>(after.machine.all - before.machine.all);
  const auto busy = static_cast<double>(after.machine.busy) - static_cast<double>(before.machine.busy);
  const auto ours = static_cast<double>(after.ours) - static_cast<double>(before.ours);
  return std::clamp((busy - ours) / all, 0.0, 1.0);
}

}  // namespace hawser::cli::bench
