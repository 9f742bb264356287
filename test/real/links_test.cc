// Agents of one process over real sockets and rings: one of several connections that is lost, and agents of different
// ages.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <hawser/hawser.h>

#include "agent/default_backends.h"
#include "agent/open.h"
#include "base/address.h"
#include "base/format.h"
#include "relay.h"

namespace hawser::real {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 20s;

Instant now() { return Clock::steady().now(); }

bool eventually(const std::function<bool()>& done, Duration timeout = kPatience) {
  const Instant deadline = now() + timeout;
  while (!done()) {
    if (now() >= deadline) return done();
    std::this_thread::sleep_for(200us);
  }
  return true;
}

/// An agent with a driver and one region.
struct Node {
  Node(const std::string& name, BackendSpec backend, wire::Versions versions = {}, std::size_t size = 1 << 20)
      : driver(Driver::start().value()), memory(size) {
    AgentOptions options;
    options.name = name;
    options.backends = {std::move(backend)};
    options.driven = true;
    options.heartbeat = 5s;  // Machines are busy.
    agent = agent::open_with(options, agent::default_backends(), {.pause = {}, .versions = versions}).value();
    region = agent.add_region({.name = name, .bytes = memory}).value();
    EXPECT_TRUE(driver.attach(agent).ok());
  }
  ~Node() { static_cast<void>(driver.detach(agent)); }
  /// Where it listens, as "host:port".
  std::string address() const {
    const std::string text = agent.backends().at(0).address;
    return text.substr(0, text.find(','));
  }
  Driver driver;
  std::vector<std::byte> memory;
  Agent agent;
  Region region;
};

void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * 2654435761u >> 7) + seed);
}

class Rails : public testing::TestWithParam<unsigned> {};

constexpr std::size_t kRailBytes = 24u << 20;
constexpr std::size_t kParts = 12;

