// NIXL's agent: memory, metadata, transfers, notifications, between agents of this process.

#include <hawser/compat/agent.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <sstream>
#include <thread>

#include "agents.h"
#include "base/inside.h"
#include "compat/core.h"

namespace hawser::compat {
namespace {

std::vector<std::int32_t> all_of(std::size_t count) {
  std::vector<std::int32_t> index(count);
  std::iota(index.begin(), index.end(), 0);
  return index;
}

void paint(Side& side, unsigned seed) {
  for (char& byte : side.memory) byte = static_cast<char>((seed = seed * 1664525u + 1013904223u) >> 24);
}

TEST(CompatAgent, CopiesAreOneAgentAndPrintable) {
  Agent agent = Agent::open("one", quiet()).value();
  Agent copy = agent;
  ASSERT_TRUE(copy.create_backend("ucx"));
  EXPECT_TRUE(agent.get_backend("UCX"));
  EXPECT_FALSE(agent.get_backend("POSIX?"));
  EXPECT_EQ(agent, copy);
  EXPECT_EQ(agent.name(), "one");
  std::ostringstream text;
  text << agent;
  EXPECT_EQ(text.str(), "agent one: backends [UCX], 0 registrations, remotes []");
  EXPECT_FALSE(Agent::open("", quiet()));
  EXPECT_EQ(code_of(agent.create_backend("UCX").error()), NixlCode::kInvalidParam);
  EXPECT_EQ(code_of(agent.create_backend("DUDE").error()), NixlCode::kNotFound);
}

TEST(CompatAgent, EmptyHandlesAnswer) {
  Agent agent;
  TransferRequest request;
  PreparedList list;
  NotificationMap map;
  EXPECT_EQ(agent.name(), "");
  EXPECT_FALSE(agent.create_backend("UCX"));
  EXPECT_FALSE(agent.get_local_md());
  EXPECT_FALSE(agent.get_notifications(map).ok());
  EXPECT_FALSE(agent.post_xfer_req(request));
  EXPECT_FALSE(agent.make_xfer_req(XferOp::kRead, list, {}, list, {}));
  EXPECT_TRUE(request.release().ok());
  EXPECT_TRUE(RegistrationHandle().deregister().ok());
}

TEST(CompatAgent, ARegistrationHandleDeregisters) {
  Side side("one", 4096);
  RegDescList list(MemType::kDram);
  list.add(side.address(), 4096);
  {
    const auto second = side.agent.register_memory(list);
    ASSERT_TRUE(second);
    EXPECT_TRUE(side.agent.deregister_memory(list).ok());  // One of the two.
    EXPECT_TRUE(side.agent.get_local_partial_md(list));
  }
  EXPECT_EQ(code_of(side.agent.get_local_partial_md(list).error()), NixlCode::kNotFound);
  EXPECT_EQ(code_of(side.registration.deregister()), NixlCode::kNotFound);
  EXPECT_TRUE(side.registration.deregister().ok());
  auto third = side.agent.register_memory(list);
  third->detach();
  third = side.agent.register_memory(list);
  EXPECT_TRUE(third->deregister().ok());
  EXPECT_TRUE(side.agent.deregister_memory(list).ok());
}

TEST(CompatAgent, WhatIsListedTwiceNeedsTwoRegistrations) {
  Side side("one", 4096);
  RegDescList twice(MemType::kDram);
  twice.add(side.address(), 4096);
  twice.add(side.address(), 4096, 0, "other meta");
  EXPECT_EQ(code_of(side.agent.deregister_memory(twice)), NixlCode::kNotFound);
  ASSERT_TRUE(side.agent.register_memory(twice)->deregister().ok());
  side.registration.detach();
}

TEST(CompatAgent, BackendsInTheOptionsMustBeItsOwn) {
  Side one("one", 4096), two("two", 4096);
  OptArgs opt;
  opt.backends = {two.ucx};
  EXPECT_EQ(code_of(one.agent.register_memory(one.registration.list(), &opt).error()), NixlCode::kInvalidParam);
  opt.backends = {one.ucx};
  EXPECT_TRUE(one.agent.register_memory(one.registration.list(), &opt));
  EXPECT_EQ(code_of(one.agent.get_backend_params(two.ucx).error()), NixlCode::kInvalidParam);
  RegDescList objects(MemType::kObject);
  objects.add(0, 16);
  EXPECT_EQ(code_of(one.agent.register_memory(objects).error()), NixlCode::kNotFound);
}

TEST(CompatTransfer, PreparedListsMoveBothWaysAndNotify) {
  constexpr std::size_t kBlocks = 64;
  Side one("one"), two("two");
  one.knows(two);
  two.knows(one);
  const auto ours = one.agent.prepare_xfer_dlist("", one.blocks(kBlocks)).value();
  const auto theirs = one.agent.prepare_xfer_dlist("two", two.blocks(kBlocks)).value();
  EXPECT_TRUE(ours.is_local());
  EXPECT_EQ(theirs.agent_name(), "two");
  EXPECT_EQ(theirs.size(), kBlocks);
  std::vector<std::int32_t> forward = all_of(kBlocks), backward(forward.rbegin(), forward.rend());
  OptArgs opt;
  opt.notification = std::string("a\0b", 3);
  auto request = one.agent.make_xfer_req(XferOp::kWrite, ours, forward, theirs, backward, &opt).value();
  EXPECT_EQ(code_of(one.agent.get_xfer_status(request).error()), NixlCode::kNotPosted);
  EXPECT_EQ(one.agent.query_xfer_backend(request).value().name(), "UCX");
  EXPECT_GT(one.agent.estimate_xfer_cost(request).value().duration.count(), 0);
  for (unsigned round = 0; round < 3; ++round) {
    paint(one, round);
    ASSERT_TRUE(one.run(request).ok());
    NotificationMap map;
    ASSERT_TRUE(eventually([&] { return two.agent.get_notifications(map).ok() && !map.empty(); }));
    EXPECT_EQ(map, (NotificationMap{{"one", {std::string("a\0b", 3)}}}));
    const std::size_t size = one.memory.size() / kBlocks;
    for (std::size_t i = 0; i < kBlocks; ++i) {
      ASSERT_EQ(std::memcmp(&one.memory[i * size], &two.memory[(kBlocks - 1 - i) * size], size), 0) << i;
    }
  }
  const auto times = one.agent.get_xfer_telemetry(request).value();
  ASSERT_TRUE(times);
  EXPECT_EQ(times->total_bytes, one.memory.size());
  EXPECT_GE(times->xfer_duration_us, times->post_duration_us);
  EXPECT_TRUE(request.release().ok());
  EXPECT_EQ(code_of(one.agent.post_xfer_req(request).error()), NixlCode::kInvalidParam);
}

/// Memory that a client owns, by whole pages.
class ClientPages {
 public:
  explicit ClientPages(std::size_t size)
      : size_(size), at_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~ClientPages() { ::munmap(at_, size_); }
  ClientPages(const ClientPages&) = delete;
  ClientPages& operator=(const ClientPages&) = delete;
  char* data() const { return static_cast<char*>(at_); }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(at_); }

