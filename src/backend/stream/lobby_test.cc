#include "backend/stream/lobby.h"

#include <gtest/gtest.h>

#include <array>

namespace hawser::backend::stream {
namespace {

using namespace std::chrono_literals;

struct LobbyTest : ::testing::Test {
  Lobby::Guest enter(int guest, std::uint64_t source, bool is_kin = false) {
    now = now + 1ms;
    return lobby.enter(&guests[static_cast<std::size_t>(guest)], source, is_kin, now);
  }
  void wait() { now = now + Lobby::kHeldAtLeast; }

  std::array<char, 256> guests = {};
  Lobby lobby;
  Instant now = Instant::from_ns(1);
};

TEST_F(LobbyTest, OneSourceHoldsSixteenPlacesAndItsOldestGives) {
  for (int i = 0; i < 16; ++i) EXPECT_EQ(enter(i, 7), nullptr);
  wait();
  EXPECT_EQ(enter(100, 8), nullptr) << "another source";
  EXPECT_EQ(enter(16, 7), &guests[0]);
  EXPECT_EQ(enter(17, 7), &guests[1]);
  EXPECT_EQ(lobby.size(), 17u);
}

TEST_F(LobbyTest, TheSameUserIsExemptFromTheBoundOfItsSource) {
  for (int i = 0; i < 60; ++i) EXPECT_EQ(enter(i, 7, true), nullptr);
}

TEST_F(LobbyTest, WhereAllPlacesAreTakenTheOldestStrangerGivesAndTheSameUserLast) {
  enter(0, 1, true);
  for (int i = 1; i < 64; ++i) enter(i, static_cast<std::uint64_t>(i));
  wait();
  EXPECT_EQ(enter(64, 64, true), &guests[1]);
  for (int i = 2; i < 64; ++i) EXPECT_EQ(enter(70 + i, 1, true), &guests[i]);
  wait();
  EXPECT_EQ(enter(200, 1, true), &guests[0]);
  EXPECT_EQ(lobby.size(), Lobby::kPlaces);
}

TEST_F(LobbyTest, NobodyGivesWayAtOnce) {
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(lobby.has_room(now));
    lobby.enter(&guests[static_cast<std::size_t>(i)], static_cast<std::uint64_t>(i), false, now);
  }
  EXPECT_FALSE(lobby.has_room(now));
  EXPECT_EQ(lobby.next_room(), now + Lobby::kHeldAtLeast);
  wait();
  EXPECT_TRUE(lobby.has_room(now));
  EXPECT_EQ(enter(64, 9), &guests[0]);
}

TEST_F(LobbyTest, ABurstOfOneSourceIsDownToSixteenAsSoonAsItMayBe) {
  for (int i = 0; i < 40; ++i) lobby.enter(&guests[static_cast<std::size_t>(i)], 7, false, now);
  for (int i = 40; i < 60; ++i) lobby.enter(&guests[static_cast<std::size_t>(i)], 7, true, now);
  EXPECT_EQ(lobby.take_surplus(now), nullptr) << "they have just come";
  EXPECT_EQ(lobby.surplus_at(), now + Lobby::kHeldAtLeast);
  wait();
  for (int i = 0; i < 24; ++i) EXPECT_EQ(lobby.take_surplus(now), &guests[static_cast<std::size_t>(i)]);
  EXPECT_EQ(lobby.take_surplus(now), nullptr);
  EXPECT_EQ(lobby.surplus_at(), Instant::max());
  EXPECT_EQ(lobby.size(), 16u + 20u);
}

TEST_F(LobbyTest, WhoIsProvenLeaves) {
  enter(0, 7);
  lobby.rename(&guests[0], &guests[1]);
  lobby.leave(&guests[0]);
  EXPECT_EQ(lobby.size(), 1u);
  lobby.leave(&guests[1]);
  EXPECT_EQ(lobby.size(), 0u);
}

}  // namespace
}  // namespace hawser::backend::stream
