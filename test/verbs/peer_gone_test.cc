// The peer's process is killed or stopped while this agent mends a queue pair, on real devices: run in the virtual
// machine of tools/rdma-vm, where rxe0 and rxe1 are the two ends of one cable. The same with either end and in virtual
// time is in src/backend/verbs/path/peer_gone_test.cc.

#include <sys/types.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hawser/hawser.h>

#include "../must.h"
#include "../real/peer_process.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "hooked_verbs.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;
using At = HookedVerbs::At;
using real::PeerProcess;

constexpr Duration kHeartbeat = 500ms;
constexpr std::size_t kSize = 4 << 20;  ///< Much more than is there when the queue pair is broken.

struct GoneCase {
  const char* name;
  At moment;
  int signal;
};
void PrintTo(const GoneCase& each, std::ostream* out) { *out << each.name; }

class PeerGone : public testing::TestWithParam<GoneCase> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/sys/class/infiniband/rxe0")) GTEST_SKIP() << "needs the devices rxe0 and rxe1";
    AgentOptions options;
    options.name = "here";
    options.backends = {hawser::verbs({{"devices", "rxe0"}, {"patience", "20s"}, {"timeout", "10"}})};
    options.driven = true;
    options.heartbeat = kHeartbeat;
    options.log.level = LogLevel::kError;
    options.peer_timeout = 2s;
    here_ = must(agent::open_with(std::move(options), {backend::loopback_factory(), hooked_factory(hooks_)}));
    must(driver_.attach(here_));
    from_ = must(here_.add_region({.name = "source", .bytes = source_}));
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_TRUE(here_.close(20s).ok());
    static_cast<void>(driver_.detach(here_));
  }
  static PeerProcess start_there() {
    PeerProcess process =
        PeerProcess::start("there backend=verbs devices=rxe1 driven=1 heartbeat_ms=1000 timeout_ms=4000");
    process.ask("region target " + std::to_string(kSize) + " foreign");
    return process;
  }
  Transfer write(PeerProcess& process, std::byte value) {
    std::ranges::fill(source_, value);
    process.know(must(here_.card()));
    const Peer peer = must(here_.add_peer(process.card()));
    const LocalRange local = from_.range(0, kSize);
    const RemoteRange remote = peer.range("target", 0, kSize);
    return must(must(here_.plan_write(peer, {&local, 1}, {&remote, 1})).submit({.deadline = 30s}));
  }
  void expect_writes(PeerProcess& process, int value) {
    Transfer sent = write(process, std::byte(value));
    const Status status = sent.wait(40s);
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(process.ask("see target " + std::to_string(value)), "yes");
  }

  std::shared_ptr<HookedVerbs> hooks_ = std::make_shared<HookedVerbs>(must(backend::verbs::open_libibverbs()));
  std::vector<std::byte> source_ = std::vector<std::byte>(kSize);
  Driver driver_ = must(Driver::start());
  Agent here_;
  Region from_;
};

TEST_P(PeerGone, IsToldInTimeAndWhoComesBackIsMetAgain) {
  PeerProcess there = start_there();
  expect_writes(there, 1);
  const auto [name, moment, signal] = GetParam();
  Transfer sent = write(there, std::byte{2});
  hooks_->strike(moment, [&there, number = signal] { there.signal(number); });
  ASSERT_GT(hooks_->break_queue_pairs(), 0);
  const Instant begin = Clock::steady().now();
  const Status status = sent.wait(40s);
  ASSERT_TRUE(hooks_->has_struck()) << "over before the fault: " << status.to_string();
  EXPECT_EQ(status.code(), Code::kDisconnected) << status.to_string();
  EXPECT_NE(status.to_string().find("there"), std::string::npos) << status.to_string();
  EXPECT_NE(status.buffer(), BufferState::kComplete);
  // A killed one is told by its socket, a stopped one by its silence for peer_timeout.
  EXPECT_LT(Clock::steady().now() - begin, 6 * kHeartbeat) << status.to_string();
  if (signal == SIGKILL) {
    there.kill();
    there = start_there();
  } else {
    std::ranges::fill(source_, std::byte{0xca});  // Ours again: what is sent of it now would be seen below.
    there.resume();
    const std::string canaries = there.ask("count target 202");
    EXPECT_EQ(canaries, "0");
  }
  expect_writes(there, 3);
}

INSTANTIATE_TEST_SUITE_P(Phases, PeerGone,
                         testing::Values(GoneCase{"killed_draining", At::kDraining, SIGKILL},
                                         GoneCase{"killed_in_backoff", At::kBackoff, SIGKILL},
                                         GoneCase{"killed_connecting", At::kConnecting, SIGKILL},
                                         GoneCase{"stopped_draining", At::kDraining, SIGSTOP},
                                         GoneCase{"stopped_in_backoff", At::kBackoff, SIGSTOP},
                                         GoneCase{"stopped_connecting", At::kConnecting, SIGSTOP}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace hawser
