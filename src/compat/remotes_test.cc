// What is known of incarnations that come and go. None of these peers is ever connected.

#include "compat/remotes.h"

#include <gtest/gtest.h>

#include "base/inside.h"
#include "compat/test_peers.h"

namespace hawser::compat {
namespace {

struct RemotesTest : ::testing::Test {
  Status enter(const Peer& peer, std::string_view label = {}) {
    const RemoteCopy copy{.entries = entries, .ids = {{.index = 0, .generation = 1, .key = {}}}, .revision = 1};
    return remotes.enter("load_remote_md", "b", peer, copy, label);
  }
  bool is_known(const Peer& peer) {
    const Remote* const found = remotes.find("b");
    return found != nullptr && core_of(found->peer) == core_of(peer);
  }

  TestAgent own{"a"};
  TestAgent elder{"b", 1}, younger{"b", 2}, youngest{"b", 3};
  std::vector<BlobEntry> entries = {{.type = MemType::kDram, .region = 0, .desc = {.addr = 4096, .len = 64, .dev = 0}}};
  int invalidated = 0;
  Remotes remotes{[this](const Peer& peer) {
    ++invalidated;
    return own.agent.invalidate(peer);
  }};
};

TEST_F(RemotesTest, OneThatIsEnteredIsKnownUntilItIsForgotten) {
  EXPECT_FALSE(remotes.knows("b"));
  EXPECT_EQ(remotes.find("b"), nullptr);
  EXPECT_FALSE(remotes.last_peer("b").has_value());
  EXPECT_EQ(code_of(remotes.forget("invalidate_remote_md", "b")), NixlCode::kNotFound);
  const Peer peer = own.peer(elder);
  ASSERT_TRUE(enter(peer).ok());
  EXPECT_TRUE(is_known(peer));
  EXPECT_TRUE(remotes.current("call", peer).ok());
  EXPECT_EQ(remotes.names(), std::vector<std::string>{"b"});
  EXPECT_TRUE(remotes.forget("invalidate_remote_md", "b").ok());
  EXPECT_EQ(invalidated, 1);
  EXPECT_FALSE(remotes.knows("b"));
  EXPECT_EQ(code_of(remotes.current("call", peer)), NixlCode::kNotFound);
}

TEST_F(RemotesTest, TheYoungerOfTwoIncarnationsIsTalkedTo) {
  const Peer old = own.peer(elder), fresh = own.peer(younger);
  ASSERT_TRUE(enter(old).ok());
  ASSERT_TRUE(enter(fresh).ok());
  EXPECT_TRUE(is_known(fresh));
  EXPECT_EQ(code_of(remotes.current("call", old)), NixlCode::kNotFound);
  const Status late = enter(old);
  EXPECT_EQ(code_of(late), NixlCode::kNotAllowed) << "a copy of the elder one is late";
  EXPECT_TRUE(is_known(fresh));
}

TEST_F(RemotesTest, ARivalTakesOverWhenTheOneThatIsTalkedToIsGone) {
  const Peer old = own.peer(elder), fresh = own.peer(younger);
  ASSERT_TRUE(enter(fresh).ok());
  EXPECT_EQ(code_of(enter(old)), NixlCode::kNotAllowed);
  ASSERT_TRUE(own.agent.invalidate(fresh).ok());
  ASSERT_EQ(fresh.state(), PeerState::kDown);
  EXPECT_TRUE(is_known(old));
  EXPECT_EQ(remotes.find("b")->book.entries().size(), 1u) << "with what its copy said";
}

TEST_F(RemotesTest, OfThreeTheTwoYoungestAreKept) {
  const Peer one = own.peer(elder), two = own.peer(younger), three = own.peer(youngest);
  ASSERT_TRUE(enter(one).ok());
  ASSERT_TRUE(enter(two).ok());
  ASSERT_TRUE(enter(three).ok());
  EXPECT_TRUE(is_known(three));
  EXPECT_EQ(invalidated, 1) << "nobody has the eldest any more";
  EXPECT_EQ(one.state(), PeerState::kDown);
  EXPECT_NE(two.state(), PeerState::kDown);
}

TEST_F(RemotesTest, ThatOneDiedIsToldOnce) {
  const Peer peer = own.peer(elder);
  ASSERT_TRUE(enter(peer).ok());
  ASSERT_TRUE(own.agent.invalidate(peer).ok());
  EXPECT_EQ(code_of(remotes.current("call", peer)), NixlCode::kRemoteDisconnect);
  EXPECT_EQ(code_of(remotes.current("call", peer)), NixlCode::kNotFound);
  EXPECT_FALSE(remotes.knows("b"));
}

TEST_F(RemotesTest, OneIncarnationIsForgottenAndTheOtherStays) {
  const Peer old = own.peer(elder), fresh = own.peer(younger);
  ASSERT_TRUE(enter(fresh).ok());
  (void)enter(old);
  EXPECT_TRUE(remotes.forget_one("call", "b", agent::inner::incarnation_of(fresh)).ok());
  EXPECT_TRUE(is_known(old));
  EXPECT_TRUE(remotes.forget_one("call", "b", agent::inner::incarnation_of(fresh)).ok()) << "it is not known";
  EXPECT_TRUE(is_known(old));
  EXPECT_TRUE(remotes.forget_one("call", "b", agent::inner::incarnation_of(old)).ok());
  EXPECT_FALSE(remotes.knows("b"));
}

TEST_F(RemotesTest, WhatCameByLabelsGoesWithTheLastOfThem) {
  const Peer peer = own.peer(elder);
  ASSERT_TRUE(enter(peer, "x").ok());
  ASSERT_TRUE(enter(peer, "y").ok());
  EXPECT_TRUE(remotes.drop("call", "b", "").ok()) << "nothing came without a label";
  EXPECT_TRUE(remotes.drop("call", "b", "x").ok());
  ASSERT_TRUE(is_known(peer));
  EXPECT_EQ(remotes.find("b")->book.entries().size(), 1u);
  EXPECT_TRUE(remotes.drop("call", "b", "y").ok());
  EXPECT_FALSE(remotes.knows("b"));
}

TEST_F(RemotesTest, WhatCameWithoutALabelOutlivesTheLabels) {
  const Peer peer = own.peer(elder);
  ASSERT_TRUE(enter(peer, "x").ok());
  ASSERT_TRUE(enter(peer).ok());
  EXPECT_TRUE(remotes.drop("call", "b", "x").ok());
  ASSERT_TRUE(is_known(peer));
  EXPECT_EQ(remotes.find("b")->book.entries().size(), 1u);
  EXPECT_TRUE(remotes.drop("call", "b", "").ok());
  EXPECT_FALSE(remotes.knows("b"));
}

}  // namespace
}  // namespace hawser::compat
