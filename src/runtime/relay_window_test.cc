#include "runtime/relay_window.h"

#include <gtest/gtest.h>

#include <hawser/peer.h>

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/rng.h"
#include "wire/link.h"

namespace hawser::runtime {
namespace {

using Taken = RelayWindow::Taken;

Taken take(RelayWindow& window, const RelayWindow::Piece& piece) {
  return window.take(piece.sequence, piece.has_more, base::as_bytes(*piece.bytes));
}

TEST(RelayWindow, AMessageOfTheLargestSizeIsThreePieces) {
  RelayWindow from, to;
  const std::string body(wire::kOwnMessageMax - 4, 'b');
  ASSERT_EQ(from.push(base::as_bytes("head"), base::as_bytes(body)), 3U);
  EXPECT_EQ(take(to, from.unacknowledged()[0]), Taken::kPart);
  EXPECT_EQ(take(to, from.unacknowledged()[1]), Taken::kPart);
  EXPECT_EQ(take(to, from.unacknowledged()[2]), Taken::kWhole);
  EXPECT_EQ(to.message(), "head" + body);
}

TEST(RelayWindow, PiecesOfAMessageThatIsTooLongAreRefused) {
  RelayWindow to;
  const std::string piece(wire::kOwnMessageMax / 2, 'p');
  EXPECT_EQ(to.take(1, true, base::as_bytes(piece)), Taken::kPart);
  EXPECT_EQ(to.take(2, true, base::as_bytes(piece)), Taken::kPart);
  EXPECT_EQ(to.take(3, false, base::as_bytes("x")), Taken::kBad);
}

TEST(RelayWindow, RoomIsBoundedAndComesBack) {
  RelayWindow window;
  const std::string body(60'000, 'b');
  std::size_t messages = 0;
  for (; window.has_room(body.size()); ++messages) window.push({}, base::as_bytes(body));
  EXPECT_EQ(messages, kWindowBytes / body.size());
  EXPECT_FALSE(window.acknowledge(2 * messages + 1)) << "there was no such piece";
  EXPECT_TRUE(window.acknowledge(2));
  EXPECT_TRUE(window.has_room(body.size()));
  EXPECT_TRUE(window.acknowledge(1)) << "one that was overtaken says nothing new";
  RelayWindow small;
  messages = 0;
  for (; small.has_room(1); ++messages) small.push({}, base::as_bytes("s"));
  EXPECT_EQ(messages, kWindowPieces);
}

TEST(RelayWindow, AnAcknowledgementIsOwedInTime) {
  RelayWindow from, to;
  while (!to.owes()) {
    ASSERT_TRUE(from.has_room(10));
    from.push({}, base::as_bytes("ten bytes."));
    EXPECT_EQ(take(to, from.unacknowledged().back()), Taken::kWhole);
  }
  to.note_told();
  EXPECT_FALSE(to.owes());
  ASSERT_TRUE(from.acknowledge(to.received()));
  EXPECT_TRUE(from.unacknowledged().empty());
}

/// Whatever is lost, doubled or overtaken on the way: once all is sent again, each message came once and in order.
TEST(RelayWindow, WhatIsSentAgainComesOnceAndInOrder) {
  base::Rng rng(7);
  RelayWindow from, to;
  std::vector<std::string> sent, got;
  const auto deliver = [&](const RelayWindow::Piece& piece) {
    if (take(to, piece) == Taken::kWhole) got.push_back(to.message());
  };
  for (int round = 0; round < 2000; ++round) {
    std::string message(1 + rng.below(60'000), static_cast<char>('a' + rng.below(26)));
    if (from.has_room(message.size())) {
      from.push({}, base::as_bytes(message));
      sent.push_back(std::move(message));
    }
    const auto& kept = from.unacknowledged();
    for (int i = 0; i < 4; ++i) deliver(kept[static_cast<std::size_t>(rng.below(kept.size()))]);
    if (rng.chance(0.2)) {
      for (const RelayWindow::Piece& piece : std::vector(kept.begin(), kept.end())) deliver(piece);
      EXPECT_EQ(got, sent);
      ASSERT_TRUE(from.acknowledge(to.received()));
    }
  }
  EXPECT_GT(got.size(), 500U);
}

}  // namespace
}  // namespace hawser::runtime