 private:
  std::size_t size_;
  void* at_;
};

/// Attaching is off, so what arrives was copied through a mapping.
TEST(CompatTransfer, AdoptedMemoryOfClientsIsMapped) {
  constexpr std::size_t kSize = 1 << 20;
  const AgentConfig config =
      quiet({{"HAWSER_ADOPT", "1"}, {"HAWSER_BACKENDS", "shm"}, {"HAWSER_BACKEND_SHM_ATTACH", "no"}});
  const ClientPages pages(kSize);
  std::memset(pages.data(), 0x41, kSize);
  Side one("one", kSize, config), two("two", 4096, config);
  const auto adopted = [&] { return core_of(two.agent)->agent().counters().regions_adopted_gauge; };
  const auto before = adopted();  // Of the side's own memory, which may hold a whole page.
  RegDescList list(MemType::kDram);
  list.add(pages.address(), kSize);
  auto registered = two.agent.register_memory(list).value();
  auto again = two.agent.register_memory(list).value();
  EXPECT_EQ(adopted(), before + 2);
  EXPECT_EQ(pages.data()[kSize - 1], 0x41);
  one.knows(two);
  paint(one, 7);
  XferDescList ours = one.blocks(1), theirs(MemType::kDram);
  theirs.add(pages.address(), kSize);
  auto write = one.agent.create_xfer_req(XferOp::kWrite, ours, theirs, "two").value();
  ASSERT_TRUE(one.run(write).ok());
  EXPECT_EQ(std::memcmp(pages.data(), one.memory.data(), kSize), 0);
  std::memset(pages.data(), 0x42, kSize);
  auto read = one.agent.create_xfer_req(XferOp::kRead, ours, theirs, "two").value();
  ASSERT_TRUE(one.run(read).ok());
  EXPECT_EQ(std::memcmp(pages.data(), one.memory.data(), kSize), 0);
  ASSERT_TRUE(registered.deregister().ok());
  EXPECT_EQ(adopted(), before + 1);
  ASSERT_TRUE(again.deregister().ok());
  EXPECT_EQ(std::count(pages.data(), pages.data() + kSize, 0x42), static_cast<std::ptrdiff_t>(kSize));
}

/// As an allocator gives it, with its own bytes on the first page.
TEST(CompatTransfer, AdoptedMemoryOfAnAllocatorKeepsItsEnds) {
  const AgentConfig config = quiet({{"HAWSER_ADOPT", "1"}, {"HAWSER_BACKENDS", "shm"}});
  constexpr std::size_t kSize = (1 << 20) + 24;
  Side one("one", kSize, config), two("two", kSize, config);
  EXPECT_EQ(core_of(two.agent)->agent().counters().regions_adopted_gauge, 1u);
  one.knows(two);
  for (unsigned round = 0; round < 3; ++round) {
    paint(one, round);
    auto request = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two.blocks(1), "two").value();
    ASSERT_TRUE(one.run(request).ok());
    ASSERT_EQ(one.memory, two.memory) << round;
  }
  ASSERT_TRUE(two.registration.deregister().ok());
  EXPECT_EQ(one.memory, two.memory);
}

