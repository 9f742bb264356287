#pragma once

// An agent's worth of things around a tcp backend, for tests that talk to its port.
//
// Thread rule: one thread.

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/tcp/factory.h"
#include "base/id128.h"
#include "tls/key_pair.h"

namespace hawser::backend {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline Instant now() { return Clock::steady().now(); }

inline constexpr std::string_view kWelcome = "welcome";

/// An agent's worth of things around the backend, and what its port reported.
struct End {
  End(const std::string& name, const Params& params, Security security = Security::kDefault)
      : memory(4 << 20, std::byte{0xee}), regions(16) {
    identity.name = name;
    identity.public_key = keys.public_key();
    if (security != Security::kNone) identity.admission = base::random_id128();
    identity.incarnation = base::random_id128();
    identity.driven = true;
    context = std::make_unique<Context>(Context{.identity = identity,
                                                .regions = regions,
                                                .log = log,
                                                .rng = base::Rng(identity.incarnation.lo),
                                                .security = security,
                                                .heartbeat = milliseconds(100),
                                                .peer_timeout = milliseconds(1500),
                                                .clock = Clock::steady(),
                                                .keys = &keys});
    auto opened = tcp_factory().open(*context, params);
    status = opened.error();
    if (!opened) return;
    backend = *std::move(opened);
    port = backend->open_port().value();
    RegionEntry entry;
    entry.key = {1, 2};
    entry.base = memory.data();
    entry.size = memory.size();
    entry.rights = Rights::kReadWrite;
    region = regions.add(std::move(entry)).value();
  }
  void turn(Instant at) {
    port->turn(at, TurnBudget{});
    std::array<PortEvent, 16> events;
    for (std::size_t count = port->poll(events); count > 0; count = port->poll(events)) {
      for (std::size_t i = 0; i < count; ++i) note(events[i]);
    }
  }
  void note(const PortEvent& event) {
    if (event.kind == PortEvent::Kind::kChunkDone) done.push_back(event.status);
    if (event.kind == PortEvent::Kind::kMessage) {
      const std::string text(reinterpret_cast<const char*>(event.bytes.data()), event.bytes.size());
      if (text != kWelcome) messages.push_back(text);
    }
    if (event.kind == PortEvent::Kind::kPathUp) {
      up.push_back(event.path);
      // As an agent does: who says nothing behind its hello is told to nobody.
      if (!event.inbound && greets) {
        EXPECT_TRUE(event.path->send(Priority::kRealtime, std::as_bytes(std::span(kWelcome)), {}));
      }
    }
    if (event.kind == PortEvent::Kind::kPathSilent) ++silent;
    if (event.kind == PortEvent::Kind::kPathDown) down.push_back(event.status);
  }
  Path* open(std::string_view peer, std::string_view address, base::Id128 incarnation = {}) {
    PathTarget target;
    target.peer = peer;
    target.address = address;
    target.incarnation = incarnation;
    target.deadline = now() + seconds(5);
    auto path = port->open_path(target, now());
    return path ? *path : nullptr;
  }

  /// As its card tells it; `address` outlives it.
  PathTarget target(const std::string& address) const {
    PathTarget target;
    target.peer = identity.name;
    target.address = address;
    target.incarnation = identity.incarnation;
    target.deadline = now() + seconds(5);
    target.admission = identity.admission;
    target.public_key = identity.public_key;
    return target;
  }
  /// As an opener that has the card of `peer`.
  Path* open(const End& peer) {
    const std::string address = peer.backend->address();
    auto path = port->open_path(peer.target(address), now());
    return path ? *path : nullptr;
  }

  tls::KeyPair keys = tls::KeyPair::make();
  Identity identity;
  std::vector<std::byte> memory;
  RegionTable regions;
  base::Logger log;
  std::unique_ptr<Context> context;
  Status status;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Port> port;
  std::shared_ptr<const RegionEntry> region;
  int silent = 0;  ///< Paths on which the peer missed its heartbeats.
  std::vector<Status> done, down;
  std::vector<std::string> messages;
  std::vector<Path*> up;
  bool greets = true;  ///< False: the test says the first words itself, to an agent.
};

inline bool run(std::vector<End*> ends, const std::function<bool()>& finished, Duration patience = seconds(10)) {
  const Instant limit = now() + patience;
  while (!finished()) {
    if (now() >= limit) return false;
    for (End* end : ends) end->turn(now());
  }
  return true;
}

inline void send_text(Path* path, std::string_view text) {
  ASSERT_TRUE(path->send(Priority::kBulk, std::as_bytes(std::span(text.data(), text.size())), {}));
}

inline Binding* bind(Path* path, const End& target) {
  RemoteRegionRef ref;
  ref.index = target.region->index;
  ref.generation = target.region->generation;
  ref.key = target.region->key;
  return path->bind(ref).value();
}

inline Chunk chunk_of(Operation op, const Piece& piece, Binding* target) {
  Chunk chunk;
  chunk.op = op;
  chunk.transfer = 1;
  chunk.target = target;
  chunk.pieces = {&piece, 1};
  chunk.bytes = piece.size;
  return chunk;
}

}  // namespace hawser::backend
