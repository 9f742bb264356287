#include "proto/link_set.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/bytes.h"

namespace hawser::proto {
namespace {

constexpr Priority kUrgent = Priority::kCritical, kUsual = Priority::kRealtime, kBulk = Priority::kBulk;

constexpr wire::Link usual_on(std::uint32_t channel) { return {kUsual, channel}; }

bool push(LinkSet& links, wire::Link link, std::string_view text) { return links.push(link, base::as_bytes(text), {}); }

LinkSet::Numbers numbers(std::uint64_t urgent, std::uint64_t usual, std::uint64_t bulk) {
  LinkSet::Numbers all = {};
  all[wire::Link(kUrgent).index()] = urgent;
  all[wire::Link(kUsual).index()] = usual;
  all[wire::Link(kBulk).index()] = bulk;
  return all;
}

// In the order in which a path with room for everything would take them.
std::string drain(LinkSet& links) {
  std::string all;
  while (const auto link = links.first_pending()) {
    all += std::string(base::as_text(links.pending(*link))) + ' ';
    links.sent(*link);
  }
  return all;
}

TEST(LinkSet, EachClassCountsForItself) {
  LinkSet links;
  EXPECT_EQ(links.next(kBulk), (wire::Place{.link = kBulk, .seq = 1}));
  ASSERT_TRUE(push(links, kBulk, "b1"));
  ASSERT_TRUE(push(links, kBulk, "b2"));
  EXPECT_EQ(links.next(kBulk).seq, 3u);
  EXPECT_EQ(links.next(kUsual).seq, 1u);
  EXPECT_EQ(links.next(kUrgent).seq, 1u);
  EXPECT_EQ(links.kept(), 2u);
  EXPECT_EQ(links.on_ack({.link = kUsual, .up_to = 1}).code(), Code::kCorrupt);
  EXPECT_TRUE(links.on_ack({.link = kBulk, .up_to = 1}).ok());
  EXPECT_EQ(links.kept(), 1u);
}

TEST(LinkSet, TheMoreUrgentGoesFirst) {
  LinkSet links;
  ASSERT_TRUE(push(links, kBulk, "b1"));
  ASSERT_TRUE(push(links, kUsual, "r1"));
  ASSERT_TRUE(push(links, kBulk, "b2"));
  ASSERT_TRUE(push(links, kUrgent, "c1"));
  EXPECT_EQ(drain(links), "c1 r1 b1 b2 ");
}

TEST(LinkSet, PassesByWhatIsLessUrgentAlone) {
  LinkSet links;
  EXPECT_FALSE(links.can_pass(kUsual));  // It may lose messages.
  links.set_lossless(true);
  EXPECT_TRUE(links.can_pass(kBulk));
  ASSERT_TRUE(push(links, kUsual, "r1"));
  EXPECT_TRUE(links.can_pass(kUrgent));
  EXPECT_FALSE(links.can_pass(kUsual));
  EXPECT_FALSE(links.can_pass(kBulk));
  EXPECT_EQ(drain(links), "r1 ");
  EXPECT_TRUE(links.can_pass(kBulk));
}

TEST(LinkSet, NoneWaitsForEver) {
  LinkSet links;
  ASSERT_TRUE(push(links, kBulk, "b1"));
  std::uint32_t before = 0;
  for (; before < 2 * kOvertakingMax && links.out(kBulk).pending().size() > 0; ++before) {
    ASSERT_TRUE(push(links, kUsual, "r"));
    links.sent(*links.first_pending());
  }
  EXPECT_EQ(before, kOvertakingMax + 1);
}

TEST(LinkSet, WhatPassesOvertakesToo) {
  LinkSet links;
  links.set_lossless(true);
  ASSERT_TRUE(push(links, kBulk, "b1"));
  std::uint32_t passed = 0;
  for (; passed < 2 * kOvertakingMax && links.can_pass(kUrgent); ++passed) links.pass(kUrgent);
  EXPECT_EQ(passed, kOvertakingMax);
  EXPECT_EQ(links.first_pending(), wire::Link(kBulk));
  links.sent(kBulk);
  EXPECT_TRUE(links.can_pass(kUrgent));
}

TEST(LinkSet, AFullClassLeavesRoomForOthers) {
  LinkSet links;
  while (push(links, kBulk, "more")) continue;
  EXPECT_TRUE(push(links, kUrgent, "c1"));
  EXPECT_TRUE(push(links, kUsual, "r1"));
}

TEST(LinkSet, ReplaysOfEachClassWhatThePeerMisses) {
  LinkSet links;
  for (const std::string_view text : {"b1", "b2", "b3"}) ASSERT_TRUE(push(links, kBulk, text));
  for (const std::string_view text : {"r1", "r2"}) ASSERT_TRUE(push(links, kUsual, text));
  ASSERT_TRUE(push(links, kUrgent, "c1"));
  drain(links);
  EXPECT_TRUE(links.replay_from(numbers(0, 2, 1)).ok());
  EXPECT_EQ(drain(links), "c1 b2 b3 ");
  EXPECT_EQ(links.replay_from(numbers(0, 3, 1)).code(), Code::kCorrupt);
  EXPECT_EQ(links.on_received(numbers(2, 2, 1)).code(), Code::kCorrupt);
  EXPECT_TRUE(links.on_received(numbers(1, 2, 3)).ok());
  EXPECT_EQ(links.kept(), 0u);
}

TEST(LinkSet, SaysWhatItHasOfEach) {
  LinkSet links;
  EXPECT_EQ(links.on_receive({kBulk, 1}, 10), Received::kDeliver);
  EXPECT_EQ(links.on_receive({kBulk, 2}, 10), Received::kDeliver);
  EXPECT_EQ(links.on_receive({kUsual, 2}, 10), Received::kGap);
  EXPECT_EQ(links.on_receive({kUsual, 1}, 10), Received::kDeliver);
  EXPECT_EQ(links.received(), numbers(0, 1, 2));
  EXPECT_EQ(links.ack_due(true), wire::Link(kUsual));
  EXPECT_EQ(links.ack_due(false), std::nullopt);
  EXPECT_EQ(links.take_ack(kUsual), 1u);
  EXPECT_EQ(links.ack_due(true), wire::Link(kBulk));
  EXPECT_EQ(links.take_ack(kBulk), 2u);
  EXPECT_EQ(links.ack_due(true), std::nullopt);
  EXPECT_EQ(links.on_receive({kBulk, 2}, 10), Received::kDuplicate);
  EXPECT_EQ(links.ack_due(true), wire::Link(kBulk)) << "told again";
}

TEST(LinkSet, AnAcknowledgementIsDueOfTheLinkThatHasManyWhateverOthersOwe) {
  LinkSet links;
  links.on_receive({kUrgent, 1}, 10);
  for (std::uint64_t seq = 1; seq <= kAckMessages; ++seq) links.on_receive({usual_on(17), seq}, 10);
  EXPECT_EQ(links.ack_due(false), usual_on(17));
}

TEST(LinkSet, LinksOfOneClassTakeTurns) {
  LinkSet links;
  for (const std::string_view text : {"a1", "a2", "a3"}) ASSERT_TRUE(push(links, usual_on(16), text));
  for (const std::string_view text : {"b1", "b2"}) ASSERT_TRUE(push(links, usual_on(17), text));
  ASSERT_TRUE(push(links, usual_on(19), "d1"));
  EXPECT_EQ(links.next(usual_on(16)).seq, 4u);
  EXPECT_EQ(links.next(usual_on(17)).seq, 3u);
  EXPECT_EQ(drain(links), "a1 b1 d1 a2 b2 a3 ");
}

TEST(LinkSet, ALinkWithoutRoomLeavesTheOthersTheirTurn) {
  LinkSet links;
  ASSERT_TRUE(push(links, usual_on(16), "a1"));
  ASSERT_TRUE(push(links, usual_on(18), "c1"));
  ASSERT_TRUE(push(links, kBulk, "b1"));
  ASSERT_EQ(links.first_pending(), usual_on(16));
  LinkMask full = mask_of(usual_on(16));
  EXPECT_EQ(links.first_pending(full), usual_on(18));
  full |= mask_of(usual_on(18));
  EXPECT_EQ(links.first_pending(full), wire::Link(kBulk));
  EXPECT_EQ(links.first_pending(full | mask_of(kBulk)), std::nullopt);
}

TEST(LinkSet, WhatALostPathHeldWaitsBeforeTheLinksOwn) {
  LinkSet links;
  links.set_lossless(true);
  const wire::Link link = Priority::kBulk;
  links.pass(link);
  const auto bytes = base::as_bytes(std::string_view("first"));
  EXPECT_FALSE(links.keep_again({link, 2}, {{bytes.begin(), bytes.end()}}));
  EXPECT_FALSE(links.keeps_any());
  EXPECT_TRUE(links.keep_again({link, 1}, {{bytes.begin(), bytes.end()}}));
  EXPECT_TRUE(links.keeps_any());
  EXPECT_FALSE(links.can_pass(link)) << "it goes first";
  EXPECT_FALSE(links.first_pending()) << "it went";
  EXPECT_TRUE(links.replay_from({}).ok());
  ASSERT_EQ(links.first_pending(), link);
  EXPECT_EQ(base::as_text(links.pending(link)), "first");
}

TEST(LinkSet, ALinkReplaysItsOwnMessagesAlone) {
  LinkSet links;
  for (const std::string_view text : {"a1", "a2"}) ASSERT_TRUE(push(links, usual_on(16), text));
  for (const std::string_view text : {"b1", "b2"}) ASSERT_TRUE(push(links, usual_on(17), text));
  drain(links);
  LinkSet::Numbers received = {};
  received[usual_on(16).index()] = 2;
  received[usual_on(17).index()] = 1;
  EXPECT_TRUE(links.replay_from(received).ok());
  EXPECT_EQ(drain(links), "b2 ");
  EXPECT_TRUE(links.keeps_any());
  EXPECT_TRUE(links.on_ack({.link = usual_on(17), .up_to = 2}).ok());
  EXPECT_FALSE(links.keeps_any());
}

// A session has one, so that its links are small until they are used.
static_assert(sizeof(LinkSet) <= 600);

}  // namespace
}  // namespace hawser::proto
