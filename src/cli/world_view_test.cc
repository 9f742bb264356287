#include "cli/world_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "schedule/collective.h"

namespace hawser::cli {
namespace {

using runtime::Flight;
using runtime::FlightEntry;
using runtime::FlightState;

constexpr std::int64_t kMs = 1'000'000;

Flight rank_flight(std::uint32_t rank, std::uint32_t size = 3) {
  Flight flight;
  flight.header.rank = rank;
  flight.header.size = size;
  flight.header.process = 100 + rank;
  flight.header.opened_wall_ns = 1'000'000'000'000;
  flight.is_alive = true;
  runtime::put_text(flight.header.world_name, "trainer");
  return flight;
}

void add(Flight& flight, std::uint64_t number, std::int64_t begun_ms, std::int64_t ended_ms, std::uint64_t count = 4,
         std::string_view operation = "all_reduce", std::uint64_t world = 9) {
  FlightEntry entry;
  entry.stamp = flight.entries.size() + 1;
  entry.world = world;
  entry.number = number;
  entry.rank = flight.header.rank;
  entry.size = flight.header.size;
  entry.begun_ns = begun_ms * kMs;
  entry.ended_ns = ended_ms * kMs;
  entry.state = ended_ms < 0 ? FlightState::kBegun : FlightState::kEnded;
  entry.count = entry.inputs = entry.outputs = count;
  entry.type = 2;
  entry.algorithm = static_cast<std::uint32_t>(schedule::Algorithm::kTree) + 1;
  runtime::put_text(entry.operation, operation);
  runtime::put_text(entry.world_name, world == 9 ? "trainer" : "trainer/1.0");
  flight.entries.push_back(entry);
  flight.header.last_ns = std::max(flight.header.last_ns, begun_ms * kMs);
}

/// Ranks 0 and 1 wait in number 2 for rank 2, which died.
WorldLook one_dead() {
  WorldLook look = {rank_flight(0), rank_flight(1), rank_flight(2)};
  for (Flight& flight : look) add(flight, 1, 10 + flight.header.rank, 20);
  add(look[0], 2, 30, -1);
  add(look[1], 2, 25, -1);
  look[2].is_alive = false;
  return look;
}

TEST(WorldView, NamesTheRankThatTheOthersWaitFor) {
  const std::vector<Behind> all = behind(one_dead());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].rank, 2u);
  EXPECT_EQ(all[0].number, 2u);
  EXPECT_EQ(all[0].last, 1u);
  EXPECT_FALSE(all[0].is_alive);
  EXPECT_EQ(all[0].waiting, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(all[0].since_ns, 25 * kMs);
  const std::string text = world_text(one_dead(), Instant::from_ns(1025 * kMs));
  EXPECT_NE(text.find("rank 2 of 'trainer' is dead and had not begun all_reduce"), std::string::npos) << text;
  EXPECT_NE(text.find("ranks 0 and 1 wait for it, since 1.00 s ago"), std::string::npos) << text;
}

TEST(WorldView, WhoGaveUpHasWaitedToo) {
  WorldLook look = one_dead();
  FlightEntry& given_up = look[0].entries.back();
  given_up.state = FlightState::kEnded;
  given_up.code = static_cast<std::uint8_t>(Code::kDisconnected);
  // Rank 0 lives: it went on in another world, and waits for nobody here.
  ASSERT_EQ(behind(look).size(), 1u);
  EXPECT_EQ(behind(look)[0].waiting, std::vector<std::uint32_t>{1});
  look[0].is_alive = false;
  ASSERT_EQ(behind(look).size(), 1u);
  EXPECT_EQ(behind(look)[0].waiting, (std::vector<std::uint32_t>{0, 1}));
}

TEST(WorldView, NobodyIsBehindWhereNobodyWaits) {
  WorldLook look = one_dead();
  for (Flight& flight : look) flight.entries.resize(1);
  EXPECT_TRUE(behind(look).empty());
  add(look[0], 2, 30, -1), add(look[1], 2, 30, -1), add(look[2], 2, 30, -1);
  EXPECT_TRUE(behind(look).empty());
}

TEST(WorldView, CountsWhoBeganLast) {
  WorldLook look = {rank_flight(0, 2), rank_flight(1, 2)};
  for (int i = 1; i <= 4; ++i) {
    add(look[0], static_cast<std::uint64_t>(i), 10 * i, 10 * i + 5);
    add(look[1], static_cast<std::uint64_t>(i), 10 * i + (i == 4 ? -1 : 1), 10 * i + 5);
  }
  const std::string text = world_text(look, Instant::from_ns(100 * kMs));
  EXPECT_NE(text.find("1 times"), std::string::npos) << text;
  EXPECT_NE(text.find("3 times"), std::string::npos) << text;
}

TEST(WorldView, CallsThatDoNotFitAreTold) {
  WorldLook look = {rank_flight(0, 2), rank_flight(1, 2)};
  add(look[0], 1, 10, -1, 4);
  add(look[1], 1, 10, -1, 5);
  const std::vector<std::string> all = differing(look);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NE(all[0].find("of 4 on rank 0"), std::string::npos) << all[0];
  EXPECT_NE(all[0].find("of 5 on rank 1"), std::string::npos) << all[0];
  look[1].entries[0].count = 4;
  EXPECT_TRUE(differing(look).empty());
}

TEST(WorldView, FormationsOfOneNameAreApart) {
  std::vector<Flight> flights = {rank_flight(1), rank_flight(0), rank_flight(0), rank_flight(2)};
  add(flights[0], 1, 10, 20), add(flights[1], 1, 10, 20);
  add(flights[2], 1, 50, 60, 4, "barrier", 8);
  add(flights[3], 1, 11, 20, 4, "barrier", 7);
  add(flights[3], 2, 12, 20);  // Its other world is in the first formation.
  const std::vector<WorldLook> all = formations(flights);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].size(), 1u);  // At work last.
  ASSERT_EQ(all[1].size(), 3u);
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(all[1][rank].header.rank, rank);
  EXPECT_TRUE(formations({}).empty());
}

