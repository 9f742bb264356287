// An agent closes while another process is stopped inside of its memory.

#include <thread>
#include <utility>

#include "base/rng.h"
#include "real_test.h"

namespace hawser::real {
namespace {

constexpr std::size_t kSize = 8 << 20;
constexpr std::byte kCanary{0xca};

/// Over other ways nobody else is ever inside.
int rounds(const Way& way) { return way.backend == "shm" ? 24 : 2; }

/// Looks while others write: a test may, a program may not.
__attribute__((no_sanitize("thread"))) std::byte first_now(std::span<const std::byte> bytes) {
  return *static_cast<const volatile std::byte*>(bytes.data());
}

/// An agent here, and a process that writes without end into its region "target" and gets stopped anywhere.
struct Scene {
  explicit Scene(const Way& way)
      // Polled: heartbeats do not end the connection of the process while it is stopped.
      : process(PeerProcess::start(peer_line(way, "there", "driven=0"))),
        here(way, quick("here")),
        target(here.add("target", kSize)) {
    process.ask("region source " + std::to_string(kSize) + " foreign");
    std::string here_there;
    (void)here.meet(process, &here_there);
    process.ask("plan write source " + here_there + " target " + std::to_string(kSize));
    process.ask("put source 1");
    process.ask("flood");
    if (!eventually([&] { return first_now(target.bytes) == std::byte{1}; }))
      throw std::runtime_error("nothing is written");
  }

  void stop_after(Duration delay) {
    const Instant from = now();
    eventually([&] { return now() - from >= delay; });
    process.stop();
    is_stopped = true;
  }
  void resume() {
    if (std::exchange(is_stopped, false)) process.resume();
  }

  bool is_stopped = false;
  PeerProcess process;
  Here here;
  Memory& target;
};

/// It answers what it is asked once its writes were turned on.
void go_on(Scene& scene) {
  scene.resume();
  (void)scene.process.ask("card");
  (void)scene.process.ask("card");
}

testing::AssertionResult names_holder(const Status& status) {
  if (status.code() == Code::kTimedOut && status.to_string().find("there") != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << (status.ok() ? "ok" : status.to_string());
}

TEST_P(RealTest, AnAgentThatClosesAgainHearsOfWhoIsInside) {
  if (GetParam().backend == "verbs") GTEST_SKIP() << "inside of the memory is a NIC, not the process";
  base::Rng rng(2);
  int inside = 0;
  for (int round = 0; round < rounds(GetParam()) && inside < 3; ++round) {
    Scene scene(GetParam());
    scene.stop_after(std::chrono::microseconds(rng.below(3000)));
    Agent& agent = scene.here.agent();
    Status closed = agent.close(50ms);
    if (!closed.ok()) {
      ++inside;
      EXPECT_TRUE(names_holder(closed));
      EXPECT_TRUE(names_holder(agent.close(20ms))) << "the second call";
      EXPECT_TRUE(names_holder(scene.target.region.close(20ms))) << "the region";
      scene.resume();
      closed = agent.close(kPatience);  // What was left to do is possible now.
    }
    must(closed);
    must(scene.target.region.close(0ms));
    std::ranges::fill(scene.target.bytes, kCanary);
    go_on(scene);
    ASSERT_TRUE(all_are(scene.target.bytes, kCanary)) << "round " << round;
    scene.process.kill();
  }
  if (GetParam().backend == "shm") {
    EXPECT_GT(inside, 0) << "the process was never stopped inside: nothing was tested";
  }
}

TEST_P(RealTest, ARegionThatOutlivesItsAgentHearsOfWhoIsInside) {
  if (GetParam().backend == "verbs") GTEST_SKIP() << "inside of the memory is a NIC, not the process";
  base::Rng rng(3);
  int inside = 0;
  for (int round = 0; round < rounds(GetParam()) && inside < 3; ++round) {
    Scene scene(GetParam());
    scene.stop_after(std::chrono::microseconds(rng.below(3000)));
    scene.here.drop_agent();
    const Status closed = scene.target.region.close(10ms);
    if (closed.ok()) {
      std::ranges::fill(scene.target.bytes, kCanary);
    } else {
      ++inside;
      EXPECT_TRUE(names_holder(closed));
    }
    go_on(scene);
    if (closed.ok()) {
      ASSERT_TRUE(all_are(scene.target.bytes, kCanary)) << "round " << round;
    } else {
      // Nobody looks any more when the process leaves.
      EXPECT_TRUE(names_holder(scene.target.region.close(10ms)));
    }
    scene.process.kill();
  }
  if (GetParam().backend == "shm") {
    EXPECT_GT(inside, 0) << "the process was never stopped inside: nothing was tested";
  }
}

TEST_P(RealTest, TwoThreadsCloseOneAgent) {
  if (GetParam().backend == "verbs") GTEST_SKIP() << "inside of the memory is a NIC, not the process";
  base::Rng rng(4);
  int inside = 0;
  for (int round = 0; round < rounds(GetParam()) && inside < 2; ++round) {
    Scene scene(GetParam());
    scene.stop_after(std::chrono::microseconds(rng.below(3000)));
    Agent& agent = scene.here.agent();
    Status patient, hasty;
    std::thread first([&] { patient = agent.close(kPatience); });
    std::this_thread::sleep_for(20ms);  // The first is at it, or over.
    const Instant from = now();
    hasty = agent.close(100ms);
    EXPECT_LT(now() - from, 3s);
    if (!hasty.ok()) {
      ++inside;
      EXPECT_EQ(hasty.code(), Code::kTimedOut) << hasty.to_string();
    }
    scene.resume();
    first.join();
    must(patient);
    must(agent.close(0ms));
    scene.process.kill();
  }
  if (GetParam().backend == "shm") {
    EXPECT_GT(inside, 0) << "the process was never stopped inside: nothing was tested";
  }
}

}  // namespace
}  // namespace hawser::real
