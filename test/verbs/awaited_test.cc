// How fast a stopped peer is told that has nothing of this agent's on the wire, but for which something waits: an
// atomic its answer, a message its acknowledgement. Whole agents by tcp and over devices in memory, in time that
// passes as the test says.

#include <ostream>

#include <gmock/gmock.h>

#include <hawser/atomic.h>

#include "backend/tcp/factory.h"
#include "base/test_clock.h"
#include "mock_agents.h"

namespace hawser::mock_agents {
namespace {

using namespace std::chrono_literals;

constexpr Duration kHeartbeat = 100ms;
constexpr Duration kStep = 1ms;
constexpr std::uint32_t kChannel = 100;

enum class Waits { kNothing, kAtomic, kNotification, kMessage, kTransfer };

struct AwaitedCase {
  const char* name;
  const char* backend;
  Waits waits;
};
void PrintTo(const AwaitedCase& each, std::ostream* out) { *out << each.name; }

class Awaited : public testing::TestWithParam<AwaitedCase> {
 protected:
  Agent open(const std::string& name, const std::string& device) {
    const bool is_verbs = GetParam().backend == std::string_view("verbs");
    AgentOptions options;
    options.name = name;
    options.backends = {is_verbs ? verbs({{"devices", device}}) : BackendSpec{"tcp", {}}};
    options.driven = true;  // By the test: what is not polled is stopped.
    options.heartbeat = kHeartbeat;
    options.default_deadline = 1h;
    options.clock = clock_;
    options.log.level = LogLevel::kError;
    return must(agent::open_with(std::move(options), {backend::tcp_factory(), world_.factory()}));
  }
  template <typename Done>
  bool pass_until(bool both, Done&& done, Duration most) {
    for (const Instant end = clock_->now_ + most; clock_->now_ < end; clock_->now_ = clock_->now_ + kStep) {
      here_.poll();
      if (both) there_.poll();
      if (done()) return true;
    }
    return false;
  }
  void meet() {
    must(there_.open_channel(kChannel, 4));
    peer_ = must(here_.add_peer(must(there_.card())));
    AtomicOp first = must(fetch_add(here_, word(), 1));
    ASSERT_TRUE(pass_until(
        true, [&] { return first.done(); }, 5s));
    must(first.status());
    ASSERT_TRUE(pass_until(
        true, [&] { return say().ok(); }, 5s));
    pass_until(
        true, [] { return false; }, 200ms);  // All that both had to say is said.
    ASSERT_EQ(peer_.state(), PeerState::kUp);
  }
  Status say() { return peer_.send(kChannel, std::as_bytes(std::span("news", 4))).error(); }
  RemoteRange word() { return peer_.range("words", 0, 8); }
  void begin() {
    switch (GetParam().waits) {
      case Waits::kNothing:
        return;
      case Waits::kAtomic:
        atomic_ = must(fetch_add(here_, word(), 1));
        return;
      case Waits::kNotification:
        return must(peer_.notify("news"));
      case Waits::kMessage:
        return must(say());
      case Waits::kTransfer: {
        const LocalRange from = own_.region.range(0, 64);
        const RemoteRange to = peer_.range("words", 0, 64);
        transfer_ = must(must(here_.plan_write(peer_, {&from, 1}, {&to, 1})).submit());
        return;
      }
    }
  }

