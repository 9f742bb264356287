// What links of idle sessions keep.

#include "agent/engine/link_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "agent/engine/test_rig.h"
#include "base/bytes.h"

namespace hawser::agent {
namespace {

class LinkMemoryTest : public ::testing::Test {
 protected:
  static constexpr wire::Link kLink{Priority::kBulk};

  LinkMemoryTest() { rig_.connect(peer_); }
  Session& session() { return *peer_->session(); }
  bool is_set() { return session().alarms.is_set(SessionTimer::kTrim); }
  void keep_one() {
    const std::string text(1000, 'x');
    ASSERT_TRUE(session().links.push(kLink, base::as_bytes(text), {}));
    session().links.sent(kLink);
    rig_.engine.link_memory().note(session(), rig_.now());
  }
  void acknowledge() {
    const std::uint64_t last = session().links.next(kLink).seq - 1;
    ASSERT_TRUE(session().links.on_ack({.link = kLink, .up_to = last}).ok());
  }

  Rig rig_;
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
};

TEST_F(LinkMemoryTest, IsTakenBackOnceNothingIsKept) {
  session().links.set_lossless(false);
  keep_one();
  EXPECT_GT(session().links.memory(), 0U);
  EXPECT_TRUE(is_set());
  rig_.pass(kLinkMemoryPause);
  rig_.turn();
  EXPECT_GT(session().links.memory(), 0U) << "the peer has not acknowledged it";
  EXPECT_TRUE(is_set());
  acknowledge();
  rig_.pass(kLinkMemoryPause);
  rig_.turn();
  EXPECT_EQ(session().links.memory(), 0U);
  EXPECT_FALSE(is_set()) << "an idle session has no timer";
}

TEST_F(LinkMemoryTest, IsLookedForWhenAMessageIsKept) {
  session().links.set_lossless(false);
  rig_.turn();
  EXPECT_FALSE(is_set());
  ASSERT_TRUE(rig_.engine.messages().notify(session(), "text", rig_.now()).ok());
  rig_.turn();
  EXPECT_TRUE(is_set());
}

}  // namespace
}  // namespace hawser::agent
