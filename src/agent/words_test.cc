// The words of transfers and of waits lie in regions, which are in use as long as anybody looks at them.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/core.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "base/inside.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

class Words : public testing::Test {
 protected:
  Words() {
    region_ = agent_.add_region({.name = "data", .bytes = std::as_writable_bytes(std::span(data_))}).value();
    words_ = agent_.add_region({.name = "words", .bytes = std::as_writable_bytes(std::span(word_))}).value();
    const LocalRange from = region_.range(0, 64);
    const RemoteRange to = agent_.self().range("data", 64, 64);
    plan_ = agent_.plan_write(agent_.self(), {&from, 1}, {&to, 1}).value();
  }
  SignalWord word(std::uint64_t place, std::uint64_t value) const {
    return {.word = words_.range(8 * place, 8), .value = value};
  }

  std::vector<std::uint64_t> data_ = std::vector<std::uint64_t>(16), word_ = std::vector<std::uint64_t>(2);
  Agent agent_ = std::move(open_with({.name = "a"}, {backend::loopback_factory()}).value());
  Region region_, words_;
  Plan plan_;
};

TEST_F(Words, ATransferThatWaitsForAWordEndsWithItsRegion) {
  const SignalWord after = word(0, 1);
  Transfer held = plan_.submit({.after = &after}).value();
  ASSERT_TRUE(words_.close(10s).ok());
  EXPECT_TRUE(held.done()) << "it would go on looking at memory that may be gone";
  EXPECT_EQ(held.status().code(), Code::kCancelled) << held.status().to_string();
  EXPECT_NE(held.status().to_string().find("words"), std::string::npos) << held.status().to_string();
  word_[0] = 1;
  static_cast<void>(agent_.poll());
  EXPECT_EQ(region_.close(10s).code(), Code::kOk);
}

TEST_F(Words, ATransferSetsNoWordOfARegionThatIsClosed) {
  std::uint64_t start = 0;
  Region starts = agent_.add_region({.name = "start", .bytes = std::as_writable_bytes(std::span(&start, 1))}).value();
  const SignalWord after{.word = starts.range(0, 8), .value = 1}, done = word(1, 7);
  Transfer held = plan_.submit({.after = &after, .done = &done}).value();
  ASSERT_TRUE(words_.close(10s).ok());
  start = 1;
  ASSERT_EQ(held.wait(10s).code(), Code::kCancelled) << held.status().to_string();
  EXPECT_EQ(word_[1], 0u) << "its owner may have freed it";
}

TEST_F(Words, OfAClosedRegionAreRefused) {
  const SignalWord one = word(0, 0);
  ASSERT_TRUE(words_.close(10s).ok());
  for (const SubmitOptions& options : {SubmitOptions{.after = &one}, SubmitOptions{.done = &one}}) {
    const Status refused = plan_.submit(options).error();
    EXPECT_EQ(refused.code(), Code::kInvalid) << refused.to_string();
    EXPECT_NE(refused.to_string().find("'words'"), std::string::npos) << refused.to_string();
  }
  EXPECT_EQ(agent_.read_signal(one.word).error().code(), Code::kInvalid);
  EXPECT_EQ(agent_.wait_signal(one.word, 0, 10s).code(), Code::kInvalid);
}

TEST_F(Words, AreCountedOnceForEachTransfer) {
  const SignalWord after = word(0, 1), done = word(1, 1);
  Transfer held = plan_.submit({.after = &after, .done = &done}).value();
  core_of(agent_)->lane.lock();
  const std::uint32_t users = core_of(words_)->users;
  core_of(agent_)->lane.unlock();
  EXPECT_EQ(users, 1u);
  word_[0] = 1;
  ASSERT_TRUE(held.wait(10s).ok());
  EXPECT_EQ(word_[1], 1u);
  EXPECT_TRUE(words_.close(0s).ok());
}

TEST_F(Words, WhoWaitsForOneIsToldThatItsRegionIsClosed) {
  Status told;
  std::thread waiting([&] { told = agent_.wait_signal(word(0, 1).word, 1, 60s); });
  const auto is_watched = [&] {
    core_of(agent_)->lane.lock();
    const bool is = core_of(words_)->watchers > 0;
    core_of(agent_)->lane.unlock();
    return is;
  };
  while (!is_watched()) std::this_thread::yield();
  EXPECT_TRUE(words_.close(30s).ok()) << "it ends the wait";
  EXPECT_FALSE(is_watched()) << "and nobody reads the word any more";
  waiting.join();
  EXPECT_EQ(told.code(), Code::kInvalid) << told.to_string();
  EXPECT_NE(told.to_string().find("'words'"), std::string::npos) << told.to_string();
}

TEST_F(Words, WhoWaitsForOneIsToldThatTheAgentIsClosed) {
  Status told;
  std::thread waiting([&] { told = agent_.wait_signal(word(0, 1).word, 1, 60s); });
  EXPECT_TRUE(agent_.close(30s).ok());
  waiting.join();
  EXPECT_EQ(told.code(), Code::kInvalid) << told.to_string();
}

TEST_F(Words, AndMemoryOfAnotherAgentAreNotThisOnes) {
  Agent other = std::move(open_with({.name = "b"}, {backend::loopback_factory()}).value());
  std::vector<std::uint64_t> memory(16);
  const Region theirs =
      other.add_region({.name = "theirs", .bytes = std::as_writable_bytes(std::span(memory))}).value();
  const LocalRange from = theirs.range(0, 64);
  const RemoteRange to = agent_.self().range("data", 64, 64);
  const Status planned = agent_.plan_write(agent_.self(), {&from, 1}, {&to, 1}).error();
  EXPECT_EQ(planned.code(), Code::kInvalid);
  EXPECT_NE(planned.to_string().find("'theirs' is another agent's"), std::string::npos) << planned.to_string();
  const std::uint32_t first = 0;
  const Status by_table =
      agent_.plan_write(agent_.self(), theirs.table(64), {&first, 1}, agent_.self().table("data", 64), {&first, 1})
          .error();
  EXPECT_EQ(by_table.code(), Code::kInvalid) << by_table.to_string();
  const SignalWord word{.word = theirs.range(0, 8), .value = 1};
  EXPECT_EQ(plan_.submit({.after = &word}).error().code(), Code::kInvalid);
  EXPECT_EQ(agent_.wait_signal(word.word, 1, 10s).code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::agent
