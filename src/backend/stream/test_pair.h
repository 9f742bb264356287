#pragma once

// For tests of stream ports: two ports over a MemoryNetwork, and what they reported.
//
// Thread rule: the test's thread.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/peer_guard.h"
#include "backend/stream/memory_network.h"
#include "backend/stream/port.h"
#include "base/bytes.h"

namespace hawser::backend::stream {

inline constexpr Duration kStep = std::chrono::microseconds(10);

/// An agent's worth of things around a port, and what the port reported.
struct Side {
  Side(MemorySwitch& network, const std::string& name, unsigned connections, std::uint64_t seed,
       const PeerQuotas& quotas = {})
      : memory(8 << 20, std::byte{0xee}), regions(1024) {
    identity.name = name;
    identity.incarnation = {seed, seed};
    identity.driven = true;
    context = std::make_unique<Context>(Context{.identity = identity,
                                                .regions = regions,
                                                .log = log,
                                                .rng = base::Rng(seed),
                                                .security = Security::kNone,
                                                .heartbeat = std::chrono::milliseconds(250),
                                                .clock = Clock::steady(),
                                                .guard = std::make_shared<PeerGuard>(quotas)});
    port = make_port(*context, {.backend = "memory", .connections = connections, .listen = name},
                     std::make_unique<MemoryNetwork>(network, name));
  }
  std::shared_ptr<const RegionEntry> add_region(Rights rights = Rights::kReadWrite) {
    RegionEntry entry;
    entry.key = {7, 9};
    entry.base = memory.data();
    entry.size = memory.size();
    entry.rights = rights;
    return *regions.add(std::move(entry));
  }
  void collect(Instant now) {
    port->turn(now, TurnBudget{});
    std::array<PortEvent, 16> events;
    for (std::size_t count = port->poll(events); count > 0; count = port->poll(events)) {
      for (std::size_t i = 0; i < count; ++i) note(events[i]);
    }
  }
  void note(const PortEvent& event) {
    switch (event.kind) {
      case PortEvent::Kind::kChunkDone:
        done.emplace_back(event.cookie, event.status);
        break;
      case PortEvent::Kind::kMessage:
        messages.emplace_back(reinterpret_cast<const char*>(event.bytes.data()), event.bytes.size());
        break;
      case PortEvent::Kind::kArrival:
        arrivals.emplace_back(event.transfer, event.chunk);
        break;
      case PortEvent::Kind::kRegions:
      case PortEvent::Kind::kUncounted:
        ADD_FAILURE() << "a stream counts all";
        break;
      case PortEvent::Kind::kPathUp:
        up = event.path;
        peer = event.peer->name;
        session = event.session;
        break;
      case PortEvent::Kind::kPathDown:
        down.push_back(event.status);
        refused = event.refused;
        break;
      case PortEvent::Kind::kPathSilent:
        silent.push_back(event.status);
        break;
      case PortEvent::Kind::kPathHeard:
        ++heard;
        break;
    }
  }

  Identity identity;
  std::vector<std::byte> memory;
  RegionTable regions;
  base::Logger log;
  std::unique_ptr<Context> context;
  std::unique_ptr<Port> port;
  std::vector<std::pair<std::uint64_t, Status>> done;
  std::vector<std::string> messages;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> arrivals;
  std::vector<Status> down, silent;
  int heard = 0;         ///< How often after a silence.
  bool refused = false;  ///< Of the last path that went down.
  std::string peer;
  base::Id128 session;
  Path* up = nullptr;
};

struct Pair {
  explicit Pair(unsigned connections = 2, std::uint64_t seed = 1, const PeerQuotas& quotas = {}) {
    network.rng = base::Rng(seed);
    a = std::make_unique<Side>(network, "a", connections, 11, quotas);
    b = std::make_unique<Side>(network, "b", connections, 22, quotas);
  }
  void connect() {
    to_b = open("b");
    run([&] { return a->up != nullptr; });
    ASSERT_EQ(a->up, to_b);
    ASSERT_EQ(b->up, nullptr) << "who said no more than a hello is told to nobody";
    ASSERT_TRUE(to_b->send(Priority::kRealtime, base::as_bytes(std::string_view("welcome")), {}));
    ASSERT_TRUE(run([&] { return b->up != nullptr && !b->messages.empty(); }));
    b->messages.clear();
    region = b->add_region();
    binding = bind(*region);
  }
  Path* open(std::string_view peer, base::Id128 incarnation = {}, base::Id128 supersedes = {}) {
    PathTarget target;
    target.peer = target.address = peer;
    target.incarnation = incarnation;
    target.supersedes = supersedes;
    target.deadline = now + std::chrono::seconds(1);
    auto path = (peer == "b" ? a : b)->port->open_path(target, now);
    EXPECT_TRUE(path.has_value());
    return *path;
  }
  Binding* bind(const RegionEntry& entry) {
    RemoteRegionRef ref;
    ref.index = entry.index;
    ref.generation = entry.generation;
    ref.key = entry.key;
    auto bound = to_b->bind(ref);
    EXPECT_TRUE(bound.has_value());
    return *bound;
  }
  void step() {
    a->collect(now);
    b->collect(now);
    now = now + kStep;
  }
  template <typename Done>
  bool run(Done&& finished, int turns = 200000) {
    for (int i = 0; i < turns; ++i) {
      if (finished()) return true;
      step();
    }
    return finished();
  }
  Chunk chunk(Operation op, std::span<const Piece> pieces, std::uint64_t cookie, bool covered = false) {
    std::uint64_t bytes = 0;
    for (const Piece& piece : pieces) bytes += piece.size;
    return {.op = op,
            .covered = covered,
            .index = static_cast<std::uint32_t>(cookie),
            .transfer = 100 + cookie,
            .cookie = cookie,
            .target = binding,
            .pieces = pieces,
            .bytes = bytes};
  }

  MemorySwitch network;
  std::unique_ptr<Side> a, b;
  Instant now = Instant::from_ns(1000000);
  Path* to_b = nullptr;
  std::shared_ptr<const RegionEntry> region;
  Binding* binding = nullptr;
  std::vector<Piece> kept;  ///< Of chunks that outlive their test's locals.
};

/// `count` sessions of a with b, over which `each` asks.
template <typename Each>
void open_many(Pair& pair, std::size_t count, Each&& each) {
  pair.connect();
  std::vector<Path*> paths = {pair.to_b};
  while (paths.size() < count) {
    paths.push_back(pair.open("b"));
    ASSERT_TRUE(pair.run([&] { return pair.a->up == paths.back(); }));
    // A session that says nothing has no place here for long.
    ASSERT_TRUE(paths.back()->send(Priority::kRealtime, base::as_bytes(std::string_view("welcome")), {}));
    ASSERT_TRUE(pair.run([&] { return !pair.b->messages.empty(); }));
    pair.b->messages.clear();
  }
  for (Path* path : paths) each(path);
}

/// For peers of which one has many sessions.
inline constexpr PeerQuotas kPlenty{.connections = 1000, .operations = 1u << 20, .bytes = 1ull << 40};

}  // namespace hawser::backend::stream
