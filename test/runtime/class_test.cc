// Classes of messages in worlds of one process: over each backend, and where relays pass the messages on.

#include <gtest/gtest.h>

#include <hawser/world.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "wire/runtime.h"
#include "with_quic.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

constexpr std::array kPriorities = {Priority::kCritical, Priority::kRealtime, Priority::kBulk};
constexpr std::uint32_t kSize = 6, kFrom = 0, kTo = 3;  ///< No neighbours in sparse worlds.

struct Shape {
  std::string topology, backend;
};

std::string name_of(const testing::TestParamInfo<Shape>& info) {
  std::string name = info.param.topology + "_" + info.param.backend;
  std::ranges::replace_if(
      name, [](char each) { return std::isalnum(static_cast<unsigned char>(each)) == 0; }, '_');
  return name;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ClassTest : public testing::TestWithParam<Shape> {
 protected:
  ClassTest() {
    WorldOptions options;
    options.timeout = 60s;
    options.topology = parse_topology(GetParam().topology).value();
    if (GetParam().backend != "any") options.agent.backends = {{.name = GetParam().backend}};
    Result<std::vector<World>> worlds = World::local(kSize, options);
    EXPECT_TRUE(worlds.has_value()) << worlds.error().to_string();
    if (worlds) worlds_ = std::move(*worlds);
  }
  World& from() { return worlds_[kFrom]; }
  World& to() { return worlds_[kTo]; }
  static void expect_ok(const Status& status) { EXPECT_TRUE(status.ok()) << status.to_string(); }
  /// The text of the next message of that tag.
  static std::string next(World& world, std::uint64_t tag, std::uint32_t source = kFrom) {
    Request got = world.ireceive_any_size(source, tag);
    expect_ok(got.wait(60s));
    return text_of(got.bytes());
  }

  std::vector<World> worlds_;
};

std::string numbered(std::size_t priority, std::size_t number, std::size_t size) {
  std::string text = std::to_string(priority) + " " + std::to_string(number) + " ";
  text.resize(std::max(text.size(), size), 'x');
  return text;
}

/// Of one source and tag, small and large, received before and after they came.
TEST_P(ClassTest, EachClassIsInOrder) {
  constexpr std::size_t kMessages = 240;
  constexpr std::array<std::size_t, 5> kSizes = {0, 100, wire::kRuntimeBodyMax, 100'000, 3000};
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < kMessages; ++i) texts.push_back(numbered(i % 3, i, kSizes[i % kSizes.size()]));
  std::vector<Request> sends, receives;
  const auto receive = [&] { receives.push_back(to().ireceive_any_size(kFrom, 5)); };
  for (std::size_t i = 0; i < kMessages / 2; ++i) receive();
  for (std::size_t i = 0; i < kMessages; ++i) {
    sends.push_back(from().isend(bytes_of(texts[i]), kTo, 5, {.priority = kPriorities[i % 3]}));
  }
  for (std::size_t i = 0; i < kMessages / 2; ++i) receive();
  std::array<std::vector<std::size_t>, 3> came;
  for (Request& each : receives) {
    expect_ok(each.wait(60s));
    const std::string text = text_of(each.bytes());
    const std::size_t number = std::stoul(text.substr(2));
    ASSERT_LT(number, kMessages);
    EXPECT_EQ(text, texts[number]);
    came[number % 3].push_back(number);
  }
  for (Request& each : sends) expect_ok(each.wait(60s));
  for (const auto& numbers : came) {
    EXPECT_EQ(numbers.size(), kMessages / 3);
    EXPECT_TRUE(std::ranges::is_sorted(numbers));
  }
}

TEST_P(ClassTest, MessagesOfAllSizesComeWholeInEachClass) {
  for (const std::size_t size : {0UL, 8UL, wire::kRuntimeBodyMax, wire::kRuntimeBodyMax + 1, 1'048'579UL}) {
    for (const Priority priority : kPriorities) {
      const std::string text = numbered(static_cast<std::size_t>(priority), 1, size);
      Request sent = from().isend(bytes_of(text), kTo, 1, {.priority = priority});
      EXPECT_EQ(next(to(), 1), text);
      expect_ok(sent.wait(60s));
      const std::array parts = {bytes_of(text).first(1), bytes_of(text).subspan(1)};
      sent = from().isend_parts(parts, kTo, 1, {.priority = priority});
      EXPECT_EQ(next(to(), 1), text);
      expect_ok(sent.wait(60s));
    }
  }
}

/// Hundreds of megabytes of bulk take far longer than one small message. They are few messages: to begin one may wait
/// for the lane, and so for bulk.
TEST_P(ClassTest, UrgentMessagesOvertakeBulkOnes) {
  constexpr std::size_t kCount = 2;
  const std::size_t bytes = GetParam().backend == "tcp" || GetParam().backend == "quic" ? 128 << 20 : 256 << 20;
  const std::string large(bytes, 'b');
  std::vector<std::vector<std::byte>> into(kCount, std::vector<std::byte>(bytes));
  std::vector<Request> sends, receives;
  for (std::size_t i = 0; i < kCount; ++i) {
    receives.push_back(to().ireceive(into[i], kFrom, 1));
    sends.push_back(from().isend(bytes_of(large), kTo, 1));
  }
  for (const Priority priority : {Priority::kCritical, Priority::kRealtime}) {
    expect_ok(from().send(bytes_of("urgent"), kTo, 2, {.priority = priority}));
    EXPECT_EQ(next(to(), 2), "urgent");
  }
  const std::string urgent(200'000, 'u');  // It is asked for and granted meanwhile.
  Request sent = from().isend(bytes_of(urgent), kTo, 2, {.priority = Priority::kCritical});
  EXPECT_EQ(next(to(), 2), urgent);
  EXPECT_FALSE(receives.back().done());
  for (Request& each : receives) expect_ok(each.wait(60s));
  for (Request& each : sends) expect_ok(each.wait(60s));
  expect_ok(sent.wait(60s));
}

/// Messages that nobody receives fill what there is for their class.
TEST_P(ClassTest, AFullClassHoldsBackNoOther) {
  constexpr std::size_t kUnwanted = 200;
  const std::string text(60'000, 'u');
  for (const Priority full : kPriorities) {
    std::vector<Request> sends;
    for (std::size_t i = 0; i < kUnwanted; ++i)
      sends.push_back(from().isend(bytes_of(text), kTo, 1, {.priority = full}));
    for (const Priority other : kPriorities) {
      if (other == full) continue;
      expect_ok(from().send(bytes_of("other"), kTo, 2, {.priority = other}));
      EXPECT_EQ(next(to(), 2), "other");
    }
    for (std::size_t i = 0; i < kUnwanted; ++i) ASSERT_EQ(next(to(), 1), text);
    for (Request& each : sends) expect_ok(each.wait(60s));
  }
}

TEST_P(ClassTest, SendsEndByDeadlineAndCancelInEachClass) {
  const std::string large(300'000, 'l');
  for (const Priority priority : kPriorities) {
    Request late = from().isend(bytes_of(large), kTo, 1, {.timeout = 20ms, .priority = priority});
    EXPECT_EQ(late.wait(60s).code(), Code::kTimedOut);
    Request cancelled = from().isend(bytes_of(large), kTo, 1, {.priority = priority});
    cancelled.cancel();
    EXPECT_EQ(cancelled.wait(60s).code(), Code::kCancelled);
    // Before this one the receiver hears that the others do not come.
    expect_ok(from().send(bytes_of("after"), kTo, 2, {.priority = priority}));
    EXPECT_EQ(next(to(), 2), "after");
    EXPECT_FALSE(to().probe(kFrom, 1).has_value());
  }
}

TEST_P(ClassTest, ToOneself) {
  const std::string small = "small", large(300'000, 'l');
  for (const Priority priority : kPriorities) {
    Request one = from().isend(bytes_of(small), kFrom, 1, {.priority = priority});
    Request two = from().isend(bytes_of(large), kFrom, 1, {.priority = priority});
    EXPECT_EQ(next(from(), 1), small);
    EXPECT_EQ(next(from(), 1), large);
    expect_ok(one.wait(60s));
    expect_ok(two.wait(60s));
  }
}

/// Collectives and calls go on beside messages of every class that nobody receives.
TEST_P(ClassTest, CollectivesAndCallsDoNotWaitForMessages) {
  const std::string text(60'000, 'u');
  std::vector<Request> sends;
  for (const Priority priority : kPriorities) {
    for (int i = 0; i < 100; ++i) sends.push_back(from().isend(bytes_of(text), kTo, 1, {.priority = priority}));
  }
  expect_ok(to().register_handler("echo", [](const IncomingCall& call) -> Result<CallAnswer> {
    return CallAnswer(call.arguments.begin(), call.arguments.end());
  }));
  const Result<CallAnswer> answer = from().call(kTo, "echo", bytes_of("hello"));
  ASSERT_TRUE(answer.has_value()) << answer.error().to_string();
  EXPECT_EQ(text_of(*answer), "hello");
  std::vector<std::vector<std::uint64_t>> sums(kSize, std::vector<std::uint64_t>(20'000, 1));
  std::vector<Request> reduces;
  for (std::size_t rank = 0; rank < kSize; ++rank) {
    std::vector<std::uint64_t>& sum = sums[rank];
    reduces.push_back(worlds_[rank].iall_reduce(sum.data(), sum.data(), sum.size(), DataType::kUInt64, ReduceOp::kSum));
  }
  for (Request& each : reduces) expect_ok(each.wait(60s));
  for (const auto& sum : sums) EXPECT_EQ(sum, std::vector<std::uint64_t>(20'000, kSize));
  for (std::size_t i = 0; i < sends.size(); ++i) ASSERT_EQ(next(to(), 1), text);
  for (Request& each : sends) expect_ok(each.wait(60s));
}

TEST_P(ClassTest, GroupsAndSmallerWorldsHaveClasses) {
  const auto check = [](World& source, World& target) {
    const std::string large(150'000, 'l'), small = "small";  // They are read until the sends have ended.
    std::vector<Request> sends;
    for (const Priority priority : kPriorities) {
      const std::uint64_t tag = static_cast<std::uint64_t>(priority);
      sends.push_back(source.isend(bytes_of(large), target.rank(), tag, {.priority = priority}));
      sends.push_back(source.isend(bytes_of(small), target.rank(), tag, {.priority = priority}));
    }
    for (const Priority priority : kPriorities) {
      const std::uint64_t tag = static_cast<std::uint64_t>(priority);
      EXPECT_EQ(next(target, tag, source.rank()), large);
      EXPECT_EQ(next(target, tag, source.rank()), small);
    }
    for (Request& each : sends) expect_ok(each.wait(60s));
  };
  const std::array<std::uint32_t, 2> members = {kFrom, kTo};
  World one = from().group(members).value(), other = to().group(members).value();
  check(one, other);
  // The old world's messages are none of the new one's.
  expect_ok(from().send(bytes_of("old"), kTo, 0, {.priority = Priority::kCritical}));
  ASSERT_TRUE(worlds_[1].close(10s).ok());
  std::array<World, kSize> smaller;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < kSize; ++rank) {
    if (rank == 1) continue;
    threads.emplace_back([&, rank] {
      Result<World> made = worlds_[rank].shrink();
      ASSERT_TRUE(made.has_value()) << made.error().to_string();
      smaller[rank] = std::move(*made);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (HasFailure()) return;
  check(smaller[kFrom], smaller[kTo]);
}

INSTANTIATE_TEST_SUITE_P(
    Over, ClassTest,
    testing::ValuesIn(with_quic<Shape>(
        {{"full", "shm"}, {"full", "tcp"}, {"full", "any"}, {"hypercube", "any"}, {"regular:2", "tcp"}},
        {"full", "quic"})),
    name_of);

}  // namespace
}  // namespace hawser
