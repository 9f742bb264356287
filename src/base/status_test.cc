#include <hawser/status.h>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/try.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

static_assert(sizeof(Status) == sizeof(void*));
static_assert(std::is_nothrow_copy_constructible_v<Status> && std::is_nothrow_move_assignable_v<Status>);
static_assert(std::is_nothrow_move_constructible_v<Result<std::string>>);
static_assert(!std::is_copy_constructible_v<Result<std::unique_ptr<int>>>);
static_assert(std::is_copy_assignable_v<Result<std::string>>);

TEST(Status, TheTextOfAPeersNameMovesNoCursor) {
  const std::string name = "a\xc2\x9bm";
  const Status status = Status(Code::kFailed, "no").with_peer(name).with_device("d\n");
  EXPECT_EQ(status.to_string(), "failed: no (peer a\\xc2\\x9bm, device d\\x0a)");
  EXPECT_EQ(status.peer(), name);
}

TEST(Status, GoodHasNoFacts) {
  const Status good;
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good.code(), Code::kOk);
  EXPECT_EQ(good.message(), "");
  EXPECT_EQ(good.to_string(), "ok");
  EXPECT_TRUE(good.with_peer("p").with_scope(Scope::kPeer).because(Status(Code::kBusy, "x")).ok());
}

TEST(Status, KeepsItsFactsAndLeavesTheOriginalAlone) {
  const Status plain(Code::kTimedOut, "write of request 17");
  const Status full = plain.with_scope(Scope::kPeer)
                          .with_buffer(BufferState::kPartlyWritten)
                          .with_peer("decode-3")
                          .with_device("cuda:0")
                          .with_progress(4096, 500ms)
                          .with_advice("raise the deadline");
  EXPECT_EQ(full.code(), Code::kTimedOut);
  EXPECT_EQ(full.scope(), Scope::kPeer);
  EXPECT_EQ(full.buffer(), BufferState::kPartlyWritten);
  EXPECT_EQ(full.peer(), "decode-3");
  EXPECT_EQ(full.device(), "cuda:0");
  EXPECT_EQ(full.bytes_done(), 4096u);
  EXPECT_EQ(full.elapsed(), 500ms);
  EXPECT_EQ(full.advice(), "raise the deadline");
  EXPECT_EQ(plain.peer(), "");
  EXPECT_EQ(full, plain) << "facts are not compared";
  EXPECT_EQ(full.to_string(),
            "timed out: write of request 17 (peer decode-3, device cuda:0, scope peer, target partly written, "
            "4096 bytes done, after 500 ms). raise the deadline");
}

TEST(Status, CopiesShareAndMovesSteal) {
  Status a(Code::kBusy, std::string(100, 'x'));
  const Status b = a;
  EXPECT_EQ(a.message().data(), b.message().data());
  Status c = std::move(a);
  EXPECT_TRUE(a.ok());  // NOLINT: a moved-from Status is good
  EXPECT_EQ(c, b);
  Status& same = c;
  c = same;
  EXPECT_EQ(c, b);
  c = Status();
  EXPECT_TRUE(c.ok());
  EXPECT_EQ(b.code(), Code::kBusy);
}

TEST(Status, ANonsenseCodeIsAFailure) {
  EXPECT_EQ(Status(Code::kOk, "x").code(), Code::kFailed);
  EXPECT_EQ(Status(static_cast<Code>(200), "x").code(), Code::kFailed);
  EXPECT_EQ(to_string(static_cast<Code>(200)), "unknown");
}

TEST(Status, CausesFormAChain) {
  const Status root(Code::kDisconnected, "socket closed");
  const Status middle = Status(Code::kBusy, "window full").because(root);
  const Status top = Status(Code::kFailed, "write").because(middle);
  EXPECT_EQ(top.cause(), middle);
  EXPECT_EQ(top.cause().cause(), root);
  EXPECT_EQ(top.to_string(), "failed: write; because busy: window full; because disconnected: socket closed");
  const Status longer = top.because(Status(Code::kCorrupt, "last"));
  EXPECT_EQ(longer.cause().cause().cause().code(), Code::kCorrupt);
}

