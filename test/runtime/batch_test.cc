// Batches of messages, handlers by number, pools of buffers, and what a world tells of itself.

#include <gtest/gtest.h>

#include <hawser/buffer_pool.h>
#include <hawser/world.h>

#include <array>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hawser {
namespace {

using namespace std::chrono_literals;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class BatchTest : public testing::Test {
 protected:
  static std::vector<World> open(std::uint32_t size, BufferPool pool = {}) {
    WorldOptions options;
    options.timeout = 60s;
    options.agent.backends = {{.name = "shm"}};
    options.pool = std::move(pool);
    return World::local(size, options).value();
  }
  static std::uint64_t held(const World& world, std::string_view kind) {
    for (const MemoryUse& each : world.memory()) {
      if (each.kind == kind) return each.bytes;
    }
    ADD_FAILURE() << "no memory of the kind " << kind;
    return 0;
  }
};

TEST_F(BatchTest, EachMessageHasItsEnd) {
  std::vector<World> worlds = open(3);
  const std::string small = "small", large(300'000, 'x');
  std::string one(10, ' '), two(300'000, ' ');
  const std::array<OutgoingMessage, 4> sends{{{.bytes = bytes_of(small), .to = 1, .tag = 1},
                                              {.bytes = bytes_of(large), .to = 2, .tag = 2},
                                              {.bytes = bytes_of(small), .to = 9, .tag = 3},  // There is no rank 9.
                                              {.bytes = bytes_of(small), .to = 0, .tag = 4}}};
  const std::array<AwaitedMessage, 2> own{
      {{.into = {}, .from = 0, .tag = 4, .any_size = true}, {.into = {}, .from = 7, .tag = {}}}};
  Batch batch = worlds[0].ibatch(sends, own);
  ASSERT_EQ(batch.size(), 6U);
  const std::array<AwaitedMessage, 1> first{{{.into = std::as_writable_bytes(std::span(one)), .from = 0, .tag = 1}}};
  const std::array<AwaitedMessage, 1> second{{{.into = std::as_writable_bytes(std::span(two)), .from = kAnySource}}};
  EXPECT_TRUE(worlds[1].batch({}, first).ok());
  EXPECT_TRUE(worlds[2].batch({}, second).ok());
  const Status status = batch.wait(20s);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.to_string().find("message 3 of 6"), std::string::npos) << status.to_string();
  EXPECT_TRUE(batch.done());
  for (const std::size_t good : {0U, 1U, 3U, 4U}) EXPECT_TRUE(batch[good].status().ok()) << good;
  for (const std::size_t bad : {2U, 5U}) EXPECT_EQ(batch[bad].status().code(), Code::kInvalid) << bad;
  EXPECT_EQ(text_of(batch[4].bytes()), small);
  EXPECT_EQ(one.substr(0, 5), small);
  EXPECT_EQ(two, large);
}

TEST_F(BatchTest, WaitsForAllAndOnlyUntilThen) {
  std::vector<World> worlds = open(2);
  std::string one(8, ' '), two(8, ' ');
  const std::array<AwaitedMessage, 2> receives{{{.into = std::as_writable_bytes(std::span(one)), .from = 0, .tag = 1},
                                                {.into = std::as_writable_bytes(std::span(two)), .from = 0, .tag = 2}}};
  Batch batch = worlds[1].ibatch({}, receives);
  ASSERT_TRUE(worlds[0].send(bytes_of("two"), 1, 2).ok());
  ASSERT_TRUE(batch[1].wait(10s).ok());
  EXPECT_EQ(batch.wait(10ms).code(), Code::kTimedOut);
  EXPECT_FALSE(batch.done());
  std::vector<Request> requests = batch.take();
  EXPECT_EQ(batch.size(), 0U);
  EXPECT_TRUE(batch.wait(0s).ok());  // Of nothing.
  ASSERT_TRUE(worlds[0].send(bytes_of("one"), 1, 1).ok());
  EXPECT_TRUE(requests[0].wait(10s).ok());
  EXPECT_EQ(one.substr(0, 3), "one");
}

TEST_F(BatchTest, DroppedItCancels) {
  std::vector<World> worlds = open(2);
  std::string one(8, ' ');
  const std::array<AwaitedMessage, 1> receives{{{.into = std::as_writable_bytes(std::span(one)), .from = 0, .tag = 1}}};
  { const Batch dropped = worlds[1].ibatch({}, receives); }
  ASSERT_TRUE(worlds[0].send(bytes_of("late"), 1, 1).ok());
  std::string got(8, ' ');
  EXPECT_TRUE(worlds[1].receive(std::as_writable_bytes(std::span(got)), 0, 1).has_value());
  EXPECT_EQ(one, std::string(8, ' '));
}

TEST_F(BatchTest, ManyGoInOneStepFromSeveralThreads) {
  std::vector<World> worlds = open(2);
  constexpr std::uint64_t kEach = 500, kThreads = 3;
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&worlds, thread] {
      std::vector<std::uint64_t> values(kEach);
      std::vector<OutgoingMessage> sends;
      for (std::uint64_t i = 0; i < kEach; ++i) {
        values[i] = i * kThreads + thread;
        sends.push_back({.bytes = std::as_bytes(std::span(&values[i], 1)), .to = 1, .tag = thread});
      }
      EXPECT_TRUE(worlds[0].batch(sends, {}).ok());
    });
    threads.emplace_back([&worlds, thread] {
      std::vector<std::uint64_t> values(kEach);
      std::vector<AwaitedMessage> receives;
      for (std::uint64_t& each : values) {
        receives.push_back({.into = std::as_writable_bytes(std::span(&each, 1)), .from = 0, .tag = thread});
      }
      EXPECT_TRUE(worlds[1].batch({}, receives).ok());
      for (std::uint64_t i = 0; i < kEach; ++i) ASSERT_EQ(values[i], i * kThreads + thread);  // In order.
    });
  }
  for (std::thread& each : threads) each.join();
}

