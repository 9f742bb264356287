// What a thread sends while another one holds the lane: it returns at once, nothing is lost, and all keeps its order.

#include "agent/left_over.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <hawser/atomic.h>
#include <hawser/driver.h>
#include <hawser/hawser.h>

#include "agent/core.h"
#include "agent/open.h"
#include "backend/shm/factory.h"
#include "backend/tcp/factory.h"
#include "base/inside.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kChannel = 16;
constexpr std::uint32_t kCredit = 4096;

std::optional<std::uint64_t> number_of(const Message& message) {
  std::uint64_t number = 0;
  if (message.bytes.size() != sizeof number) return std::nullopt;
  std::memcpy(&number, message.bytes.data(), sizeof number);
  return number;
}

/// Holds a lane beside another one, which no code of the library does.
class Stalled {
 public:
  explicit Stalled(Lane& lane) HAWSER_NO_THREAD_SAFETY_ANALYSIS : lane_(lane) { lane_.lock(); }
  ~Stalled() HAWSER_NO_THREAD_SAFETY_ANALYSIS { lane_.unlock(); }

 private:
  Lane& lane_;
};

class LeftOverTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(driver_.attach(there_).ok());
    ASSERT_TRUE(driver_.attach(here_).ok());
    ASSERT_TRUE(there_.open_channel(kChannel, kCredit).ok());
    peer_ = here_.add_peer(there_.card().value()).value();
    ASSERT_TRUE(peer_.connect(10s).ok());
    const Instant end = Clock::steady().now() + 10s;
    while (!peer_.opened(kChannel) && Clock::steady().now() < end) (void)here_.wait(1ms);
    ASSERT_TRUE(peer_.opened(kChannel));
  }
  static Agent open(const std::string& name) {
    AgentOptions options{.name = name, .backends = {{GetParam(), {}}}};
    options.log.level = LogLevel::kError;
    return std::move(open_with(std::move(options), {backend::shm_factory(), backend::tcp_factory()}).value());
  }
  Lane& lane() { return core_of(here_)->lane; }
  Status send(std::uint64_t number) { return peer_.send(kChannel, std::as_bytes(std::span(&number, 1))).error(); }
  /// The next one that comes there.
  std::optional<std::uint64_t> next() {
    const Instant end = Clock::steady().now() + 10s;
    while (Clock::steady().now() < end) {
      if (const auto message = there_.take_message(kChannel)) return number_of(*message);
      if (!core_of(here_)->is_closed()) (void)here_.poll();
      (void)there_.wait(1ms);
    }
    return std::nullopt;
  }
  void expect_next(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t number = from; number < to; ++number) ASSERT_EQ(next(), number);
  }

  Driver driver_ = Driver::start().value();
  Agent there_ = open("there"), here_ = open("here");
  Peer peer_;
};

TEST_P(LeftOverTest, ASenderDoesNotWaitForTheLaneAndKeepsItsOrder) {
  lane().lock();
  std::thread sender([&] {
    for (std::uint64_t number = 0; number < 10; ++number) EXPECT_TRUE(send(number).ok());
    EXPECT_TRUE(peer_.notify("noted").ok());
  });
  sender.join();  // Though the lane is held.
  lane().unlock();
  EXPECT_TRUE(send(10).ok());  // By itself, and behind those.
  expect_next(0, 11);
  std::optional<Notification> note;
  for (const Instant end = Clock::steady().now() + 10s; !note && Clock::steady().now() < end;) {
    note = there_.take_notification();
    if (!note) (void)there_.wait(1ms);
  }
  ASSERT_TRUE(note);
  EXPECT_EQ(note->text, "noted");
  EXPECT_EQ(here_.counters().total.messages_sent, 11u);
}

