#pragma once

// HostList: on which hosts `hawser run` starts ranks, and how many on each.
//
// Thread rule: pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

namespace hawser::cli {

struct RankHost {
  std::string name;
  std::uint32_t slots = 0;  ///< Ranks that it takes at most; 0: its share.
  friend bool operator==(const RankHost&, const RankHost&) = default;
};

/// "a,b:4,c": names with commas between them, each with a number of slots behind a colon if it has a bound. Errors:
/// kInvalid for an empty name, a name that begins with '-', or slots that are no number.
Result<std::vector<RankHost>> parse_hosts(std::string_view text);
/// Lines "name", "name slots=4" or "name:4"; empty lines and what stands behind a # are passed over.
Result<std::vector<RankHost>> parse_host_file(std::string_view text);

/// As many ranks as the hosts have slots. kInvalid: a host has no bound, there is no host, or the sum is over `most`.
Result<std::uint32_t> all_slots(const std::vector<RankHost>& hosts, std::uint32_t most);

/// The host of each rank, by place in `hosts`: ranks of one host stand together. Bounded ones are filled to their slots
/// in their order; the others share what is left evenly. kInvalid: there are more ranks than slots.
Result<std::vector<std::size_t>> share_ranks(const std::vector<RankHost>& hosts, std::uint32_t ranks);

}  // namespace hawser::cli
