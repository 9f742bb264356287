#include "proto/queue_pair.h"

#include <initializer_list>

#include "proto/table_text.h"

namespace hawser::proto {
namespace {

using enum QueuePairState;
using enum QueuePairEvent;
using enum QueuePairAction;
using enum QueuePairRole;

struct Rule {
  QueuePairState state;
  QueuePairEvent event;
  QueuePairState next;
  std::initializer_list<QueuePairAction> actions;
};

struct Table {
  std::array<std::array<std::array<QueuePairStep, kQueuePairEvents>, kQueuePairStates>, kQueuePairRoles> steps{};
};

constexpr void apply(Table& table, QueuePairRole role, const Rule& rule) {
  auto& entry = table.steps[static_cast<std::size_t>(role)][static_cast<std::size_t>(rule.state)]
                           [static_cast<std::size_t>(rule.event)];
  entry.next = rule.next;
  for (const QueuePairAction action : rule.actions) entry.actions[entry.count++] = action;
}

// What stands in no rule changes nothing: late timers, repeated messages, news of what is over.
constexpr void add_active(Table& table) {
  for (const Rule& rule : std::initializer_list<Rule>{
           {kAbsent, kWant, kConnecting, {kNextEpoch, kMake, kSendConnect, kArm}},

           {kConnecting, kAccept, kProving, {kReportFenced, kJoin, kProve, kArm}},
           {kConnecting, kTimer, kConnecting, {kSendConnect}},
           {kConnecting, kBroken, kBackoff, {kReset, kReportFailed, kArmBackoff}},
           {kConnecting, kFault, kBackoff, {kReset, kReportFailed, kArmBackoff}},
           {kConnecting, kExpired, kBackoff, {kReset, kReportFailed, kArmBackoff}},

           {kProving, kProved, kReady, {kSendReady, kDisarm, kReportReady}},
           {kProving, kBroken, kBackoff, {kReset, kReportFailed, kArmBackoff}},
           {kProving, kFault, kBackoff, {kReset, kReportFailed, kArmBackoff}},
           {kProving, kExpired, kBackoff, {kReset, kReportFailed, kArmBackoff}},

           {kReady, kAccept, kReady, {kSendReady}},  // The peer says it again: our Ready did not come.
           {kReady, kBroken, kDraining, {kReportLost, kDrain, kArm}},
           {kReady, kFault, kDraining, {kReportLost, kDrain, kArm}},

           {kDraining, kDrained, kBackoff, {kReset, kArmBackoff}},
           {kDraining, kExpired, kBackoff, {kReset, kArmBackoff}},

           {kBackoff, kTimer, kConnecting, {kNextEpoch, kMake, kSendConnect, kArm}},
           {kBackoff, kWant, kConnecting, {kNextEpoch, kMake, kSendConnect, kArm}},
           {kBackoff, kReadyHeard, kConnecting, {kNextEpoch, kMake, kSendConnect, kArm}},  // The peer asks for it.
       }) {
    apply(table, kActive, rule);
  }
}

constexpr void add_passive(Table& table) {
  for (const Rule& rule : std::initializer_list<Rule>{
           {kAbsent, kConnect, kAccepted, {kReset, kReportFenced, kMake, kJoin, kSendAccept, kArm}},

           // That attempt is over here; the peer does not know it yet.
           {kAbsent, kConnectAgain, kAbsent, {kSendBroken}},

           {kAccepted, kConnect, kAccepted, {kReset, kReportFenced, kMake, kJoin, kSendAccept, kArm}},
           {kAccepted, kConnectAgain, kAccepted, {kSendAccept}},
           {kAccepted, kReadyHeard, kReady, {kDisarm, kReportReady}},
           {kAccepted, kTimer, kAccepted, {kSendAccept}},
           {kAccepted, kFault, kAbsent, {kReset, kDisarm, kSendBroken, kReportFailed}},
           {kAccepted, kExpired, kAbsent, {kReset, kDisarm, kSendBroken, kReportFailed}},

           {kReady, kConnect, kAccepted, {kReportLost, kReset, kReportFenced, kMake, kJoin, kSendAccept, kArm}},
           {kReady, kFault, kDraining, {kReportLost, kDrain, kSendBroken, kArm}},

           {kDraining, kConnect, kAccepted, {kReset, kReportFenced, kMake, kJoin, kSendAccept, kArm}},
           {kDraining, kConnectAgain, kDraining, {kSendBroken}},
           {kDraining, kDrained, kAbsent, {kReset, kDisarm}},
           {kDraining, kExpired, kAbsent, {kReset, kDisarm}},
       }) {
    apply(table, kPassive, rule);
  }
}

constexpr Table make_table() {
  Table table;
  for (std::size_t role = 0; role < kQueuePairRoles; ++role) {
    for (std::size_t state = 0; state < kQueuePairStates; ++state) {
      for (QueuePairStep& entry : table.steps[role][state]) entry.next = static_cast<QueuePairState>(state);
      if (state == static_cast<std::size_t>(kClosed)) continue;
      apply(table, static_cast<QueuePairRole>(role),
            {static_cast<QueuePairState>(state), kClose, kClosed, {kReset, kDisarm}});
    }
  }
  add_active(table);
  add_passive(table);
  return table;
}

constexpr Table kTable = make_table();

constexpr std::array<std::string_view, kQueuePairStates> kStateNames = {"absent", "connecting", "proving", "accepted",
                                                                        "ready",  "draining",   "backoff", "closed"};
constexpr std::array<std::string_view, kQueuePairEvents> kEventNames = {
    "want",   "connect", "connect again", "accept", "ready heard", "broken",
    "proved", "fault",   "drained",       "timer",  "expired",     "close"};
constexpr std::array<std::string_view, 18> kActionNames = {
    "nothing",     "next epoch", "make",         "join",        "prove",         "send connect",
    "send accept", "send ready", "send broken",  "drain",       "reset",         "arm",
    "arm backoff", "disarm",     "report ready", "report lost", "report fenced", "report failed"};

void append_line(std::string& out, QueuePairRole role, QueuePairState state, QueuePairEvent event,
                 const QueuePairStep& taken) {
  constexpr std::size_t kWidth = 14;
  append_padded(out, role == kActive ? "active" : "passive", kWidth);
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

std::string_view to_string(QueuePairState state) { return name_in(kStateNames, state); }
std::string_view to_string(QueuePairEvent event) { return name_in(kEventNames, event); }
std::string_view to_string(QueuePairAction action) { return name_in(kActionNames, action); }

const QueuePairStep& step(QueuePairRole role, QueuePairState state, QueuePairEvent event) {
  return kTable.steps[static_cast<std::size_t>(role)][static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

std::span<const QueuePairAction> QueuePairMachine::on(QueuePairEvent event) {
  const QueuePairStep& taken = step(role_, state_, event);
  state_ = taken.next;
  return taken.to_do();
}

std::span<const QueuePairAction> QueuePairMachine::on_connect(std::uint32_t epoch) {
  if (epoch < epoch_ || role_ == kActive) return {};
  if (epoch == epoch_) return on(kConnectAgain);
  epoch_ = epoch;
  return on(kConnect);
}

std::span<const QueuePairAction> QueuePairMachine::on_message(QueuePairEvent event, std::uint32_t epoch) {
  if (epoch != epoch_) return {};
  return on(event);
}

std::string queue_pair_table() {
  std::string out;
  for (std::size_t role = 0; role < kQueuePairRoles; ++role) {
    for (std::size_t state = 0; state < kQueuePairStates; ++state) {
      for (std::size_t event = 0; event < kQueuePairEvents; ++event) {
        const QueuePairStep& entry = kTable.steps[role][state][event];
        if (entry.count == 0 && static_cast<std::size_t>(entry.next) == state) continue;
        append_line(out, static_cast<QueuePairRole>(role), static_cast<QueuePairState>(state),
                    static_cast<QueuePairEvent>(event), entry);
      }
    }
  }
  return out;
}

}  // namespace hawser::proto
