// Faults of queue pairs and of the device itself, on real devices: run in the virtual machine of tools/rdma-vm, where
// rxe0 and rxe1 are the two ends of one cable.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <hawser/hawser.h>

#include "../must.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "hooked_verbs.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSize = 16 << 20;  ///< Takes an emulated device a tenth of a second and more.
constexpr std::size_t kStride = 64 << 10;
constexpr std::uint32_t kChannel = 21;

std::uint64_t counter(const std::string& device, const std::string& name) {
  std::uint64_t value = 0;
  std::ifstream("/sys/class/infiniband/" + device + "/ports/1/hw_counters/" + name) >> value;
  return value;
}

void run(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("'" + command + "' failed");
}

/// An agent whose device has hooks, and a thread.
struct Hooked {
  Hooked(const std::string& name, const std::string& device, bool falls_back) {
    AgentOptions options;
    options.name = name;
    options.backends = {hawser::verbs({{"devices", device}, {"patience", "500ms"}, {"timeout", "10"}})};
    if (falls_back) options.backends.push_back(tcp());
    options.driven = true;
    options.log.level = LogLevel::kError;
    options.peer_timeout = 3s;
    agent = must(agent::open_with(std::move(options),
                                  {backend::loopback_factory(), hooked_factory(hooks), backend::tcp_factory()}));
    must(driver.attach(agent));
  }
  ~Hooked() {
    EXPECT_TRUE(agent.close(20s).ok());
    static_cast<void>(driver.detach(agent));
  }
  std::shared_ptr<HookedVerbs> hooks = std::make_shared<HookedVerbs>(must(backend::verbs::open_libibverbs()));
  Driver driver = must(Driver::start());
  Agent agent;
};

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/class/infiniband/rxe0")) GTEST_SKIP() << "needs the devices rxe0 and rxe1";
  }
  void start(bool falls_back = false) {
    a.emplace("a", "rxe0", falls_back);
    b.emplace("b", "rxe1", falls_back);
    from = must(a->agent.add_region({.name = "source", .bytes = source}));
    to = must(b->agent.add_region({.name = "target", .bytes = target}));
    must(b->agent.add_peer(must(a->agent.card())).status());
  }
  Transfer submit(std::byte value, Duration deadline = 60s) {
    std::ranges::fill(source, value);
    const Peer peer = must(a->agent.add_peer(must(b->agent.card())));
    const LocalRange local = from.range(0, kSize);
    const RemoteRange remote = peer.range("target", 0, kSize);
    return must(must(a->agent.plan_write(peer, {&local, 1}, {&remote, 1})).submit({.deadline = deadline}));
  }
  /// Waits until some of it has arrived. Most of it has not.
  void await_in_flight(const Transfer& sent, std::byte value) {
    for (const Instant until = Clock::steady().now() + 30s; arrived(value) < kStride;) {
      ASSERT_LT(Clock::steady().now(), until) << "nothing arrives";
    }
    ASSERT_FALSE(sent.done()) << "over before the fault: the test needs more bytes";
  }
  std::size_t arrived(std::byte value) {
    std::size_t bytes = 0;
    for (std::size_t at = 0; at < kSize; at += kStride) {
      const bool is_here = std::atomic_ref(target[at]).load(std::memory_order_relaxed) == value;
      bytes += is_here ? kStride : 0;
    }
    return bytes;
  }
  void expect_all(Transfer& sent, std::byte value) {
    const Status status = sent.wait(70s);
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(std::ranges::count(target, value), static_cast<std::ptrdiff_t>(kSize));
  }

  std::vector<std::byte> source = std::vector<std::byte>(kSize), target = std::vector<std::byte>(kSize);
  std::optional<Hooked> a, b;
  Region from, to;
};

TEST_F(Faults, AQueuePairInErrorIsConnectedAnewAndNothingIsLost) {
  start();
  std::uint8_t value = 0;
  for (Hooked* const side : {&*a, &*b}) {
    const std::byte next{++value};
    Transfer sent = submit(next);
    await_in_flight(sent, next);
    const int made = a->hooks->queue_pairs_made();
    ASSERT_GT(side->hooks->break_queue_pairs(), 0);
    ASSERT_FALSE(sent.done()) << "over before the fault: the test needs more bytes";
    expect_all(sent, next);
    EXPECT_GT(a->hooks->queue_pairs_made(), made) << "on what went the rest?";
  }
}

TEST_F(Faults, AReceiverThatIsNotReadyDelaysMessagesAndLosesNone) {
  constexpr int kMessages = 20;
  start();
  must(b->agent.open_channel(kChannel, 64));
  b->hooks->hold_receives(true);
  Transfer first = submit(std::byte{9});
  expect_all(first, std::byte{9});  // The queue pair is up.
  const std::uint64_t before = counter("rxe1", "send_rnr_err") + counter("rxe0", "rcvd_rnr_err");
  const Peer peer = must(a->agent.add_peer(must(b->agent.card())));
  for (int i = 0; i < kMessages; ++i) {
    const std::string text = "message " + std::to_string(i);
    must(peer.send(kChannel, std::as_bytes(std::span(text.data(), text.size()))));
  }
  const auto refused = [] { return counter("rxe1", "send_rnr_err") + counter("rxe0", "rcvd_rnr_err"); };
  for (const Instant until = Clock::steady().now() + 30s; refused() == before;) {
    ASSERT_LT(Clock::steady().now(), until) << "no message met a receiver that was not ready: nothing was tested";
    std::this_thread::sleep_for(1ms);
  }
  b->hooks->hold_receives(false);
  const Instant until = Clock::steady().now() + 30s;
  for (int next = 0; next < kMessages && Clock::steady().now() < until;) {
    const std::optional<Message> message = b->agent.take_message(kChannel);
    if (message) {
      ASSERT_EQ(message->bytes, "message " + std::to_string(next));
      ++next;
    }
    ASSERT_TRUE(message || Clock::steady().now() + 1ms < until) << "only " << next << " came";
  }
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(b->agent.take_message(kChannel)) << "one came twice";
}

/// Soft-RoCE cannot take a device from its users: the kernel keeps one that is deleted until they have closed it.
class RemovedDevice : public Faults {
 protected:
  void TearDown() override {
    if (!IsSkipped()) run("rdma link show rxe0/1 >/dev/null 2>&1 || rdma link add rxe0 type rxe netdev veth0");
  }
  static bool is_there() { return std::filesystem::exists("/sys/class/infiniband/rxe0"); }
};

TEST_F(RemovedDevice, GoesOnceItsAgentHasClosedWhichLosesNothing) {
  start();
  Transfer sent = submit(std::byte{1});
  await_in_flight(sent, std::byte{1});
  run("rdma link delete rxe0 >/dev/null 2>&1 &");
  expect_all(sent, std::byte{1});
  sent = submit(std::byte{2});
  expect_all(sent, std::byte{2});
  sent = Transfer();
  from = Region();
  a.reset();
  for (const Instant until = Clock::steady().now() + 20s; is_there() && Clock::steady().now() < until;) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_FALSE(is_there()) << "something of the agent is left";
}

}  // namespace
}  // namespace hawser
