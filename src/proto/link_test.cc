#include "proto/link.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "base/bytes.h"
#include "base/rng.h"

namespace hawser::proto {
namespace {

std::string text(std::span<const std::byte> bytes) { return std::string(base::as_text(bytes)); }
bool push(LinkSender& sender, std::string_view head, std::string_view body = {}) {
  return sender.push(base::as_bytes(head), base::as_bytes(body));
}
// What a path that has room for everything would take now.
std::string drain(LinkSender& sender) {
  std::string all;
  while (!sender.pending().empty()) {
    all += text(sender.pending()) + ' ';
    sender.sent();
  }
  return all;
}

TEST(LinkSender, KeepsMessagesUntilTheyAreAcknowledged) {
  LinkSender sender;
  EXPECT_EQ(sender.next_seq(), 1u);
  EXPECT_TRUE(push(sender, "a", "1"));
  EXPECT_TRUE(push(sender, "b"));
  EXPECT_EQ(sender.next_seq(), 3u);
  EXPECT_EQ(drain(sender), "a1 b ");
  EXPECT_EQ(sender.kept(), 2u);
  EXPECT_TRUE(sender.on_ack(1).ok());
  EXPECT_EQ(sender.kept(), 1u);
  EXPECT_TRUE(sender.on_ack(1).ok());
  EXPECT_TRUE(sender.on_ack(0).ok());
  EXPECT_EQ(sender.kept(), 1u);
  EXPECT_TRUE(sender.on_ack(2).ok());
  EXPECT_EQ(sender.kept(), 0u);
  EXPECT_EQ(sender.on_ack(3).code(), Code::kCorrupt);
}

TEST(LinkSender, ShowsWhatItKeeps) {
  LinkSender sender;
  const auto kept = [&sender] {
    std::string all;
    sender.each_kept([&all](std::span<const std::byte> message) { all += text(message) + ' '; });
    return all;
  };
  EXPECT_EQ(kept(), "");
  const std::string long_one(300, 'x');
  for (int round = 0; round < 20; ++round) {  // Around the ring.
    ASSERT_TRUE(push(sender, "a", "1"));
    ASSERT_TRUE(push(sender, long_one));
    ASSERT_TRUE(push(sender, "c"));
    EXPECT_EQ(kept(), "a1 " + long_one + " c ") << round;
    sender.sent();
    EXPECT_EQ(kept(), "a1 " + long_one + " c ") << "sent is not acknowledged";
    drain(sender);
    ASSERT_TRUE(sender.on_ack(sender.next_seq() - 3).ok());
    EXPECT_EQ(kept(), long_one + " c ");
    EXPECT_EQ(sender.acknowledged(), sender.next_seq() - 3);
    ASSERT_TRUE(sender.on_ack(sender.next_seq() - 1).ok());
    EXPECT_EQ(kept(), "");
  }
}

TEST(LinkSender, ReplaysWhatThePeerHasNotSeen) {
  LinkSender sender;
  for (const char* message : {"a", "b", "c", "d"}) ASSERT_TRUE(push(sender, message));
  sender.sent();
  sender.sent();
  sender.sent();
  EXPECT_EQ(text(sender.pending()), "d");
  EXPECT_TRUE(sender.replay_from(1).ok());
  EXPECT_EQ(drain(sender), "b c d ");
  EXPECT_TRUE(sender.replay_from(2).ok());
  EXPECT_EQ(drain(sender), "c d ");
  EXPECT_EQ(sender.replay_from(5).code(), Code::kCorrupt);
  EXPECT_TRUE(sender.replay_from(1).ok());  // an old Welcome: b was acknowledged since
  EXPECT_EQ(drain(sender), "c d ");
  EXPECT_TRUE(sender.replay_from(4).ok());
  EXPECT_EQ(drain(sender), "");
}

TEST(LinkSender, AnAckOverAnotherPathCoversWhatIsStillPending) {
  LinkSender sender;
  for (const char* message : {"a", "b", "c"}) ASSERT_TRUE(push(sender, message));
  EXPECT_EQ(drain(sender), "a b c ");
  EXPECT_TRUE(sender.replay_from(0).ok());  // the new path's Welcome was written before the old path delivered
  sender.sent();
  EXPECT_TRUE(sender.on_ack(2).ok());
  EXPECT_EQ(drain(sender), "c ");
}

TEST(LinkSender, ALosslessPathKeepsNothing) {
  LinkSender sender;
  EXPECT_FALSE(sender.can_pass());
  sender.set_lossless(true);
  ASSERT_TRUE(sender.can_pass());
  sender.pass();
  EXPECT_EQ(sender.next_seq(), 2u);
  EXPECT_TRUE(push(sender, "b"));  // the path had no room
  EXPECT_FALSE(sender.can_pass());
  EXPECT_TRUE(push(sender, "c"));
  EXPECT_EQ(drain(sender), "b c ");
  EXPECT_TRUE(sender.can_pass());
  EXPECT_EQ(sender.kept(), 0u);
  EXPECT_EQ(sender.memory() > 0, true);
  sender.trim();
  EXPECT_EQ(sender.memory(), 0u);
  EXPECT_EQ(sender.replay_from(2).code(), Code::kDisconnected);
  EXPECT_TRUE(sender.replay_from(3).ok());
}

TEST(LinkSender, AChangeToALosslessPathReplaysFirst) {
  LinkSender sender;
  ASSERT_TRUE(push(sender, "a"));
  ASSERT_TRUE(push(sender, "b"));
  EXPECT_EQ(drain(sender), "a b ");
  sender.set_lossless(true);
  EXPECT_FALSE(sender.can_pass());
  EXPECT_TRUE(sender.replay_from(1).ok());
  EXPECT_EQ(drain(sender), "b ");
  EXPECT_TRUE(sender.can_pass());
  sender.pass();
  sender.set_lossless(false);
  EXPECT_TRUE(push(sender, "d"));
  EXPECT_EQ(sender.next_seq(), 5u);
  EXPECT_TRUE(sender.replay_from(3).ok());
  EXPECT_EQ(drain(sender), "d ");
}

Messages messages(std::initializer_list<std::string_view> texts) {
  Messages all;
  for (const std::string_view each : texts) {
    const auto bytes = base::as_bytes(each);
    all.emplace_back(bytes.begin(), bytes.end());
  }
  return all;
}

TEST(LinkSender, WhatALostPathHeldIsKeptAgain) {
  LinkSender sender;
  sender.set_lossless(true);
  for (int i = 0; i < 3; ++i) sender.pass();  // a, b, c
  EXPECT_TRUE(push(sender, "d"));             // the path had no room
  EXPECT_FALSE(sender.keep_again(1, messages({"a", "b"}))) << "c is missing";
  EXPECT_FALSE(sender.keep_again(2, messages({"b", "c", "d"}))) << "d is kept";
  EXPECT_FALSE(sender.keep_again(1, messages({"b", "c"}))) << "no such numbers";
  EXPECT_EQ(sender.kept(), 1u);
  EXPECT_TRUE(sender.keep_again(2, messages({"b", "c"})));
  EXPECT_EQ(sender.kept(), 3u);
  EXPECT_EQ(text(sender.pending()), "d") << "the others were sent";
  sender.set_lossless(false);
  EXPECT_EQ(sender.replay_from(0).code(), Code::kDisconnected) << "the peer has not got a";
  EXPECT_TRUE(sender.replay_from(2).ok()) << "it took b meanwhile";
  EXPECT_EQ(drain(sender), "c d ");
  EXPECT_TRUE(sender.replay_from(2).ok()) << "the next path is lost, too";
  EXPECT_EQ(drain(sender), "c d ");
  EXPECT_TRUE(sender.on_ack(4).ok());
  EXPECT_EQ(sender.kept(), 0u);
}

TEST(LinkSender, WhatIsKeptAgainMayPassBoundsAndNothingElse) {
  LinkSender sender({.count = 100, .bytes = 1000});
  sender.set_lossless(true);
  sender.pass(), sender.pass();
  const std::string big(700, 'x');
  ASSERT_TRUE(push(sender, big));
  ASSERT_TRUE(sender.keep_again(1, messages({big, big})));
  EXPECT_FALSE(push(sender, "more"));
  ASSERT_TRUE(sender.replay_from(0).ok());
  sender.sent(), sender.sent();
  EXPECT_EQ(sender.kept(), 1u) << "the next path without loss has two";
  EXPECT_FALSE(push(sender, big)) << "beside the last one";
  EXPECT_TRUE(push(sender, "more"));
  EXPECT_EQ(drain(sender), big + " more ");
}

// Paths come and go, some without loss. A peer takes what it gets and gets each message once and in order.
TEST(LinkSender, OverPathsOfAllKindsThePeerGetsAll) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    LinkSender sender({.count = 64, .bytes = 4000});
    std::deque<std::string> path;  // What the peer has not taken of it.
    std::uint64_t number = 0, received = 0, taken_as = 0;
    bool is_lossless = false;
    const auto message = [](std::uint64_t of) { return std::to_string(of) + std::string(of * 37 % 300, '.'); };
    const auto take = [&] {  // The front of the path is message taken_as + 1.
      const std::string expected = message(++taken_as);
      ASSERT_EQ(path.front(), expected);
      path.pop_front();
      received = std::max(received, taken_as);
    };
    for (int round = 0; round < 2000; ++round) {
      const std::uint64_t what = rng.below(20);
      if (what < 8) {
        const std::string next = message(number + 1);
        if (sender.can_pass() && path.size() < 5) {
          path.push_back(next);
          sender.pass(), ++number;
        } else if (push(sender, next)) {
          ++number;
        }
      } else if (what < 14) {
        if (sender.pending().empty() || path.size() >= 5) continue;
        path.push_back(text(sender.pending()));
        sender.sent();
      } else if (what < 18) {
        if (!path.empty()) take();
        if (!is_lossless && rng.chance(0.5)) {
          ASSERT_TRUE(sender.on_ack(received).ok());
        }
      } else if (rng.chance(0.3)) {
        if (is_lossless && !path.empty()) {
          Messages held;
          for (const std::string& each : path)
            held.emplace_back(base::as_bytes(each).begin(), base::as_bytes(each).end());
          // Those that this path sent again the peer may have taken from an earlier one, and told so.
          ASSERT_TRUE(sender.keep_again(taken_as + 1, held));
        }
        while (is_lossless && !path.empty() && rng.chance(0.5)) take();  // It reads on.
        path.clear();
        is_lossless = rng.chance(0.6);
        sender.set_lossless(is_lossless);
        ASSERT_TRUE(sender.replay_from(received).ok());
        taken_as = received;
      }
    }
    while (!path.empty() || !sender.pending().empty()) {
      if (!path.empty()) {
        take();
        continue;
      }
      path.push_back(text(sender.pending()));
      sender.sent();
    }
    EXPECT_EQ(received, number);
    EXPECT_GT(number, 100u);
  }
}

