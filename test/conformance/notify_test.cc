// Notifications: at most once, after the bytes they cover, with a place that was reserved.

#include <algorithm>
#include <set>

#include "agent_suite.h"

namespace hawser::conformance {
namespace {

TEST_P(Conformance, NotificationsComeAfterTheirBytes) {
  open_pair();
  constexpr std::size_t kSize = 700'001;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  for (int round = 0; round < 20; ++round) {
    fill(source.bytes, 100 + round);
    const std::string text = "round " + std::to_string(round);
    Transfer sent = must(plan.submit({.notify = text}));
    const Notification got = next_notification(b());
    ASSERT_TRUE(holds(target.bytes, 100 + round));  // At this moment, not later.
    EXPECT_EQ(got.text, text);
    EXPECT_EQ(got.peer.name(), a().name());
    EXPECT_EQ(got.peer.incarnation(), a().incarnation());
    must(finish(sent));
  }
}

TEST_P(Conformance, NotificationsFollowScatteredBytes) {
  open_pair();
  constexpr std::size_t kBlock = 1500, kCount = 1000;
  Area source = add(a(), "source", kBlock * kCount), target = add(b(), "target", 2 * kBlock * kCount);
  const Peer peer = a_to_b();
  std::vector<std::uint32_t> from, to;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    from.push_back(i);
    to.push_back(2 * i);
  }
  const Plan plan = must(a().plan_write(peer, source.region.table(kBlock), from, peer.table("target", kBlock), to));
  for (int round = 0; round < 5; ++round) {
    fill(source.bytes, 200 + round);
    Transfer sent = must(plan.submit({.notify = ""}));
    (void)next_notification(b());
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_TRUE(holds(target.bytes.subspan(2 * i * kBlock, kBlock), 200 + round, i * kBlock)) << i;
    }
    must(finish(sent));
  }
}

TEST_P(Conformance, NotificationsMayHoldAnyBytes) {
  open_pair();
  Area source = add(a(), "source", 64), target = add(b(), "target", 64);
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 64)}}, {{peer.range("target", 0, 64)}}));
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  std::string large(kMessageMax, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7 + i / 251);
  for (const std::string& text : {std::string(), std::string("\0", 1), all, large, std::string("x")}) {
    Transfer sent = submit_soon(plan, {.notify = text});
    EXPECT_EQ(next_notification(b()).text, text);
    must(finish(sent));
  }
  EXPECT_FALSE(b().take_notification());
}

TEST_P(Conformance, NoNotificationUnlessAskedFor) {
  open_pair();
  Area source = add(a(), "source", 64), target = add(b(), "target", 64);
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 64)}}, {{peer.range("target", 0, 64)}}));
  must(run(plan));
  must(run(plan, {.notify = "now"}));
  EXPECT_EQ(next_notification(b()).text, "now");
  pass(5);
  EXPECT_FALSE(b().take_notification());
}

TEST_P(Conformance, ReadsNotifyOnceTheyAreDone) {
  open_pair();
  constexpr std::size_t kSize = 900'000;
  Area target = add(a(), "target", kSize), source = add(b(), "source", kSize);
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_read(peer, {{peer.range("source", 0, kSize)}}, {{target.range(0, kSize)}}));
  for (int round = 0; round < 5; ++round) {
    fill(source.bytes, 300 + round);
    Transfer sent = must(plan.submit({.notify = "read"}));
    EXPECT_EQ(next_notification(b()).text, "read");
    // The source is free for other bytes now: all of it was read.
    fill(source.bytes, 1);
    must(finish(sent));
    ASSERT_TRUE(holds(target.bytes, 300 + round));
  }
}

TEST_P(Conformance, NotificationsStandAlone) {
  open_pair();
  const Peer to_b = a_to_b();
  const Peer to_a = b_to_a();
  must(to_b.notify("first"));
  must(to_b.notify(""));
  EXPECT_EQ(next_notification(b()).text, "first");
  EXPECT_EQ(next_notification(b()).text, "");
  must(to_a.notify("back"));
  const Notification back = next_notification(a());
  EXPECT_EQ(back.text, "back");
  EXPECT_EQ(back.peer.incarnation(), b().incarnation());
  const std::string large(kMessageMax + 1, 'x');
  EXPECT_TRUE(says(to_b.notify(large), Code::kInvalid, {"notify", "65537", "65536"}));
  EXPECT_TRUE(says(Peer().notify("x"), Code::kInvalid, {"notify", "empty"}));
}

