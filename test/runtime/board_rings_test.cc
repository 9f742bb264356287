// A rank that waits on boards wakes nobody for it, and still serves what else comes.

#include <gtest/gtest.h>

#include <hawser/driver.h>
#include <hawser/world.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "agent/core.h"
#include "agent/inner.h"
#include "base/inside.h"
#include "base/spin.h"
#include "runtime/world_core.h"

namespace hawser::runtime {
namespace {

using namespace std::chrono_literals;

class BoardRings : public testing::Test {
 protected:
  /// Ranks of this process whose agents nobody drives.
  void open(std::uint32_t size) {
    WorldOptions options;
    options.timeout = 60s;
    options.agent.backends = {{.name = "shm"}};
    options.agent.status_page = "off";
    SeatHooks hooks;
    hooks.open = [](AgentOptions its, const SeatHooks::Tenant& tenant) {
      return agent::inner::open(std::move(its), tenant);
    };
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      Result<std::shared_ptr<WorldCore>> core = WorldCore::open_agent(options, rank, size, hooks);
      ASSERT_TRUE(core.has_value()) << core.error().to_string();
      cores_.push_back(std::move(*core));
    }
    on_all([&](std::size_t rank) {
      std::vector<Peer> peers;
      for (std::size_t other = 0; other < size; ++other) {
        peers.push_back(other == rank ? cores_[rank]->agent().self()
                                      : cores_[rank]->agent().add_peer(cores_[other]->agent().card().value()).value());
      }
      ASSERT_TRUE(cores_[rank]->connect(peers, agent::inner::now(cores_[rank]->agent()) + 60s).ok());
      ASSERT_TRUE(cores_[rank]->enter(std::move(peers)).ok());
      ASSERT_TRUE(cores_[rank]->all_entered(60s).wait(60s).ok());
    });
    for (int call = 0; call < 64; ++call) meet();
    ASSERT_EQ(meet(), "boards");
  }
  /// By which algorithm all ranks met. Until boards are open a rank may have to answer others after its own call has
  /// ended, and nobody else turns its lane.
  std::string_view meet() {
    std::vector<std::string_view> by(cores_.size());
    std::atomic<std::size_t> ended = 0;
    on_all([&](std::size_t rank) {
      Request request = barrier(rank);
      EXPECT_TRUE(request.wait(60s).ok());
      by[rank] = request.algorithm();
      for (++ended; ended < cores_.size(); std::this_thread::yield()) cores_[rank]->agent().poll();
    });
    return by[0];
  }
  Request barrier(std::size_t rank) {
    return cores_[rank]->collectives().begin({.call = {.operation = schedule::Operation::kBarrier}}, {});
  }
  /// Waits.
  Status meet_others(std::size_t rank) {
    return cores_[rank]->collectives().carry_out({.call = {.operation = schedule::Operation::kBarrier}}, {});
  }
  template <typename Call>
  void on_all(Call call) {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < cores_.size(); ++rank) threads.emplace_back([&call, rank] { call(rank); });
    for (std::thread& thread : threads) thread.join();
  }
  agent::Lane& lane(std::size_t rank) { return core_of(cores_[rank]->agent())->lane; }
  void serve_answers() {
    const auto answer = [](const IncomingCall&) -> Result<CallAnswer> { return CallAnswer(3); };
    ASSERT_TRUE(cores_[1]->register_handler("answer", answer, {}).ok());
  }
  /// For a driver of the test's own, which sleeps whenever it can.
  void drive(Driver& driver) {
    for (const auto& core : cores_) ASSERT_TRUE(driver.attach(core->agent()).ok());
  }

  /// Both ranks call collectives in a loop. `waits`: by calls that wait. The driver is woken once in so many calls, or
  /// when a rank stood still for kLinger: by the next begin, and by the wait for it.
  void expect_few_rings(bool waits) {
    constexpr std::uint64_t kCalls = 4000, kCallsPerRing = 20, kRingsPerLinger = 2;
    driver_ = Driver::start({.spin = 0us}).value();
    drive(*driver_);
    const std::uint64_t before = lane(0).rings() + lane(1).rings();
    const Instant start = Clock::steady().now();
    on_all([&](std::size_t rank) {
      for (std::uint64_t call = 0; call < kCalls; ++call) {
        ASSERT_TRUE(waits ? meet_others(rank).ok() : barrier(rank).wait(60s).ok());
      }
    });
    const auto lingers = static_cast<std::uint64_t>((Clock::steady().now() - start) / agent::kLinger);
    EXPECT_LE(lane(0).rings() + lane(1).rings() - before, 2 * (kCalls / kCallsPerRing + lingers * kRingsPerLinger));
  }

  /// All messages that ranks have sent.
  std::uint64_t messages() const {
    std::uint64_t all = 0;
    for (const auto& core : cores_) {
      for (const PathCounters& path : core->agent().counters().paths) all += path.messages_out;
    }
    return all;
  }

  /// Both ranks call collectives, and nothing else, until rank 1 has answered a call of rank 0. False: it has not.
  bool is_answered_meanwhile(bool waits) {
    constexpr std::uint64_t kCallsMax = 2'000'000;
    Request asked = cores_[0]->call(1, "answer", {}, {});
    std::atomic<std::uint64_t> last = kCallsMax;  // Both call the same number of collectives.
    on_all([&](std::size_t rank) {
      for (std::uint64_t call = 0; call < last; ++call) {
        if (rank == 0 && asked.done()) last = std::min<std::uint64_t>(last, call + 2);
        ASSERT_TRUE(waits ? meet_others(rank).ok() : barrier(rank).wait(60s).ok());
      }
    });
    return asked.done() && asked.wait(0s).ok();
  }