// Transfers in both directions, each with a notification, over three connections of which one breaks while all of them
// are under way.
TEST_P(Rails, LosingOneLosesNoRequest) {
  const unsigned lost = GetParam();
  Node a("a", tcp({{"connections", "3"}}), {}, 2 * kRailBytes);
  Node b("b", tcp({{"connections", "3"}}), {}, 2 * kRailBytes);
  const base::HostPort place = base::parse_host_port(b.address()).value();
  Relay relay(base::numeric_address(place).value());
  const Result<Peer> met = a.agent.find_peer("b@" + relay.address(), kPatience);
  ASSERT_TRUE(met) << met.error().to_string();
  ASSERT_TRUE(eventually([&] { return relay.connections() == 3 && relay.bytes(2) > 0; }));
  // a writes its first half to b's first half, and reads b's second half into its own.
  const std::span<std::byte> written = std::span(a.memory).first(kRailBytes);
  const std::span<std::byte> read = std::span(b.memory).last(kRailBytes);
  fill(written, 3);
  fill(read, 7);
  relay.cut(lost, lost == 0 ? 1000 : kRailBytes / 8);
  constexpr std::size_t kPart = kRailBytes / kParts;
  std::vector<Transfer> all;
  for (std::size_t i = 0; i < kParts; ++i) {
    for (const std::size_t offset : {i * kPart, kRailBytes + i * kPart}) {
      const LocalRange here = a.region.range(offset, kPart);
      const RemoteRange there = met->range("b", offset, kPart);
      const bool writes = offset < kRailBytes;
      const Plan plan = writes ? a.agent.plan_write(*met, std::span(&here, 1), std::span(&there, 1)).value()
                               : a.agent.plan_read(*met, std::span(&there, 1), std::span(&here, 1)).value();
      const std::string text = base::format("{} {}", writes ? "write" : "read", i);
      all.push_back(plan.submit({.notify = text, .deadline = kPatience}).value());
    }
  }
  for (Transfer& each : all) {
    const Status status = each.wait(kPatience);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  EXPECT_EQ(relay.cuts(), 1u) << "nothing was lost";
  EXPECT_EQ(met->state(), PeerState::kUp);
  std::vector<std::string> told;
  EXPECT_TRUE(eventually([&] {
    while (auto notification = b.agent.take_notification()) told.push_back(notification->text);
    return told.size() >= all.size();
  }));
  std::ranges::sort(told);
  EXPECT_EQ(told.size(), all.size());
  EXPECT_EQ(std::ranges::adjacent_find(told), told.end()) << "a notification came twice";
  EXPECT_EQ(std::memcmp(written.data(), b.memory.data(), kRailBytes), 0);
  EXPECT_EQ(std::memcmp(read.data(), a.memory.data() + kRailBytes, kRailBytes), 0);
}

INSTANTIATE_TEST_SUITE_P(Stream, Rails, testing::Values(0u, 1u, 2u));

class Ages : public testing::TestWithParam<std::string> {
 protected:
  BackendSpec backend() const { return {GetParam(), {}}; }
};

/// A write with a notification from one to the other.
void write_and_tell(Node& from, Node& to) {
  const Peer peer = from.agent.add_peer(to.agent.card().value()).value();
  const Status met = peer.connect(kPatience);
  ASSERT_TRUE(met.ok()) << met.to_string();
  fill(from.memory, 5);
  const LocalRange here = from.region.range(0, from.memory.size());
  const RemoteRange there = peer.range(to.region.name(), 0, to.memory.size());
  Transfer sent = from.agent.plan_write(peer, std::span(&here, 1), std::span(&there, 1))
                      .value()
                      .submit({.notify = "from " + std::string(from.agent.name())})
                      .value();
  const Status status = sent.wait(kPatience);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(from.memory, to.memory);
  std::optional<Notification> told;
  EXPECT_TRUE(eventually([&] { return (told = to.agent.take_notification()).has_value(); }));
  EXPECT_EQ(told ? told->text : "", "from " + std::string(from.agent.name()));
}

/// Both keep the version that they use with each other, and tell it.
void expect_agreed(Node& from, Node& to, int version) {
  for (Node* const node : {&from, &to}) {
    const std::string other(node == &from ? to.agent.name() : from.agent.name());
    const AgentCounters counters = node->agent.counters();
    const auto found = std::ranges::find(counters.peers, other, &PeerCounters::peer);
    ASSERT_NE(found, counters.peers.end()) << other;
    EXPECT_EQ(found->wire_version, version) << other;
    EXPECT_NE(to_json(counters).find(base::format("\"wire_version\":{}", version)), std::string::npos);
  }
  const Peer peer = from.agent.add_peer(to.agent.card().value()).value();
  const LocalRange here = from.region.range(0, 64);
  const RemoteRange there = peer.range(to.region.name(), 0, 64);
  const std::string text =
      from.agent.explain(from.agent.plan_write(peer, std::span(&here, 1), std::span(&there, 1)).value());
  EXPECT_NE(text.find(base::format("wire version {}\n", version)), std::string::npos) << text;
}

TEST_P(Ages, RangesThatOverlapMeet) {
  Node older("older", backend(), {2, 2});
  Node newer("newer", backend(), {2, 3});
  write_and_tell(older, newer);
  write_and_tell(newer, older);
  expect_agreed(older, newer, 2);
  Node newest("newest", backend(), {2, 3});
  write_and_tell(newest, newer);
  expect_agreed(newest, newer, 3);
}

TEST_P(Ages, WhoeverIsNewerOpensThePath) {
  Node older("older", backend(), {2, 2});
  Node newer("newer", backend(), {2, 3});
  write_and_tell(newer, older);
}

/// In the message itself, not in a cause; and which of the two is to be upgraded.
testing::AssertionResult names_both(const Status& status, std::string_view upgrade) {
  const std::string_view text = status.message();
  const bool good = status.code() == Code::kUnsupported && text.find("3 to 3") != std::string_view::npos &&
                    text.find("2 to 2") != std::string_view::npos &&
                    status.advice().find(upgrade) != std::string_view::npos;
  return (good ? testing::AssertionSuccess() : testing::AssertionFailure()) << status.to_string();
}
constexpr std::string_view kUpgradePeer = "upgrade the peer", kUpgradeThis = "upgrade this agent";

// The card that the newer one has been given can be read; the older one hears its hello.
TEST_P(Ages, RangesApartAreRefusedAndNamed) {
  Node older("older", backend(), {2, 2});
  Node newer("newer", backend(), {3, 3});
  EXPECT_TRUE(names_both(older.agent.add_peer(newer.agent.card().value()).error(), kUpgradeThis));
  const Peer peer = newer.agent.add_peer(older.agent.card().value()).value();
  const LocalRange here = newer.region.range(0, 64);
  const RemoteRange there = peer.range("older", 0, 64);
  const Plan plan = newer.agent.plan_write(peer, std::span(&here, 1), std::span(&there, 1)).value();
  const Instant begun = now();
  Transfer sent = plan.submit().value();
  EXPECT_TRUE(names_both(sent.wait(kPatience), kUpgradePeer));
  EXPECT_TRUE(names_both(peer.connect(kPatience), kUpgradePeer));
  EXPECT_TRUE(names_both(plan.submit().error(), kUpgradePeer));
  EXPECT_LT(now() - begun, 4s) << "it was tried again and again";
  EXPECT_EQ(peer.state(), PeerState::kDown);
}

INSTANTIATE_TEST_SUITE_P(Over, Ages, testing::Values("tcp", "shm"), [](const auto& each) { return each.param; });

TEST(AgesAtAnAddress, ARefusalNamesBothRanges) {
  Node older("older", tcp(), {2, 2});
  Node newer("newer", tcp(), {3, 3});
  EXPECT_TRUE(names_both(older.agent.find_peer("newer@" + newer.address(), kPatience).error(), kUpgradeThis));
  EXPECT_TRUE(names_both(newer.agent.find_peer("older@" + older.address(), kPatience).error(), kUpgradePeer));
}

}  // namespace
}  // namespace hawser::real
