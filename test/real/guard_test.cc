// Peers that were let in and turn against their owner, over real sockets and TLS: who takes another's name, incarnation
// or card, and who uses more than a quota. Another peer is served meanwhile.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <hawser/hawser.h>

#include "../must.h"
#include "tcp_end.h"
#include "wire/card.h"
#include "wire/session.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;
using backend::End;
using backend::run;

constexpr std::size_t kBytes = 32 << 20;

AgentOptions options_of(const std::string& name, const AgentLimits& limits = {}) {
  AgentOptions options{.name = name, .backends = {{"tcp", {{"listen", "127.0.0.1"}}}}};
  options.security = Security::kEncrypt;
  options.peer_timeout = 1s;
  options.driven = true;
  options.limits = limits;
  return options;
}

/// An agent that a driver runs, with a region of its own.
struct Driven {
  explicit Driven(const std::string& name, const AgentLimits& limits = {}, std::size_t regions = 1)
      : memory(kBytes, std::byte{0x5a}), agent(must(Agent::open(options_of(name, limits)))) {
    for (std::size_t i = 0; i < regions; ++i) {
      const RegionOptions region{.name = "kv" + std::to_string(i), .bytes = memory};
      held.push_back(must(agent.add_region(region)));
    }
    must(driver.attach(agent));
  }
  ~Driven() { must(agent.close(5s)); }

  Peer meet(const Driven& other) { return must(agent.add_peer(must(other.agent.card()))); }
  /// Reads `size` bytes of the peer's first region.
  Status read(const Peer& peer, std::size_t size) {
    const auto plan =
        agent.plan_read(peer, std::vector{peer.range("kv0", 0, size)}, std::vector{held[0].range(0, size)});
    if (!plan) return plan.error();
    auto sent = plan->submit();
    return sent ? sent->wait(10s) : sent.error();
  }
  std::uint64_t refusals(std::string_view quota) {
    for (const auto& [name, count] : agent.counters().quota_refusals) {
      if (name == quota) return count;
    }
    return 0;
  }

  std::vector<std::byte> memory;
  Agent agent;
  std::vector<Region> held;
  Driver driver = must(Driver::start());
};

bool says(const Status& status, std::string_view what) { return status.to_string().find(what) != std::string::npos; }

/// Where `end` opens its path to: the agent whose card this is.
backend::Path* open(End& end, const wire::Card& card) {
  const int tcp = card.find_backend("tcp");
  const std::string address = card.backends[static_cast<std::size_t>(tcp)].address;
  return must(end.port->open_path({.peer = card.name,
                                   .incarnation = card.incarnation,
                                   .address = address,
                                   .supersedes = {},
                                   .deadline = backend::now() + 5s,
                                   .admission = card.admission,
                                   .public_key = card.public_key},
                                  backend::now()));
}

wire::Card card_of(const Driven& driven) {
  static std::vector<std::string> kept;  // Behind the views.
  kept.push_back(must(driven.agent.card()));
  return must(wire::decode_card(std::as_bytes(std::span(kept.back()))));
}

/// As an agent that has just begun.
bool greet(backend::Path* path) {
  const std::string credits = wire::encode_credits({});
  std::array<std::byte, wire::kHeadMax> buffer;
  return path->send(Priority::kRealtime, wire::encode(wire::Welcome{.session = 5}, buffer),
                    std::as_bytes(std::span(credits)));
}

TEST(Guard, ANameBelongsToItsFirstKeyUntilThatIsDown) {
  Driven store("store");
  auto worker = std::make_unique<Driven>("worker");
  const Peer from_worker = worker->meet(store);
  must(from_worker.connect(5s));
  {
    Driven impostor("worker");
    const Status refused = impostor.meet(store).connect(3s);
    ASSERT_FALSE(refused.ok());
    EXPECT_TRUE(
        says(refused, "the name 'worker' is held by the live incarnation " + worker->agent.counters().incarnation))
        << refused.to_string();
    EXPECT_TRUE(says(refused, "take another name, or wait until it is down")) << refused.to_string();
    EXPECT_TRUE(worker->read(from_worker, 1 << 20).ok()) << "its holder is served meanwhile";
  }
  EXPECT_GE(store.refusals("name"), 1u);
  worker.reset();
  Driven successor("worker");
  const Peer again = successor.meet(store);
  EXPECT_TRUE(again.connect(5s).ok()) << "a restart under the name";
  EXPECT_TRUE(successor.read(again, 1 << 20).ok());
}

