// Turning an agent step by step, and looking into its books, by the inner door for simulators.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include <hawser/hawser.h>

#include "agent/inner_simulator.h"
#include "agent/open.h"
#include "backend/tcp/factory.h"

namespace hawser::agent::inner {
namespace {

using namespace std::chrono_literals;

Agent open_polled(const std::string& name) {
  return open_with({.name = name, .backends = {tcp()}}, {backend::tcp_factory()}).value();
}

/// Turns both until `reached`.
template <typename Reached>
bool turn(const Agent& a, const Agent& b, Reached reached) {
  const Turner first(a), second(b);
  const Instant until = Clock::steady().now() + 10s;
  while (!reached()) {
    static_cast<void>(first.turn());
    static_cast<void>(second.turn());
    if (Clock::steady().now() > until) return false;
  }
  return true;
}

TEST(InnerSimulator, BooksTellOfASessionOnceThereIsOne) {
  Agent here = open_polled("here"), there = open_polled("there");
  const Peer peer = here.add_peer(there.card().value()).value();
  EXPECT_FALSE(books_with(here, there.incarnation()));
  ASSERT_TRUE(peer.notify("hello").ok());
  const auto is_quiet = [&] {
    const auto books = books_with(here, there.incarnation());
    return books && books->has_control && books->peer_number != 0 && books->leftovers.empty();
  };
  ASSERT_TRUE(turn(here, there, is_quiet));
  const auto out = books_with(here, there.incarnation());
  const auto in = books_with(there, here.incarnation(), &*out);
  ASSERT_TRUE(in);
  EXPECT_EQ(in->peer_number, out->number);
  EXPECT_TRUE(out->goes_best);
}

TEST(InnerSimulator, WhatIsNotAcknowledgedIsLeftOver) {
  Agent here = open_polled("here"), there = open_polled("there");
  const Peer peer = here.add_peer(there.card().value()).value();
  ASSERT_TRUE(peer.notify("hello").ok());
  const auto is_known = [&] {
    const auto books = books_with(here, there.incarnation());
    return books && !books->leftovers.empty();
  };
  EXPECT_TRUE(turn(here, here, is_known)) << "the other one is not turned";
}

TEST(InnerSimulator, AnEntryIsRegisteredUntilItsRegionIsClosed) {
  Agent agent = open_polled("agent");
  std::vector<std::byte> memory(64);
  Region region = agent.add_region({.name = "r", .bytes = memory}).value();
  const auto entry = entry_of(region);
  EXPECT_TRUE(is_registered(agent, entry));
  ASSERT_TRUE(region.close(5s).ok());
  EXPECT_FALSE(is_registered(agent, entry));
}

TEST(InnerSimulator, AnAgentThatIsLetGoIsNotClosed) {
  Agent agent = open_polled("agent");
  const Turner kept(agent);
  let_go(agent);
  Instant next = Instant::max();
  EXPECT_EQ(kept.turn(), 0u);
  if (kept.arm(&next)) kept.disarm();
  int calls = 0;
  kept.under_lane([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(InnerSimulator, AForgottenPeersSuccessorIsAnother) {
  Agent here = open_polled("here"), there = open_polled("there");
  const std::string card = there.card().value();
  const Peer first = here.add_peer(card).value();
  EXPECT_EQ(card_known(first).revision, card_known(here.add_peer(card).value()).revision);
  EXPECT_TRUE(is_same(first, here.add_peer(card).value()));
  ASSERT_TRUE(here.invalidate(first).ok());
  EXPECT_FALSE(is_same(first, here.add_peer(card).value()));
}

}  // namespace
}  // namespace hawser::agent::inner