TEST(LinkSender, BoundsAreBusy) {
  LinkSender few({.count = 2, .bytes = 1000});
  EXPECT_TRUE(push(few, "a"));
  EXPECT_TRUE(push(few, "b"));
  EXPECT_FALSE(push(few, "c"));
  EXPECT_EQ(few.next_seq(), 3u);
  EXPECT_TRUE(few.on_ack(1).ok());
  EXPECT_TRUE(push(few, "c"));
  LinkSender small({.count = 100, .bytes = 1000});
  const std::string big(996, 'x');
  EXPECT_FALSE(push(small, big, "y"));
  EXPECT_TRUE(push(small, big));  // the whole ring
  EXPECT_FALSE(push(small, ""));
  EXPECT_TRUE(small.on_ack(1).ok());
  EXPECT_TRUE(push(small, big));
}

TEST(LinkSender, TrimLeavesWhatIsKept) {
  LinkSender sender;
  ASSERT_TRUE(push(sender, "a"));
  sender.trim();
  EXPECT_EQ(drain(sender), "a ");
  EXPECT_TRUE(sender.on_ack(1).ok());
  sender.trim();
  EXPECT_EQ(sender.memory(), 0u);
  ASSERT_TRUE(push(sender, "b"));
  EXPECT_EQ(drain(sender), "b ");
}