// Its own user told it of the second, as NIXL's clients do when they load the metadata of an agent that was restarted.
TEST(Guard, WhoseCardIsLoadedMayComeUnderATakenName) {
  Driven store("store"), worker("worker"), second("worker");
  must(worker.meet(store).connect(5s));
  store.meet(second);
  EXPECT_TRUE(second.meet(store).connect(5s).ok());
}

// An early restart waits: its tries go on until its predecessor is down.
TEST(Guard, ARestartThatComesTooEarlyComesInOnceItsPredecessorIsDown) {
  Driven store("store");
  auto worker = std::make_unique<Driven>("worker");
  must(worker->meet(store).connect(5s));
  Driven successor("worker");
  const Peer peer = successor.meet(store);
  EXPECT_FALSE(peer.connect(100ms).ok());
  worker.reset();
  EXPECT_TRUE(peer.connect(5s).ok());
}

TEST(Guard, NobodyTakesTheIncarnationOfAnother) {
  Driven store("store");
  const wire::Card card = card_of(store);
  End honest("honest", {}, Security::kEncrypt), thief("honest", {}, Security::kEncrypt);
  honest.greets = thief.greets = false;
  thief.identity.incarnation = honest.identity.incarnation;
  ASSERT_NE(open(honest, card), nullptr);
  ASSERT_TRUE(run({&honest}, [&] { return !honest.up.empty(); }));
  ASSERT_NE(open(thief, card), nullptr);
  ASSERT_TRUE(run({&honest, &thief}, [&] { return !thief.down.empty(); }));
  EXPECT_TRUE(says(thief.down[0], "belongs to another key")) << thief.down[0].to_string();
  EXPECT_TRUE(honest.down.empty());
}

// Its owner is not connected: what is known of it is its card.
TEST(Guard, NobodyTakesTheIncarnationThatACardGivesToAnother) {
  Driven store("store"), honest("honest");
  const Peer peer = store.meet(honest);
  End thief("honest", {}, Security::kEncrypt);
  thief.greets = false;
  thief.identity.incarnation = card_of(honest).incarnation;
  backend::Path* const path = open(thief, card_of(store));
  ASSERT_TRUE(run({&thief}, [&] { return !thief.up.empty(); }));
  ASSERT_TRUE(greet(path));
  ASSERT_TRUE(run({&thief}, [&] { return !thief.down.empty(); }));
  EXPECT_EQ(peer.state(), PeerState::kKnown);
  EXPECT_GE(store.refusals("name"), 1u);
  EXPECT_TRUE(peer.connect(5s).ok());
}

// P4 of the threat model: a peer sends the card of another, with its own address and key in it.
TEST(Guard, NobodyChangesTheCardOfAnother) {
  Driven store("store"), honest("honest");
  const Peer peer = store.meet(honest);
  ASSERT_EQ(peer.region_names(), std::vector<std::string>{"kv0"});
  End thief("thief", {}, Security::kEncrypt);
  thief.greets = false;
  backend::Path* const path = open(thief, card_of(store));
  ASSERT_TRUE(run({&thief}, [&] { return !thief.up.empty(); }));

  wire::Card forged = card_of(honest);
  forged.revision += 100;
  forged.regions.clear();
  forged.extras.clear();
  forged.public_key = thief.identity.public_key;
  const std::string bytes = must(wire::encode(forged));
  std::array<std::byte, wire::kHeadMax> buffer;
  ASSERT_TRUE(greet(path));
  const wire::CardPart part{.place = {.link = Priority::kBulk, .seq = 1},
                            .revision = forged.revision,
                            .total = static_cast<std::uint32_t>(bytes.size()),
                            .offset = 0,
                            .bytes = std::as_bytes(std::span(bytes))};
  ASSERT_TRUE(path->send(Priority::kRealtime, wire::encode(part, buffer), std::as_bytes(std::span(bytes))));
  ASSERT_TRUE(run({&thief}, [&] { return !thief.down.empty(); })) << "its session ends";
  EXPECT_EQ(peer.region_names(), std::vector<std::string>{"kv0"});
  EXPECT_TRUE(peer.connect(5s).ok()) << "its key is still known";
}

