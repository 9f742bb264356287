#include "sim/atomic_judge.h"

#include <gtest/gtest.h>

#include <optional>

#include "sim/test_lives.h"

namespace hawser::simulation {
namespace {

using namespace std::chrono_literals;

struct AtomicJudgeTest : testing::Test, TwoLives {
  AtomicJudgeTest() {
    area.atomic_words.resize(2);
    for (const std::size_t offset : {0, 8}) put(area, offset, 0);
  }

  /// An operation of `a` on the first word, with a digit of its own. Nobody watches its handle.
  AtomicCall& ask(std::optional<std::uint64_t> expected = {}) {
    AtomicCall& call = judge.make(a, b, area);
    AtomicWord& word = area.atomic_words[0];
    call.digit = std::uint64_t{1} << (2 * word.calls.size());
    call.expected = expected;
    call.before = word.seen;
    call.due = universe.world.now() + 1s;
    call.held = false;
    call.queued = true;
    word.calls.push_back(&call);
    return call;
  }
  /// The owner's word holds this now.
  void put_word(std::uint64_t value) {
    put(area, 0, value);
    judge.observe_words(b);
  }
  void end(AtomicCall& call, std::uint64_t found) { judge.on_own(call, found); }
  void end_badly(AtomicCall& call, const Status& status) {
    Completion entry;
    entry.status = status;
    judge.on_completion(a, call, entry);
  }

  Area& area = add_area(b, 64);
  AtomicJudge judge{{.universe = universe, .verdict = verdict, .reasons = reasons, .writers = writers}};
};

TEST_F(AtomicJudgeTest, OneOrderExplainsWhatWasFound) {
  AtomicCall &first = ask(), &second = ask();
  EXPECT_EQ(judge.find(first.uid), &first);
  put_word(first.digit | second.digit);
  end(second, 0);
  end(first, second.digit);
  EXPECT_FALSE(verdict.failed()) << verdict.failure();
  EXPECT_EQ(judge.count(), 2u);
  EXPECT_EQ(judge.good(), 2u);
}

TEST_F(AtomicJudgeTest, TwoThatBothWentFirstAreWrong) {
  AtomicCall &first = ask(), &second = ask();
  put_word(first.digit | second.digit);
  end(second, 0);
  end(first, 0);
  EXPECT_TRUE(verdict.failed());
}

TEST_F(AtomicJudgeTest, OneThatWasDoneTwiceShows) {
  const AtomicCall& call = ask();
  put_word(2 * call.digit);
  EXPECT_NE(verdict.failure().find("was done twice"), std::string::npos) << verdict.failure();
}

TEST_F(AtomicJudgeTest, AWordLosesNothing) {
  const AtomicCall& call = ask();
  put_word(call.digit);
  put_word(0);
  EXPECT_NE(verdict.failure().find("lost"), std::string::npos) << verdict.failure();
}

TEST_F(AtomicJudgeTest, ACompareSwapThatFoundSomethingElseIsNotDone) {
  AtomicCall& call = ask(8);
  put_word(call.digit);
  end(call, 0);
  EXPECT_NE(verdict.failure().find("not what it expects, and was done"), std::string::npos) << verdict.failure();
}

TEST_F(AtomicJudgeTest, OneThatSaysUntouchedWasNotDone) {
  AtomicCall& call = ask();
  call.ended_by_us = true;
  put_word(call.digit);
  end_badly(call, Status(Code::kCancelled, "cancelled").with_buffer(BufferState::kUntouched));
  EXPECT_NE(verdict.failure().find("and had been done"), std::string::npos) << verdict.failure();
}

TEST_F(AtomicJudgeTest, NorMayItBeDoneAfterwards) {
  AtomicCall& call = ask();
  call.ended_by_us = true;
  end_badly(call, Status(Code::kCancelled, "cancelled").with_buffer(BufferState::kUntouched));
  ASSERT_FALSE(verdict.failed()) << verdict.failure();
  put_word(call.digit);
  EXPECT_NE(verdict.failure().find("was done after it had ended"), std::string::npos) << verdict.failure();
}

TEST_F(AtomicJudgeTest, AnEndNeedsAReason) {
  end_badly(ask(), Status(Code::kDisconnected, "gone").with_buffer(BufferState::kUnknown));
  EXPECT_NE(verdict.failure().find("nothing parted them for good"), std::string::npos) << verdict.failure();
}

TEST_F(AtomicJudgeTest, OneThatNeverEndsShowsAtLast) {
  ask();
  judge.check_settled();
  EXPECT_NE(verdict.failure().find("never ended"), std::string::npos) << verdict.failure();
}

TEST_F(AtomicJudgeTest, OneThatWasRefusedNeverWas) {
  AtomicCall& call = ask();
  judge.drop(call);
  EXPECT_EQ(judge.count(), 0u);
  EXPECT_TRUE(area.atomic_words[0].calls.empty());
  judge.check_settled();
  EXPECT_FALSE(verdict.failed());
}

}  // namespace
}  // namespace hawser::simulation