// The ring against a plain queue, over sizes that make it wrap, grow and fill in every way.
TEST(LinkSender, AgreesWithAModel) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    base::Rng rng(seed);
    LinkSender sender({.count = 64, .bytes = 2000 + static_cast<std::uint32_t>(rng.below(3000))});
    std::deque<std::string> kept;
    std::uint64_t first = 1, next = 1, cursor = 1;
    for (int round = 0; round < 3000; ++round) {
      const std::uint64_t what = rng.below(10);
      if (what < 4) {
        const std::string message(1 + static_cast<std::size_t>(rng.below(rng.chance(0.1) ? 1900 : 100)),
                                  static_cast<char>('a' + rng.below(26)));
        const auto split = static_cast<std::size_t>(rng.below(message.size() + 1));
        ASSERT_EQ(sender.next_seq(), next);
        const bool empty = kept.empty();
        const bool took =
            push(sender, std::string_view(message).substr(0, split), std::string_view(message).substr(split));
        ASSERT_TRUE(took || !empty);
        if (took) kept.push_back(message), ++next;
      } else if (what < 7) {
        ASSERT_EQ(text(sender.pending()), cursor < next ? kept[static_cast<std::size_t>(cursor - first)] : "");
        if (cursor < next) sender.sent(), ++cursor;
      } else if (what < 9) {
        const std::uint64_t up_to = first - 1 + rng.below(next - first + 1);
        ASSERT_TRUE(sender.on_ack(up_to).ok());
        for (; first <= up_to; ++first) kept.pop_front();
        cursor = std::max(cursor, first);
      } else if (rng.chance(0.2)) {
        const std::uint64_t received = first - 1 + rng.below(next - first + 1);
        ASSERT_TRUE(sender.replay_from(received).ok());
        for (; first <= received; ++first) kept.pop_front();
        cursor = first;
      } else {
        sender.trim();
      }
      ASSERT_EQ(sender.kept(), kept.size());
    }
  }
}