TEST(Guard, BytesBeyondTheQuotaAreRefusedAndAnotherPeerIsServed) {
  AgentLimits limits;
  limits.peer_bytes = 16 << 20;
  Driven store("store", limits), greedy("greedy"), modest("modest");
  const Peer wide = greedy.meet(store), narrow = modest.meet(store);
  must(wide.connect(5s));
  must(narrow.connect(5s));
  Status refused;
  for (int i = 0; i < 50 && refused.ok(); ++i) {
    refused = greedy.read(wide, kBytes);
    EXPECT_TRUE(modest.read(narrow, 1 << 20).ok());
  }
  EXPECT_EQ(refused.code(), Code::kBusy) << refused.to_string();
  EXPECT_TRUE(says(refused, "limits.peer_bytes = 16777216")) << refused.to_string();
  EXPECT_TRUE(says(refused, "HAWSER_LIMITS_PEER_BYTES")) << refused.to_string();
  // The store still sends what it had begun. A peer that asked again at once would fill its account anew each time, so
  // it pauses between its tries: for as long as another peer's reads take.
  Status less = greedy.read(wide, 8 << 20);
  for (const Instant limit = backend::now() + 30s; !less.ok() && backend::now() < limit;) {
    for (int i = 0; i < 32; ++i) ASSERT_TRUE(modest.read(narrow, 1 << 20).ok());
    less = greedy.read(wide, 8 << 20);
  }
  EXPECT_TRUE(less.ok()) << "the path stands, and less is served: " << less.to_string();
  EXPECT_GE(store.refusals("peer_bytes"), 1u);
}

TEST(Guard, ACardOfMoreRegionsThanTheQuotaEndsItsSession) {
  AgentLimits limits;
  limits.peer_regions = 2;
  Driven store("store", limits), fits("fits", {}, 2), large("large", {}, 3);
  EXPECT_FALSE(store.agent.add_peer(must(large.agent.card())));
  EXPECT_EQ(store.agent.add_peer(must(large.agent.card())).error().code(), Code::kBusy);
  EXPECT_TRUE(store.agent.add_peer(must(fits.agent.card())));
  const Peer peer = fits.meet(store);
  must(peer.connect(5s));
  EXPECT_TRUE(fits.read(peer, 1 << 20).ok());
}

// The card of a peer in session grows until it is too large.
TEST(Guard, ARegionBeyondTheQuotaEndsTheSessionThatTellsOfIt) {
  AgentLimits limits;
  limits.peer_regions = 2;
  Driven store("store", limits), grower("grower");
  const Peer to_grower = store.meet(grower), to_store = grower.meet(store);
  must(to_grower.connect(5s));
  must(to_store.connect(5s));
  const auto grow = [&] {
    const std::string name = "kv" + std::to_string(grower.held.size());
    grower.held.push_back(must(grower.agent.add_region({.name = name, .bytes = grower.memory})));
  };
  grow();
  for (const Instant limit = backend::now() + 5s; to_grower.region_names().size() < 2;) {
    ASSERT_LT(backend::now(), limit);
    store.agent.wait(1ms);
  }
  EXPECT_TRUE(grower.read(to_store, 1 << 20).ok()) << "two are within it";
  grow();
  for (const Instant limit = backend::now() + 5s; to_store.state() != PeerState::kDown;) {
    ASSERT_LT(backend::now(), limit);
    grower.agent.wait(1ms);
  }
  const Status refused = grower.read(to_store, 1 << 20);
  EXPECT_EQ(refused.code(), Code::kBusy) << refused.to_string();
  EXPECT_TRUE(says(refused, "keeps limits.peer_regions = 2")) << refused.to_string();
  EXPECT_EQ(store.refusals("peer_regions"), 1u);
}

TEST(Guard, WhoIsNotTakenInHearsOfTheLimit) {
  AgentLimits limits;
  limits.peers = 2;  // Itself, and one more.
  Driven store("store", limits), first("first"), second("second");
  const Peer taken = first.meet(store);
  must(taken.connect(5s));
  const Peer peer = second.meet(store);
  Status refused = peer.connect(5s);
  if (refused.ok()) refused = second.read(peer, 1 << 20);
  EXPECT_EQ(refused.code(), Code::kBusy) << refused.to_string();
  EXPECT_TRUE(says(refused, "limits.peers = 2")) << refused.to_string();
  EXPECT_GE(store.refusals("peers"), 1u);
  EXPECT_TRUE(first.read(taken, 1 << 20).ok());
}

}  // namespace
}  // namespace hawser