  const std::shared_ptr<base::TestClock> clock_ = std::make_shared<base::TestClock>();
  MockWorld world_;
  Agent here_ = open("here", "mock0"), there_ = open("there", "mock1");
  Area words_{there_, "words", 64}, own_{here_, "own", 64};
  Peer peer_;
  AtomicOp atomic_;
  Transfer transfer_;
};

TEST_P(Awaited, AStoppedPeerIsToldInThreeHeartbeats) {
  meet();
  begin();
  const Instant stopped = clock_->now_;
  ASSERT_TRUE(pass_until(
      false, [&] { return peer_.state() == PeerState::kSuspect; }, 60s));
  const Duration took = clock_->now_ - stopped;
  if (GetParam().waits == Waits::kNothing) {
    EXPECT_GT(took, 6 * kHeartbeat) << "an idle peer is asked at the pace of one that is waited for";
    return;
  }
  EXPECT_LE(took, 3 * kHeartbeat + 20ms);
  EXPECT_GE(took, 3 * kHeartbeat - 20ms) << "it had no three heartbeats to answer";
}

TEST_P(Awaited, NobodyWaitsOnceItHasAnswered) {
  meet();
  begin();
  pass_until(
      true, [] { return false; }, 200ms);
  const Instant stopped = clock_->now_;
  ASSERT_TRUE(pass_until(
      false, [&] { return peer_.state() == PeerState::kSuspect; }, 60s));
  EXPECT_GT(clock_->now_ - stopped, 6 * kHeartbeat);
}

class Ungreeted : public Awaited {};

// Its queue pair works, and its agent has not said yet that it means this session.
TEST_P(Ungreeted, APeerThatStopsBeforeItsGreetingIsToldInThreeHeartbeats) {
  peer_ = must(here_.add_peer(must(there_.card())));
  begin();
  const auto is_up = [this] {
    const auto paths = here_.counters().paths;
    return paths.size() == 1 && paths[0].state == "up";
  };
  const Instant end = clock_->now_ + 5s;
  for (here_.poll(); !is_up() && clock_->now_ < end; here_.poll()) {
    there_.poll();
    clock_->now_ = clock_->now_ + kStep;
  }
  ASSERT_TRUE(is_up());
  const Instant stopped = clock_->now_;
  ASSERT_TRUE(pass_until(
      false, [&] { return peer_.state() == PeerState::kSuspect; }, 60s));
  EXPECT_LE(clock_->now_ - stopped, 3 * kHeartbeat + 20ms);
  EXPECT_GE(clock_->now_ - stopped, 2 * kHeartbeat);
}

class Unread : public Awaited {};

TEST_P(Unread, APeerThatAnswersHeartbeatsIsNotGivenUpThoughItReadsNothing) {
  meet();
  constexpr int kMore = 1'000'000;  // Than any bound lets wait.
  int sent = 0;
  while (sent < kMore && say().ok()) ++sent;
  EXPECT_GT(sent, 0);
  EXPECT_LT(sent, kMore);
  pass_until(
      true, [] { return false; }, 10s);
  EXPECT_EQ(peer_.state(), PeerState::kUp);
}

std::string name_of(const testing::TestParamInfo<AwaitedCase>& test) { return test.param.name; }

constexpr AwaitedCase kVerbsMessage = {"verbs_message", "verbs", Waits::kMessage};
constexpr AwaitedCase kTcpMessage = {"tcp_message", "tcp", Waits::kMessage};

INSTANTIATE_TEST_SUITE_P(All, Awaited,
                         testing::Values(AwaitedCase{"verbs_nothing", "verbs", Waits::kNothing},
                                         AwaitedCase{"verbs_atomic", "verbs", Waits::kAtomic},
                                         AwaitedCase{"verbs_notification", "verbs", Waits::kNotification},
                                         kVerbsMessage, AwaitedCase{"tcp_nothing", "tcp", Waits::kNothing},
                                         AwaitedCase{"tcp_atomic", "tcp", Waits::kAtomic},
                                         AwaitedCase{"tcp_notification", "tcp", Waits::kNotification}, kTcpMessage),
                         name_of);
INSTANTIATE_TEST_SUITE_P(All, Ungreeted,
                         testing::Values(AwaitedCase{"verbs_notification", "verbs", Waits::kNotification},
                                         AwaitedCase{"verbs_transfer", "verbs", Waits::kTransfer}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(All, Unread, testing::Values(kVerbsMessage, kTcpMessage), name_of);

}  // namespace
}  // namespace hawser::mock_agents