TEST(LinkSender, SteadyStateDoesNotGrow) {
  LinkSender sender;
  for (std::uint64_t i = 1; i <= 100000; ++i) {
    ASSERT_TRUE(push(sender, "head", "12345678"));
    sender.sent();
    ASSERT_TRUE(sender.on_ack(i - i % 16).ok());
  }
  EXPECT_LE(sender.memory(), 1024u);
}

TEST(LinkReceiver, DeliversInOrderOnce) {
  LinkReceiver receiver;
  EXPECT_EQ(receiver.on_receive(1, 10), Received::kDeliver);
  EXPECT_EQ(receiver.on_receive(1, 10), Received::kDuplicate);
  EXPECT_EQ(receiver.on_receive(2, 10), Received::kDeliver);
  EXPECT_EQ(receiver.on_receive(1, 10), Received::kDuplicate);
  EXPECT_EQ(receiver.on_receive(4, 10), Received::kGap);
  EXPECT_EQ(receiver.on_receive(3, 10), Received::kDeliver);
  EXPECT_EQ(receiver.on_receive(0, 10), Received::kDuplicate);
  EXPECT_EQ(receiver.on_receive(UINT64_MAX, 10), Received::kGap);
  EXPECT_EQ(receiver.received(), 3u);
}

TEST(LinkReceiver, AcknowledgesByCountByBytesAndWhenIdle) {
  LinkReceiver receiver;
  EXPECT_FALSE(receiver.ack_due(true));
  std::uint64_t seq = 0;
  for (std::uint32_t i = 1; i < kAckMessages; ++i) receiver.on_receive(++seq, 1);
  EXPECT_FALSE(receiver.ack_due(false));
  EXPECT_TRUE(receiver.ack_due(true));
  receiver.on_receive(++seq, 1);
  EXPECT_TRUE(receiver.ack_due(false));
  EXPECT_EQ(receiver.take_ack(), seq);
  EXPECT_FALSE(receiver.ack_due(true));
  receiver.on_receive(++seq, kAckBytes);
  EXPECT_TRUE(receiver.ack_due(false));
  receiver.take_ack();
  receiver.on_receive(1, 1);  // a duplicate is told again
  EXPECT_TRUE(receiver.ack_due(true));
  receiver.set_lossless(true);
  EXPECT_FALSE(receiver.ack_due(true));
}

TEST(LinkReceiver, AcknowledgesWhatCameOverAPathThatMayLose) {
  LinkReceiver receiver;
  EXPECT_EQ(receiver.on_receive(1, 10, true), Received::kDeliver);
  EXPECT_FALSE(receiver.ack_due(true));
  EXPECT_EQ(receiver.on_receive(2, 10, false), Received::kDeliver);
  EXPECT_TRUE(receiver.ack_due(true));
  EXPECT_EQ(receiver.take_ack(), 2u);
}

}  // namespace
}  // namespace hawser::proto
