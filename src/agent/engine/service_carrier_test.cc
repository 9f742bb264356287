// What sessions do for services.

#include "agent/engine/service_carrier.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class ServiceCarrierTest : public ::testing::Test {
 protected:
  ServiceCarrierTest() { path_.sent.clear(); }
  Session& session() { return *peer_->session(); }
  Sent carry(std::string_view head, std::string_view body) {
    return carrier_.carry(session(), 2, base::as_bytes(head), base::as_bytes(body));
  }

  Rig rig_;
  Carrier& carrier_ = rig_.engine.carrier();
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = rig_.connect(peer_);
};

TEST_F(ServiceCarrierTest, AMessageTakesAPlaceAtThePeer) {
  EXPECT_EQ(carry("head", ""), Sent::kNoCredit);
  static_cast<void>(peer_->use().channels.on_credit({.channel = 2, .limits = channel_window(2)}));
  EXPECT_EQ(carry("head", "body"), Sent::kYes);
  const auto sent = wire::decode_send(*wire::open_envelope(base::as_bytes(path_.sent.at(0))));
  EXPECT_EQ(sent->channel, 2u);
  EXPECT_EQ(base::as_text(sent->bytes), "headbody");
  EXPECT_EQ(carry("head", ""), Sent::kYes);
  EXPECT_EQ(carry("head", ""), Sent::kNoCredit);
}

TEST_F(ServiceCarrierTest, WithoutRoomInTheQueueThePlaceIsGivenBack) {
  static_cast<void>(peer_->use().channels.on_credit({.channel = 2, .limits = channel_window(1)}));
  session().control_serial = 0;
  while (session().links.push(Priority::kRealtime, {}, base::as_bytes(std::string_view("full")))) continue;
  EXPECT_EQ(carry("head", ""), Sent::kNoRoom);
  EXPECT_EQ(carry("head", ""), Sent::kNoRoom) << "and not: no credit";
}

TEST_F(ServiceCarrierTest, ThereIsNoSessionWithAPeerThatIsDownOrInAnAgentThatCloses) {
  Status why;
  EXPECT_EQ(carrier_.session_with(Peer(peer_), &why), &session());
  const std::shared_ptr<PeerCore> gone = hand_peer("gone", 8);
  gone->state = PeerState::kDown;
  EXPECT_EQ(carrier_.session_with(Peer(gone), &why), nullptr);
  EXPECT_EQ(why.message(), "gone is down");
  rig_.engine.sessions().begin_close();
  EXPECT_EQ(carrier_.session_with(Peer(peer_), &why), nullptr);
  EXPECT_EQ(why.code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::agent