TEST(WorldView, GroupsCountByThemselves) {
  WorldLook look = {rank_flight(0, 2), rank_flight(1, 2)};
  add(look[0], 5, 10, 20), add(look[1], 5, 10, 20);
  add(look[0], 1, 30, -1, 4, "barrier", 77);
  add(look[1], 0, 12, 13, 4, "barrier", 77);
  const std::vector<Behind> all = behind(look);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].world, "trainer/1.0");
}

TEST(WorldView, HasTheFormOfTorchsRecorder) {
  const Json all = world_json(one_dead(), Instant::from_ns(100 * kMs));
  EXPECT_EQ(all["ranks"].size(), 3u);
  EXPECT_EQ(all["behind"][0]["rank"], 2);
  const Json& flight = all["ranks"][0]["flight_recorder"];
  const std::string group = "0000000000000009";
  EXPECT_EQ(flight["pg_config"][group]["desc"], "trainer");
  EXPECT_EQ(flight["pg_config"][group]["ranks"], "[0, 1, 2]");
  EXPECT_EQ(flight["pg_status"][group]["last_enqueued_collective"], 2);
  EXPECT_EQ(flight["pg_status"][group]["last_completed_collective"], 1);
  EXPECT_EQ(flight["entries"][0]["process_group"][0], group);
  EXPECT_EQ(flight["entries"][0]["algorithm"], to_string(schedule::Algorithm::kTree));
  ASSERT_EQ(flight["entries"].size(), 2u);
  EXPECT_EQ(flight["entries"][0]["state"], "completed");
  EXPECT_EQ(flight["entries"][0]["duration_ms"], 10.0);
  EXPECT_EQ(flight["entries"][1]["state"], "started");
  EXPECT_EQ(flight["entries"][1]["profiling_name"], "hawser:all_reduce");
  EXPECT_EQ(flight["entries"][1]["collective_seq_id"], 2);
}

// Ranks 1 and 2 of the world are 0 and 1 of a group.
TEST(WorldView, GroupsAreToldByTheRanksOfTheirWorld) {
  WorldLook look = {rank_flight(0), rank_flight(1), rank_flight(2)};
  for (Flight& flight : look) {
    add(flight, 1, 10, 20);
    if (flight.header.rank > 0) add(flight, 1, 30, 40, 4, "barrier", 77);
    if (flight.header.rank > 0) flight.entries.back().rank = flight.header.rank - 1;
  }
  const Json all = world_json(look, Instant::from_ns(100 * kMs));
  for (const int rank : {1, 2}) {
    const Json& flight = all["ranks"][static_cast<std::size_t>(rank)]["flight_recorder"];
    EXPECT_EQ(flight["pg_config"]["000000000000004d"]["ranks"], "[1, 2]");
    EXPECT_EQ(flight["entries"][1]["pg_id"], 1);
  }
}

TEST(WorldView, EachGroupHasATableOfItsOwn) {
  WorldLook look = {rank_flight(0), rank_flight(1), rank_flight(2)};
  for (Flight& flight : look) {
    add(flight, 5, 10, 20);
    if (flight.header.rank == 0) continue;
    add(flight, 1, 30 + flight.header.rank, flight.header.rank == 1 ? -1 : 50, 4, "barrier", 77);
    flight.entries.back().rank = flight.header.rank - 1;
    flight.entries.back().size = 2;
  }
  const std::string text = world_text(look, Instant::from_ns(1031 * kMs));
  EXPECT_NE(text.find("world 'trainer': 3 of 3 ranks"), std::string::npos) << text;
  const std::size_t group = text.find("'trainer/1.0': 2 of 2 ranks");
  ASSERT_NE(group, std::string::npos) << text;
  EXPECT_EQ(text.find("1.00 s"), text.find("1.00 s", group)) << text;  // Only there a rank is at work.
  EXPECT_NE(text.find("1 times", group), std::string::npos) << text;   // All of the group came.
}

TEST(WorldView, AnAgentsWorldsAreALineEach) {
  std::vector<Flight> flights = {rank_flight(1, 2), rank_flight(0, 3)};
  add(flights[0], 3, 10, 20);
  add(flights[0], 1, 30, -1, 4, "barrier", 77);
  runtime::put_text(flights[1].header.world_name, "pairs");
  const std::string text = agent_worlds_text(flights, Instant::from_ns(1030 * kMs));
  EXPECT_EQ(text,
            "  world 'trainer': rank 1 of 2, all_reduce f32 number 3 ended 1.01 s ago\n"
            "  world 'trainer/1.0': rank 1 of 2, barrier f32 number 1 for 1.00 s\n"
            "  world 'pairs': rank 0 of 3\n");
  const Json listed = agent_worlds_json(flights);
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[0]["flight_recorder"]["pg_config"].size(), 2U);
  EXPECT_EQ(listed[1]["world"], "pairs");
  EXPECT_EQ(listed[1]["flight_recorder"]["entries"].size(), 0U);
}

TEST(WorldView, HostileNamesAreWrittenOut) {
  WorldLook look = {rank_flight(0, 1)};
  add(look[0], 1, 10, 20, 4, "bad\nname\x1b[2J");
  const std::string text = world_text(look, Instant::from_ns(100 * kMs));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::ranges::count(text, '\n'), 3) << text;
  EXPECT_FALSE(world_json(look, Instant::from_ns(0)).dump().empty());
}

}  // namespace
}  // namespace hawser::cli
