#include "quicsim/packet_net.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::quicsim {
namespace {

using std::chrono::milliseconds;

base::SocketAddress at(const char* host, std::uint16_t port = 0) { return base::numeric_address({host, port}).value(); }

/// A host behind a cable, and one without.
class PacketNetTest : public testing::Test {
 protected:
  void join(const Weather& weather) {
    here_ = net_.add(at("10.1.0.1"), weather, [this](Datagram datagram) { here_got_.push_back(std::move(datagram)); });
    there_ = net_.add(at("10.0.0.1"), Weather{.latency = Duration(0)}, [this](Datagram datagram) {
      at_.push_back(world_.now());
      there_got_.push_back(std::move(datagram));
    });
    net_.on_lost = [this](std::size_t, const Route&) { ++lost_; };
  }
  void say(std::size_t bytes, const char* from = "10.1.0.1") {
    const std::vector<std::byte> datagram(bytes, std::byte{7});
    net_.send(here_, {.local = at(from, 100), .remote = at("10.0.0.1", 50)}, datagram);
  }
  void answer(const base::SocketAddress& to) {
    const std::vector<std::byte> datagram(10, std::byte{8});
    net_.send(there_, {.local = at("10.0.0.1", 50), .remote = to}, datagram);
  }

  sim::World world_{{.seed = 1}};
  PacketNet net_{world_};
  std::size_t here_ = 0, there_ = 0, lost_ = 0;
  std::vector<Datagram> here_got_, there_got_;
  std::vector<Instant> at_;
};

TEST_F(PacketNetTest, ARateAndAQueueThatIsBounded) {
  join({.latency = milliseconds(1), .bytes_per_ns = 0.001, .queue_bytes = 3000});
  const Instant began = world_.now();
  for (int i = 0; i < 5; ++i) say(1000);
  world_.run_for(milliseconds(100));
  ASSERT_EQ(there_got_.size(), 3u) << "the queue holds no more";
  EXPECT_EQ(lost_, 2u);
  EXPECT_EQ(at_[0] - began, milliseconds(2)) << "a byte takes a microsecond, and the way one millisecond";
  EXPECT_EQ(at_[2] - began, milliseconds(4));
}

TEST_F(PacketNetTest, LongDatagramsAndDeadCablesLose) {
  join({.datagram_max = 1200});
  say(1201);
  say(1200);
  net_.cable(here_).dead_until[PacketNet::kUp] = world_.now() + milliseconds(5);
  say(100);
  world_.run_for(milliseconds(6));
  say(100);
  world_.run_for(milliseconds(6));
  EXPECT_EQ(there_got_.size(), 2u);
  EXPECT_EQ(lost_, 2u);
}

TEST_F(PacketNetTest, ANatShiftsPortsAndForgetsTheOnesBefore) {
  join({});
  say(10);
  world_.run_for(milliseconds(1));
  ASSERT_EQ(there_got_.size(), 1u);
  const base::SocketAddress first = there_got_[0].route.remote;
  EXPECT_EQ(first.port(), 100);
  net_.shift(here_, PacketNet::kNatStep);
  say(10);
  world_.run_for(milliseconds(1));
  const base::SocketAddress second = there_got_.back().route.remote;
  EXPECT_EQ(second.port(), 100 + PacketNet::kNatStep);
  answer(second);
  answer(first);
  world_.run_for(milliseconds(1));
  ASSERT_EQ(here_got_.size(), 1u) << "the port before leads nowhere";
  EXPECT_EQ(lost_, 1u);
  EXPECT_EQ(here_got_[0].route.local.port(), 100);
}

TEST_F(PacketNetTest, AHostThatMovesHearsNothingAtItsOldAddress) {
  join({});
  net_.move(here_, at("10.2.0.1"));
  say(10);
  EXPECT_EQ(lost_, 1u) << "the address is not the host's any more";
  say(10, "10.2.0.1");
  answer(at("10.1.0.1", 100));
  answer(at("10.2.0.1", 100));
  world_.run_for(milliseconds(1));
  EXPECT_EQ(there_got_.size(), 1u);
  EXPECT_EQ(here_got_.size(), 1u);
  net_.unplug(here_);
  answer(at("10.2.0.1", 100));
  world_.run_for(milliseconds(1));
  EXPECT_EQ(here_got_.size(), 1u);
}

TEST_F(PacketNetTest, WeatherDoublesChangesAndCutsUntilItIsCalm) {
  join({.doubled = 1, .changed = 1});
  say(100);
  world_.run_for(milliseconds(1));
  ASSERT_EQ(there_got_.size(), 2u);
  for (const Datagram& datagram : there_got_) {
    EXPECT_FALSE(datagram.is_whole);
    EXPECT_NE(datagram.bytes, std::vector<std::byte>(100, std::byte{7}));
  }
  net_.calm();
  say(100);
  world_.run_for(milliseconds(1));
  ASSERT_EQ(there_got_.size(), 3u);
  EXPECT_TRUE(there_got_.back().is_whole);
}

}  // namespace
}  // namespace hawser::quicsim
