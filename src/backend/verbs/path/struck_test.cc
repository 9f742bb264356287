// A queue pair that breaks at a request that is right, once or each time, and one that breaks as soon as it is ready.

#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

class Struck : public VerbsPair {
 protected:
  std::uint32_t epoch() { return to_b->counters().queue_pairs.at(0).epoch; }
  /// A covered write of 4 KiB to `at`.
  void write(std::uint64_t cookie, std::uint64_t at) {
    pieces.push_back({a->memory.data() + at, at, 4096});
    Chunk made = chunk(Operation::kWrite, {&pieces.back(), 1}, cookie);
    made.covered = true;
    ASSERT_TRUE(run_slow([&] { return to_b->submit({&made, 1}, now).taken == 1; })) << to_b->describe();
  }
  bool same(std::uint64_t at) {
    const auto from = a->memory.begin() + static_cast<std::ptrdiff_t>(at);
    return std::equal(from, from + 4096, b->memory.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::ptrdiff_t told(std::uint64_t cookie) {
    return std::ranges::count(b->arrivals, std::pair<std::uint64_t, std::uint32_t>{100 + cookie, 0});
  }

  std::deque<Piece> pieces;
};

TEST_F(Struck, ARightRequestThatIsCalledInvalidOnceIsPostedAgainAndToldOnce) {
  for (const ibv_wc_status status : {IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR}) {
    a.reset();
    b.reset();
    start();
    connect();
    fabric.hold = true;
    for (std::uint64_t i = 0; i < 4; ++i) write(i + 1, i * 4096);
    fabric.fail_next_with(status);
    fabric.hold = false;
    fabric.deliver();
    ASSERT_TRUE(run_slow([&] { return a->done.size() == 4 && b->arrivals.size() == 4; })) << to_b->describe();
    for (std::uint64_t i = 0; i < 4; ++i) {
      EXPECT_TRUE(outcome(i + 1).ok()) << outcome(i + 1).to_string();
      EXPECT_TRUE(same(i * 4096));
      EXPECT_EQ(told(i + 1), 1);
    }
    EXPECT_EQ(epoch(), 2u) << "the target's queue pair was made anew before";
    EXPECT_TRUE(a->down.empty() && b->down.empty());
  }
}

TEST_F(Struck, OneThatIsCalledInvalidEachTimeFailsByItselfAfterThree) {
  start();
  connect();
  fabric.fail_bytes_with(IBV_WC_REM_INV_REQ_ERR);
  write(1, 0);
  ASSERT_TRUE(run_slow([&] { return is_done(1); })) << to_b->describe();
  EXPECT_EQ(outcome(1).code(), Code::kFailed) << outcome(1).to_string();
  EXPECT_EQ(outcome(1).scope(), Scope::kRequest);
  EXPECT_EQ(outcome(1).peer(), "b");
  EXPECT_NE(outcome(1).to_string().find("posted 3 times"), std::string::npos) << outcome(1).to_string();
  EXPECT_NE(outcome(1).to_string().find("remote invalid request"), std::string::npos) << outcome(1).to_string();
  EXPECT_EQ(epoch(), 4u) << "it ends once nothing of it can land";
  EXPECT_EQ(told(1), 0);
  fabric.fail_bytes_with(IBV_WC_SUCCESS);
  write(2, 4096);
  ASSERT_TRUE(run_slow([&] { return is_done(2); })) << to_b->describe();
  EXPECT_TRUE(outcome(2).ok()) << outcome(2).to_string();
  EXPECT_TRUE(a->down.empty() && b->down.empty());
}

TEST_F(Struck, AWrongKeyStaysAVerdict) {
  start();
  connect();
  fabric.fail_bytes_with(IBV_WC_REM_ACCESS_ERR);
  write(1, 0);
  ASSERT_TRUE(run_slow([&] { return is_done(1); }));
  EXPECT_EQ(outcome(1).code(), Code::kDenied) << outcome(1).to_string();
  EXPECT_LE(epoch(), 2u);
}

TEST_F(Struck, WhatIsCancelledIsNotPostedAgain) {
  start();
  connect();
  fabric.fail_bytes_with(IBV_WC_REM_INV_REQ_ERR);
  write(1, 0);
  a->collect(now);
  to_b->cancel(101);
  ASSERT_TRUE(run_slow([&] { return is_done(1); }));
  EXPECT_EQ(outcome(1).code(), Code::kCancelled) << outcome(1).to_string();
}

// The proof has no bytes and goes through: packets of full size that are dropped on the way look so.
TEST_F(Struck, APathThatNeverCarriesOneChunkIsGivenUpInsteadOfBeingMendedForEver) {
  start();
  connect();
  fabric.fail_bytes_with(IBV_WC_RETRY_EXC_ERR);
  write(1, 0);
  ASSERT_TRUE(run_slow([&] { return !a->down.empty(); }, std::chrono::milliseconds(1), 5000)) << to_b->describe();
  EXPECT_EQ(outcome(1).code(), Code::kDisconnected) << outcome(1).to_string();
  EXPECT_EQ(outcome(1).scope(), Scope::kPath);
  EXPECT_NE(a->down[0].to_string().find("no answer"), std::string::npos) << a->down[0].to_string();
  a->port->release_path(to_b);
}

class Trials : public Struck {
 protected:
  /// The opener's queue pair breaks as soon as it is ready.
  void break_it() {
    if (to_b->counters().queue_pairs.at(0).state != "ready") return;
    fabric.raise("mock0", IBV_EVENT_PORT_ERR);
  }
};

TEST_F(Trials, OneThatBreaksWheneverItIsReadyIsTriedEverMoreSeldomAndThenGivenUp) {
  start();
  connect();
  const Instant begin = now;
  std::uint32_t at_half = 0;
  ASSERT_TRUE(run_slow(
      [&] {
        break_it();
        if (now - begin < std::chrono::milliseconds(300)) at_half = epoch();
        return !a->down.empty();
      },
      std::chrono::milliseconds(1), 10000))
      << to_b->describe();
  EXPECT_LE(at_half, 8u) << "10, 20, 40, 80, 160 ms, each less a half";
  EXPECT_LE(now - begin, std::chrono::seconds(3));
  EXPECT_NE(a->down[0].to_string().find("as soon as they are ready"), std::string::npos) << a->down[0].to_string();
  EXPECT_NE(a->down[0].to_string().find("the port went down"), std::string::npos) << a->down[0].to_string();
  a->port->release_path(to_b);
}

TEST_F(Trials, OneThatCarriesInBetweenIsMendedAtOnceEachTime) {
  start();
  connect();
  std::uint64_t cookie = 0;
  const Instant begin = now;
  for (int round = 0; round < 30; ++round) {
    write(++cookie, 0);
    ASSERT_TRUE(run_slow([&] { return is_done(cookie); }));
    const std::uint32_t before = epoch();
    break_it();
    ASSERT_TRUE(run_slow([&] { return epoch() > before; }));
  }
  EXPECT_LE(now - begin, 30 * std::chrono::milliseconds(25));
  EXPECT_TRUE(a->down.empty());
}

TEST_F(Trials, OperationsThatAreAtFaultThemselvesDoNotCountAgainstIt) {
  start();
  connect();
  for (std::uint64_t cookie = 1; cookie <= 20; ++cookie) {
    ASSERT_TRUE(run_slow([&] { return to_b->counters().queue_pairs.at(0).state == "ready"; })) << to_b->describe();
    fabric.fail_next_with(IBV_WC_LOC_PROT_ERR);
    write(cookie, 0);
    ASSERT_TRUE(run_slow([&] { return is_done(cookie); })) << cookie;
  }
  EXPECT_TRUE(a->down.empty() && b->down.empty());
}

// Each operation fails by itself after three posts; the path must not be made anew for ever meanwhile.
TEST_F(Trials, APeerThatCallsAllOperationsInvalidIsGivenUp) {
  start();
  connect();
  fabric.fail_bytes_with(IBV_WC_REM_INV_REQ_ERR);
  std::uint64_t cookie = 0;
  ASSERT_TRUE(run_slow([&] {
    if (!a->down.empty()) return true;
    if (cookie != 0 && !is_done(cookie)) return false;
    pieces.push_back({a->memory.data(), 0, 4096});
    const Chunk made = chunk(Operation::kWrite, {&pieces.back(), 1}, cookie + 1);
    cookie += to_b->submit({&made, 1}, now).taken;
    return false;
  })) << to_b->describe();
  EXPECT_LE(cookie, 4u) << "of eight trials in a row, three for each";
  EXPECT_NE(a->down[0].to_string().find("remote invalid request"), std::string::npos) << a->down[0].to_string();
  a->port->release_path(to_b);
}

TEST_F(Trials, CancellingDoesNotCountAgainstIt) {
  start();
  connect();
  fabric.mute = true;
  for (std::uint64_t cookie = 1; cookie <= 20; ++cookie) {
    const Piece piece[] = {{a->memory.data(), 0, 4096}};
    const Chunk made = chunk(Operation::kRead, piece, cookie);
    fabric.hold = true;
    ASSERT_TRUE(run_slow([&] {
      fabric.mute = false;
      fabric.hold = false;
      fabric.deliver();
      fabric.hold = to_b->counters().queue_pairs.at(0).state == "ready";
      return fabric.hold && to_b->submit({&made, 1}, now).taken == 1;
    })) << to_b->describe();
    to_b->cancel(100 + cookie);
    ASSERT_TRUE(run_slow([&] { return is_done(cookie); }));
    fabric.hold = false;
  }
  EXPECT_TRUE(a->down.empty() && b->down.empty());
}

}  // namespace
}  // namespace hawser::backend::verbs