int chain_length(Status status) {
  int length = 0;
  for (; !status.ok(); status = status.cause()) ++length;
  return length;
}

TEST(Status, AChainIsBoundedAndKeepsItsRoot) {
  Status status(Code::kDisconnected, "root");
  for (int i = 0; i < 100; ++i) status = Status(Code::kBusy, std::to_string(i)).because(status);
  EXPECT_EQ(chain_length(status), Status::kCausesMax);
  EXPECT_EQ(status.message(), "99");
  Status last = status;
  while (!last.cause().ok()) last = last.cause();
  EXPECT_EQ(last.message(), "root");
  EXPECT_EQ(chain_length(status.because(status)), Status::kCausesMax);
}

TEST(Status, IsSharedBetweenThreads) {
  const Status shared = Status(Code::kFailed, "x").because(Status(Code::kBusy, "y"));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&shared] {
      for (int i = 0; i < 10'000; ++i) {
        Status copy = shared;
        Status moved = std::move(copy);
        ASSERT_EQ(moved.cause().code(), Code::kBusy);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared.message(), "x");
}

struct Base {
  virtual ~Base() = default;
};
struct Derived : Base {};

Result<std::unique_ptr<Base>> make_derived() { return std::make_unique<Derived>(); }

TEST(Result, HoldsAValueOrAnError) {
  Result<std::string> good("text");
  EXPECT_TRUE(good);
  EXPECT_EQ(*good, "text");
  EXPECT_EQ(good->size(), 4u);
  EXPECT_TRUE(good.error().ok());
  Result<std::string> bad = Status(Code::kNotFound, "no peer");
  EXPECT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().code(), Code::kNotFound);
  EXPECT_EQ(bad.value_or("other"), "other");
  EXPECT_EQ(std::move(good).value_or("other"), "text");
  EXPECT_TRUE(make_derived().has_value());
}

TEST(Result, AGoodStatusIsNoValue) {
  const Result<int> result = Status();
  EXPECT_FALSE(result.has_value());
  EXPECT_EQ(result.status().code(), Code::kFailed);
}

TEST(Result, AssignsAcrossSides) {
  Result<std::string> a("a");
  Result<std::string> b = Status(Code::kBusy, "b");
  const Result<std::string> copy = a;
  a = b;
  EXPECT_EQ(a.error().code(), Code::kBusy);
  a = copy;
  EXPECT_EQ(*a, "a");
  b = std::move(a);
  EXPECT_EQ(*b, "a");
  Result<std::string>& same = b;
  b = same;
  EXPECT_EQ(*b, "a");
  b = Status(Code::kDenied, "d");
  EXPECT_EQ(b.error().code(), Code::kDenied);
}

TEST(Result, MovesOnlyTypes) {
  Result<std::unique_ptr<int>> a(std::make_unique<int>(7));
  Result<std::unique_ptr<int>> b = std::move(a);
  EXPECT_EQ(**b, 7);
  const std::unique_ptr<int> taken = *std::move(b);
  EXPECT_EQ(*taken, 7);
}

Status returns_early(const Status& status, bool* reached) {
  HAWSER_TRY(status);
  *reached = true;
  return Status();
}

Result<int> doubles(Result<int> in) {
  HAWSER_TRY_ASSIGN(const int value, in);
  return 2 * value;
}

TEST(Try, ReturnsTheError) {
  bool reached = false;
  EXPECT_EQ(returns_early(Status(Code::kBusy, "b"), &reached).code(), Code::kBusy);
  EXPECT_FALSE(reached);
  EXPECT_TRUE(returns_early(Status(), &reached).ok());
  EXPECT_TRUE(reached);
  EXPECT_EQ(*doubles(21), 42);
  EXPECT_EQ(doubles(Status(Code::kCorrupt, "c")).error().code(), Code::kCorrupt);
}

TEST(ResultDeathTest, ValueOfAnErrorAborts) {
  Result<int> bad = Status(Code::kDenied, "no right to read");
  EXPECT_DEATH((void)bad.value(), "denied: no right to read");
}

}  // namespace
}  // namespace hawser