/// A turn that takes a submission, and a thread that submits by itself, first send the notifications left before.
TEST_P(LeftOverTest, ATransferStaysBehindTheNotificationsOfBefore) {
  std::array<std::uint64_t, 8> source{}, target{};
  const Region into =
      there_.add_region({.name = "into", .bytes = std::as_writable_bytes(std::span(target)), .device = {}}).value();
  const Region from =
      here_.add_region({.name = "from", .bytes = std::as_writable_bytes(std::span(source)), .device = {}}).value();
  ASSERT_TRUE(peer_.await_regions({"into"}, 10s).ok());
  const LocalRange local = from.range(0, sizeof source);
  const RemoteRange remote = peer_.range("into", 0, sizeof target);
  const Plan plan = here_.plan_write(peer_, {&local, 1}, {&remote, 1}).value();
  for (const bool is_left : {true, false}) {
    lane().lock();
    std::vector<Transfer> sent;
    std::thread sender([&] {
      EXPECT_TRUE(peer_.notify("first").ok());
      if (is_left) sent.push_back(plan.submit({.notify = "second"}).value());
    });
    sender.join();
    if (is_left) {  // A turn that had looked for notifications before they were sent.
      lane().take_submissions(kSubmissionsMax, lane().now());
      core_of(here_)->engine.turn(lane().now());
    }
    lane().unlock();
    if (!is_left) sent.push_back(plan.submit({.notify = "second"}).value());
    std::string all;
    for (const Instant end = Clock::steady().now() + 10s; all.size() < 11 && Clock::steady().now() < end;) {
      if (const auto note = there_.take_notification()) all += note->text;
      (void)there_.wait(1ms);
    }
    EXPECT_EQ(all, "firstsecond") << is_left;
  }
}

TEST_P(LeftOverTest, SoManyAreLeftAndTheNextOneWaits) {
  std::atomic<std::uint64_t> sent{0};
  lane().lock();
  std::thread sender([&] {
    for (std::uint64_t number = 0; number <= kLeftOverMax; ++number) {
      EXPECT_TRUE(send(number).ok());
      ++sent;
    }
  });
  const Instant end = Clock::steady().now() + 10s;
  while (sent < kLeftOverMax && Clock::steady().now() < end) std::this_thread::yield();
  EXPECT_EQ(sent, kLeftOverMax);
  lane().unlock();
  sender.join();
  expect_next(0, kLeftOverMax + 1);
}

/// Nobody would look at what is left there until the next poll, so the sender waits and sends by itself.
TEST_P(LeftOverTest, OfAPolledAgentASenderWaitsForTheLane) {
  ASSERT_TRUE(driver_.detach(here_).ok());
  std::atomic<bool> is_sent{false};
  lane().lock();
  std::thread sender([&] {
    EXPECT_TRUE(send(0).ok());
    is_sent = true;
  });
  const Instant end = Clock::steady().now() + 10s;
  while (!lane().contended() && Clock::steady().now() < end) std::this_thread::yield();
  EXPECT_FALSE(is_sent);
  lane().unlock();
  sender.join();
  // Nobody polls here.
  std::optional<Message> message;
  while (!message && Clock::steady().now() < end) {
    message = there_.take_message(kChannel);
    if (!message) (void)there_.wait(1ms);
  }
  EXPECT_TRUE(message);
}

/// Threads send on one channel, some with the lane's lock and some without: messages come in the order of numbers.
TEST_P(LeftOverTest, NumbersAreTheOrderInWhichMessagesCome) {
  constexpr std::uint64_t kThreads = 3, kEach = 600;
  std::array<std::atomic<std::uint64_t>, kThreads * kEach + 1> by_number{};
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        const std::uint64_t message = thread * kEach + i + 1;
        const Result<std::uint64_t> number =
            peer_.send(kChannel, std::as_bytes(std::span(&message, 1)), std::chrono::seconds(10));
        ASSERT_TRUE(number) << number.error().to_string();
        ASSERT_LT(*number, by_number.size());
        EXPECT_EQ(by_number[*number].exchange(message), 0u) << "two have the number " << *number;
      }
    });
  }
  std::vector<std::uint64_t> came;
  while (came.size() < kThreads * kEach) {
    const std::optional<std::uint64_t> message = next();
    if (!message) break;
    came.push_back(*message);
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(came.size(), kThreads * kEach);
  for (std::size_t i = 0; i < came.size(); ++i) ASSERT_EQ(came[i], by_number[i + 1]) << i;
  for (const Instant end = Clock::steady().now() + 10s; Clock::steady().now() < end;) {
    if (peer_.acknowledged(kChannel) == came.size()) break;
    (void)there_.wait(1ms);
  }
  EXPECT_EQ(peer_.acknowledged(kChannel), came.size());
}

