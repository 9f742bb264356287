#include "proto/link_set.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/bytes.h"

namespace hawser::proto {
namespace {

constexpr Priority kUrgent = Priority::kCritical, kUsual = Priority::kRealtime, kBulk = Priority::kBulk;

bool push(LinkSet& links, Priority priority, std::string_view text) {
  return links.out(priority).push(base::as_bytes(text), {});
}

// In the order in which a path with room for everything would take them.
std::string drain(LinkSet& links) {
  std::string all;
  while (const auto priority = links.first_pending()) {
    all += std::string(base::as_text(links.out(*priority).pending())) + ' ';
    links.sent(*priority);
  }
  return all;
}

TEST(LinkSet, EachClassCountsForItself) {
  LinkSet links;
  EXPECT_EQ(links.next(kBulk), (wire::Place{.priority = kBulk, .seq = 1}));
  ASSERT_TRUE(push(links, kBulk, "b1"));
  ASSERT_TRUE(push(links, kBulk, "b2"));
  EXPECT_EQ(links.next(kBulk).seq, 3u);
  EXPECT_EQ(links.next(kUsual).seq, 1u);
  EXPECT_EQ(links.next(kUrgent).seq, 1u);
  EXPECT_EQ(links.kept(), 2u);
  EXPECT_EQ(links.on_ack({.priority = kUsual, .up_to = 1}).code(), Code::kCorrupt);
  EXPECT_TRUE(links.on_ack({.priority = kBulk, .up_to = 1}).ok());
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
  EXPECT_EQ(links.first_pending(), kBulk);
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
  EXPECT_TRUE(links.replay_from({0, 2, 1}).ok());
  EXPECT_EQ(drain(links), "c1 b2 b3 ");
  EXPECT_EQ(links.replay_from({0, 3, 1}).code(), Code::kCorrupt);
  EXPECT_EQ(links.on_received({2, 2, 1}).code(), Code::kCorrupt);
  EXPECT_TRUE(links.on_received({1, 2, 3}).ok());
  EXPECT_EQ(links.kept(), 0u);
}

TEST(LinkSet, SaysWhatItHasOfEach) {
  LinkSet links;
  EXPECT_EQ(links.in(kBulk).on_receive(1, 10), Received::kDeliver);
  EXPECT_EQ(links.in(kBulk).on_receive(2, 10), Received::kDeliver);
  EXPECT_EQ(links.in(kUsual).on_receive(2, 10), Received::kGap);
  EXPECT_EQ(links.in(kUsual).on_receive(1, 10), Received::kDeliver);
  EXPECT_EQ(links.received(), (LinkSet::Numbers{0, 1, 2}));
  EXPECT_EQ(links.ack_due(true), kUsual);
  EXPECT_EQ(links.ack_due(false), std::nullopt);
  links.in(kUsual).take_ack();
  EXPECT_EQ(links.ack_due(true), kBulk);
  links.in(kBulk).take_ack();
  EXPECT_EQ(links.ack_due(true), std::nullopt);
}

}  // namespace
}  // namespace hawser::proto
