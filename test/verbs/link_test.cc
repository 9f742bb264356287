// Links that go down and come back, on real devices: run in the virtual machine of tools/rdma-vm, where rxe0 and rxe1
// are the two ends of one cable.

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <hawser/hawser.h>

#include "../must.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSize = 1 << 20;
constexpr std::size_t kLarge = 24 << 20;  ///< Takes an emulated device a tenth of a second and more.

void run(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("'" + command + "' failed");
}
/// By the call itself: while a command starts, much is over.
void set_link(bool up) {
  const int any = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::snprintf(request.ifr_name, sizeof(request.ifr_name), "veth0");
  const bool asked = ::ioctl(any, SIOCGIFFLAGS, &request) == 0;
  request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
  const bool done = asked && ::ioctl(any, SIOCSIFFLAGS, &request) == 0;
  ::close(any);
  if (!done) throw std::runtime_error("the link of veth0 cannot be set");
  // With the link its address's routes and neighbours went; a ping has them found again.
  if (up) static_cast<void>(std::system("ping -c 1 -W 2 -I veth0 10.77.0.2 >/dev/null 2>&1"));
}

/// Objects of all RDMA devices by kind, as the kernel counts them.
std::map<std::string, int> kernel_objects() {
  run("rdma resource show >/tmp/rdma_resource");
  std::ifstream in("/tmp/rdma_resource");
  std::map<std::string, int> counts;
  std::string word;
  while (in >> word) {
    if (word != "pd" && word != "cq" && word != "qp" && word != "mr") continue;
    int count = 0;
    in >> count;
    counts[word] += count;
  }
  return counts;
}

class Links : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/class/infiniband/rxe0")) GTEST_SKIP() << "needs the devices rxe0 and rxe1";
    source_.resize(kSize);
    target_.resize(kSize);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    static_cast<void>(std::system("ip link set veth0 up"));
    for (const char* end : {"veth0", "veth1"}) {
      const std::string name(end);
      static_cast<void>(std::system(("ip link set " + name + " mtu 9000").c_str()));
      static_cast<void>(std::system(("tc qdisc del dev " + name + " ingress 2>/dev/null").c_str()));
    }
  }
  Agent open(const std::string& name, const std::string& device, bool falls_back) {
    AgentOptions options;
    options.name = name;
    options.backends = {verbs({{"devices", device}, {"patience", "500ms"}, {"timeout", "10"}})};
    if (falls_back) options.backends.push_back(tcp());
    options.driven = true;
    options.log.level = LogLevel::kError;
    // Where tcp is there, too, nothing has to end in time, and an emulated machine takes seconds to come to it.
    options.peer_timeout = falls_back ? 15s : 3s;
    return must(Agent::open(std::move(options)));
  }
  void start(bool falls_back) {
    driver_.emplace(must(Driver::start()));
    a_ = open("a", "rxe0", falls_back);
    b_ = open("b", "rxe1", falls_back);
    must(driver_->attach(a_));
    must(driver_->attach(b_));
    from_ = must(a_.add_region({.name = "source", .bytes = source_}));
    to_ = must(b_.add_region({.name = "target", .bytes = target_}));
    must(b_.add_peer(must(a_.card())).status());
  }
  void stop() {
    from_ = Region();
    to_ = Region();
    a_ = Agent();
    b_ = Agent();
    driver_.reset();
  }
  Peer peer() { return must(a_.add_peer(must(b_.card()))); }
  Result<Transfer> submit(std::byte value, Duration deadline) {
    std::ranges::fill(source_, value);
    const Peer to = peer();
    const LocalRange local = from_.range(0, source_.size());
    const RemoteRange remote = to.range("target", 0, target_.size());
    auto plan = a_.plan_write(to, {&local, 1}, {&remote, 1});
    if (!plan) return plan.error();
    return plan->submit({.deadline = deadline});
  }
  /// Until it ends well. A path that comes up again may end once more, by silence, while the kernels find each other.
  void write_again(std::byte value) {
    const Instant until = Clock::steady().now() + 60s;
    Status status = write(value, 60s);
    while (status.code() == Code::kDisconnected && Clock::steady().now() < until) status = write(value, 60s);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  /// One write of all bytes with this value, checked at the target.
  Status write(std::byte value, Duration deadline = 20s) {
    auto sent = submit(value, deadline);
    if (!sent) return sent.error();
    Status status = sent->wait(deadline + 5s);
    if (status.ok()) expect_all(value);
    return status;
  }
  void expect_all(std::byte value) {
    EXPECT_EQ(std::ranges::count(target_, value), static_cast<std::ptrdiff_t>(target_.size()));
  }
  /// A write of many bytes, some of which have arrived.
  Transfer write_in_flight(std::byte value, Duration deadline) {
    Transfer sent = must(submit(value, deadline));
    const auto has_come = [&] {
      for (std::size_t at = 0; at < target_.size(); at += kSize) {
        if (std::atomic_ref(target_[at]).load(std::memory_order_relaxed) == value) return true;
      }
      return false;
    };
    const Instant until = Clock::steady().now() + 20s;
    while (!has_come() && Clock::steady().now() < until) {
    }
    EXPECT_TRUE(has_come()) << "nothing arrives";
    return sent;
  }
  QueuePairCounters queue_pair() {
    for (const PathCounters& path : a_.counters().paths) {
      if (path.backend == "verbs" && !path.queue_pairs.empty()) return path.queue_pairs.front();
    }
    return {};
  }
  /// What reaches this end of the cable and fits the filter is dropped without a word.
  static void drop_at(const std::string& end, const std::string& filter) {
    static_cast<void>(std::system(("tc qdisc add dev " + end + " ingress 2>/dev/null").c_str()));
    run("tc filter add dev " + end + " parent ffff: " + filter + " action drop");
  }
  std::uint64_t bytes_over(const std::string& backend) {
    std::uint64_t bytes = 0;
    for (const PathCounters& path : a_.counters().paths) {
      if (path.backend == backend) bytes += path.bytes_out;
    }
    return bytes;
  }

  std::vector<std::byte> source_, target_;
  std::optional<Driver> driver_;
  Agent a_, b_;
  Region from_, to_;
};

