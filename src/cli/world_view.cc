#include "cli/world_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include <hawser/datatype.h>

#include "base/shown.h"
#include "cli/table.h"
#include "cli/units.h"
#include "schedule/collective.h"

namespace hawser::cli {
namespace {

using runtime::Flight;
using runtime::FlightEntry;
using runtime::FlightHeader;
using runtime::FlightState;
using runtime::text_of;

std::string type_text(const FlightEntry& entry) {
  if (entry.type == 0 || entry.type > kDataTypes) return {};
  return std::string(to_string(static_cast<DataType>(entry.type - 1)));
}

std::string operation_text(const FlightEntry& entry) {
  const std::string type = type_text(entry);
  return base::shown(text_of(entry.operation)) + (type.empty() || entry.count == 0 ? "" : " " + type);
}

std::string kind_text(const FlightEntry& entry) {
  return operation_text(entry) + (entry.count == 0 ? "" : fmt::format(" of {}", entry.count));
}

bool is_under_way(const FlightEntry& entry) { return entry.state == FlightState::kBegun; }

/// Under way. A rank that is dead may have given up before: nobody came. One that lives has gone on since.
bool is_unfinished(const Flight& flight, const FlightEntry& entry) {
  return is_under_way(entry) || (entry.code != 0 && !flight.is_alive);
}

std::string state_text(const Flight& flight) {
  return !flight.is_alive ? "dead" : flight.is_stopped ? "stopped" : "up";
}

std::string ended_text(const FlightEntry& entry) {
  return fmt::format("{} number {}{}", operation_text(entry), entry.number, entry.code == 0 ? "" : ", failed");
}

std::string for_text(Instant at, std::int64_t since_ns) {
  return short_duration(std::max(at - Instant::from_ns(since_ns), Duration::zero()));
}

std::set<std::uint64_t> worlds_of(const Flight& flight) {
  std::set<std::uint64_t> worlds;
  for (const FlightEntry& entry : flight.entries) worlds.insert(entry.world);
  return worlds;
}

std::int64_t last_at_work(const WorldLook& look) {
  std::int64_t last = 0;
  for (const Flight& flight : look) last = std::max(last, flight.wall_ns(flight.header.last_ns));
  return last;
}

const FlightEntry* last_of(const Flight& flight, std::uint64_t world) {
  const FlightEntry* last = nullptr;
  for (const FlightEntry& entry : flight.entries) {
    if (entry.world == world && (last == nullptr || entry.number > last->number)) last = &entry;
  }
  return last;
}

/// The oldest that a rank has not ended; null: none.
const FlightEntry* present(const Flight& flight) {
  const auto found = std::ranges::find_if(flight.entries, is_under_way);
  return found == flight.entries.end() ? nullptr : &*found;
}

const FlightEntry* last_ended(const Flight& flight) {
  const FlightEntry* last = nullptr;
  for (const FlightEntry& entry : flight.entries) {
    if (!is_under_way(entry) && (last == nullptr || entry.ended_ns > last->ended_ns)) last = &entry;
  }
  return last;
}

std::string list_text(const std::vector<std::uint32_t>& ranks) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i) {
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  }
  return ranks.size() > kMost ? fmt::format("{} and {} more", text, ranks.size() - kMost) : text;
}

/// The newest operation of a world that some rank waits, or waited, in.
const FlightEntry* newest_unfinished(const WorldLook& look, std::uint64_t world) {
  const FlightEntry* newest = nullptr;
  for (const Flight& flight : look) {
    for (const FlightEntry& entry : flight.entries) {
      if (entry.world != world || !is_unfinished(flight, entry)) continue;
      if (newest == nullptr || entry.number > newest->number) newest = &entry;
    }
  }
  return newest;
}

std::set<std::uint64_t> all_worlds(const WorldLook& look) {
  std::set<std::uint64_t> worlds;
  for (const Flight& flight : look) worlds.merge(worlds_of(flight));
  return worlds;
}

