#include "agent/verdict.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hawser::agent {
namespace {

using proto::SessionEvent;

const Attempt kNoSocket{.backend = "shm",
                        .why = Status(Code::kUnsupported, "there is no socket here")
                                   .with_scope(Scope::kPath)
                                   .with_advice("mount the folder in both")};
const Attempt kLoopbackOnly{
    .backend = "tcp",
    .why = Status(Code::kUnsupported, "it listens for its own host only").with_advice("there set HAWSER_LISTEN"),
    .leads_nowhere = true};
const Attempt kDeadProcess{.backend = "shm",
                           .why = Status(Code::kDisconnected, "its process ended").with_scope(Scope::kPeer)};
const Attempt kRefusedElsewhere{
    .backend = "tcp", .why = Status(Code::kDisconnected, "refused").with_scope(Scope::kPath), .refused = true};
const Attempt kNoAnswer{.backend = "tcp", .why = Status(Code::kTimedOut, "no answer").with_scope(Scope::kPath)};
const Attempt kOtherVersion{.backend = "tcp", .why = Status(Code::kUnsupported, "it speaks version 9")};
const Attempt kOtherUser{.backend = "shm", .why = Status(Code::kDenied, "of another user"), .leads_nowhere = true};

SessionEvent event(const std::vector<Attempt>& attempts) { return judge_attempts("there", attempts).event; }

TEST(Verdict, NotReachableIsNotDead) {
  EXPECT_EQ(event({}), SessionEvent::kUnreachable);
  EXPECT_EQ(event({kNoSocket}), SessionEvent::kUnreachable);
  EXPECT_EQ(event({kNoSocket, kLoopbackOnly}), SessionEvent::kUnreachable);
  EXPECT_EQ(event({kOtherUser, kLoopbackOnly}), SessionEvent::kUnreachable);
}

TEST(Verdict, OneProofIsEnough) {
  EXPECT_EQ(event({kDeadProcess}), SessionEvent::kPeerDead);
  EXPECT_EQ(event({kDeadProcess, kLoopbackOnly}), SessionEvent::kPeerDead);
  EXPECT_EQ(event({kNoAnswer, kDeadProcess}), SessionEvent::kPeerDead);
}

TEST(Verdict, WhatMayHealIsTriedAgain) {
  EXPECT_EQ(event({kNoSocket, kNoAnswer}), SessionEvent::kPathLost);
  EXPECT_EQ(event({kRefusedElsewhere, kNoAnswer}), SessionEvent::kPathLost);
  EXPECT_EQ(event({kOtherVersion, kNoAnswer}), SessionEvent::kPathLost);
}

TEST(Verdict, AShortageHereEndsTheAttemptAtOnce) {
  const Attempt shortage{.backend = "tcp", .why = Status(Code::kBusy, "RLIMIT_NOFILE = 256").with_scope(Scope::kAgent)};
  const Attempt there{.backend = "tcp", .why = Status(Code::kBusy, "it turns us away").with_scope(Scope::kPath)};
  for (const auto& attempts :
       {std::vector{shortage}, std::vector{kNoAnswer, shortage}, std::vector{kOtherVersion, shortage}}) {
    const Verdict verdict = judge_attempts("there", attempts);
    EXPECT_EQ(verdict.event, SessionEvent::kUnreachable);
    EXPECT_EQ(verdict.cause.code(), Code::kBusy) << verdict.cause.to_string();
  }
  EXPECT_EQ(event({shortage, kDeadProcess}), SessionEvent::kPeerDead);
  EXPECT_EQ(event({there}), SessionEvent::kPathLost);
}

TEST(Verdict, RefusalsFromElsewhereAreNoProof) {
  EXPECT_EQ(event({kNoSocket, kRefusedElsewhere}), SessionEvent::kRefused);
  EXPECT_EQ(event({kRefusedElsewhere, kOtherVersion}), SessionEvent::kRefused);
}

TEST(Verdict, APeerThatTurnsUsAwayIsTakenAtItsWord) {
  EXPECT_EQ(event({kNoSocket, kOtherVersion}), SessionEvent::kDenied);
}

TEST(Verdict, NamesEveryReasonAndEveryAdvice) {
  const Verdict verdict = judge_attempts("there", std::vector{kNoSocket, kLoopbackOnly});
  EXPECT_EQ(verdict.cause.code(), Code::kUnsupported);
  EXPECT_EQ(verdict.cause.peer(), "there");
  const std::string text = verdict.cause.to_string();
  for (const char* part : {"shm: there is no socket here", "tcp: it listens for its own host only",
                           "shm: mount the folder in both", "tcp: there set HAWSER_LISTEN"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
  const std::string mixed = judge_attempts("there", std::vector{kNoSocket, kNoAnswer}).cause.to_string();
  EXPECT_EQ(judge_attempts("there", std::vector{kNoSocket, kNoAnswer}).cause.code(), Code::kTimedOut);
  EXPECT_NE(mixed.find("there is no socket here"), std::string::npos) << mixed;
}

// Before, a peer whose goodbye was lost, and whose socket is gone, ended what was in flight as kUnsupported.
TEST(VerdictAtTheDeadline, OneThatWasUpIsLostWhateverHidesIt) {
  const Status no_socket(Code::kUnsupported, "there is no socket");
  const Status lost = status_at_deadline(no_socket, true);
  EXPECT_EQ(lost.code(), Code::kTimedOut);
  EXPECT_EQ(lost.cause(), no_socket);
  EXPECT_EQ(status_at_deadline(no_socket, false), no_socket) << "it never was up: nothing leads there";
  const Status reset(Code::kDisconnected, "reset");
  EXPECT_EQ(status_at_deadline(reset, true), reset);
}

}  // namespace
}  // namespace hawser::agent