TEST(CompatTransfer, SeveralRegistrationsAndStridedRowsAreOneList) {
  constexpr std::size_t kRegions = 5, kBlocks = 40, kBlock = 256;
  Side one("one", kRegions * kBlocks * kBlock), two("two", kRegions * kBlocks * kBlock);
  // Not the whole memory but its parts are registered: blocks may not cross them.
  std::vector<RegistrationHandle> parts;
  std::vector<StridedDesc> ours, theirs;
  for (Side* const side : {&one, &two}) {
    ASSERT_TRUE(side->registration.deregister().ok());
    RegDescList list(MemType::kDram);
    for (std::size_t i = 0; i < kRegions; ++i) list.add(side->address() + i * kBlocks * kBlock, kBlocks * kBlock);
    parts.push_back(side->agent.register_memory(list).value());
  }
  one.knows(two);
  for (std::size_t i = 0; i < kRegions; ++i) {
    // Every second block of ours goes to the first half of theirs.
    ours.push_back({one.address() + i * kBlocks * kBlock, kBlock, 0, 2 * kBlock, kBlocks / 2});
    theirs.push_back({two.address() + i * kBlocks * kBlock, kBlock, 0, kBlock, kBlocks / 2});
  }
  const auto local = one.agent.prepare_xfer_dlist("", MemType::kDram, ours).value();
  const auto remote = one.agent.prepare_xfer_dlist("two", MemType::kDram, theirs).value();
  ASSERT_EQ(local.size(), kRegions * kBlocks / 2);
  const auto index = all_of(local.size());
  auto request = one.agent.make_xfer_req(XferOp::kRead, local, index, remote, index).value();
  paint(two, 7);
  ASSERT_TRUE(one.run(request).ok());
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::size_t region = i / (kBlocks / 2), block = i % (kBlocks / 2);
    const char* const from = &two.memory[(region * kBlocks + block) * kBlock];
    ASSERT_EQ(std::memcmp(&one.memory[(region * kBlocks + 2 * block) * kBlock], from, kBlock), 0) << i;
  }
  // Blocks of a row may lie in several registrations, a block may not.
  EXPECT_TRUE(one.agent.prepare_xfer_dlist(
      "", MemType::kDram, std::vector<StridedDesc>{{one.address(), kBlock, 0, kBlock, kRegions * kBlocks}}));
  const auto across = one.agent.prepare_xfer_dlist(
      "", MemType::kDram, std::vector<StridedDesc>{{one.address() + 1, kBlock, 0, kBlock, kBlocks}});
  EXPECT_EQ(code_of(across.error()), NixlCode::kNotFound);
  EXPECT_EQ(code_of(one.agent.prepare_xfer_dlist("", MemType::kDram, std::span<const StridedDesc>()).error()),
            NixlCode::kInvalidParam);
}