void add_behind(const WorldLook& look, std::uint64_t world, std::vector<Behind>& all) {
  const FlightEntry* const newest = newest_unfinished(look, world);
  if (newest == nullptr) return;
  Behind one = {.world = base::shown(text_of(newest->world_name)),
                .number = newest->number,
                .operation = operation_text(*newest),
                .since_ns = newest->begun_ns};
  for (const Flight& flight : look) {
    for (const FlightEntry& entry : flight.entries) {
      if (entry.world != world || entry.number != one.number || !is_unfinished(flight, entry)) continue;
      one.waiting.push_back(entry.rank);
      one.since_ns = std::min(one.since_ns, entry.begun_ns);
    }
  }
  std::ranges::sort(one.waiting);
  for (const Flight& flight : look) {
    const FlightEntry* const last = last_of(flight, world);
    if (last == nullptr || last->number >= one.number) continue;
    one.rank = last->rank;
    one.last = last->number;
    one.is_alive = flight.is_alive;
    all.push_back(one);
  }
}

/// By rank: of how many operations that all of these ranks have begun it was the last to begin.
std::map<std::uint32_t, std::size_t> arrivals(const WorldLook& look) {
  struct Last {
    std::uint32_t rank = 0;
    std::int64_t at_ns = 0;
    std::size_t ranks = 0;
  };
  std::map<std::pair<std::uint64_t, std::uint64_t>, Last> by_number;
  for (const Flight& flight : look) {
    for (const FlightEntry& entry : flight.entries) {
      Last& last = by_number[{entry.world, entry.number}];
      ++last.ranks;
      if (entry.begun_ns > last.at_ns) last = {flight.header.rank, entry.begun_ns, last.ranks};
    }
  }
  std::map<std::uint32_t, std::size_t> counts;
  for (const auto& [number, last] : by_number) {
    if (last.ranks == look.size() && look.size() > 1) ++counts[last.rank];
  }
  return counts;
}

std::string behind_text(const Behind& one, Instant at) {
  return fmt::format(
      "rank {} of '{}' {} begun {} number {} (its last is number {}); rank{} {} wait{} for it, since {} ago\n",
      one.rank, one.world, one.is_alive ? "has not" : "is dead and had not", one.operation, one.number, one.last,
      one.waiting.size() == 1 ? "" : "s", list_text(one.waiting), one.waiting.size() == 1 ? "s" : "",
      for_text(at, one.since_ns));
}

std::string algorithm_text(const FlightEntry& entry) {
  if (entry.algorithm == 0 || entry.algorithm > schedule::kAlgorithms) return {};
  return std::string(to_string(static_cast<schedule::Algorithm>(entry.algorithm - 1)));
}

/// As torch's flight recorder calls types.
std::string torch_type(const FlightEntry& entry) {
  static const std::map<std::string, std::string> kNames = {{"f64", "Double"},
                                                            {"f32", "Float"},
                                                            {"f16", "Half"},
                                                            {"bf16", "BFloat16"},
                                                            {"f8e4m3", "Float8_e4m3fn"},
                                                            {"f8e5m2", "Float8_e5m2"},
                                                            {"i8", "Char"},
                                                            {"i16", "Short"},
                                                            {"i32", "Int"},
                                                            {"i64", "Long"},
                                                            {"u8", "Byte"},
                                                            {"u16", "UInt16"},
                                                            {"u32", "UInt32"},
                                                            {"u64", "UInt64"},
                                                            {"bool", "Bool"}};
  const auto found = kNames.find(type_text(entry));
  return found == kNames.end() ? "Byte" : found->second;
}

/// A world or a group, as all ranks that took part in it know it.
struct Group {
  std::size_t number = 0;  ///< Each rank's dump uses this number for the group.
  std::string name;        ///< Unique: two groups of one split have one name otherwise.
  std::string description;
  std::map<std::uint32_t, std::uint32_t> ranks;  ///< By rank in it: in the world that was opened.
};

