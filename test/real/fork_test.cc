// fork: the child's agents are dead and say so, the parent and its peers notice nothing.

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/inside.h"
#include "real_test.h"

namespace hawser::real {
namespace {

constexpr std::size_t kSize = 8 << 20;

/// Exit status of a child that runs `child`; what it returns must be below 100.
int in_child(const std::function<int()>& child) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(child());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

bool names_opener(const Status& status, pid_t opener) {
  return status.code() == Code::kInvalid && status.to_string().find(std::to_string(opener)) != std::string::npos;
}

/// Every call of the child answers at once. Gives 0, or which one did not.
int try_all_calls(Here& here, const Peer& peer, const Plan& plan, Transfer& flying, pid_t opener) {
  Agent& agent = here.agent();
  std::vector<std::byte> bytes(64);
  if (!names_opener(plan.submit().error(), opener)) return 1;
  if (!names_opener(flying.wait(1s), opener) && !flying.done()) return 2;
  if (!names_opener(agent.add_region({.name = "x", .bytes = bytes, .device = {}}).error(), opener)) return 3;
  if (!names_opener(agent.add_peer("").error(), opener)) return 4;
  if (!names_opener(agent.make_queue().error(), opener)) return 5;
  if (!names_opener(agent.close(1s), opener)) return 6;
  if (!names_opener(peer.notify("from the child"), opener)) return 7;
  if (!names_opener(peer.connect(1s), opener)) return 8;
  if (!names_opener(agent.find_peer("there", 1s).error(), opener)) return 9;
  if (!names_opener(agent.add_backend(tcp()), opener)) return 10;
  if (agent.poll() != 0 || agent.wait(10ms)) return 11;
  flying.cancel();
  flying = Transfer();
  (void)agent.take_notification();
  return 0;
}

TEST_P(RealTest, ForkWithTransfersInFlight) {
  Here here(GetParam(), quick("here"));
  Memory& source = here.add("source", kSize);
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
  process.ask("region target " + std::to_string(kSize) + (GetParam().allocated ? " allocated" : " foreign"));
  const Peer peer = here.meet(process);
  const Plan plan = here.plan_write(peer, "source", "target", kSize);
  must(peer.connect(kPatience));
  EXPECT_TRUE(eventually([&] { return process.ask("event") == "1 here"; })) << "it never saw us come up";
  const pid_t opener = ::getpid();
  for (int round = 0; round < 5; ++round) {
    std::ranges::fill(source.bytes, static_cast<std::byte>(round + 1));
    Transfer sent = must(plan.submit({.notify = "round"}));
    EXPECT_EQ(in_child([&] { return try_all_calls(here, peer, plan, sent, opener); }), 0);
    must(finish(sent));
    EXPECT_EQ(process.ask("see target " + std::to_string(round + 1)), "yes");
    EXPECT_TRUE(eventually([&] { return process.ask("take") == "got round"; }));
  }
  EXPECT_EQ(process.ask("event"), "none") << "the peer noticed something";
  EXPECT_EQ(peer.state(), PeerState::kUp);
}

/// The child lives on while the parent works, and ends by running all destructors.
TEST_P(RealTest, AChildThatStaysHoldsNothing) {
  auto here = std::make_unique<Here>(GetParam(), quick("here"));
  Memory& source = here->add("source", kSize);
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
  process.ask("region target " + std::to_string(kSize) + " foreign");
  const Peer peer = here->meet(process);
  const Plan plan = here->plan_write(peer, "source", "target", kSize);
  must(peer.connect(kPatience));
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(gate[1]);
    char byte = 0;
    (void)!::read(gate[0], &byte, 1);
    // Handles may be dropped; what they own of the parent's stays as it is.
    core_of(Plan());
    ::_exit(0);
  }
  ::close(gate[0]);
  std::ranges::fill(source.bytes, std::byte{9});
  Transfer sent = must(plan.submit({.notify = "still"}));
  must(finish(sent));
  EXPECT_EQ(process.ask("see target 9"), "yes");
  process.kill();
  const auto time = here->await_down(peer, now(), 10s);
  EXPECT_TRUE(time) << "the child's copies of the descriptors keep the peer alive";
  here.reset();
  ::close(gate[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_P(RealTest, ThePeerSeesTheParentsEndInSpiteOfAChild) {
  auto here = std::make_unique<Here>(GetParam(), quick("here"));
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
  process.ask("region target 4096 foreign");
  const Peer peer = here->meet(process);
  must(peer.connect(kPatience));
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(gate[1]);
    char byte = 0;
    (void)!::read(gate[0], &byte, 1);
    ::_exit(0);
  }
  ::close(gate[0]);
  here.reset();
  bool down = false;
  EXPECT_TRUE(eventually([&] { return down = down || process.ask("event").starts_with("3"); }, 10s));
  ::close(gate[1]);
  ::waitpid(child, nullptr, 0);
}

/// A child may open agents of its own, and the inherited ones stay dead.
int work_in_child(const Way& way, Here& inherited, const Plan& plan, pid_t opener, const std::string& card) {
  AgentOptions options = quick("child");
  options.backends = {{way.backend, {}}};
  Result<Agent> own = Agent::open(options);
  if (!own) return 20;
  std::vector<std::byte> bytes(4096, std::byte{5});
  Result<Region> region = own->add_region({.name = "own", .bytes = bytes, .device = {}});
  Result<Peer> peer = own->add_peer(card);
  if (!region || !peer) return 21;
  Result<Plan> its_plan = own->plan_write(*peer, {{region->range(0, 4096)}}, {{peer->range("target", 0, 4096)}});
  if (!its_plan) return 22;
  Result<Transfer> sent = its_plan->submit({.notify = "child"});
  if (!sent || !sent->wait(10s).ok()) return 23;
  if (!names_opener(plan.submit().error(), opener)) return 24;
  if (!names_opener(inherited.agent().make_queue().error(), opener)) return 25;
  if (!own->close(5s).ok()) return 26;
  return 0;
}

TEST_P(RealTest, AChildOpensAgentsOfItsOwn) {
#if defined(__SANITIZE_THREAD__) || defined(HAWSER_SANITIZE_THREAD)
  GTEST_SKIP() << "ThreadSanitizer does not follow a child of a process with threads";
#endif
  Here here(GetParam(), quick("here"));
  here.add("source", kSize);
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there"));
  process.ask("region target " + std::to_string(kSize) + " foreign");
  const Peer peer = here.meet(process);
  const Plan plan = here.plan_write(peer, "source", "target", kSize);
  Transfer sent = must(plan.submit());
  must(finish(sent));
  const std::string card = process.card();
  const pid_t opener = ::getpid();
  EXPECT_EQ(in_child([&] { return work_in_child(GetParam(), here, plan, opener, card); }), 0);
  EXPECT_TRUE(eventually([&] { return process.ask("take") == "got child"; }));
  Transfer good = must(plan.submit());
  EXPECT_TRUE(finish(good).ok());
}

}  // namespace
}  // namespace hawser::real