TEST(CompatTransfer, TheAgentItselfIsAPeerUnderItsName) {
  Side one("one", 8192);
  XferDescList low(MemType::kDram), high(MemType::kDram);
  low.add(one.address(), 4096);
  high.add(one.address() + 4096, 4096);
  paint(one, 3);
  auto request = one.agent.create_xfer_req(XferOp::kWrite, low, high, "one").value();
  ASSERT_TRUE(one.run(request).ok());
  EXPECT_EQ(std::memcmp(&one.memory[0], &one.memory[4096], 4096), 0);
  // It knows of itself what it has registered, as of others what they have.
  XferDescList beyond(MemType::kDram);
  beyond.add(one.address() + 4096, 4097);
  EXPECT_TRUE(one.agent.check_remote_metadata("one"));
  EXPECT_TRUE(one.agent.check_remote_metadata("one", &high));
  EXPECT_FALSE(one.agent.check_remote_metadata("one", &beyond));
  ASSERT_TRUE(one.registration.deregister().ok());
  EXPECT_FALSE(one.agent.check_remote_metadata("one"));
}

TEST(CompatTransfer, WrongUseIsRefusedWithNixlsCodes) {
  Side one("one", 8192), two("two", 8192);
  one.knows(two);
  const auto ours = one.agent.prepare_xfer_dlist("", one.blocks(4)).value();
  const auto theirs = one.agent.prepare_xfer_dlist("two", two.blocks(4)).value();
  const auto make = [&](const PreparedList& l, std::vector<std::int32_t> li, const PreparedList& r,
                        std::vector<std::int32_t> ri) {
    return code_of(one.agent.make_xfer_req(XferOp::kRead, l, li, r, ri).error());
  };
  EXPECT_EQ(make(ours, {0}, theirs, {4}), NixlCode::kInvalidParam);
  EXPECT_EQ(make(ours, {-1}, theirs, {0}), NixlCode::kInvalidParam);
  EXPECT_EQ(make(ours, {}, theirs, {}), NixlCode::kInvalidParam);
  EXPECT_EQ(make(ours, {0, 1}, theirs, {0}), NixlCode::kInvalidParam);
  EXPECT_EQ(make(theirs, {0}, ours, {0}), NixlCode::kInvalidParam);
  EXPECT_EQ(code_of(one.agent.prepare_xfer_dlist("nobody", two.blocks(4)).error()), NixlCode::kNotFound);
  EXPECT_EQ(code_of(one.agent.prepare_xfer_dlist("two", one.blocks(4)).error()), NixlCode::kNotFound);
  EXPECT_EQ(code_of(one.agent.prepare_xfer_dlist("", XferDescList()).error()), NixlCode::kInvalidParam);
  EXPECT_EQ(code_of(one.agent.create_xfer_req(XferOp::kRead, one.blocks(4), two.blocks(2), "two").error()),
            NixlCode::kInvalidParam);
  EXPECT_EQ(code_of(one.agent.load_remote_md("garbage").error()), NixlCode::kMismatch);
  EXPECT_EQ(code_of(one.agent.load_remote_md(one.agent.get_local_md().value()).error()), NixlCode::kInvalidParam);
  ASSERT_TRUE(one.agent.invalidate_remote_md("two").ok());
  EXPECT_EQ(code_of(one.agent.invalidate_remote_md("two")), NixlCode::kNotFound);
  EXPECT_EQ(make(ours, {0}, theirs, {0}), NixlCode::kNotFound);
  one.knows(two);
  EXPECT_EQ(make(ours, {0}, theirs, {0}), NixlCode::kNotFound);  // Loaded anew: the old list stays refused.
  EXPECT_TRUE(one.agent.check_remote_metadata("two"));
  EXPECT_TRUE(one.agent.invalidate_all_remotes().ok());
  EXPECT_FALSE(one.agent.check_remote_metadata("two"));
}

