// Writes with immediate between two ports: what is told of, in which order whatever comes, what is told when it breaks.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "backend/verbs/port_test_pair.h"
#include "proto/arrival.h"

namespace hawser::backend::verbs {
namespace {

using Arrivals = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

class Immediates : public VerbsPair {
 protected:
  /// A covered write of 8 bytes; its transfer is 100 + cookie unless told.
  Submitted write(std::uint64_t cookie, std::uint32_t index = 0, std::uint64_t transfer = 0) {
    const std::uint64_t at = cookie * 8 % (kMemory - 8);
    pieces.push_back({a->memory.data() + at, at, 8});
    Chunk made = chunk(Operation::kWrite, {&pieces.back(), 1}, cookie);
    made.covered = true;
    made.index = index;
    if (transfer != 0) made.transfer = transfer;
    return to_b->submit({&made, 1}, now);
  }
  std::size_t told_without(std::uint64_t cookie) {
    return static_cast<std::size_t>(std::ranges::count(a->done_uncounted, cookie));
  }
  /// The queue pairs of `a`, in the order in which they were made.
  std::vector<std::uint32_t> numbers_of_a() {
    std::vector<std::uint32_t> mine_only;
    const std::string text = to_b->describe();
    for (const std::uint32_t number : fabric.qp_numbers()) {
      if (text.find(" " + std::to_string(number) + " to ") != std::string::npos) mine_only.push_back(number);
    }
    return mine_only;
  }

