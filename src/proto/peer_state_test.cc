#include "proto/peer_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace hawser::proto {
namespace {

using State = SessionState;
using Event = SessionEvent;

// What stands here is all that happens: every other pair of state and event changes nothing.
constexpr std::string_view kGolden = R"(known         want          connecting    arm deadline, open path
known         path up       up            greet, report up
known         peer dead     down          fail transfers, report down
known         restarted     down          fail transfers, report down
known         bye           down          fail transfers, report down
known         invalidate    down          fail transfers, report down
connecting    path up       up            disarm, greet, report up
connecting    path lost     backoff       start backoff
connecting    peer dead     down          disarm, fail transfers, release paths, report down
connecting    restarted     down          disarm, fail transfers, release paths, report down
connecting    denied        down          disarm, fail transfers, release paths, report down
connecting    deadline      down          disarm, fail transfers, release paths, report down
connecting    bye           down          disarm, fail transfers, release paths, report down
connecting    invalidate    down          disarm, fail transfers, release paths, report down
connecting    refused       backoff       report suspect, start backoff
connecting    unreachable   known         disarm, fail transfers, report unreached
up            path up       up            greet
up            path lost     connecting    report suspect, arm deadline, open path
up            peer dead     down          fail transfers, release paths, report down
up            restarted     down          fail transfers, release paths, report down
up            denied        down          fail transfers, release paths, report down
up            missed        suspect       report suspect
up            bye           down          fail transfers, release paths, report down
up            invalidate    down          send bye, fail transfers, release paths, report down
suspect       path up       up            disarm, greet, report up
suspect       path lost     connecting    arm deadline, open path
suspect       peer dead     down          disarm, fail transfers, release paths, report down
suspect       restarted     down          disarm, fail transfers, release paths, report down
suspect       denied        down          disarm, fail transfers, release paths, report down
suspect       heard         up            disarm, report up
suspect       bye           down          disarm, fail transfers, release paths, report down
suspect       invalidate    down          disarm, send bye, fail transfers, release paths, report down
suspect       backoff over  suspect       open beside
backoff       path up       up            disarm, greet, report up
backoff       peer dead     down          disarm, fail transfers, release paths, report down
backoff       restarted     down          disarm, fail transfers, release paths, report down
backoff       denied        down          disarm, fail transfers, release paths, report down
backoff       deadline      down          disarm, fail transfers, release paths, report down
backoff       bye           down          disarm, fail transfers, release paths, report down
backoff       invalidate    down          disarm, fail transfers, release paths, report down
backoff       backoff over  connecting    open path
down          want          down          fail transfers
down          path up       down          release paths
)";

TEST(PeerState, GoldenTable) { EXPECT_EQ(session_table(), kGolden); }

TEST(PeerState, EveryPairIsInTheGoldenTableOrChangesNothing) {
  std::size_t told = 0;
  for (std::size_t s = 0; s < kSessionStates; ++s) {
    for (std::size_t e = 0; e < kSessionEvents; ++e) {
      const auto state = static_cast<State>(s);
      const auto event = static_cast<Event>(e);
      const SessionStep& taken = step(state, event);
      if (taken.next == state && taken.count == 0) continue;
      ++told;
      std::string start(to_string(state));
      start.resize(14, ' ');
      start.append(to_string(event)).append("  ");
      EXPECT_NE(kGolden.find(start), std::string_view::npos) << start;
    }
  }
  EXPECT_EQ(static_cast<std::size_t>(std::count(kGolden.begin(), kGolden.end(), '\n')), told);
}

bool does(State state, Event event, SessionAction action) {
  const auto actions = step(state, event).to_do();
  return std::find(actions.begin(), actions.end(), action) != actions.end();
}