TEST(CompatTransfer, APeerThatIsGoneIsADisconnectOnceAndUnknownThen) {
  Side one("one", 4096);
  auto two = std::make_unique<Side>("two", 4096);
  one.knows(*two);
  auto request = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), two->blocks(1), "two").value();
  ASSERT_TRUE(one.run(request).ok());
  two.reset();
  ASSERT_TRUE(eventually([&] { return !one.agent.check_remote_metadata("two"); }));
  EXPECT_EQ(code_of(one.agent.post_xfer_req(request).error()), NixlCode::kNotFound);
  Side again("two", 4096);
  one.knows(again);
  EXPECT_TRUE(one.agent.check_remote_metadata("two"));
  EXPECT_EQ(code_of(one.agent.post_xfer_req(request).error()), NixlCode::kNotFound);
  auto fresh = one.agent.create_xfer_req(XferOp::kWrite, one.blocks(1), again.blocks(1), "two").value();
  EXPECT_TRUE(one.run(fresh).ok());
}

TEST(CompatEnvironment, TelemetryAndTheUcxMode) {
  const auto telemetry = [](ConfigSources::Texts environment, bool asked) {
    AgentConfig config = quiet(std::move(environment));
    config.capture_telemetry = asked;
    return core_of(Agent::open("one", config).value())->telemetry();
  };
  EXPECT_FALSE(telemetry({}, false));
  EXPECT_TRUE(telemetry({}, true));
  EXPECT_TRUE(telemetry({{"NIXL_TELEMETRY_ENABLE", "Y"}}, false));
  EXPECT_FALSE(telemetry({{"NIXL_TELEMETRY_ENABLE", "no"}}, true));
  EXPECT_TRUE(Agent::open("one", quiet({{"HAWSER_NIXL_UCX", "Auto"}})));
  const auto native = Agent::open("one", quiet({{"HAWSER_NIXL_UCX", "native"}}));
  EXPECT_EQ(code_of(native.error()), NixlCode::kNotSupported);
  EXPECT_NE(native.error().to_string().find("there is no backend ucx"), std::string::npos);
  EXPECT_EQ(code_of(Agent::open("one", quiet({{"HAWSER_NIXL_UCX", "maybe"}})).error()), NixlCode::kInvalidParam);
}

