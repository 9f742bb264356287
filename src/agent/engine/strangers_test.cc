// Peers of whom an address is known and nothing else.

#include "agent/engine/strangers.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class StrangersTest : public ::testing::Test, private PortListener {
 protected:
  void on_event(std::size_t, const backend::PortEvent&, Instant) override {}
  Result<std::uint64_t> open() { return strangers_.open("host:1", "somebody", {}, Instant::max(), Instant()); }

  Ports ports_{*this};
  Strangers strangers_{ports_};
};

TEST_F(StrangersTest, AnAddressIsAskedOverTheFirstOfTcpAndQuic) {
  EXPECT_EQ(open().error().code(), Code::kUnsupported);
  const Hand shm = add_hand(ports_, "shm"), quic = add_hand(ports_, "quic");
  ASSERT_TRUE(open());
  EXPECT_EQ(quic.port->opened.front().address, "host:1");
  const Hand tcp = add_hand(ports_, "tcp");
  ASSERT_TRUE(open());
  EXPECT_EQ(tcp.port->opened.size(), 1u);
  EXPECT_TRUE(shm.port->opened.empty());
}

TEST_F(StrangersTest, WhoItIsComesWithItsPathAndThePathIsNoStrangersThen) {
  const Hand tcp = add_hand(ports_, "tcp");
  const std::uint64_t number = open().value();
  HandPath& path = tcp.port->last();
  EXPECT_EQ(*strangers_.take(number), nullptr);
  EXPECT_TRUE(strangers_.is_theirs(&path));
  const std::shared_ptr<PeerCore> peer = hand_peer("there");
  strangers_.on_up(&path, peer);
  EXPECT_EQ(*strangers_.take(number), peer);
  EXPECT_FALSE(strangers_.is_theirs(&path));
  strangers_.drop(number);
  EXPECT_TRUE(tcp.port->released.empty()) << "it is a session's now";
  EXPECT_FALSE(strangers_.take(number));
}

TEST_F(StrangersTest, WhyNobodyCameIsToldAndAPathOnItsWayIsReleased) {
  const Hand tcp = add_hand(ports_, "tcp");
  const std::uint64_t refused = open().value(), waiting = open().value();
  strangers_.on_down(tcp.port->paths[0].get(), Status(Code::kDenied, "no"));
  EXPECT_EQ(strangers_.take(refused).error().code(), Code::kDenied);
  strangers_.drop(waiting);
  EXPECT_EQ(tcp.port->released, std::vector<backend::Path*>{tcp.port->paths[1].get()});
  strangers_.drop_all();
  EXPECT_EQ(strangers_.take(refused).error().code(), Code::kDisconnected);
}

}  // namespace
}  // namespace hawser::agent
