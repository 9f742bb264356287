#pragma once

// Agents and peers for tests of what the compat layer keeps of them: over loopback alone, so nothing connects.
//
// Thread rule: one thread. Lifetime: a card's views end with the next call of its agent's `card`.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/inner_peers.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "base/bytes.h"
#include "wire/card.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// An agent of its own memory. `born` orders the incarnations of a name.
struct TestAgent {
  explicit TestAgent(const std::string& name, std::uint64_t born = 1)
      : agent(std::move(agent::open_with({.name = name, .status_page = "off"}, {backend::loopback_factory()},
                                         {.pause = {}, .wall = [born] { return born; }})
                            .value())) {}

  std::uint64_t address(std::size_t offset = 0) const {
    return reinterpret_cast<std::uintptr_t>(memory.data()) + offset;
  }
  wire::Card card() {
    bytes.clear();
    const Status status = agent::inner::append_card(agent, &bytes);
    EXPECT_TRUE(status.ok()) << status.to_string();
    return wire::decode_card(base::as_bytes(bytes)).value();
  }
  /// The other one, as a peer of this agent's.
  Peer peer(TestAgent& other) const { return agent::inner::take_anew(agent, other.card()).value(); }

  std::vector<std::byte> memory = std::vector<std::byte>(4096);
  std::string bytes;
  hawser::Agent agent;
};

}  // namespace compat
HAWSER_NAMESPACE_END