TEST_P(Conformance, EachNotificationComesOnce) {
  open_pair();
  constexpr int kCount = 3000;
  Area source = add(a(), "source", 4096), target = add(b(), "target", 4096);
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 8)}}, {{peer.range("target", 0, 8)}}));
  std::multiset<std::string> seen;
  std::vector<Transfer> all;
  const auto collect = [&] {
    while (const auto got = b().take_notification()) seen.insert(got->text);
    return seen.size() == kCount;
  };
  for (int i = 0; i < kCount; ++i) {
    const std::string text = std::to_string(i);
    Result<Transfer> sent = plan.submit({.notify = text});
    while (!sent) {
      ASSERT_EQ(sent.error().code(), Code::kBusy) << sent.error().to_string();
      pass(1);
      collect();
      sent = plan.submit({.notify = text});
    }
    all.push_back(std::move(*sent));
  }
  EXPECT_TRUE(env().eventually(collect)) << seen.size();
  for (Transfer& each : all) must(finish(each));
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(seen.count(std::to_string(i)), 1U) << i;
  EXPECT_EQ(a().counters().total.notifications_sent, static_cast<std::uint64_t>(kCount));
  EXPECT_EQ(b().counters().total.notifications_received, static_cast<std::uint64_t>(kCount));
}

TEST_P(Conformance, SomeAreTakenAtOnce) {
  open_pair();
  const Peer peer = a_to_b();
  for (int i = 0; i < 10; ++i) must(peer.notify(std::to_string(i)));
  std::vector<Notification> out(4);
  std::vector<std::string> seen;
  EXPECT_TRUE(env().eventually([&] {
    const std::size_t taken = b().take_notifications(out);
    for (std::size_t i = 0; i < taken; ++i) seen.push_back(out[i].text);
    return seen.size() == 10;
  }));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(seen[i], std::to_string(i));
  EXPECT_EQ(b().take_notifications(out), 0U);
}

/// Notifies as long as there is room. The peer makes room in its own time, and a busy host may keep it from that for
/// long: goes on until `least` went, then until nothing has gone for a while. Returns how many went.
int fill_inbox(Environment& env, int least, const std::function<Status()>& notify) {
  int sent = 0;
  constexpr int kQuiet = 200, kTooMany = 100'000;
  const auto send = [&] {
    const Status status = notify();
    EXPECT_TRUE(status.ok() || says(status, Code::kBusy, {"inbox", "no room"}));
    sent += status.ok() ? 1 : 0;
    return status.ok();
  };
  EXPECT_TRUE(env.eventually([&] {
    while (sent < least && send()) {
    }
    return sent >= least;
  })) << sent
      << " went";
  for (int refused = 0; refused < kQuiet && sent < kTooMany;) {
    refused = send() ? 0 : refused + 1;
    if (refused > 0) env.pass();
  }
  return sent;
}

/// Whether the inbox comes to hold `bytes`: what was sent last may still be on its way.
bool holds_unread(Environment& env, const Agent& agent, std::uint64_t bytes) {
  return env.eventually([&] { return agent.counters().notification_bytes_gauge >= bytes; }) &&
         agent.counters().notification_bytes_gauge == bytes;
}

TEST_P(Conformance, AFullInboxIsBusyUntilItIsRead) {
  constexpr int kSent = 20;
  open_pair(options("a"), with_places("b", kSent));
  const Peer peer = a_to_b();
  EXPECT_EQ(fill_inbox(env(), kSent, [&] { return peer.notify(kPlace); }), kSent);
  EXPECT_TRUE(holds_unread(env(), b(), kSent * kPlaceCost));
  int taken = 0;
  EXPECT_TRUE(env().eventually([&] {
    while (b().take_notification()) ++taken;
    return taken == kSent;
  }));
  // The places are free again; the sender is told of each quarter of them.
  const int again = fill_inbox(env(), kSent - kSent / 4, [&] { return peer.notify(kPlace); });
  EXPECT_LE(again, kSent);
  EXPECT_TRUE(env().eventually([&] {
    while (b().take_notification()) ++taken;
    return taken == kSent + again;
  }));
  EXPECT_EQ(b().counters().notification_bytes_gauge, 0U);
}