std::map<std::uint64_t, Group> groups_of(const WorldLook& look) {
  std::map<std::uint64_t, Group> groups;
  for (const Flight& flight : look) {
    for (const FlightEntry& entry : flight.entries) {
      Group& group = groups[entry.world];
      group.name = fmt::format("{:016x}", entry.world);
      group.description = base::shown(text_of(entry.world_name));
      group.ranks[entry.rank] = flight.header.rank;
    }
  }
  std::size_t number = 0;
  for (auto& [world, group] : groups) group.number = number++;
  return groups;
}

std::string ranks_text(const Group& group) {
  std::string text;
  for (const auto& [rank, root] : group.ranks) text += (text.empty() ? "" : ", ") + std::to_string(root);
  return "[" + text + "]";
}

Json torch_entry(const Flight& flight, const FlightEntry& entry, const Group& group) {
  const bool is_over = !is_under_way(entry);
  Json json = {{"frames", Json::array()},
               {"record_id", entry.stamp - 1},
               {"pg_id", group.number},
               {"process_group", {group.name, group.description}},
               {"collective_seq_id", entry.number},
               {"p2p_seq_id", 0},
               {"op_id", entry.number},
               {"profiling_name", "hawser:" + base::shown(text_of(entry.operation))},
               {"time_created_ns", flight.wall_ns(entry.begun_ns)},
               {"input_sizes", {{entry.inputs}}},
               {"input_dtypes", {torch_type(entry)}},
               {"output_sizes", {{entry.outputs}}},
               {"output_dtypes", {torch_type(entry)}},
               {"state", is_over && entry.code == 0 ? "completed" : "started"},
               {"time_discovered_started_ns", flight.wall_ns(entry.begun_ns)},
               {"time_discovered_completed_ns", nullptr},
               {"retired", is_over},
               {"algorithm", algorithm_text(entry)},
               {"timeout_ms", 0},
               {"is_p2p", false}};
  if (is_over) {
    json["duration_ms"] = static_cast<double>(entry.ended_ns - entry.begun_ns) / 1e6;
    json["time_discovered_completed_ns"] = flight.wall_ns(entry.ended_ns);
    if (entry.code != 0) json["status"] = hawser::to_string(static_cast<Code>(entry.code));
  }
  return json;
}

Json torch_json(const Flight& flight, const std::map<std::uint64_t, Group>& groups) {
  Json json = {{"version", "2.10"},
               {"rank", flight.header.rank},
               {"pg_config", Json::object()},
               {"pg_status", Json::object()},
               {"entries", Json::array()}};
  for (const FlightEntry& entry : flight.entries) {
    const Group& group = groups.at(entry.world);
    if (!json["pg_config"].contains(group.name)) {
      json["pg_config"][group.name] = {{"name", group.name}, {"desc", group.description}, {"ranks", ranks_text(group)}};
      json["pg_status"][group.name] = {
          {"last_enqueued_collective", -1}, {"last_started_collective", -1}, {"last_completed_collective", -1}};
    }
    Json& status = json["pg_status"][group.name];
    status["last_enqueued_collective"] = status["last_started_collective"] = entry.number;
    if (!is_under_way(entry) && entry.code == 0) status["last_completed_collective"] = entry.number;
    json["entries"].push_back(torch_entry(flight, entry, group));
  }
  return json;
}

/// The group is the world that these ranks opened. Its name was cut in the entries.
bool is_opened(const FlightHeader& opened, const Group& group) {
  std::array<char, sizeof(FlightEntry::world_name)> cut{};
  runtime::put_text(cut, text_of(opened.world_name));
  return group.description == base::shown(text_of(cut));
}

