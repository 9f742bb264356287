#include "agent/peer_status.h"

#include <gtest/gtest.h>

namespace hawser::agent {
namespace {

std::string said_of(const Status& cause) {
  const PeerCore peer({}, "p", {1, 2});
  return std::string(gone_status(peer, cause).message());
}

TEST(PeerStatus, SaysHowCertainTheEndIs) {
  EXPECT_EQ(said_of(Status(Code::kDisconnected, "it said farewell")), "peer 'p' is gone");
  EXPECT_EQ(said_of(Status(Code::kDisconnected, "its socket broke").with_scope(Scope::kPath)), "peer 'p' was given up");
  EXPECT_EQ(said_of(Status(Code::kTimedOut, "it is silent")), "peer 'p' was given up");
  EXPECT_EQ(said_of(Status(Code::kCancelled, "invalidated")), "peer 'p' was forgotten");
}

TEST(PeerStatus, NamesThePeerAndWhatToDo) {
  const PeerCore peer({}, "p", {1, 2});
  const Status gone = gone_status(peer, Status(Code::kTimedOut, "it is silent"));
  EXPECT_EQ(gone.code(), Code::kDisconnected);
  EXPECT_EQ(gone.scope(), Scope::kPeer);
  EXPECT_EQ(gone.peer(), "p");
  EXPECT_NE(gone.to_string().find("it is silent"), std::string::npos);
  EXPECT_FALSE(gone.advice().empty());
}

TEST(PeerStatus, OneThatCannotBeTalkedToKeepsTheAdviceOfTheCause) {
  const PeerCore peer({}, "p", {1, 2});
  const Status gone = gone_status(peer, Status(Code::kUnsupported, "it speaks version 9").with_advice("upgrade"));
  EXPECT_EQ(gone.code(), Code::kUnsupported);
  EXPECT_EQ(gone.advice(), "upgrade");
}

TEST(PeerStatus, DownTellsTheKeptCauseAndThatNothingWasTouched) {
  PeerCore peer({}, "p", {1, 2});
  {
    const base::MutexLock lock(peer.use().mutex);
    peer.use().down_cause = Status(Code::kDisconnected, "it said farewell");
  }
  const Status down = down_status(peer);
  EXPECT_EQ(down.buffer(), BufferState::kUntouched);
  EXPECT_NE(down.to_string().find("it said farewell"), std::string::npos);
}

}  // namespace
}  // namespace hawser::agent