TEST_P(Conformance, BytesOfTheInboxAreBoundedToo) {
  AgentOptions small = options("b");
  small.limits.notification_bytes = 128 * 1024;
  open_pair(options("a"), small);
  const Peer peer = a_to_b();
  const std::string text(60'000, 't');
  EXPECT_EQ(fill_inbox(env(), 2, [&] { return peer.notify(text); }), 2);
  EXPECT_EQ(next_notification(b()).text, text);
  EXPECT_TRUE(env().eventually([&] { return peer.notify(text).ok(); }));
}

// A target that is driven and reads nothing takes what fits in its peer's share, whatever the number.
TEST_P(Conformance, WhatNobodyReadsIsBoundedByTheShareAlone) {
  constexpr std::uint32_t kShare = 400'000, kCost = 64 + 6;
  AgentOptions small = options("b");
  small.limits.notification_bytes = kShare;
  open_pair(options("a"), small);
  const Peer peer = a_to_b();
  const int sent = fill_inbox(env(), kShare / kCost, [&] { return peer.notify("unread"); });
  EXPECT_EQ(sent, static_cast<int>(kShare / kCost));
  EXPECT_TRUE(holds_unread(env(), b(), sent * kCost));
  for (int i = 0; i < sent; ++i) ASSERT_EQ(next_notification(b()).text, "unread");
  EXPECT_EQ(b().counters().notification_bytes_gauge, 0U);
  EXPECT_TRUE(env().eventually([&] { return peer.notify(std::string(kMessageMax, 'l')).ok(); }));
}

// When all peers together filled the inbox, each may still have one of the largest size there.
TEST_P(Conformance, WhatAllPeersSendIsBoundedTogether) {
  if (self()) GTEST_SKIP() << "an agent is one peer of itself";
  constexpr std::uint32_t kTotal = 200'000, kLargest = kMessageMax + 64;
  AgentOptions small = options("b");
  small.limits.notification_bytes_total = kTotal;
  open_pair(options("a"), small);
  const std::array<Peer, 2> to_b = {a_to_b(), know(*open(options("c")), b())};
  constexpr std::array<int, 2> kLeast = {20, 13};  // The second gets that much though the first took what there was.
  std::array<int, 2> sent = {};
  for (std::size_t i = 0; i < to_b.size(); ++i) {
    sent[i] = fill_inbox(env(), kLeast[i], [&] { return to_b[i].notify(kPlace); });
  }
  const std::uint64_t held = (sent[0] + sent[1]) * std::uint64_t{kPlaceCost};
  EXPECT_TRUE(holds_unread(env(), b(), held));
  EXPECT_LE(held, kTotal + to_b.size() * std::uint64_t{kLargest});
  for (int i = 0; i < sent[0] + sent[1]; ++i) (void)next_notification(b());
  for (const Peer& peer : to_b) {
    EXPECT_TRUE(env().eventually([&] { return peer.notify(std::string(kMessageMax, 'l')).ok(); }));
  }
}

TEST_P(Conformance, AFullInboxStopsNothingElse) {
  open_pair(options("a"), with_places("b", 16));
  Area source = add(a(), "source", 300'000), target = add(b(), "target", 300'000);
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 300'000)}}, {{peer.range("target", 0, 300'000)}}));
  fill(source.bytes, 1);
  std::vector<Transfer> covered;
  const int sent = fill_inbox(env(), 16, [&] {
    Result<Transfer> one = plan.submit({.notify = kPlace});
    if (one) covered.push_back(std::move(*one));
    return one.error();
  });
  EXPECT_EQ(sent, 16);
  // Their places were reserved: they end although nobody reads.
  for (Transfer& each : covered) must(finish(each));
  must(run(plan));
  EXPECT_TRUE(holds(target.bytes, 1));
  for (int i = 0; i < sent; ++i) EXPECT_EQ(next_notification(b()).text, kPlace);
  must(finish(covered.emplace_back(submit_soon(plan, {.notify = "last"}))));
  EXPECT_EQ(next_notification(b()).text, "last");
}

TEST_P(Conformance, RoomIsToldToQueues) {
  open_pair(options("a"), with_places("b", 16));
  const Peer peer = a_to_b();
  CompletionQueue queue = must(a().make_queue(16));
  (void)fill_inbox(env(), 16, [&] { return peer.notify(kPlace); });
  std::array<Completion, 32> out;
  while (queue.poll(out) > 0) {
  }
  for (int i = 0; i < 16; ++i) (void)next_notification(b());
  bool room = false;
  EXPECT_TRUE(env().eventually([&] {
    const std::size_t count = queue.poll(out);
    for (std::size_t i = 0; i < count; ++i) room = room || out[i].kind == CompletionKind::kRoom;
    return room;
  }));
  must(peer.notify("again"));
}

TEST_P(Conformance, CancelledTransfersGiveTheirPlacesBack) {
  open_pair(options("a"), with_places("b", 16));
  constexpr std::size_t kSize = 4 << 20;
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}));
  int delivered = 0;
  // A reader that is late fills the inbox: it is emptied before each try.
  const auto submit = [&](std::string_view notify) {
    Transfer sent;
    EXPECT_TRUE(env().eventually([&] {
      while (b().take_notification()) ++delivered;
      Result<Transfer> submitted = plan.submit({.notify = notify});
      if (submitted) sent = *std::move(submitted);
      return submitted.has_value();
    }));
    return sent;
  };
  for (int round = 0; round < 60; ++round) {
    Transfer sent = submit(kPlace);
    pass(round % 5);
    sent.cancel();
    const Status status = finish(sent);
    EXPECT_TRUE(status.ok() || status.code() == Code::kCancelled) << status.to_string();
    while (b().take_notification()) ++delivered;
    EXPECT_LE(delivered, round + 1);
  }
  Transfer last = submit("last");
  EXPECT_TRUE(finish(last).ok());
  EXPECT_TRUE(env().eventually([&] {
    const auto got = b().take_notification();
    return got && got->text == "last";
  }));
}

}  // namespace
}  // namespace hawser::conformance