TEST_F(Links, DownBeforehandMeansTcpAndNothingIsLost) {
  start(true);
  must(write(std::byte{1}));
  EXPECT_GE(bytes_over("verbs"), kSize);
  EXPECT_EQ(bytes_over("tcp"), 0u);
  set_link(false);
  const Status status = write(std::byte{2});
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_GE(bytes_over("tcp"), kSize);
  set_link(true);
  must(write(std::byte{3}));
}

TEST_F(Links, DownInFlightMeansTcpAndNothingIsLost) {
  source_.resize(kLarge);
  target_.resize(kLarge);
  start(true);
  Transfer sent = write_in_flight(std::byte{1}, 60s);
  set_link(false);
  ASSERT_FALSE(sent.done()) << "over before the fault: the test needs more bytes";
  const Status status = sent.wait(70s);
  EXPECT_TRUE(status.ok()) << status.to_string();
  expect_all(std::byte{1});
  EXPECT_GT(bytes_over("tcp"), 0u);
  set_link(true);
  write_again(std::byte{2});
}

/// For less time than a queue pair's retries take, and for more.
TEST_F(Links, DownForAWhileInFlightCostsTimeOnly) {
  source_.resize(kLarge);
  target_.resize(kLarge);
  start(false);
  std::uint8_t value = 0;
  for (const Duration down : {Duration(5ms), Duration(300ms)}) {
    const std::byte next{++value};
    Transfer sent = write_in_flight(next, 60s);
    set_link(false);
    ASSERT_FALSE(sent.done()) << "over before the fault: the test needs more bytes";
    std::this_thread::sleep_for(down);
    set_link(true);
    const Status status = sent.wait(70s);
    ASSERT_TRUE(status.ok()) << status.to_string();
    expect_all(next);
  }
}

TEST_F(Links, WhoAskedForRdmaOnlyGetsAnErrorThatSaysSoInTime) {
  start(false);
  must(write(std::byte{1}));
  set_link(false);
  const Instant before = Clock::steady().now();
  const Status status = write(std::byte{2}, 8s);
  EXPECT_FALSE(status.ok());
  EXPECT_LT(Clock::steady().now() - before, 14s);
  EXPECT_NE(status.to_string().find("b"), std::string::npos);
  set_link(true);
  Status again;
  for (int i = 0; i < 5; ++i) {
    again = write(std::byte{3}, 10s);
    if (again.ok()) break;
  }
  EXPECT_TRUE(again.ok()) << again.to_string();
}

TEST_F(Links, LossAndDelayOnTheCableCostTimeOnly) {
  start(false);
  must(write(std::byte{1}));
  run("tc qdisc add dev veth0 root netem loss 2% delay 1ms");
  const Status status = write(std::byte{2}, 60s);
  run("tc qdisc del dev veth0 root");
  EXPECT_TRUE(status.ok()) << status.to_string();
}

TEST_F(Links, AnMtuThatShrinksLeavesRdmaInUse) {
  start(false);
  must(write(std::byte{1}));
  EXPECT_EQ(queue_pair().mtu_bytes, 4096u);
  for (const char* end : {"veth0", "veth1"}) run(std::string("ip link set ") + end + " mtu 1500");
  const Status status = write(std::byte{2}, 60s);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(queue_pair().mtu_bytes, 1024u);
}

TEST_F(Links, ASwitchThatDropsLargePacketsLeavesRdmaInUse) {
  start(false);
  must(write(std::byte{1}));
  // 2,048 bytes and more, by two bits of the length.
  drop_at("veth1", "protocol ip u32 match u16 0x0800 0x0800 at 2");
  drop_at("veth1", "protocol ip u32 match u16 0x1000 0x1000 at 2");
  const Status status = write(std::byte{2}, 60s);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(queue_pair().mtu_bytes, 1024u);
}

TEST_F(Links, WhenTheBestAddressDoesNotCarryTheNextOneIsTried) {
  for (const char* end : {"veth0", "veth1"}) {
    drop_at(end, "protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff");
  }
  start(false);
  const Status status = write(std::byte{1}, 30s);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(queue_pair().gid.substr(0, 4), "fe80") << queue_pair().gid;
}

TEST_F(Links, ClosingLeavesNoObjectInTheKernel) {
  const std::map<std::string, int> before = kernel_objects();
  for (int i = 0; i < 5; ++i) {
    start(false);
    must(write(std::byte{1}));
    EXPECT_NE(kernel_objects(), before);
    stop();
  }
  EXPECT_EQ(kernel_objects(), before);
}

}  // namespace
}  // namespace hawser
