#include "proto/queue_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"

namespace hawser::proto {
namespace {

using Role = QueuePairRole;
using State = QueuePairState;
using Event = QueuePairEvent;
using Action = QueuePairAction;

// What stands here is all that happens: every other triple changes nothing.
constexpr std::string_view kGolden =
    R"(active        absent        want          connecting    next epoch, make, send connect, arm
active        absent        close         closed        reset, disarm
active        connecting    accept        proving       report fenced, join, prove, arm
active        connecting    broken        backoff       reset, report failed, arm backoff
active        connecting    fault         backoff       reset, report failed, arm backoff
active        connecting    timer         connecting    send connect
active        connecting    expired       backoff       reset, report failed, arm backoff
active        connecting    close         closed        reset, disarm
active        proving       broken        backoff       reset, report failed, arm backoff
active        proving       proved        ready         send ready, disarm, report ready
active        proving       fault         backoff       reset, report failed, arm backoff
active        proving       expired       backoff       reset, report failed, arm backoff
active        proving       close         closed        reset, disarm
active        accepted      close         closed        reset, disarm
active        ready         accept        ready         send ready
active        ready         broken        draining      report lost, drain, arm
active        ready         fault         draining      report lost, drain, arm
active        ready         close         closed        reset, disarm
active        draining      drained       backoff       reset, arm backoff
active        draining      expired       backoff       reset, arm backoff
active        draining      close         closed        reset, disarm
active        backoff       want          connecting    next epoch, make, send connect, arm
active        backoff       ready heard   connecting    next epoch, make, send connect, arm
active        backoff       timer         connecting    next epoch, make, send connect, arm
active        backoff       close         closed        reset, disarm
passive       absent        connect       accepted      reset, report fenced, make, join, send accept, arm
passive       absent        connect again absent        send broken
passive       absent        close         closed        reset, disarm
passive       connecting    close         closed        reset, disarm
passive       proving       close         closed        reset, disarm
passive       accepted      connect       accepted      reset, report fenced, make, join, send accept, arm
passive       accepted      connect again accepted      send accept
passive       accepted      ready heard   ready         disarm, report ready
passive       accepted      fault         absent        reset, disarm, send broken, report failed
passive       accepted      timer         accepted      send accept
passive       accepted      expired       absent        reset, disarm, send broken, report failed
passive       accepted      close         closed        reset, disarm
passive       ready         connect       accepted      report lost, reset, report fenced, make, join, send accept, arm
passive       ready         fault         draining      report lost, drain, send broken, arm
passive       ready         close         closed        reset, disarm
passive       draining      connect       accepted      reset, report fenced, make, join, send accept, arm
passive       draining      connect again draining      send broken
passive       draining      drained       absent        reset, disarm
passive       draining      expired       absent        reset, disarm
passive       draining      close         closed        reset, disarm
passive       backoff       close         closed        reset, disarm
)";

TEST(QueuePairMachine, GoldenTable) { EXPECT_EQ(queue_pair_table(), kGolden); }

TEST(QueuePairMachine, EveryTripleIsInTheGoldenTableOrChangesNothing) {
  std::size_t changes = 0;
  for (std::size_t role = 0; role < kQueuePairRoles; ++role) {
    for (std::size_t state = 0; state < kQueuePairStates; ++state) {
      for (std::size_t event = 0; event < kQueuePairEvents; ++event) {
        const QueuePairStep& entry =
            step(static_cast<Role>(role), static_cast<State>(state), static_cast<Event>(event));
        const bool nothing = entry.count == 0 && entry.next == static_cast<State>(state);
        changes += nothing ? 0 : 1;
      }
    }
  }
  EXPECT_EQ(changes, static_cast<std::size_t>(std::count(kGolden.begin(), kGolden.end(), '\n')));
}

TEST(QueuePairMachine, ClosedIsForGood) {
  for (const Role role : {Role::kActive, Role::kPassive}) {
    QueuePairMachine machine(role);
    machine.on(Event::kClose);
    for (std::size_t event = 0; event < kQueuePairEvents; ++event) {
      EXPECT_TRUE(machine.on(static_cast<Event>(event)).empty());
      EXPECT_EQ(machine.state(), State::kClosed);
    }
    EXPECT_TRUE(machine.on_connect(99).empty());
  }
}

TEST(QueuePairMachine, MessagesOfOtherEpochsAreStale) {
  QueuePairMachine passive(Role::kPassive);
  EXPECT_FALSE(passive.on_connect(3).empty());
  EXPECT_TRUE(passive.on_connect(2).empty());
  EXPECT_TRUE(passive.on_message(Event::kReadyHeard, 2).empty());
  EXPECT_EQ(passive.state(), State::kAccepted);
  EXPECT_FALSE(passive.on_message(Event::kReadyHeard, 3).empty());
  EXPECT_TRUE(passive.is_ready());
  EXPECT_TRUE(passive.on_connect(3).empty()) << "a late repetition must not tear down what is ready";
  EXPECT_TRUE(passive.is_ready());
}

TEST(QueuePairMachine, AnActiveEndIsNobodysPassiveEnd) {
  QueuePairMachine active(Role::kActive);
  EXPECT_TRUE(active.on_connect(5).empty());
  EXPECT_EQ(active.state(), State::kAbsent);
}

// Two ends over a network that loses, repeats and reorders what they say, with queue pairs that fail at any point.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : rng_(seed), ends_{End(Role::kActive), End(Role::kPassive)} {}

