// Connections that come and go between two agents on real devices, and what they leave: no object in the kernel, no
// memory, no descriptor. Run in the virtual machine of tools/rdma-vm.

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hawser/hawser.h>

#include "../must.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

/// HAWSER_CONNECTIONS=1000 for the whole of it: an emulated processor takes long for each.
constexpr int kConnections = 310;
constexpr int kWarmUp = 10;
constexpr Duration kPatience = 20s;

int wanted_connections() {
  const char* const said = std::getenv("HAWSER_CONNECTIONS");
  return said == nullptr ? kConnections : std::max(std::atoi(said), kWarmUp + 1);
}

/// Objects of all RDMA devices by kind, as the kernel counts them.
std::map<std::string, int> kernel_objects() {
  if (std::system("rdma resource show >/tmp/rdma_resource") != 0) throw std::runtime_error("rdma resource show failed");
  std::ifstream in("/tmp/rdma_resource");
  std::map<std::string, int> counts;
  std::string word;
  while (in >> word) {
    if (word != "pd" && word != "cq" && word != "qp" && word != "mr" && word != "cm_id" && word != "ctx") continue;
    int count = 0;
    in >> count;
    counts[word] += count;
  }
  return counts;
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// What this process keeps.
struct Kept {
  std::map<std::string, int> objects = kernel_objects();
  std::size_t descriptors = open_descriptors();
  std::size_t heap = ::mallinfo2().uordblks;  ///< Bytes.
};

class Connections : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/class/infiniband/rxe0")) GTEST_SKIP() << "needs the devices rxe0 and rxe1";
    a_ = open("a", "rxe0");
    b_ = open("b", "rxe1");
    region_ = must(b_.add_region({.name = "target", .bytes = target_}));
    source_region_ = must(a_.add_region({.name = "source", .bytes = source_}));
    card_ = must(b_.card());
  }
  static Agent open(const std::string& name, const std::string& device) {
    AgentOptions options;
    options.name = name;
    options.backends = {verbs({{"devices", device}})};
    options.log.level = LogLevel::kError;
    return must(Agent::open(std::move(options)));
  }
  template <typename Done>
  bool eventually(Done&& done) {
    const Instant end = Clock::steady().now() + kPatience;
    while (!done()) {
      if (Clock::steady().now() > end) return false;
      a_.poll();
      b_.poll();
    }
    return true;
  }
  /// One connection, a write over it, and its end, which both agents have heard of.
  void visit(int number) {
    const Peer peer = must(a_.add_peer(card_));
    std::ranges::fill(source_, static_cast<std::byte>(number));
    const LocalRange from = source_region_.range(0, source_.size());
    const RemoteRange to = peer.range("target", 0, target_.size());
    Transfer sent = must(must(a_.plan_write(peer, {&from, 1}, {&to, 1})).submit({.deadline = kPatience}));
    ASSERT_TRUE(eventually([&] { return sent.done(); })) << number;
    must(sent.status());
    ASSERT_EQ(target_, source_);
    must(a_.invalidate(peer));
    ASSERT_TRUE(eventually([&] { return a_.peers().empty() && b_.peers().empty(); })) << number;
    while (a_.take_event()) {
    }
    while (b_.take_event()) {
    }
  }

  std::vector<std::byte> source_ = std::vector<std::byte>(4096), target_ = std::vector<std::byte>(4096);
  Agent a_, b_;
  Region region_, source_region_;
  std::string card_;
};

TEST_F(Connections, C24ComeAndGoAndLeaveNothing) {
  const int rounds = wanted_connections();
  for (int i = 0; i < kWarmUp; ++i) ASSERT_NO_FATAL_FAILURE(visit(i));
  const Kept before;
  const Instant begun = Clock::steady().now();
  for (int i = kWarmUp; i < rounds; ++i) ASSERT_NO_FATAL_FAILURE(visit(i));
  const Duration took = Clock::steady().now() - begun;
  // The other end may still be at putting the last one away.
  std::optional<Kept> after;
  eventually([&] {
    after.emplace();
    return after->objects == before.objects && after->descriptors <= before.descriptors;
  });
  EXPECT_EQ(after->objects, before.objects);
  EXPECT_LE(after->descriptors, before.descriptors);
  const std::size_t growth = after->heap > before.heap ? after->heap - before.heap : 0;
  EXPECT_LE(growth, 32U * 1024 + static_cast<std::size_t>(rounds) * 16) << "bytes of heap";
  std::cout << rounds << " connections, "
            << std::chrono::duration<double, std::milli>(took).count() / (rounds - kWarmUp) << " ms each; heap grew by "
            << growth << " bytes\n";
}

}  // namespace
}  // namespace hawser
