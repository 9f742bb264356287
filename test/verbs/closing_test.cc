// Closing a region tells the device to forget its memory, a call into the kernel: nobody else waits for that. Whole
// agents over a fabric in memory.

#include <atomic>
#include <thread>

#include "mock_agents.h"

namespace hawser::mock_agents {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kArea = 4096;

/// A door in the way of a thread, with a limit to how long it is kept.
class Gate {
 public:
  void pass() {
    if (!is_shut_) return;
    is_inside = true;
    const Instant end = Clock::steady().now() + 5s;
    while (is_shut_ && Clock::steady().now() < end) std::this_thread::yield();
    is_inside = false;
  }
  void shut() { is_shut_ = true; }
  void open() { is_shut_ = false; }
  std::atomic<bool> is_inside = false;

 private:
  std::atomic<bool> is_shut_ = false;
};

class Closing : public testing::Test {
 protected:
  /// To its end by turns of this thread.
  bool write() {
    const LocalRange from = source_.region.range(0, kArea);
    const RemoteRange to = peer_.range("target", 0, kArea);
    Transfer sent = must(must(a_.plan_write(peer_, {&from, 1}, {&to, 1})).submit());
    return poll_until({&a_, &b_}, [&] { return sent.done(); }) && sent.status().ok();
  }

  Gate gate_;
  MockWorld world_;
  Agent a_ = world_.open("a", "mock0"), b_ = world_.open("b", "mock1");
  Area source_{a_, "source", kArea}, spare_{a_, "spare", kArea}, target_{b_, "target", kArea};
  Peer peer_ = must(a_.add_peer(must(b_.card())));
};

TEST_F(Closing, TheLanesTrafficGoesOnWhileMemoryIsDeregistered) {
  ASSERT_TRUE(write());
  world_.before_dereg = [this] { gate_.pass(); };
  gate_.shut();
  std::atomic<bool> is_closed = false;
  Status closed;
  std::thread closer([&] {
    closed = spare_.region.close(20s);
    is_closed = true;
  });
  const bool has_begun = poll_until({&b_}, [&] { return gate_.is_inside.load(); });
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(write());
  EXPECT_TRUE(has_begun && gate_.is_inside) << "transfers waited for the device";
  EXPECT_FALSE(is_closed) << "a device may still touch the memory";
  gate_.open();
  closer.join();
  EXPECT_TRUE(closed.ok()) << closed.to_string();
}

TEST_F(Closing, ARegionInUseIsLetGoOnceItIsNot) {
  ASSERT_TRUE(write());
  const auto caller = std::this_thread::get_id();
  std::atomic<int> by_caller = 0, by_others = 0;
  world_.before_dereg = [&] { ++(std::this_thread::get_id() == caller ? by_caller : by_others); };
  const LocalRange from = source_.region.range(0, kArea);
  const RemoteRange to = peer_.range("target", 0, kArea);
  world_.with([](auto& fabric) { fabric.hold = true; });
  Transfer sent = must(must(a_.plan_write(peer_, {&from, 1}, {&to, 1})).submit());
  std::atomic<bool> is_over = false;
  std::thread other([&] {  // The transfer ends by its turns alone.
    while (!is_over) {
      a_.poll();
      b_.poll();
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(source_.region.close(0s).code(), Code::kTimedOut);
  EXPECT_EQ(by_caller + by_others, 0) << "a transfer uses it";
  world_.with([](auto& fabric) {
    fabric.hold = false;
    fabric.deliver();
  });
  const Status closed = source_.region.close(20s);
  is_over = true;
  other.join();
  EXPECT_TRUE(closed.ok()) << closed.to_string();
  EXPECT_EQ(by_caller, 1);
  EXPECT_EQ(by_others, 0);
  world_.before_dereg = {};
}

// A key is worth nothing once its region was dropped, though its owner registers and closes nothing any more.
TEST_F(Closing, ADroppedRegionInUseIsLetGoByTurns) {
  ASSERT_TRUE(write());
  const auto registered = [this] { return world_.counts().mrs; };
  const int before = registered();
  const LocalRange from = source_.region.range(0, kArea);
  const RemoteRange to = peer_.range("target", 0, kArea);
  world_.with([](auto& fabric) { fabric.hold = true; });
  Transfer sent = must(must(a_.plan_write(peer_, {&from, 1}, {&to, 1})).submit());
  source_.region = Region();
  EXPECT_EQ(registered(), before) << "a transfer uses it";
  world_.with([](auto& fabric) {
    fabric.hold = false;
    fabric.deliver();
  });
  EXPECT_TRUE(poll_until({&a_, &b_}, [&] { return registered() < before; }));
  EXPECT_TRUE(sent.done());
}

// The same memory may be in several regions, and a device knows it by several keys: one of them goes, and what is under
// way from another region must not feel it.
TEST_F(Closing, ARegionOfMemoryThatOthersHaveWaitsForWhatIsUnderWayThere) {
  ASSERT_TRUE(write());
  Region twin = must(a_.add_region({.bytes = source_.bytes}));
  const LocalRange from = source_.region.range(0, kArea);
  const RemoteRange to = peer_.range("target", 0, kArea);
  world_.with([](auto& fabric) { fabric.hold = true; });
  Transfer sent = must(must(a_.plan_write(peer_, {&from, 1}, {&to, 1})).submit());
  const Status busy = twin.close(0s);
  EXPECT_EQ(busy.code(), Code::kTimedOut) << busy.to_string();
  world_.with([](auto& fabric) {
    fabric.hold = false;
    fabric.deliver();
  });
  EXPECT_TRUE(poll_until({&a_, &b_}, [&] { return sent.done(); }));
  EXPECT_TRUE(sent.status().ok()) << sent.status().to_string();
  const Status closed = twin.close(20s);
  EXPECT_TRUE(closed.ok()) << closed.to_string();
  EXPECT_TRUE(write());
}

TEST_F(Closing, RegionsAreDroppedInUseWhileOthersTurn) {
  ASSERT_TRUE(write());
  const int before = world_.counts().mrs;
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    while (!is_over) {
      a_.poll();
      b_.poll();
      std::this_thread::yield();
    }
  });
  const RemoteRange to = peer_.range("target", 0, kArea);
  std::vector<std::byte> memory(kArea);  // Of all of them: what is written is the same.
  for (int i = 0; i < 100; ++i) {
    Region region = must(a_.add_region({.bytes = memory}));
    const LocalRange from = region.range(0, kArea);
    const Transfer sent = must(must(a_.plan_write(peer_, {&from, 1}, {&to, 1})).submit());
  }
  const Instant end = Clock::steady().now() + 20s;
  while (world_.counts().mrs > before && Clock::steady().now() < end) std::this_thread::yield();
  is_over = true;
  other.join();
  EXPECT_EQ(world_.counts().mrs, before);
}

}  // namespace
}  // namespace hawser::mock_agents
