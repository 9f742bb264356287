#include "base/host_memory.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/format.h"
#include "base/small_file.h"

namespace hawser::base {
namespace {

constexpr std::uint64_t kKib = 1024;

/// "NAME:   123 kB" of /proc/meminfo.
std::optional<std::uint64_t> line_of(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + name.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > UINT64_MAX / kKib) return {};
  return number * kKib;
}

}  // namespace

std::optional<std::uint64_t> host_memory_left(const std::string& root) {
  std::array<char, kSmallFileMax> room;
  const std::string_view text = read_small_file((root + "/proc/meminfo").c_str(), room);
  const auto memory = line_of(text, "MemAvailable:");
  if (!memory) return {};
  return *memory + line_of(text, "SwapFree:").value_or(0);
}

Status check_host_memory(std::string_view what, std::uint64_t bytes, const std::string& root) {
  const auto left = host_memory_left(root);
  if (!left || bytes <= *left) return {};
  return Status(Code::kBusy,
                base::format("{} of {} bytes: the host has {} bytes of memory and swap left", what, bytes, *left))
      .with_advice("take less memory, or use a host with more");
}

}  // namespace hawser::base
