#include "proto/peer_state.h"

#include <initializer_list>

#include "proto/table_text.h"

namespace hawser::proto {
namespace {

using enum SessionState;
using enum SessionEvent;
using enum SessionAction;

struct Rule {
  SessionState state;
  SessionEvent event;
  SessionState next;
  std::initializer_list<SessionAction> actions;
};

struct Table {
  std::array<std::array<SessionStep, kSessionEvents>, kSessionStates> steps{};
};

constexpr void apply(Table& table, const Rule& rule) {
  SessionStep& entry = table.steps[static_cast<std::size_t>(rule.state)][static_cast<std::size_t>(rule.event)];
  entry.next = rule.next;
  for (const SessionAction action : rule.actions) entry.actions[entry.count++] = action;
}

// What stands in no rule changes nothing: late timers, news of a peer that nobody asked for, or of one that is down.
constexpr void add_rules(Table& table) {
  for (const Rule& rule : std::initializer_list<Rule>{
           {kKnown, kWant, kConnecting, {kArmDeadline, kOpenPath}},
           {kKnown, kPathUp, kUp, {kGreet, kReportUp}},
           // Transfers may wait here, though nobody wants the peer yet: they follow another, or a word.
           {kKnown, kPeerDead, kDown, {kFailTransfers, kReportDown}},
           {kKnown, kRestarted, kDown, {kFailTransfers, kReportDown}},
           {kKnown, kBye, kDown, {kFailTransfers, kReportDown}},
           {kKnown, kInvalidate, kDown, {kFailTransfers, kReportDown}},

           {kConnecting, kPathUp, kUp, {kDisarm, kGreet, kReportUp}},
           {kConnecting, kPathLost, kBackoff, {kStartBackoff}},
           {kConnecting, kRefused, kBackoff, {kReportSuspect, kStartBackoff}},
           // It is not down: the user may open a listener, mount a folder, or load a card with other addresses.
           {kConnecting, kUnreachable, kKnown, {kDisarm, kFailTransfers, kReportUnreached}},

           {kUp, kPathUp, kUp, {kGreet}},
           // Again at once, without a pause: mostly one connection broke and the peer is well.
           {kUp, kPathLost, kConnecting, {kReportSuspect, kArmDeadline, kOpenPath}},
           {kUp, kMissed, kSuspect, {kReportSuspect}},

           {kSuspect, kPathUp, kUp, {kDisarm, kGreet, kReportUp}},
           {kSuspect, kPathLost, kConnecting, {kArmDeadline, kOpenPath}},
           {kSuspect, kHeard, kUp, {kDisarm, kReportUp}},
           // The way may be there again, and the connection still wait: its pauses double.
           {kSuspect, kBackoffOver, kSuspect, {kOpenBeside}},

           {kBackoff, kPathUp, kUp, {kDisarm, kGreet, kReportUp}},
           {kBackoff, kBackoffOver, kConnecting, {kOpenPath}},

           {kDown, kWant, kDown, {kFailTransfers}},
           {kDown, kPathUp, kDown, {kReleasePaths}},
       }) {
    apply(table, rule);
  }
}

constexpr void add_ends(Table& table) {
  for (const SessionState state : {kConnecting, kBackoff}) {
    for (const SessionEvent event : {kPeerDead, kRestarted, kDenied, kDeadline, kBye, kInvalidate}) {
      apply(table, {state, event, kDown, {kDisarm, kFailTransfers, kReleasePaths, kReportDown}});
    }
  }
  for (const SessionEvent event : {kPeerDead, kRestarted, kDenied, kBye}) {
    apply(table, {kUp, event, kDown, {kFailTransfers, kReleasePaths, kReportDown}});
    apply(table, {kSuspect, event, kDown, {kDisarm, kFailTransfers, kReleasePaths, kReportDown}});
  }
  apply(table, {kUp, kInvalidate, kDown, {kSendBye, kFailTransfers, kReleasePaths, kReportDown}});
  apply(table, {kSuspect, kInvalidate, kDown, {kDisarm, kSendBye, kFailTransfers, kReleasePaths, kReportDown}});
}

constexpr Table make_table() {
  Table table;
  for (std::size_t state = 0; state < kSessionStates; ++state) {
    for (SessionStep& entry : table.steps[state]) entry.next = static_cast<SessionState>(state);
  }
  add_rules(table);
  add_ends(table);
  return table;
}

constexpr Table kTable = make_table();

constexpr std::array<std::string_view, kSessionStates> kStateNames = {"known",   "connecting", "up",
                                                                      "suspect", "backoff",    "down"};
constexpr std::array<std::string_view, kSessionEvents> kEventNames = {
    "want",   "path up", "path lost", "peer dead",  "restarted",    "denied",  "deadline",
    "missed", "heard",   "bye",       "invalidate", "backoff over", "refused", "unreachable"};
constexpr std::array<std::string_view, 14> kActionNames = {
    "nothing",  "arm deadline",  "disarm",           "open path",   "start backoff",
    "greet",    "report up",     "report suspect",   "report down", "fail transfers",
    "send bye", "release paths", "report unreached", "open beside"};

void append_line(std::string& out, SessionState state, SessionEvent event, const SessionStep& taken) {
  constexpr std::size_t kWidth = 14;
  append_padded(out, to_string(state), kWidth);
  append_padded(out, to_string(event), kWidth);
  if (taken.count == 0) {
    out.append(to_string(taken.next));
  } else {
    append_padded(out, to_string(taken.next), kWidth);
  }
  append_actions(out, taken.to_do());
}

}  // namespace

std::string_view to_string(SessionState state) { return name_in(kStateNames, state); }
std::string_view to_string(SessionEvent event) { return name_in(kEventNames, event); }
std::string_view to_string(SessionAction action) { return name_in(kActionNames, action); }

const SessionStep& step(SessionState state, SessionEvent event) {
  return kTable.steps[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

std::span<const SessionAction> SessionMachine::on(SessionEvent event) {
  const SessionStep& taken = step(state_, event);
  state_ = taken.next;
  was_up_ = was_up_ || state_ == kUp;
  was_refused_ = event == kRefused || (was_refused_ && state_ != kUp && state_ != kKnown);
  return taken.to_do();
}

PeerState SessionMachine::public_state() const {
  switch (state_) {
    case SessionState::kUp:
      return PeerState::kUp;
    case SessionState::kDown:
      return PeerState::kDown;
    case SessionState::kSuspect:
      return PeerState::kSuspect;
    default:
      return was_up_ || was_refused_ ? PeerState::kSuspect : PeerState::kKnown;
  }
}

std::string session_table() {
  std::string out;
  for (std::size_t state = 0; state < kSessionStates; ++state) {
    for (std::size_t event = 0; event < kSessionEvents; ++event) {
      const SessionStep& entry = kTable.steps[state][event];
      if (entry.count == 0 && static_cast<std::size_t>(entry.next) == state) continue;
      append_line(out, static_cast<SessionState>(state), static_cast<SessionEvent>(event), entry);
    }
  }
  return out;
}

}  // namespace hawser::proto