TEST(CompatEnvironment, NotesTellWhatAnswersToUcxInThisEnvironment) {
  const auto ucx = [](ConfigSources::Texts environment) {
    for (PluginNote& note : plugin_notes(environment)) {
      if (note.name == "UCX") return note;
    }
    return PluginNote();
  };
  EXPECT_TRUE(ucx({}).refusal.ok());
  EXPECT_NE(ucx({{"HAWSER_NIXL_UCX", "auto"}}).answer.find("an alias"), std::string::npos);
  for (const char* mode : {"native", "maybe"}) {
    const PluginNote refused = ucx({{"HAWSER_NIXL_UCX", mode}});
    EXPECT_FALSE(refused.refusal.ok()) << mode;
    EXPECT_EQ(refused.answer.find("an alias"), std::string::npos) << refused.answer;
    EXPECT_NE(refused.answer.find("unset it"), std::string::npos) << refused.answer;
  }
}

std::vector<std::string> open_backends(Side& side) {
  std::vector<std::string> names;
  for (const BackendReport& report : core_of(side.agent)->agent().backends()) {
    if (report.open) names.push_back(report.name);
  }
  return names;
}

TEST(CompatEnvironment, TransportsInUcxParametersLimitTheBackendsUnlessTheUserOfTheMachineDoes) {
  Log log;
  Side tcp("one", 4096, quiet(), {{"engine_config", "TLS=tcp"}});
  EXPECT_EQ(open_backends(tcp), (std::vector<std::string>{"loopback", "tcp"}));
  AgentConfig config = quiet({{"HAWSER_BACKENDS", "shm,loopback"}});
  config.log = log.sink();
  Side both("one", 4096, config, {{"engine_config", "TLS=tcp"}});
  EXPECT_EQ(open_backends(both), (std::vector<std::string>{"shm", "loopback"}));
  EXPECT_TRUE(log.has("HAWSER_BACKENDS is set")) << log.text();
}

/// An address of this host that other hosts could reach; empty when it has none.
std::string network_address() {
  ifaddrs* list = nullptr;
  std::string found;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    const auto* const address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
    if (!std::string_view(text).starts_with("127.") && found.empty()) found = text;
  }
  ::freeifaddrs(list);
  return found;
}

TEST(CompatEnvironment, PeersBeyondTheHostAreReachedWithNoVariableSet) {
  const std::string address = network_address();
  if (address.empty()) GTEST_SKIP() << "this host has no network address";
  const AgentConfig no_variable = quiet({{"HAWSER_BACKENDS", "tcp,loopback"}});
  Side far("far", 4096, quiet({{"HAWSER_LISTEN", address}, {"HAWSER_BACKENDS", "tcp,loopback"}})),
      near("near", 4096, no_variable),
      open("open", 4096,
           quiet({{"HAWSER_LISTEN", address + ":20000-60000"},
                  {"HAWSER_SECURITY", "none"},
                  {"HAWSER_BACKENDS", "tcp,loopback"}}));
  for (Side* peer : {&far, &open}) {
    near.knows(*peer);
    const Status status = near.agent.make_connection(peer == &far ? "far" : "open");
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
}

TEST(CompatThreads, ManyThreadsUseOneAgent) {
  Side one("one", 1 << 16), two("two", 1 << 16);
  one.knows(two);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      // Not what is transferred: deregistering that would end the transfers that lie in it.
      std::vector<std::byte> own(4096);
      for (int i = 0; i < 20; ++i) {
        RegDescList list(MemType::kDram);
        list.add(reinterpret_cast<std::uintptr_t>(own.data()), own.size());
        const auto handle = one.agent.register_memory(list);
        ASSERT_TRUE(handle);
        auto request = one.agent.create_xfer_req(XferOp::kRead, one.blocks(16), two.blocks(16), "two");
        // Threads read into the same memory; only the calls are looked at.
        if (t == 0) {
          ASSERT_TRUE(request);
          ASSERT_TRUE(one.run(*request).ok());
        }
        const Status sent = one.agent.send_notification("two", "hello");
        ASSERT_TRUE(sent.ok()) << sent.to_string();
        NotificationMap map;
        ASSERT_TRUE(two.agent.get_notifications(map).ok());
        ASSERT_TRUE(one.agent.check_remote_metadata("two"));
        ASSERT_TRUE(one.agent.get_local_md());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hawser::compat