  void run_rough(int steps) {
    feed(0, ends_[0].machine.on(Event::kWant));
    for (int i = 0; i < steps; ++i) rough_step();
  }
  /// From here on nothing is lost: both ends must become ready, for one epoch, joined to each other.
  bool settle() {
    for (int i = 0; i < 400; ++i) {
      while (!wire_.empty()) deliver(0);
      if (both_ready()) return true;
      for (int side = 0; side < 2; ++side) calm_event(side);
    }
    return false;
  }
  const std::string& fault() const { return fault_; }

 private:
  struct End {
    explicit End(Role role) : machine(role) {}
    QueuePairMachine machine;
    bool made = false, joined = false, armed = false, backoff = false, proving = false;
    std::uint32_t number = 0;       ///< Of the queue pair as it is now; each making gives another.
    std::uint32_t joined_to = 0;    ///< The peer's number.
    std::uint32_t peer_number = 0;  ///< What its last valid message told.
    bool told_ready = false;
  };
  struct Letter {
    int to = 0;
    Action kind = Action::kNone;
    std::uint32_t epoch = 0;
    std::uint32_t number = 0;
  };

  bool both_ready() const {
    const auto& [a, b] = ends_;
    return a.machine.is_ready() && b.machine.is_ready() && a.machine.epoch() == b.machine.epoch() &&
           a.joined_to == b.number && b.joined_to == a.number;
  }
  void rough_step() {
    const double dice = static_cast<double>(rng_.below(1000)) / 1000;
    if (dice < 0.55 && !wire_.empty()) {
      const std::size_t pick = rng_.below(wire_.size());
      if (rng_.chance(0.2)) wire_.push_back(wire_[pick]);  // Once more, later.
      rng_.chance(0.25) ? drop(pick) : deliver(pick);
      return;
    }
    const int side = static_cast<int>(rng_.below(2));
    if (rng_.chance(0.1)) {
      feed(side, ends_[side].machine.on(Event::kFault));
    } else if (rng_.chance(0.1)) {
      feed(side, ends_[side].machine.on(Event::kExpired));
    } else if (rng_.chance(0.05)) {
      // The passive end's user does not want to wait.
      wire_.push_back({0, Action::kSendReady, ends_[1].machine.epoch(), ends_[1].number});
    } else {
      calm_event(side);
    }
  }
  void calm_event(int side) {
    End& end = ends_[side];
    if (end.proving) {
      // The first write is acknowledged only by the very queue pair that it was sent to.
      const End& peer = ends_[1 - side];
      const bool meets = peer.made && peer.joined && end.joined_to == peer.number && peer.joined_to == end.number;
      feed(side, end.machine.on(meets ? Event::kProved : Event::kExpired));
    } else if (end.machine.state() == State::kDraining) {
      feed(side, end.machine.on(Event::kDrained));
    } else if (end.armed || end.backoff) {
      feed(side, end.machine.on(Event::kTimer));
    }
    use(side);
  }
  /// What is posted on a ready queue pair whose other end is gone comes back as an error.
  void use(int side) {
    End& end = ends_[side];
    const End& peer = ends_[1 - side];
    if (!end.machine.is_ready()) return;
    if (!peer.made || !peer.joined || peer.number != end.joined_to) feed(side, end.machine.on(Event::kFault));
  }
  void drop(std::size_t pick) { wire_.erase(wire_.begin() + static_cast<std::ptrdiff_t>(pick)); }
  void deliver(std::size_t pick) {
    const Letter letter = wire_[pick];
    drop(pick);
    End& end = ends_[letter.to];
    switch (letter.kind) {
      case Action::kSendConnect:
        if (letter.epoch > end.machine.epoch()) end.peer_number = letter.number;
        feed(letter.to, end.machine.on_connect(letter.epoch));
        break;
      case Action::kSendAccept:
        if (letter.epoch == end.machine.epoch() && end.machine.state() == State::kConnecting) {
          end.peer_number = letter.number;
        }
        feed(letter.to, end.machine.on_message(Event::kAccept, letter.epoch));
        break;
      case Action::kSendReady:
        feed(letter.to, end.machine.on_message(Event::kReadyHeard, letter.epoch));
        break;
      default:
        feed(letter.to, end.machine.on_message(Event::kBroken, letter.epoch));
    }
  }
  void feed(int side, std::span<const Action> actions) {
    End& end = ends_[side];
    for (const Action action : actions) act(side, end, action);
  }
  void act(int side, End& end, Action action) {
    switch (action) {
      case Action::kNextEpoch:
        end.machine.next_epoch();
        break;
      case Action::kMake:
        if (end.made) note("made while there is one");
        end.made = true;
        end.number = ++numbers_;
        break;
      case Action::kJoin:
        if (!end.made || end.joined) note("joined twice, or without a queue pair");
        end.joined = true;
        end.joined_to = end.peer_number;
        break;
      case Action::kProve:
        end.proving = true;
        break;
      case Action::kReset:
        end.made = end.joined = end.proving = false;
        break;
      case Action::kArm:
        end.armed = true;
        end.backoff = false;
        break;
      case Action::kArmBackoff:
        end.backoff = true;
        end.armed = false;
        break;
      case Action::kDisarm:
        end.armed = end.backoff = end.proving = false;
        break;
      case Action::kReportReady:
        if (end.told_ready) note("ready twice");
        end.told_ready = true;
        if (!end.made || !end.joined) note("ready without a joined queue pair");
        break;
      case Action::kReportLost:
        if (!end.told_ready) note("lost what was not ready");
        end.told_ready = false;
        break;
      case Action::kReportFenced:
        // The promise: at the other end nothing of an earlier epoch is joined any more.
        if (side == 0 ? ends_[1].joined_to != end.number : (ends_[0].joined && ends_[0].joined_to == end.number)) {
          note("fenced while the other end could still write");
        }
        break;
      case Action::kSendConnect:
      case Action::kSendAccept:
      case Action::kSendReady:
      case Action::kSendBroken:
        wire_.push_back({1 - side, action, end.machine.epoch(), end.number});
        break;
      default:
        break;
    }
  }
  void note(std::string what) {
    if (fault_.empty()) fault_ = std::move(what);
  }

  base::Rng rng_;
  std::array<End, 2> ends_;
  std::vector<Letter> wire_;
  std::uint32_t numbers_ = 0;
  std::string fault_;
};

TEST(QueuePairMachine, LostLateAndRepeatedMessagesNeverJoinStrangersAndAlwaysEndReady) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Simulation simulation(seed);
    simulation.run_rough(200);
    ASSERT_TRUE(simulation.settle()) << "seed " << seed;
    ASSERT_EQ(simulation.fault(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace hawser::proto
