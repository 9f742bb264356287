#pragma once

// For tests of who comes in: a port that listens, ports that open paths to it, and strangers who speak by hand, over a
// network in memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "backend/stream/handshake.h"
#include "backend/stream/memory_network.h"
#include "backend/stream/port.h"
#include "base/bytes.h"

namespace hawser::backend::stream {

inline constexpr base::Id128 kTestSecret = {0x1111, 0x2222};

/// 32 bytes, as a key has.
inline std::string key_of(char fill) { return std::string(32, fill); }
inline std::array<std::byte, 32> public_key_of(char fill) {
  std::array<std::byte, 32> key;
  key.fill(static_cast<std::byte>(fill));
  return key;
}

struct TestAgent {
  TestAgent(MemorySwitch& network, const std::string& name, Security security, base::Id128 secret,
            identity::Authenticator* authenticator = nullptr)
      : regions(16) {
    identity.name = name;
    identity.incarnation = {name.size(), static_cast<std::uint64_t>(name[0])};
    identity.born = 77;
    identity.driven = true;
    identity.admission = secret;
    context =
        std::make_unique<Context>(Context{.identity = identity,
                                          .regions = regions,
                                          .log = log,
                                          .rng = base::Rng(name.size() * 256 + static_cast<std::uint64_t>(name[0])),
                                          .security = security,
                                          .heartbeat = std::chrono::milliseconds(250),
                                          .clock = Clock::steady(),
                                          .authenticator = authenticator});
    port = make_port(*context, {.backend = "memory", .connections = 2}, std::make_unique<MemoryNetwork>(network, name));
  }
  void collect(Instant now) {
    port->turn(now, TurnBudget{});
    std::array<PortEvent, 16> events;
    for (std::size_t count = port->poll(events); count > 0; count = port->poll(events)) {
      for (std::size_t i = 0; i < count; ++i) {
        if (events[i].kind == PortEvent::Kind::kPathUp) ups.push_back(events[i].peer->name);
        if (events[i].kind == PortEvent::Kind::kPathDown) down.push_back(events[i].status);
        if (events[i].kind == PortEvent::Kind::kMessage) ++messages;
      }
    }
  }

  Identity identity;
  RegionTable regions;
  base::Logger log;
  std::unique_ptr<Context> context;
  std::unique_ptr<Port> port;
  std::vector<std::string> ups;
  std::vector<Status> down;
  int messages = 0;
};

/// An owner that listens, and whoever comes.
struct Admitting : ::testing::Test {
  void open_owner(Security security = Security::kDefault) {
    const base::Id128 secret = security == Security::kNone ? base::Id128{} : kTestSecret;
    owner.reset();  // Its listener goes with it.
    owner = std::make_unique<TestAgent>(network, "owner", security, secret);
  }
  Path* open(TestAgent& from, base::Id128 secret = {}, base::Id128 incarnation = {}) {
    const PathTarget target = {.peer = "owner",
                               .incarnation = incarnation,
                               .address = "owner",
                               .supersedes = {},
                               .deadline = now + std::chrono::seconds(1),
                               .admission = secret};
    return from.port->open_path(target, now).value();
  }
  /// Its greeting, as an agent sends it as soon as its path is up.
  static void greet(Path* path) {
    ASSERT_TRUE(path->send(Priority::kRealtime, base::as_bytes(std::string_view("welcome")), {}));
  }
  void run(Duration time, Duration step = std::chrono::microseconds(10)) {
    for (const Instant end = now + time; now < end; now = now + step) {
      owner->collect(now);
      for (TestAgent* each : others) each->collect(now);
    }
  }
  std::unique_ptr<TestAgent> agent(const std::string& name, Security security = Security::kDefault) {
    auto made = std::make_unique<TestAgent>(network, name, security, base::Id128{5, 6});
    others.push_back(made.get());
    return made;
  }
  /// Somebody who speaks by hand.
  std::unique_ptr<Handshake> knock() { return std::make_unique<Handshake>(*hand.connect("owner"), wire::Versions()); }
  wire::Hello hello(wire::Admission how = wire::Admission::kNone) const {
    wire::Hello hello;
    hello.name = "stranger";
    hello.incarnation = {8, 8};
    hello.session = base::random_id128();
    hello.token = {7, 7};
    hello.admission = how;
    return hello;
  }
  /// Says it and hears the answer.
  std::unique_ptr<Handshake> say(const wire::Hello& what) {
    auto shake = knock();
    shake->say(what);
    for (int i = 0; i < 1000 && shake->turn().ok() && !shake->heard(); ++i) run(std::chrono::microseconds(10));
    return shake;
  }
  bool is_closed(Handshake& shake) {
    run(std::chrono::microseconds(100));
    std::array<std::byte, 64> bytes;
    const iovec part = {bytes.data(), bytes.size()};
    return shake.stream().receive({&part, 1}).closed;
  }

  MemorySwitch network;
  MemoryNetwork hand{network, "hand"};
  std::unique_ptr<TestAgent> owner;
  std::vector<TestAgent*> others;
  Instant now = Instant::from_ns(1000000);
};

}  // namespace hawser::backend::stream
