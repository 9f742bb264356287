// Peers found: by the file directory between processes, and at host:port.

#include "base/test_folder.h"
#include "real_test.h"

namespace hawser::real {
namespace {

TEST_P(RealTest, ProcessesFindEachOtherInAFolder) {
  const base::TestFolder folder("hawser-find");
  AgentOptions options = quick("here");
  options.directory = must(file_directory(folder.path()));
  Here here(GetParam(), options);
  Memory& source = here.add("source", 4096);
  PeerProcess process = PeerProcess::start(peer_line(GetParam(), "there", "driven=1 directory=" + folder.path()));
  process.ask("region target 4096 foreign");
  const Peer peer = must(here.agent().find_peer("there", 10s));
  EXPECT_EQ(peer.name(), "there");
  std::ranges::fill(source.bytes, std::byte{4});
  // The region may have come after the card was published: what is known is brought up to date.
  Result<Peer> fresh = peer;
  ASSERT_TRUE(eventually([&] {
    fresh = here.agent().find_peer("there", 1s);
    return fresh && fresh->region("target");
  })) << "the region never appeared";
  Transfer sent = must(here.plan_write(*fresh, "source", "target", 4096).submit({.notify = "found"}));
  must(finish(sent));
  EXPECT_TRUE(eventually([&] { return process.ask("take") == "got found"; }));
  EXPECT_EQ(process.ask("see target 4"), "yes");
  EXPECT_EQ(process.ask("find here 10000"), to_string(here.agent().incarnation()));
}

TEST_P(RealTest, ARestartedPeerIsFoundAnew) {
  const base::TestFolder folder("hawser-find");
  AgentOptions options = quick("here");
  options.directory = must(file_directory(folder.path()));
  Here here(GetParam(), options);
  PeerProcess first = PeerProcess::start(peer_line(GetParam(), "there", "driven=1 directory=" + folder.path()));
  const Peer old = must(here.agent().find_peer("there", 10s));
  must(old.connect(kPatience));
  first.kill();
  ASSERT_TRUE(here.await_down(old, now()));
  PeerProcess second = PeerProcess::start(peer_line(GetParam(), "there", "driven=1 directory=" + folder.path()));
  const Peer fresh = must(here.agent().find_peer("there", 10s));
  EXPECT_NE(fresh.incarnation(), old.incarnation());
  must(fresh.connect(kPatience));
}

// A region that is added just when the driver lies down to sleep, or while it publishes an earlier one, is published.
TEST(FindTest, RegionsAreSoonInTheDirectory) {
  const base::TestFolder folder("hawser-find");
  AgentOptions options = quick("here");
  options.directory = must(file_directory(folder.path()));
  Driver driver = must(Driver::start({.spin = 0us}));
  const auto agent = std::make_unique<Agent>(must(Agent::open(options)));
  must(driver.attach(*agent));
  AgentOptions reads = quick("reader");
  reads.directory = must(file_directory(folder.path()));
  const auto reader = std::make_unique<Agent>(must(Agent::open(reads)));
  std::vector<std::byte> bytes(64);
  const Duration longest = 2s * kScale;
  for (int round = 0; round < 150; ++round) {
    const std::string name = "r" + std::to_string(round);
    Region first = must(agent->add_region({.name = name, .bytes = bytes}));
    for (const Instant go_on = now() + std::chrono::microseconds(round * 2); now() < go_on;) continue;
    Region second = must(agent->add_region({.name = name + "b", .bytes = bytes}));
    ASSERT_TRUE(eventually(
        [&] {
          const Result<Peer> seen = reader->find_peer("here", 1s);
          return seen && seen->region(name) && seen->region(name + "b");
        },
        longest))
        << "in round " << round << " " << name << " was not published";
  }
}

/// Where the agent listens, as "host:port".
std::string tcp_address(Agent& agent) {
  for (const BackendReport& report : agent.backends()) {
    if (report.name == "tcp") return report.address.substr(0, report.address.find(','));
  }
  return {};
}

void find_at(const std::string& host) {
  const Way way{.name = "tcp", .backend = "tcp", .allocated = false};
  AgentOptions options = quick("here");
  options.backends = {tcp({{"listen", host}})};
  std::unique_ptr<Here> listening;
  try {
    listening = std::make_unique<Here>(way, options);
  } catch (const std::runtime_error& error) {
    GTEST_SKIP() << "cannot listen on " << host << ": " << error.what();
  }
  Memory& target = listening->add("target", 4096);
  Here other(way, quick("other"));
  Memory& source = other.add("source", 4096);
  std::ranges::fill(source.bytes, std::byte{6});
  const std::string address = tcp_address(listening->agent());
  const Peer peer = must(other.agent().find_peer("here@" + address, 10s));
  EXPECT_EQ(peer.incarnation(), listening->agent().incarnation());
  Transfer sent = must(other.plan_write(peer, "source", "target", 4096).submit());
  must(finish(sent));
  EXPECT_TRUE(all_are(target.bytes, std::byte{6}));
  // Regions that come later are told without asking.
  Memory& late = listening->add("late", 4096);
  ASSERT_TRUE(eventually([&] { return peer.region("late").error().ok(); }));
  Transfer more = must(other.plan_write(peer, "source", "late", 4096).submit());
  must(finish(more));
  EXPECT_TRUE(all_are(late.bytes, std::byte{6}));
  EXPECT_EQ(other.agent().find_peer("somebody@" + address, 3s).error().ok(), false) << "another name answered";
}

// Found by its socket, a peer of this host is still reached through shared memory.
TEST(FindTest, AtAnAddressOfThisHostMemoryIsShared) {
  const auto open = [](const std::string& name) {
    AgentOptions options = quick(name);
    options.backends = {shm(), tcp({{"listen", "127.0.0.1"}})};
    return std::make_unique<Agent>(must(Agent::open(options)));
  };
  const auto here = open("here"), there = open("there");
  Driver driver = must(Driver::start());
  must(driver.attach(*there));
  const Region source = must(here->allocate({.name = "source", .size = 4096}));
  const Region target = must(there->allocate({.name = "target", .size = 4096}));
  const Peer peer = must(here->find_peer("there@" + tcp_address(*there), 10s));
  std::ranges::fill(source.bytes(), std::byte{7});
  const LocalRange from = source.range(0, 4096);
  const RemoteRange to = peer.range("target", 0, 4096);
  Transfer sent = must(must(here->plan_write(peer, {&from, 1}, {&to, 1})).submit({.notify = "done"}));
  must(sent.wait(kPatience));
  EXPECT_TRUE(all_are(target.bytes(), std::byte{7}));
  EXPECT_TRUE(eventually([&] { return there->take_notification().has_value(); }));
  for (const PathCounters& path : here->counters().paths)
    EXPECT_EQ(path.bytes_out > 0, path.backend == "shm") << path.backend;
}

TEST(FindTest, AtAnIpv4Address) { find_at("127.0.0.1"); }
TEST(FindTest, AtAnIpv6Address) { find_at("::1"); }

TEST(FindTest, NamesMayHoldAnAt) {
  const base::TestFolder folder("hawser-find");
  const auto open = [&](const std::string& name) {
    AgentOptions options = quick(name);
    options.backends = {tcp({{"listen", "127.0.0.1"}})};
    options.directory = must(file_directory(folder.path()));
    return must(Agent::open(options));
  };
  Agent reader = open("reader");
  Agent published = open("rank0@job");
  EXPECT_EQ(must(reader.find_peer("rank0@job", 10s)).incarnation(), published.incarnation());
  // One that reads as an address is found by its card.
  Agent addressed = open("rank1@10.0.0.1:7000");
  must(reader.add_peer(must(addressed.card())));
  EXPECT_EQ(must(reader.find_peer("rank1@10.0.0.1:7000", 10s)).incarnation(), addressed.incarnation());
}

TEST(FindTest, WrongAddressesAreNamed) {
  const Way way{.name = "tcp", .backend = "tcp", .allocated = false};
  Here here(way, quick("here"));
  for (const std::string address : {"x@", "x@localhost", "x@:0", "x@127.0.0.1:99999", "x@[::1", "x@127.0.0.1:abc"}) {
    const Instant from = now();
    const Status status = here.agent().find_peer(address, 2s).error();
    EXPECT_FALSE(status.ok()) << address;
    EXPECT_LE(now() - from, 5s);
  }
  // Nobody listens there: said at once, not at the deadline.
  const Instant from = now();
  const Status nobody = here.agent().find_peer("x@127.0.0.1:1", 10s).error();
  EXPECT_FALSE(nobody.ok());
  EXPECT_NE(nobody.to_string().find("127.0.0.1:1"), std::string::npos) << nobody.to_string();
  EXPECT_LE(now() - from, 5s);
}

TEST(FindTest, APortInUseIsNamed) {
  AgentOptions options = quick("first");
  const Way way{.name = "tcp", .backend = "tcp", .allocated = false};
  Here first(way, options);
  const std::string address = tcp_address(first.agent());
  const std::string port = address.substr(address.rfind(':') + 1);
  AgentOptions second = quick("second");
  second.backends = {tcp({{"listen", "127.0.0.1"}, {"port", port}})};
  const Status status = Agent::open(second).error();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.to_string().find(port), std::string::npos) << status.to_string();
  EXPECT_NE(status.to_string().find("in use"), std::string::npos) << status.to_string();
}

TEST(FindTest, AFolderThatCannotBeWrittenIsNamed) {
  const Status status = file_directory("/proc/hawser-nowhere").error();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.to_string().find("/proc/hawser-nowhere"), std::string::npos) << status.to_string();
}

TEST(FindTest, TcpDoesNotLeadToTheAgentItself) {
  AgentOptions options = quick("lonely");
  options.backends = {tcp()};
  Agent agent = std::move(Agent::open(options).value());
  const Status status = agent.self().connect(std::chrono::seconds(5));
  EXPECT_NE(status.to_string().find("loopback"), std::string::npos) << status.to_string();
  EXPECT_FALSE(agent.self().notify("to myself").ok());  // Refused, not lost.
}

}  // namespace
}  // namespace hawser::real