  std::optional<Driver> driver_;  ///< Outlives the ranks.
  std::vector<std::shared_ptr<WorldCore>> cores_;
};

TEST_F(BoardRings, CallsInALoopDoNotWakeTheDriver) {
  open(2);
  expect_few_rings(false);
}

TEST_F(BoardRings, CallsThatWaitDoNotWakeTheDriver) {
  open(2);
  expect_few_rings(true);
}

// What ranks send then are bells for those that sleep, or were about to. Four meetings by messages would take eight.
TEST_F(BoardRings, RanksThatReadEachOthersMemoryMeetOnBoards) {
  constexpr std::uint64_t kCalls = 1000, kCount = 256 * 1024;
  open(2);
  std::vector<Region> regions;
  for (const auto& core : cores_) regions.push_back(core->agent().allocate({.size = kCount}).value());
  std::atomic<bool> is_mapped = false;  // The last one.
  const auto call = [&](std::size_t rank) {
    void* const data = regions[rank].bytes().data();
    Request request = cores_[rank]->collectives().begin(
        {.call = {.operation = schedule::Operation::kAllReduce, .count = kCount, .has_input_in_output = true},
         .input = data,
         .output = data,
         .type = DataType::kUInt8,
         .op = ReduceOp::kOr},
        {});
    ASSERT_TRUE(request.wait(60s).ok());
    is_mapped = request.algorithm() == "mapped";
  };
  for (int i = 0; i < 4; ++i) on_all(call);  // By messages, until they have mapped each other's memory.
  const std::uint64_t before = messages(), armings = lane(0).armings() + lane(1).armings();
  on_all([&](std::size_t rank) {
    for (std::uint64_t i = 0; i < kCalls; ++i) call(rank);
  });
  EXPECT_TRUE(is_mapped);
  EXPECT_LE(messages() - before, kCalls + lane(0).armings() + lane(1).armings() - armings);
}

// Looking for a few microseconds takes a slice of a core that other programs want. One rank is late by more than a few
// looks take.
TEST_F(BoardRings, RanksWhoseCoresOthersWantSleepAtOnceAndAreWoken) {
  constexpr std::uint64_t kCalls = 2000;
  constexpr Duration kLate = 40us;
  open(2);
  const auto compute = [](Duration time) {
    const Instant end = Clock::steady().now() + time;
    while (Clock::steady().now() < end) base::cpu_relax();
  };
  const auto call_all = [&](bool waits) {
    const std::uint64_t before = lane(0).armings() + lane(1).armings();
    on_all([&](std::size_t rank) {
      for (std::uint64_t call = 0; call < kCalls; ++call) {
        if (rank == 1) compute(kLate);
        ASSERT_TRUE(waits ? meet_others(rank).ok() : barrier(rank).wait(60s).ok());
      }
    });
    return lane(0).armings() + lane(1).armings() - before;
  };
  for (std::size_t rank = 0; rank < cores_.size(); ++rank) {
    static_cast<void>(lane(rank).spins().may_spin(Instant::max()));  // A rest that a busy machine brought is over.
    lane(rank).spins().lost(1s, agent::inner::now(cores_[rank]->agent()) + 1h);
  }
  EXPECT_GE(call_all(true), kCalls / 2) << "the other one is there first, nearly each time";
  EXPECT_GE(call_all(false), kCalls / 2);
}

// Nobody drives the agents: the calls themselves have to turn the lane.
TEST_F(BoardRings, ARankThatOnlyCallsCollectivesAnswersCalls) {
  open(2);
  serve_answers();
  EXPECT_TRUE(is_answered_meanwhile(true));
  EXPECT_TRUE(is_answered_meanwhile(false));
}

// Rank 0 is the last one each time. So none of its calls waits, and nothing but its calls is there to turn its lane.
TEST_F(BoardRings, ARankWhoseCallsEndAtOnceAnswersCalls) {
  constexpr int kCallsMax = 200'000;
  open(2);
  const auto answer = [](const IncomingCall&) -> Result<CallAnswer> { return CallAnswer(3); };
  ASSERT_TRUE(cores_[0]->register_handler("answer", answer, {}).ok());
  Request asked = cores_[1]->call(0, "answer", {}, {});
  int calls = 0;
  for (; calls < kCallsMax && !asked.done(); ++calls) {
    Request first = barrier(1);
    ASSERT_TRUE(meet_others(0).ok());
    ASSERT_TRUE(first.wait(60s).ok());
  }
  EXPECT_TRUE(asked.done()) << "not within " << calls << " collectives";
}

TEST_F(BoardRings, ARankThatOnlyCallsCollectivesAnswersCallsBesideItsDriver) {
  open(2);
  serve_answers();
  driver_ = Driver::start({.spin = 0us}).value();
  drive(*driver_);
  EXPECT_TRUE(is_answered_meanwhile(true));
  EXPECT_TRUE(is_answered_meanwhile(false));
}

TEST_F(BoardRings, ARankThatComputesAfterACollectiveAnswersCalls) {
  open(2);
  serve_answers();
  driver_ = Driver::start({.spin = 0us}).value();
  drive(*driver_);
  meet();
  for (int round = 0; round < 20; ++round) {
    const Status status = cores_[0]->call(1, "answer", {}, {.timeout = 30s}).wait(60s);
    EXPECT_TRUE(status.ok()) << status.to_string();
    if (round % 4 == 0) meet();
  }
}

}  // namespace
}  // namespace hawser::runtime