TEST_P(LeftOverTest, WhatThePeerHasNoRoomForIsRefusedToTheSender) {
  lane().lock();
  std::thread sender([&] {
    const Status refused = peer_.send(kChannel + 1, {}).error();
    EXPECT_EQ(refused.code(), Code::kBusy);
    EXPECT_NE(refused.to_string().find("has not opened channel"), std::string::npos) << refused.to_string();
  });
  sender.join();
  lane().unlock();
}

TEST_P(LeftOverTest, WhatWasSentBeforeTheAgentClosesComes) {
  lane().lock();
  std::thread sender([&] {
    for (std::uint64_t number = 0; number < 3; ++number) EXPECT_TRUE(send(number).ok());
  });
  sender.join();
  lane().unlock();
  ASSERT_TRUE(here_.close(10s).ok());
  expect_next(0, 3);
}

TEST_P(LeftOverTest, RoomIsGivenBackWhileTheLaneIsHeld) {
  constexpr std::uint32_t kNarrow = kChannel + 1, kPlaces = 4;
  ASSERT_TRUE(there_.open_channel(kNarrow, kPlaces).ok());
  const auto fill = [&] {
    std::uint32_t sent = 0;
    for (const Instant end = Clock::steady().now() + 10s; sent < kPlaces && Clock::steady().now() < end;) {
      if (peer_.send(kNarrow, {})) {
        ++sent;
      } else {
        (void)here_.wait(1ms);
      }
    }
    return sent;
  };
  ASSERT_EQ(fill(), kPlaces);
  for (const Instant end = Clock::steady().now() + 10s; Clock::steady().now() < end;) {
    (void)here_.poll();
    if (there_.counters().total.messages_received == kPlaces) break;
  }
  Lane& theirs = core_of(there_)->lane;
  theirs.lock();
  std::array<Message, 2 * kPlaces> messages;
  std::size_t taken = 0;
  std::thread taker([&] { taken = there_.take_messages(kNarrow, messages); });
  taker.join();
  theirs.unlock();
  EXPECT_EQ(taken, kPlaces);
  EXPECT_EQ(fill(), kPlaces) << "all of its room is there again";
}

TEST_P(LeftOverTest, TheEngineTellsWhoWaitsForWhom) {
  std::array<std::uint64_t, 512> source{}, target{};
  const auto bytes_of = [](auto& words) { return std::as_writable_bytes(std::span(words)); };
  Region to = there_.add_region({.name = "to", .bytes = bytes_of(target), .device = {}}).value();
  Region from = here_.add_region({.name = "from", .bytes = bytes_of(source), .device = {}}).value();
  ASSERT_TRUE(peer_.await_regions({"to"}, 10s).ok());
  const LocalRange local = from.range(0, sizeof source);
  const RemoteRange remote = peer_.range("to", 0, sizeof target);
  Plan plan = here_.plan_write(peer_, {&local, 1}, {&remote, 1}).value();
  std::optional<Stalled> theirs(core_of(there_)->lane);  // From now on it answers nothing.
  AtomicOp op = fetch_add(here_, peer_.range("to", 0, sizeof(std::uint64_t)), 1, {.deadline = 10s}).value();
  Transfer sent = plan.submit({.deadline = 10s}).value();
  std::string told;
  lane().lock();
  lane().turn(core_of(here_)->now());
  core_of(here_)->engine.describe(
      [&](const Waiting& each) { told += std::string(each.who) + " wait for " + std::string(each.peer) + "; "; });
  lane().unlock();
  theirs.reset();
  EXPECT_NE(told.find("atomics wait for there"), std::string::npos) << told;
  // Over shared memory the write is a copy, which nobody need answer.
  const bool is_told = told.find("transfers wait for there") != std::string::npos;
  EXPECT_TRUE(is_told || sent.done()) << told;
  EXPECT_TRUE(op.wait(10s).ok());
  EXPECT_TRUE(sent.wait(10s).ok());
}

INSTANTIATE_TEST_SUITE_P(Backends, LeftOverTest, testing::Values("shm", "tcp"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace hawser::agent