/// What the ranks did there, each by its number there. `with_all`: ranks that did nothing there, too.
WorldLook of_world(const WorldLook& look, std::uint64_t world, bool with_all) {
  WorldLook its;
  for (const Flight& flight : look) {
    Flight there = flight;
    std::erase_if(there.entries, [world](const FlightEntry& entry) { return entry.world != world; });
    if (!there.entries.empty()) there.header.rank = there.entries.front().rank;
    if (with_all || !there.entries.empty()) its.push_back(std::move(there));
  }
  std::ranges::sort(its, {}, [](const Flight& flight) { return flight.header.rank; });
  return its;
}

std::string table_of(const WorldLook& look, Instant at) {
  Table table({{"rank", Align::kRight},
               {"process", Align::kRight},
               {"state"},
               {"does"},
               {"number", Align::kRight},
               {"elements", Align::kRight},
               {"for", Align::kRight},
               {"last ended"},
               {"ago", Align::kRight},
               {"last to begin", Align::kRight}});
  const std::map<std::uint32_t, std::size_t> last = arrivals(look);
  for (const Flight& flight : look) {
    const FlightEntry* const now = present(flight);
    const FlightEntry* const ended = last_ended(flight);
    const auto arrived = last.find(flight.header.rank);
    table.add({std::to_string(flight.header.rank), std::to_string(flight.header.process), state_text(flight),
               now == nullptr ? "-" : operation_text(*now), now == nullptr ? "-" : std::to_string(now->number),
               now == nullptr ? "-" : std::to_string(now->count), now == nullptr ? "-" : for_text(at, now->begun_ns),
               ended == nullptr ? "-" : ended_text(*ended), ended == nullptr ? "-" : for_text(at, ended->ended_ns),
               fmt::format("{} times", arrived == last.end() ? 0 : arrived->second)});
  }
  return table.to_string();
}

/// One world of an agent: "world 'trainer': rank 0 of 2, all_reduce f32 number 7 for 3.66 s".
std::string line_of(const std::string& name, const Flight& flight, std::uint32_t size, Instant at) {
  std::string text = fmt::format("  world '{}': rank {} of {}", name, flight.header.rank, size);
  if (const FlightEntry* const now = present(flight)) {
    return text +
           fmt::format(", {} number {} for {}\n", operation_text(*now), now->number, for_text(at, now->begun_ns));
  }
  const FlightEntry* const ended = last_ended(flight);
  if (ended == nullptr) return text + "\n";
  return text + fmt::format(", {} ended {} ago\n", ended_text(*ended), for_text(at, ended->ended_ns));
}

}  // namespace

std::vector<WorldLook> formations(std::vector<Flight> flights) {
  std::vector<std::pair<std::set<std::uint64_t>, WorldLook>> sets;
  for (Flight& flight : flights) {
    std::set<std::uint64_t> worlds = worlds_of(flight);
    WorldLook look;
    look.push_back(std::move(flight));
    std::erase_if(sets, [&](auto& each) {
      const bool meets = std::ranges::any_of(worlds, [&](std::uint64_t world) { return each.first.contains(world); });
      if (!meets) return false;
      worlds.merge(each.first);
      std::ranges::move(each.second, std::back_inserter(look));
      return true;
    });
    sets.emplace_back(std::move(worlds), std::move(look));
  }
  std::vector<WorldLook> all;
  for (auto& [worlds, look] : sets) {
    std::ranges::sort(look, {}, [](const Flight& flight) { return flight.header.rank; });
    all.push_back(std::move(look));
  }
  std::ranges::sort(all, std::greater(), last_at_work);
  return all;
}

std::vector<Behind> behind(const WorldLook& look) {
  std::vector<Behind> all;
  for (const std::uint64_t world : all_worlds(look)) add_behind(look, world, all);
  return all;
}