  std::deque<Piece> pieces;
};

TEST_F(Immediates, ACoveredWriteIsToldByItselfAndNoOther) {
  start();
  connect();
  EXPECT_TRUE(to_b->carries_arrivals(1));
  EXPECT_FALSE(to_b->carries_arrivals(proto::kImmediateChunksMax + 1));
  const Piece out[] = {{a->memory.data(), 0, 100}};
  ASSERT_EQ(submit(Operation::kWrite, out, 1).taken, 1u);
  ASSERT_EQ(write(2, 7).taken, 1u);
  ASSERT_TRUE(run([&] { return is_done(1) && is_done(2) && !b->arrivals.empty(); }));
  EXPECT_EQ(b->arrivals, (Arrivals{{102, 7}}));
  EXPECT_EQ(fabric.immediates, 1u);
  EXPECT_TRUE(a->done_uncounted.empty());
  EXPECT_TRUE(std::equal(a->memory.begin() + 16, a->memory.begin() + 24, b->memory.begin() + 16));
}

TEST_F(Immediates, OnlyTheLastRequestOfAChunkCarriesOne) {
  start();
  connect();
  std::vector<Piece> far;
  for (std::uint64_t i = 0; i < 8; ++i) far.push_back({a->memory.data() + i * 1024, 100'000 + i * 2048, 512});
  Chunk made = chunk(Operation::kWrite, far, 1);
  made.covered = true;
  fabric.hold = true;
  ASSERT_EQ(to_b->submit({&made, 1}, now).taken, 1u);
  EXPECT_EQ(fabric.immediates, 1u);
  fabric.deliver(7);
  for (int i = 0; i < 10; ++i) step();
  EXPECT_TRUE(b->arrivals.empty()) << "not before the last byte";
  fabric.hold = false;
  fabric.deliver();
  ASSERT_TRUE(run([&] { return b->arrivals.size() == 1 && is_done(1); }));
}

TEST_F(Immediates, AFarTransferIsNamedWhole) {
  start();
  connect();
  const std::uint64_t far = std::uint64_t{1} << 40;
  ASSERT_EQ(write(1, 0, far).taken, 1u);
  ASSERT_EQ(write(2, 1, far + 1).taken, 1u);
  ASSERT_EQ(write(3, 0, proto::kImmediateTransferEnd).taken, 1u);
  ASSERT_TRUE(run([&] { return is_done(1) && is_done(2) && is_done(3) && b->arrivals.size() == 2; }));
  EXPECT_EQ(b->arrivals, (Arrivals{{far, 0}, {far + 1, 1}}));
  EXPECT_EQ(fabric.immediates, 4u);
  EXPECT_EQ(told_without(3), 1u) << "its number does not fit, and the agent hears of that";
}

TEST_F(Immediates, EitherEndWithoutThemGoesWithout) {
  for (const bool is_a : {true, false}) {
    a.reset();
    b.reset();
    VerbsOptions none = options;
    none.pair.immediates = 0;
    a = std::make_unique<Side>(fabric, network, "a", std::vector<std::string>{"mock0"}, is_a ? none : options, 11);
    b = std::make_unique<Side>(fabric, network, "b", std::vector<std::string>{"mock1"}, is_a ? options : none, 22);
    connect();
    EXPECT_FALSE(to_b->carries_arrivals(1));
    EXPECT_FALSE(b->up->carries_arrivals(1));
    ASSERT_EQ(write(1).taken, 1u);
    ASSERT_TRUE(run([&] { return is_done(1); }));
    for (int i = 0; i < 20; ++i) step();
    EXPECT_EQ(fabric.immediates, 0u);
    EXPECT_TRUE(b->arrivals.empty());
    EXPECT_EQ(told_without(1), 1u);
  }
}

TEST_F(Immediates, ADeviceWithoutRoomForTheirReceivesGoesWithout) {
  options.pair.send_depth = 16;
  options.pair.messages = 32;
  fabric.device("mock1").max_qp_wr = 32;
  start();
  connect();
  EXPECT_FALSE(to_b->carries_arrivals(1));
  ASSERT_TRUE(say(to_b, "hello"));
  ASSERT_TRUE(run([&] { return b->messages.size() == 1; }));
}

TEST_F(Immediates, WhenNoReceiveIsLeftAWriteGoesWithout) {
  options.pair.immediates = 4;
  options.pair.rnr_retries = 0;
  start();
  connect();
  for (std::uint64_t cookie = 1; cookie <= 10; ++cookie) ASSERT_EQ(write(cookie).taken, 1u);
  EXPECT_EQ(fabric.immediates, 4u) << "`b` takes no turn";
  ASSERT_TRUE(run([&] { return is_done(10) && b->arrivals.size() == 4; }));
  EXPECT_EQ(a->done_uncounted, (std::vector<std::uint64_t>{5, 6, 7, 8, 9, 10}));
  EXPECT_NE(to_b->describe().find("4 chunks told by immediates (6 without"), std::string::npos) << to_b->describe();
  for (int i = 0; i < 100; ++i) step();
  ASSERT_EQ(write(11).taken, 1u);
  ASSERT_TRUE(run([&] { return b->arrivals.size() == 5; })) << "the peer's count makes room";
}

// Receives are shared with messages on the first queue pair, and the peer sends the other way; none is ever missing.
TEST_F(Immediates, NoneMeetsAnEmptyReceiveQueueWhateverElseIsSent) {
  for (const std::uint32_t messages : {0u, 4u}) {
    a.reset();
    b.reset();
    options.pair.immediates = 5;
    options.pair.messages = messages;
    options.pair.rnr_retries = 0;
    options.pairs = 3;
    start();
    connect();
    std::uint64_t cookie = 0;
    std::map<std::uint64_t, int> written;
    exchange(1000, 64, [&](base::Rng& rng) {
      for (auto n = rng.below(4); n > 0; --n) {
        if (write(cookie + 1, static_cast<std::uint32_t>(rng.below(16))).taken == 1) ++written[100 + ++cookie];
      }
    });
    ASSERT_TRUE(run_slow([&] { return a->done.size() == cookie; }));
    ASSERT_TRUE(run_slow([&] { return b->arrivals.size() + a->done_uncounted.size() == cookie; }));
    for (const auto& [transfer, chunk] : b->arrivals) EXPECT_EQ(--written[transfer], 0) << transfer;
    EXPECT_GT(b->arrivals.size(), 300u);
    EXPECT_EQ(to_b->counters().epochs, 3u) << "a receiver that is not ready breaks the queue pair";
  }
}

TEST_F(Immediates, QueuePairsDeliverInAnyOrder) {
  options.pairs = 4;
  start();
  connect();
  base::Rng rng(5);
  proto::ArrivalTable table;
  std::size_t complete = 0, seen = 0;
  std::uint64_t cookie = 0;
  for (std::uint64_t transfer = 1; transfer <= 40; ++transfer) {
    fabric.hold = true;
    for (std::uint32_t index = 0; index < 16; ++index) ASSERT_EQ(write(++cookie, index, transfer).taken, 1u);
    table.on_arrive(transfer, 16, transfer);
    const std::vector<std::uint32_t> numbers = numbers_of_a();
    ASSERT_EQ(numbers.size(), 4u);
    while (fabric.held() > 0) {
      fabric.deliver_one_of(numbers[rng.below(numbers.size())]);
      if (rng.below(3) == 0) step();
      for (; seen < b->arrivals.size(); ++seen) {
        const auto [named, chunk] = b->arrivals[seen];
        complete += table.on_chunk(named, chunk).state == proto::ArrivalState::kComplete;
      }
      if (fabric.held() > 0) {
        ASSERT_LT(complete, transfer);
      }
    }
    fabric.hold = false;
    ASSERT_TRUE(run([&] { return a->done.size() == cookie && b->arrivals.size() == cookie; }));
    for (; seen < b->arrivals.size(); ++seen) {
      const auto [named, chunk] = b->arrivals[seen];
      complete += table.on_chunk(named, chunk).state == proto::ArrivalState::kComplete;
    }
    ASSERT_EQ(complete, transfer);
  }
  EXPECT_TRUE(a->done_uncounted.empty());
}

// The acknowledgement is lost with the queue pair: what the target has told of is not written again.
TEST_F(Immediates, WhatTheTargetToldOfIsNotWrittenAgain) {
  start();
  connect();
  fabric.mute = true;
  ASSERT_EQ(write(1).taken, 1u);
  ASSERT_TRUE(run([&] { return b->arrivals.size() == 1; }));
  EXPECT_FALSE(is_done(1));
  b->memory[8] = std::byte{0x77};  // Whoever was told may use it for something else.
  fabric.mute = false;
  fabric.break_qp(numbers_of_a()[0]);
  ASSERT_TRUE(run_slow([&] { return is_done(1) && to_b->counters().epochs == 2; }));
  ASSERT_TRUE(run_slow([&] { return write(2).taken == 1; }));
  ASSERT_TRUE(run_slow([&] { return is_done(2); }));
  EXPECT_TRUE(outcome(1).ok());
  EXPECT_EQ(b->memory[8], std::byte{0x77});
  EXPECT_EQ(b->arrivals.front(), (Arrivals::value_type{101, 0}));
  EXPECT_EQ(std::ranges::count(b->arrivals, Arrivals::value_type{101, 0}), 1);
}

TEST_F(Immediates, WhatTheTargetDidNotSeeIsWrittenAgainAndToldOnce) {
  start();
  connect();
  fabric.hold = true;
  for (std::uint64_t cookie = 1; cookie <= 6; ++cookie) ASSERT_EQ(write(cookie).taken, 1u);
  fabric.mute = true;
  fabric.deliver(3);
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(b->arrivals.size(), 3u);
  fabric.mute = false;
  fabric.break_qp(numbers_of_a()[0]);
  fabric.hold = false;
  ASSERT_TRUE(run_slow([&] { return a->done.size() == 6 && b->arrivals.size() == 6; }));
  std::set<std::uint64_t> transfers;
  for (const auto& [transfer, chunk] : b->arrivals) EXPECT_TRUE(transfers.insert(transfer).second) << transfer;
}

// Acknowledged, so it is done; but the target's queue pair goes before the target looked: the agent must tell it.
TEST_F(Immediates, WhatWasAcknowledgedAndNotSeenIsForTheAgentToTell) {
  start();
  connect();
  ASSERT_EQ(write(1).taken, 1u);
  a->collect(now);
  ASSERT_TRUE(is_done(1));
  EXPECT_TRUE(a->done_uncounted.empty());
  fabric.set_link("mock1", false);
  b->port->release_path(b->up);
  b->up = nullptr;
  fabric.set_link("mock1", true);
  ASSERT_TRUE(run_slow([&] { return !a->down.empty(); }));
  EXPECT_TRUE(b->arrivals.empty());
  EXPECT_EQ(a->uncounted, (std::vector<std::uint64_t>{101}));
}

TEST_F(Immediates, WhatWasCountedIsNotTheAgentsToTell) {
  options.pair.immediates = 4;
  start();
  connect();
  for (std::uint64_t cookie = 1; cookie <= 3; ++cookie) {
    ASSERT_EQ(write(cookie).taken, 1u);
    ASSERT_TRUE(run([&] { return b->arrivals.size() == cookie && is_done(cookie); }));
  }
  for (int i = 0; i < 50; ++i) step();
  a->port->release_path(to_b);
  b->collect(now);
  SUCCEED() << "a path that is released tells nothing";
  EXPECT_TRUE(a->uncounted.empty());
  EXPECT_TRUE(run_slow([&] { return !b->down.empty(); }));
  EXPECT_TRUE(b->uncounted.empty()) << "it sent none";
}

TEST_F(Immediates, AnImmediateThatWasNotAgreedOnEndsThePath) {
  VerbsOptions none = options;
  none.pair.immediates = 0;
  a = std::make_unique<Side>(fabric, network, "a", std::vector<std::string>{"mock0"}, none, 11);
  b = std::make_unique<Side>(fabric, network, "b", std::vector<std::string>{"mock1"}, options, 22);
  connect();
  ibv_send_wr request{}, *bad = nullptr;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = 7;
  ASSERT_EQ(a->verbs->post_send(fabric.qp_of_number(numbers_of_a()[0]), &request, &bad), 0);
  ASSERT_TRUE(run([&] { return !b->down.empty(); }));
  EXPECT_EQ(b->down[0].code(), Code::kCorrupt);
}

// Breaks at any time, on either end, of one queue pair or of all; with acknowledgements lost or not. Each chunk ends
// well once; each is told by an immediate, or the agent at the initiator knows that it may not have been.
TEST_F(Immediates, EveryChunkIsToldWhateverBreaks) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    a.reset();
    b.reset();
    base::Rng rng(seed);
    options = VerbsOptions();
    options.pairs = 1 + static_cast<std::uint32_t>(rng.below(3));
    options.pair.immediates = 3 + static_cast<std::uint32_t>(rng.below(20));
    options.pair.messages = rng.below(2) == 0 ? 0 : 8;
    options.patience = std::chrono::seconds(20);
    to_b = nullptr;
    start();
    connect();
    std::uint64_t cookie = 0;
    for (int i = 0; i < 1500; ++i) {
      fabric.hold = rng.below(3) != 0;
      if (rng.below(2) == 0 && write(cookie + 1, 0, cookie + 1).taken == 1) ++cookie;
      const std::vector<std::uint32_t> numbers = fabric.qp_numbers();
      for (auto n = rng.below(4); n > 0 && !numbers.empty(); --n) {
        fabric.mute = rng.below(40) == 0;
        fabric.deliver_one_of(numbers[rng.below(numbers.size())]);
        fabric.mute = false;
      }
      if (rng.below(60) == 0 && !numbers.empty()) {
        if (rng.below(2) == 0) fabric.deliver();  // What the other end has not looked at yet.
        fabric.break_qp(numbers[rng.below(numbers.size())]);
      }
      if (rng.below(3) != 0) a->collect(now);
      if (rng.below(3) != 0) b->collect(now);
      now = now + std::chrono::microseconds(rng.below(2000));
    }
    fabric.hold = false;
    fabric.deliver();
    const auto expire_some = [&] {
      fabric.expire();
      return a->done.size() >= cookie;
    };
    ASSERT_TRUE(run_slow(expire_some)) << a->done.size() << " of " << cookie << " " << to_b->describe();
    for (int i = 0; i < 200; ++i) step();
    EXPECT_TRUE(a->down.empty() && b->down.empty());
    std::set<std::uint64_t> told;
    for (const auto& [transfer, chunk] : b->arrivals) told.insert(transfer);
    told.insert(a->uncounted.begin(), a->uncounted.end());
    told.insert(a->done_uncounted.begin(), a->done_uncounted.end());
    EXPECT_EQ(a->done.size(), cookie);
    for (std::uint64_t transfer = 1; transfer <= cookie; ++transfer) EXPECT_TRUE(told.contains(transfer)) << transfer;
  }
}

}  // namespace
}  // namespace hawser::backend::verbs
