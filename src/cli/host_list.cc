#include "cli/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/quantity.h"
#include "base/try.h"

namespace hawser::cli {
namespace {

constexpr std::uint32_t kSlotsMax = 1024;

Status bad_host(std::string_view text, std::string_view why) {
  return Status(Code::kInvalid, fmt::format("--hosts: '{}': {}", text, why))
      .with_advice("write names with commas between them, with slots where they have a bound: a,b:4");
}

Result<RankHost> parse_host(std::string_view text, std::string_view slots) {
  RankHost host{.name = std::string(text)};
  if (text.empty()) return bad_host(text, "a host has no name");
  if (text.starts_with('-')) return bad_host(text, "a name that begins with '-' would be an option of ssh");
  if (text.find_first_of(" \t'\"\\$`;|&<>()") != std::string_view::npos)
    return bad_host(text, "that is no host's name");
  if (slots.empty()) return host;
  const auto number = base::parse_count(slots);
  if (!number || *number == 0 || *number > kSlotsMax) return bad_host(slots, "slots are a number from 1 to 1024");
  host.slots = static_cast<std::uint32_t>(*number);
  return host;
}

/// "name" or "name:4". A name with more colons is an address of IPv6.
Result<RankHost> parse_word(std::string_view word) {
  const std::size_t colon = word.find(':');
  const bool has_slots = colon != std::string_view::npos && word.find(':', colon + 1) == std::string_view::npos;
  if (has_slots && colon + 1 == word.size()) return bad_host(word, "slots are missing behind the colon");
  return has_slots ? parse_host(word.substr(0, colon), word.substr(colon + 1)) : parse_host(word, {});
}

}  // namespace

Result<std::vector<RankHost>> parse_hosts(std::string_view text) {
  std::vector<RankHost> hosts;
  for (;;) {
    const std::size_t comma = text.find(',');
    HAWSER_TRY_ASSIGN(RankHost host, parse_word(base::trim(text.substr(0, comma))));
    hosts.push_back(std::move(host));
    if (comma == std::string_view::npos) return hosts;
    text.remove_prefix(comma + 1);
  }
}

Result<std::vector<RankHost>> parse_host_file(std::string_view text) {
  constexpr std::string_view kSlots = "slots=";
  std::vector<RankHost> hosts;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    line = base::trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::size_t blank = line.find_first_of(" \t");
    if (blank == std::string_view::npos) {
      HAWSER_TRY_ASSIGN(RankHost host, parse_word(line));
      hosts.push_back(std::move(host));
      continue;
    }
    const std::string_view more = base::trim(line.substr(blank));
    if (!more.starts_with(kSlots) || more == kSlots)
      return bad_host(line, "behind the name stands slots=NUMBER or nothing");
    HAWSER_TRY_ASSIGN(RankHost host, parse_host(line.substr(0, blank), more.substr(kSlots.size())));
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) return Status(Code::kInvalid, "--hosts: the file names no host");
  return hosts;
}

Result<std::uint32_t> all_slots(const std::vector<RankHost>& hosts, std::uint32_t most) {
  std::uint64_t slots = 0;
  bool is_bounded = !hosts.empty();
  for (const RankHost& host : hosts) {
    slots += host.slots;
    is_bounded = is_bounded && host.slots > 0;
  }
  if (!is_bounded) {
    return Status(Code::kInvalid, "how many ranks there are is not said")
        .with_advice("-n 4, or --hosts with slots for each host: a:4,b:4");
  }
  if (slots <= most) return static_cast<std::uint32_t>(slots);
  return Status(Code::kInvalid, fmt::format("the hosts have {} slots, {} ranks can be started", slots, most))
      .with_advice("-n says how many of the slots are used");
}

Result<std::vector<std::size_t>> share_ranks(const std::vector<RankHost>& hosts, std::uint32_t ranks) {
  std::vector<std::uint32_t> counts(hosts.size(), 0);
  std::uint32_t left = ranks;
  std::size_t unbounded = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    unbounded += hosts[i].slots == 0 ? 1 : 0;
    counts[i] = std::min(left, hosts[i].slots);
    left -= counts[i];
  }
  for (std::size_t i = 0; i < hosts.size() && unbounded > 0; ++i) {
    if (hosts[i].slots != 0) continue;
    counts[i] = left / static_cast<std::uint32_t>(unbounded) + (left % unbounded != 0 ? 1 : 0);
    left -= counts[i];
    --unbounded;
  }
  if (left > 0) {
    return Status(Code::kInvalid,
                  fmt::format("--hosts: {} ranks are more than the slots of all hosts, {}", ranks, ranks - left));
  }
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < hosts.size(); ++i) places.insert(places.end(), counts[i], i);
  return places;
}

}  // namespace hawser::cli