// What must hold of any table.
TEST(PeerState, Invariants) {
  for (std::size_t s = 0; s < kSessionStates; ++s) {
    for (std::size_t e = 0; e < kSessionEvents; ++e) {
      const auto state = static_cast<State>(s);
      const auto event = static_cast<Event>(e);
      SCOPED_TRACE(std::string(to_string(state)) + " + " + std::string(to_string(event)));
      const State next = step(state, event).next;
      EXPECT_TRUE(state != State::kDown || next == State::kDown);
      EXPECT_EQ(does(state, event, SessionAction::kReportDown), next == State::kDown && state != State::kDown);
      EXPECT_EQ(does(state, event, SessionAction::kReportUp), next == State::kUp && state != State::kUp);
      EXPECT_EQ(does(state, event, SessionAction::kGreet), event == Event::kPathUp && state != State::kDown);
      const bool mended = next == State::kConnecting || next == State::kBackoff;
      const bool mending = state == State::kConnecting || state == State::kBackoff;
      EXPECT_EQ(does(state, event, SessionAction::kArmDeadline), mended && !mending);
      const bool asks_on = state == State::kSuspect && next != State::kSuspect;  // It has a timer, too.
      EXPECT_EQ(does(state, event, SessionAction::kDisarm), (mending || asks_on) && !mended);
      EXPECT_EQ(does(state, event, SessionAction::kOpenPath), next == State::kConnecting && state != next);
      EXPECT_EQ(does(state, event, SessionAction::kStartBackoff), next == State::kBackoff && state != next);
      if (next == State::kDown && state != State::kKnown && state != State::kDown) {
        EXPECT_TRUE(does(state, event, SessionAction::kFailTransfers));
        EXPECT_TRUE(does(state, event, SessionAction::kReleasePaths));
      }
    }
  }
}

TEST(PeerState, ALifeWithAReconnect) {
  SessionMachine machine;
  EXPECT_EQ(machine.public_state(), PeerState::kKnown);
  machine.on(Event::kWant);
  EXPECT_EQ(machine.state(), State::kConnecting);
  EXPECT_EQ(machine.public_state(), PeerState::kKnown);
  machine.on(Event::kPathUp);
  EXPECT_EQ(machine.public_state(), PeerState::kUp);
  machine.on(Event::kMissed);
  EXPECT_EQ(machine.public_state(), PeerState::kSuspect);
  machine.on(Event::kHeard);
  machine.on(Event::kPathLost);
  EXPECT_EQ(machine.state(), State::kConnecting);
  EXPECT_TRUE(machine.was_up());
  EXPECT_EQ(machine.public_state(), PeerState::kSuspect);
  machine.on(Event::kPathLost);
  EXPECT_EQ(machine.state(), State::kBackoff);
  machine.on(Event::kBackoffOver);
  const auto last = machine.on(Event::kDeadline);
  ASSERT_EQ(last.size(), 4u);
  EXPECT_EQ(last[0], SessionAction::kDisarm);
  EXPECT_EQ(last[3], SessionAction::kReportDown);
  EXPECT_EQ(machine.public_state(), PeerState::kDown);
}

TEST(PeerState, APeerWhoseHostRefusesIsSuspectUntilItIsUpOrDown) {
  SessionMachine machine;
  machine.on(Event::kWant);
  machine.on(Event::kRefused);
  EXPECT_EQ(machine.state(), State::kBackoff);
  EXPECT_EQ(machine.public_state(), PeerState::kSuspect);
  machine.on(Event::kBackoffOver);
  EXPECT_EQ(machine.public_state(), PeerState::kSuspect);
  machine.on(Event::kPathUp);
  EXPECT_EQ(machine.public_state(), PeerState::kUp);
}

TEST(PeerState, APeerToWhichNoPathLeadsStaysKnown) {
  SessionMachine machine;
  machine.on(Event::kWant);
  machine.on(Event::kUnreachable);
  EXPECT_EQ(machine.state(), State::kKnown);
  EXPECT_EQ(machine.public_state(), PeerState::kKnown);
  machine.on(Event::kWant);
  EXPECT_EQ(machine.state(), State::kConnecting);
}

TEST(PeerState, NamesOfUnknownNumbers) {
  EXPECT_EQ(to_string(static_cast<State>(77)), "unknown");
  EXPECT_EQ(to_string(static_cast<Event>(77)), "unknown");
  EXPECT_EQ(to_string(static_cast<SessionAction>(77)), "unknown");
}

}  // namespace
}  // namespace hawser::proto