TEST_F(BatchTest, OfAClosedOrEmptyWorldAllAreRefused) {
  std::vector<World> worlds = open(2);
  const std::array<OutgoingMessage, 2> sends{{{.bytes = {}, .to = 1, .tag = 1}, {.bytes = {}, .to = 1, .tag = 2}}};
  ASSERT_TRUE(worlds[0].close(5s).ok());
  Batch batch = worlds[0].ibatch(sends, {});
  ASSERT_EQ(batch.size(), 2U);
  EXPECT_EQ(batch.wait(1s).code(), Code::kInvalid);
  EXPECT_EQ(batch[1].status().code(), Code::kInvalid);
  World none;
  EXPECT_EQ(none.batch(sends, {}).code(), Code::kInvalid);
  EXPECT_EQ(none.ibatch(sends, {})[1].status().code(), Code::kInvalid);
}

TEST_F(BatchTest, HandlersHaveNumbersBesideNames) {
  std::vector<World> worlds = open(2);
  const auto says = [](std::string text) {
    return [text = std::move(text)](const IncomingCall& call) -> Result<CallAnswer> {
      const std::string said = text + " " + std::string(call.name);
      const auto bytes = bytes_of(said);
      return CallAnswer(bytes.begin(), bytes.end());
    };
  };
  ASSERT_TRUE(worlds[1].register_handler(7, says("number")).ok());
  ASSERT_TRUE(worlds[1].register_handler("7", says("name")).ok());
  ASSERT_TRUE(worlds[1].register_handler(UINT64_MAX, says("largest")).ok());
  EXPECT_EQ(text_of(worlds[0].call(1, 7, {}).value()), "number 7");
  EXPECT_EQ(text_of(worlds[0].call(1, "7", {}).value()), "name 7");
  EXPECT_EQ(text_of(worlds[0].call(1, UINT64_MAX, {}).value()), "largest 18446744073709551615");
  const Status taken = worlds[1].register_handler(7, says("again"));
  EXPECT_EQ(taken.code(), Code::kInvalid);
  EXPECT_NE(taken.to_string().find("handler 7"), std::string::npos) << taken.to_string();
  const Status none = worlds[0].call(1, 8, {}).error();
  EXPECT_EQ(none.code(), Code::kNotFound);
  EXPECT_NE(none.to_string().find("handler 8"), std::string::npos) << none.to_string();
}

