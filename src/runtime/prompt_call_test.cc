#include "runtime/prompt_call.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/test_boards.h"

namespace hawser::runtime {
namespace {

constexpr std::uint32_t kCallers = 3;

class PromptCallTest : public testing::Test {
 protected:
  using What = schedule::Operation;

  CollectiveCall call_of(std::uint32_t rank, What what, ReduceOp op = ReduceOp::kSum) {
    return {.call = {.operation = what, .rank = rank, .size = kCallers, .count = 2, .element_bytes = 4},
            .input = inputs_[rank].data(),
            .output = outputs_[rank].data(),
            .type = DataType::kInt32,
            .op = op};
  }
  PromptCall begin(const CollectiveCall& call, std::uint64_t digest = 5) {
    return {boards_[call.call.rank], call, turn_, turn_ + 1, digest};
  }

  TestBoards boards_{kCallers};
  std::array<std::array<std::int32_t, 2>, kCallers> inputs_{{{1, 2}, {3, 4}, {5, 6}}}, outputs_{};
  std::uint64_t turn_ = 0;
};

TEST_F(PromptCallTest, TheLastToComeEndsItAtOnce) {
  for (int round = 0; round < 6; ++round, ++turn_) {
    const CollectiveCall calls[] = {call_of(0, What::kAllReduce), call_of(1, What::kAllReduce),
                                    call_of(2, What::kAllReduce)};
    PromptCall first = begin(calls[0]), second = begin(calls[1]), last = begin(calls[2]);
    ASSERT_TRUE(first.write());
    EXPECT_FALSE(first.carry_through(true));
    ASSERT_TRUE(second.write());
    ASSERT_TRUE(last.write());
    EXPECT_TRUE(last.carry_through(true)) << "it looks before it asks who is on its core";
    EXPECT_TRUE(first.carry_through(false));
    EXPECT_TRUE(second.carry_through(false));
    for (const auto& output : outputs_) EXPECT_EQ(output, (std::array<std::int32_t, 2>{9, 12}));
    boards_.finish(turn_);
  }
}

TEST_F(PromptCallTest, AnAverageIsDivided) {
  const CollectiveCall calls[] = {call_of(0, What::kAllReduce, ReduceOp::kAvg),
                                  call_of(1, What::kAllReduce, ReduceOp::kAvg),
                                  call_of(2, What::kAllReduce, ReduceOp::kAvg)};
  PromptCall first = begin(calls[0]), second = begin(calls[1]), last = begin(calls[2]);
  ASSERT_TRUE(first.write() && second.write() && last.write());
  ASSERT_TRUE(last.carry_through(false));
  EXPECT_EQ(outputs_[2], (std::array<std::int32_t, 2>{3, 4}));
}

TEST_F(PromptCallTest, AnAllToAllEndsInOneTurnIfItsBlocksAreSmall) {
  for (const std::uint64_t piece : {std::uint64_t{48 + 12}, std::uint64_t{48 + 11}}) {
    std::vector<CollectiveCall> calls;
    std::array<std::array<std::int32_t, 3>, kCallers> inputs{{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}}, outputs{};
    for (std::uint32_t rank = 0; rank < kCallers; ++rank) {
      CollectiveCall& call = calls.emplace_back(call_of(rank, What::kAllToAll));
      call.op.reset();
      call.input = inputs[rank].data();
      call.output = outputs[rank].data();
      call.call.counts = call.call.in_counts = {1, 1, 1};
      call.call.piece_bytes = piece;
      EXPECT_TRUE(PromptCall::can_be(call, schedule::Algorithm::kStaged));
      EXPECT_FALSE(PromptCall::can_be(call, schedule::Algorithm::kDirect));
    }
    PromptCall first = begin(calls[0]), second = begin(calls[1]), last = begin(calls[2]);
    ASSERT_TRUE(first.write() && second.write() && last.write());
    EXPECT_EQ(last.carry_through(false), piece == 48 + 12) << "else it goes on in pieces";
    using Row = std::array<std::int32_t, 3>;
    EXPECT_EQ(outputs[2], (piece == 48 + 12 ? Row{3, 6, 9} : Row{}));
    boards_.finish(turn_++);
  }
}

TEST_F(PromptCallTest, OtherAlgorithmsAndHostsAreNone) {
  CollectiveCall call = call_of(0, What::kAllReduce);
  EXPECT_TRUE(PromptCall::can_be(call, schedule::Algorithm::kBoards));
  EXPECT_FALSE(PromptCall::can_be(call, schedule::Algorithm::kStaged)) << "of many turns";
  call.call.hosts = {0, 0, 1};
  EXPECT_FALSE(PromptCall::can_be(call, schedule::Algorithm::kBoards));
  call.call.hosts.clear();
  call.output = nullptr;
  EXPECT_FALSE(PromptCall::can_be(call, schedule::Algorithm::kBoards));
}

TEST_F(PromptCallTest, NothingIsWrittenIntoASlotThatIsStillRead) {
  for (turn_ = 0; turn_ < kBoardSlots; ++turn_) {
    const CollectiveCall call = call_of(0, What::kBarrier);
    EXPECT_TRUE(begin(call).write());
  }
  const CollectiveCall call = call_of(0, What::kBarrier);
  EXPECT_FALSE(begin(call).write());
  boards_.finish(0);
  EXPECT_TRUE(begin(call).write());
}

TEST_F(PromptCallTest, OneWhoCallsSomethingElseIsLeftToACollective) {
  const CollectiveCall calls[] = {call_of(0, What::kAllReduce), call_of(1, What::kAllReduce),
                                  call_of(2, What::kAllReduce)};
  PromptCall first = begin(calls[0]), other = begin(calls[1], 6), last = begin(calls[2]);
  ASSERT_TRUE(first.write() && other.write() && last.write());
  EXPECT_FALSE(first.carry_through(false));
  EXPECT_FALSE(other.carry_through(false));
  EXPECT_EQ(outputs_[0], (std::array<std::int32_t, 2>{0, 0})) << "the output is as it was";
}

TEST_F(PromptCallTest, ABoardOutOfSightIsLeftToACollective) {
  const CollectiveCall calls[] = {call_of(0, What::kBarrier), call_of(1, What::kBarrier), call_of(2, What::kBarrier)};
  PromptCall first = begin(calls[0]), second = begin(calls[1]), last = begin(calls[2]);
  ASSERT_TRUE(first.write() && second.write() && last.write());
  boards_.gone = 1;
  EXPECT_FALSE(first.carry_through(false));
  boards_.gone = TestBoards::kNone;
  EXPECT_TRUE(first.carry_through(false));
}

/// A rank that it waits for told last that it is on this core: it cannot come while this one looks.
TEST_F(PromptCallTest, LooksShortlyForOneOnItsOwnCore) {
#ifdef HAWSER_EMULATED
  GTEST_SKIP() << "an emulator does not tell on which core a thread is";
#endif
  const CollectiveCall call = call_of(0, What::kBarrier);
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const int core = ::sched_getcpu();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) GTEST_SKIP() << "threads cannot be kept on a core here";
  const auto looks = [&](int others) {
    for (std::uint32_t rank = 1; rank < kCallers; ++rank) boards_[rank].stand_on(others);
    PromptCall first = begin(call);
    EXPECT_TRUE(first.write());
    const std::uint64_t begun = boards_.looks;
    EXPECT_FALSE(first.carry_through(false));
    boards_.finish(turn_++);
    return boards_.looks - begun;
  };
  const std::uint64_t elsewhere = looks(core + 1), here = looks(core);
  EXPECT_LT(here * 4, elsewhere);
  EXPECT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace hawser::runtime