std::vector<std::string> differing(const WorldLook& look) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::map<std::string, std::vector<std::uint32_t>>> kinds;
  std::map<std::uint64_t, std::string> names;
  for (const Flight& flight : look) {
    for (const FlightEntry& entry : flight.entries) {
      const bool is_each_its_own = text_of(entry.operation) == "all_to_all";
      kinds[{entry.world, entry.number}][is_each_its_own ? operation_text(entry) : kind_text(entry)].push_back(
          entry.rank);
      names[entry.world] = base::shown(text_of(entry.world_name));
    }
  }
  std::vector<std::string> all;
  for (const auto& [number, its] : kinds) {
    if (its.size() < 2) continue;
    std::string text = fmt::format("number {} of '{}' is ", number.second, names[number.first]);
    for (auto each = its.begin(); each != its.end(); ++each) {
      text += fmt::format("{}{} on rank{} {}", each == its.begin() ? "" : ", ", each->first,
                          each->second.size() == 1 ? "" : "s", list_text(each->second));
    }
    all.push_back(std::move(text));
  }
  return all;
}

std::string world_name(const WorldLook& look) { return text_of(look.front().header.world_name); }

std::string world_text(const WorldLook& look, Instant at) {
  const FlightHeader& opened = look.front().header;
  std::string all = fmt::format("world '{}': {} of {} ranks were on this host\n", base::shown(world_name(look)),
                                look.size(), opened.size);
  const std::map<std::uint64_t, Group> groups = groups_of(look);
  const auto own = std::ranges::find_if(groups, [&](const auto& each) { return is_opened(opened, each.second); });
  all += table_of(own == groups.end() ? look : of_world(look, own->first, true), at);
  for (const auto& [world, group] : groups) {
    if (own != groups.end() && world == own->first) continue;
    const WorldLook its = of_world(look, world, false);
    all += fmt::format("\n'{}': {} of {} ranks were on this host\n", group.description, its.size(),
                       its.front().entries.front().size);
    all += table_of(its, at);
  }
  for (const Behind& one : behind(look)) all += behind_text(one, at);
  for (const std::string& one : differing(look)) all += one + "\n";
  return all;
}

Json world_json(const WorldLook& look, Instant at) {
  Json json = {{"world", base::shown(world_name(look))},
               {"size", look.front().header.size},
               {"ranks", Json::array()},
               {"behind", Json::array()},
               {"differing", differing(look)}};
  const std::map<std::uint64_t, Group> groups = groups_of(look);
  for (const Flight& flight : look) {
    json["ranks"].push_back({{"rank", flight.header.rank},
                             {"process", flight.header.process},
                             {"state", state_text(flight)},
                             {"flight_recorder", torch_json(flight, groups)}});
  }
  for (const Behind& one : behind(look)) {
    json["behind"].push_back({{"world", one.world},
                              {"rank", one.rank},
                              {"is_alive", one.is_alive},
                              {"operation", one.operation},
                              {"number", one.number},
                              {"last_number", one.last},
                              {"waiting", one.waiting},
                              {"for_ns", std::max<std::int64_t>(at.ns() - one.since_ns, 0)}});
  }
  return json;
}

std::string agent_worlds_text(const std::vector<Flight>& flights, Instant at) {
  std::string all;
  for (const Flight& flight : flights) {
    const std::map<std::uint64_t, Group> groups = groups_of({flight});
    const bool has_own =
        std::ranges::any_of(groups, [&](const auto& each) { return is_opened(flight.header, each.second); });
    if (!has_own)
      all += line_of(base::shown(text_of(flight.header.world_name)), {.header = flight.header}, flight.header.size, at);
    for (const auto& [world, group] : groups) {
      const WorldLook its = of_world({flight}, world, false);
      all += line_of(group.description, its.front(), its.front().entries.front().size, at);
    }
  }
  return all;
}

Json agent_worlds_json(const std::vector<Flight>& flights) {
  Json all = Json::array();
  for (const Flight& flight : flights) {
    all.push_back({{"world", base::shown(text_of(flight.header.world_name))},
                   {"rank", flight.header.rank},
                   {"size", flight.header.size},
                   {"state", state_text(flight)},
                   {"flight_recorder", torch_json(flight, groups_of({flight}))}});
  }
  return all;
}

}  // namespace hawser::cli