TEST_F(BatchTest, ReceivesTakeBuffersOfThePool) {
  const std::array<BufferPool::Tier, 2> tiers{{{.bytes = 1 << 20, .count = 1}, {.bytes = 1024, .count = 2}}};
  BufferPool pool = BufferPool::with_tiers(tiers).value();
  std::vector<World> worlds = open(2, pool);
  std::vector<Request> got;
  const std::string small(100, 's'), large(500'000, 'l');
  for (int i = 0; i < 3; ++i) {
    got.push_back(worlds[1].ireceive_any_size(0, 1));
    ASSERT_TRUE(worlds[0].send(bytes_of(small), 1, 1).ok());
    ASSERT_TRUE(got.back().wait(10s).ok());
    EXPECT_EQ(text_of(got.back().bytes()), small);
  }
  BufferPool::Statistics counts = pool.statistics();
  ASSERT_EQ(counts.tiers.size(), 2U);
  EXPECT_EQ(counts.tiers[0].bytes, 1024U);
  EXPECT_EQ(counts.tiers[0].used, 2U);
  EXPECT_EQ(counts.tiers[1].used, 1U);  // The smallest tier has none left.
  EXPECT_EQ(counts.bytes, 2U * 1024 + (1 << 20));
  EXPECT_EQ(held(worlds[1], "pool"), counts.bytes);
  got.push_back(worlds[1].ireceive_any_size(0, 2));
  ASSERT_TRUE(worlds[0].send(bytes_of(large), 1, 2).ok());
  ASSERT_TRUE(got.back().wait(10s).ok());
  EXPECT_EQ(text_of(got.back().bytes()), large);
  EXPECT_EQ(pool.statistics().beyond, 1U);
  EXPECT_EQ(held(worlds[1], "receives"), large.size());
  got.clear();
  EXPECT_EQ(held(worlds[1], "receives"), 0U);
  counts = pool.statistics();
  EXPECT_EQ(counts.tiers[0].used + counts.tiers[1].used, 0U);
  EXPECT_EQ(counts.tiers[0].most_used, 2U);
  pool.trim();
  EXPECT_EQ(pool.statistics().bytes, 0U);
}

TEST_F(BatchTest, APoolMayRefuseAndServesSeveralWorlds) {
  const std::array<BufferPool::Tier, 1> tiers{{{.bytes = 1000, .count = 1}}};
  BufferPool pool = BufferPool::with_tiers(tiers, BufferPool::Beyond::kRefuse).value();
  std::vector<World> one = open(2, pool), two = open(2, pool);
  Request first = one[1].ireceive_any_size(0, 1);
  ASSERT_TRUE(one[0].send(bytes_of("first"), 1, 1).ok());
  ASSERT_TRUE(first.wait(10s).ok());
  ASSERT_TRUE(two[0].send(bytes_of("second"), 1, 1).ok());
  Request second = two[1].ireceive_any_size(0, 1);
  const Status full = second.wait(10s);
  EXPECT_EQ(full.code(), Code::kBusy) << full.to_string();
  first = Request();
  Request again = two[1].ireceive_any_size(0, 1);  // The message is still first.
  ASSERT_TRUE(again.wait(10s).ok()) << again.status().to_string();
  EXPECT_EQ(text_of(again.bytes()), "second");
  ASSERT_TRUE(one[0].send(std::vector<std::byte>(2000), 1, 2).ok());
  Request large = one[1].ireceive_any_size(0, 2);
  EXPECT_NE(large.wait(10s).to_string().find("the largest of its buffers has 1000"), std::string::npos);
  one.clear();
  two.clear();
  EXPECT_EQ(text_of(again.bytes()), "second");  // It outlives its world.
}

TEST_F(BatchTest, AWorldTellsWhatItHasAndHolds) {
  std::vector<World> worlds = open(2);
  std::map<std::string, ConfigValue> told;
  for (const ConfigValue& each : worlds[1].config()) told[each.name] = each;
  EXPECT_EQ(told["world.size"].value, "2");
  EXPECT_EQ(told["world.rank"].value, "1");
  EXPECT_EQ(told["world.timeout"].value, "60s");
  EXPECT_EQ(told["world.timeout"].origin, "caller");
  EXPECT_EQ(told["world.name"].origin, "default");
  EXPECT_EQ(told["world.place"].value, "this process");
  EXPECT_EQ(told["world.quorum"].value, "none");
  EXPECT_EQ(told["cost_model"].value, "built in");
  EXPECT_EQ(told["cost_model"].origin, "default");
  EXPECT_EQ(told["backends"].value, "shm");
  EXPECT_EQ(told["backends"].origin, "caller");
  EXPECT_EQ(told["heartbeat"].origin, "default");
  EXPECT_EQ(held(worlds[1], "unreceived"), 0U);
  ASSERT_TRUE(worlds[0].send(std::vector<std::byte>(5000), 1, 1).ok());
  ASSERT_TRUE(worlds[1].probe(0, 1, 10s).has_value());
  EXPECT_GE(held(worlds[1], "unreceived"), 5000U);
  EXPECT_LE(held(worlds[1], "unreceived"), 6000U);
  std::vector<std::byte> got(5000);
  ASSERT_TRUE(worlds[1].receive(got, 0, 1).has_value());
  EXPECT_EQ(held(worlds[1], "unreceived"), 0U);
  EXPECT_EQ(held(worlds[1], "relays"), 0U);
  EXPECT_GT(held(worlds[1], "flight recorder"), 0U);
}

}  // namespace
}  // namespace hawser
