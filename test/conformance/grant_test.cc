// Grants and unlisted regions: told to nobody, used as any region, ended by expiry, by revoking, by closing and by use.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/atomic.h>

#include "agent_suite.h"
#include "base/bytes.h"
#include "wire/grant.h"

namespace hawser::conformance {
namespace {

constexpr std::byte kGrantCanary{0xcb};
constexpr std::size_t kGrantArea = 64 * 1024;
constexpr std::size_t kGrantPart = 4096;  // Where a granted part begins, and how long it is.
constexpr Duration kLong = std::chrono::hours(1);

Result<Plan> plan_into(Agent& agent, const Area& source, const GrantedRegion& target) {
  return agent.plan_write(target.peer(), {{source.range(0, target.size())}}, {{target.whole()}});
}

/// Bytes of a grant as somebody who changes them would have them.
std::string forged_grant(std::string_view bytes, const std::function<void(wire::Grant&)>& change) {
  wire::Grant grant = must(wire::decode_grant(base::as_bytes(bytes)));
  change(grant);
  return must(wire::encode(grant));
}

/// A transfer by a grant that has ended.
testing::AssertionResult is_ended(const Status& status) { return says(status, Code::kDenied, {"grant", "has ended"}); }

TEST_P(Conformance, AnUnlistedRegionIsToldToNobody) {
  open_pair();
  Peer peer = meet();
  std::vector<std::byte> memory(kGrantArea);
  const std::string card = must(b().card());
  const std::uint64_t revision = b().card_revision();
  Region hidden = must(b().add_region({.name = "hidden", .bytes = memory, .listed = false}));
  Region namesake = must(b().allocate({.name = "hidden", .size = 4096, .listed = false}));
  EXPECT_FALSE(hidden.listed());
  EXPECT_EQ(must(b().card()), card);
  EXPECT_TRUE(says(b().partial_card({{hidden.index()}}).error(), Code::kNotFound, {"no region"}));
  pass(20);
  const std::vector<std::string> names = peer.region_names();
  EXPECT_TRUE(std::ranges::none_of(names, [](const std::string& name) { return name == "hidden"; }));
  EXPECT_EQ(peer.region("hidden").error().code(), Code::kNotFound);
  EXPECT_EQ(b().self().region("hidden").error().code(), Code::kNotFound);
  EXPECT_TRUE(b().self().region(hidden.index())) << "its own agent may name it by number";
  Region listed = must(b().allocate({.name = "hidden", .size = 4096}));
  EXPECT_EQ(b().card_revision(), revision + 1) << "names of unlisted regions take none away";
  env().blocking(b(), [&] {
    must(hidden.close(kPatience));
    must(namesake.close(kPatience));
  });
  EXPECT_EQ(b().card_revision(), revision + 1);
  EXPECT_TRUE(b().self().region("hidden")) << "and closing one leaves the listed one its name";
  EXPECT_EQ(b().add_region({.name = "hidden", .bytes = memory}).error().code(), Code::kInvalid);
  EXPECT_EQ(b().add_region({.name = std::string(256, 'n'), .bytes = memory, .listed = false}).error().code(),
            Code::kInvalid);
}

TEST_P(Conformance, AnUnlistedRegionIsUsedByItsAgent) {
  open_pair();
  Area target = add(b(), "target", kGrantArea);
  const Peer peer = meet();
  std::vector<std::byte> memory(kGrantArea);
  Region source = must(a().add_region({.bytes = memory, .listed = false}));
  fill(memory, 3);
  must(run(must(a().plan_write(peer, {{source.range(0, kGrantArea)}}, {{peer.range("target", 0, kGrantArea)}}))));
  EXPECT_TRUE(holds(target.bytes, 3));
  env().blocking(a(), [&] { must(source.close(kPatience)); });
}

TEST_P(Conformance, AGrantIsUsedAsARegion) {
  open_pair();
  Area target = add(b(), "target", kGrantArea), source = add(a(), "source", kGrantArea);
  meet();
  std::ranges::fill(target.bytes, kGrantCanary);
  const std::uint64_t revision = b().card_revision();
  const Grant grant = must(target.region.grant(kGrantPart, kGrantPart, Rights::kReadWrite, kLong));
  EXPECT_LE(grant.bytes().size(), kGrantBytesMax);
  EXPECT_EQ(b().card_revision(), revision);
  EXPECT_FALSE(grant.ended());
  const GrantedRegion granted = must(a().import_grant(grant.bytes()));
  EXPECT_EQ(granted.size(), kGrantPart);
  EXPECT_EQ(granted.rights(), Rights::kReadWrite);
  EXPECT_EQ(granted.name(), "target");
  EXPECT_EQ(granted.peer().name(), b().name());
  fill(source.bytes, 5);
  must(run(must(plan_into(a(), source, granted)), {.notify = "there"}));
  EXPECT_EQ(next_notification(b()).text, "there");
  EXPECT_TRUE(holds(target.bytes.subspan(kGrantPart, kGrantPart), 5));
  EXPECT_TRUE(all_are(target.bytes.first(kGrantPart), kGrantCanary));
  EXPECT_TRUE(all_are(target.bytes.subspan(2 * kGrantPart), kGrantCanary));
  // By tables, and back.
  const RangeTable blocks = granted.table(1024), ours = source.region.table(1024);
  EXPECT_EQ(blocks.size(), 4u);
  std::ranges::fill(source.bytes, std::byte{0});
  must(run(must(a().plan_read(granted.peer(), blocks, {{0, 1, 2, 3}}, ours, {{0, 1, 2, 3}}))));
  EXPECT_TRUE(holds(source.bytes.first(kGrantPart), 5));
  const GrantedRegion again = must(granted.peer().import_grant(grant.bytes()));
  must(run(must(plan_into(a(), source, again))));
  env().blocking(b(), [&] { must(grant.revoke(kPatience)); });
  EXPECT_TRUE(grant.ended());
  must(run(must(a().plan_write(granted.peer(), {{source.range(0, 8)}}, {{a_to_b().range("target", 0, 8)}}))));
}

TEST_P(Conformance, AGrantGivesItsRightsAndItsBytesOnly) {
  open_pair();
  Area target = add(b(), "target", kGrantArea), source = add(a(), "source", kGrantArea);
  meet();
  const Grant grant = must(target.region.grant(0, kGrantPart, Rights::kRead, kLong));
  const GrantedRegion granted = must(a().import_grant(grant.bytes()));
  EXPECT_TRUE(says(plan_into(a(), source, granted).error(), Code::kDenied,
                   {"no right to write", "ask its owner for a grant with that right"}));
  const std::vector<LocalRange> ours = {source.range(0, kGrantPart)};
  EXPECT_FALSE(a().plan_read(granted.peer(), {{granted.range(1, kGrantPart)}}, ours));
  must(run(must(a().plan_read(granted.peer(), {{granted.whole()}}, ours))));
  if (self()) return;  // What follows, an agent would have to do to itself.
  std::ranges::fill(target.bytes, kGrantCanary);
  // Somebody who writes himself more rights, or more bytes, than he was given.
  const std::string forged = forged_grant(grant.bytes(), [](wire::Grant& its) {
    its.rights = Rights::kReadWrite;
    its.size = kGrantArea;
  });
  Agent* const thief = open(options("thief"));
  Area loot = add(*thief, "loot", kGrantArea);
  know(*thief, b());
  const GrantedRegion more = must(thief->import_grant(forged));
  const Status written = run(must(plan_into(*thief, loot, more)));
  EXPECT_FALSE(written.ok());
  EXPECT_TRUE(all_are(target.bytes, kGrantCanary));
}

TEST_P(Conformance, ARevokedGrantIsUntouched) {
  open_pair();
  constexpr std::size_t kSize = 4 << 20;
  Area source = add(a(), "source", kSize), target = add(b(), "target", 2 * kSize);
  meet();
  for (const int moments : {0, 1, 2, 4, 7, 11}) {
    const Grant grant = must(target.region.grant(kSize, kSize, Rights::kWrite, kLong));
    const GrantedRegion granted = must(a().import_grant(grant.bytes()));
    const Plan plan = must(plan_into(a(), source, granted));
    std::vector<Transfer> all;
    for (int i = 0; i < 3; ++i) all.push_back(must(plan.submit()));
    pass(moments);
    Status revoked;
    env().blocking(b(), [&] { revoked = grant.revoke(kPatience); });
    must(revoked);
    std::ranges::fill(target.bytes, kGrantCanary);
    for (Transfer& each : all) {
      const Status status = finish(each);
      EXPECT_TRUE(status.ok() || is_ended(status)) << status.to_string();
    }
    EXPECT_TRUE(is_ended(run(plan)));
    pass(10);
    ASSERT_TRUE(all_are(target.bytes, kGrantCanary)) << moments;
    env().blocking(b(), [&] { must(grant.revoke(0s)); });
  }
}

TEST_P(Conformance, AGrantExpires) {
  open_pair();
  Area target = add(b(), "target", kGrantArea), source = add(a(), "source", kGrantArea);
  meet();
  const Grant kept = must(target.region.grant(0, kGrantPart, Rights::kWrite, Duration::max()));
  const Grant grant = must(target.region.grant(0, kGrantPart, Rights::kWrite, 200ms));
  const GrantedRegion granted = must(a().import_grant(grant.bytes()));
  const Plan plan = must(plan_into(a(), source, granted));
  EXPECT_FALSE(grant.ended());
  ASSERT_TRUE(env().eventually([&] { return grant.ended(); }));
  std::ranges::fill(target.bytes, kGrantCanary);
  EXPECT_TRUE(is_ended(run(plan)));
  EXPECT_TRUE(all_are(target.bytes, kGrantCanary));
  const Instant late = env().now() + 201ms;
  ASSERT_TRUE(env().eventually([&] { return env().now() > late; }));
  EXPECT_TRUE(says(plan_into(a(), source, granted).error(), Code::kDenied,
                   {"plan_write", "has ended: its time is over", "it was for 200 ms"}));
  EXPECT_FALSE(kept.ended());
  must(run(must(plan_into(a(), source, must(a().import_grant(kept.bytes()))))));
}

TEST_P(Conformance, AGrantForAPeerServesNoOther) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area target = add(b(), "target", kGrantArea), source = add(a(), "source", kGrantArea);
  meet();
  const Peer holder = b_to_a();
  const Result<Grant> made = target.region.grant(0, kGrantPart, Rights::kWrite, kLong, {.peer = holder});
  if (backend() == "verbs" || is_plugin()) {
    EXPECT_TRUE(says(made.error(), Code::kUnsupported, {"knows which peer", "open tcp, quic or shm"}));
    return;
  }
  const Grant grant = must(made);
  must(run(must(plan_into(a(), source, must(a().import_grant(grant.bytes()))))));
  std::ranges::fill(target.bytes, kGrantCanary);
  Agent* const thief = open(options("thief"));
  Area loot = add(*thief, "loot", kGrantArea);
  know(*thief, b());
  EXPECT_TRUE(says(thief->import_grant(grant.bytes()).error(), Code::kDenied,
                   {"for another agent than 'thief'", "a grant of your own"}));
  const std::string forged = forged_grant(grant.bytes(), [](wire::Grant& its) { its.holder = {}; });
  EXPECT_TRUE(is_ended(run(must(plan_into(*thief, loot, must(thief->import_grant(forged)))))));
  EXPECT_TRUE(all_are(target.bytes, kGrantCanary));
  must(run(must(plan_into(a(), source, must(a().import_grant(grant.bytes()))))));
}

TEST_P(Conformance, AGrantForOneTransferEndsWithIt) {
  open_pair();
  Area target = add(b(), "target", kGrantArea), source = add(a(), "source", kGrantArea);
  meet();
  const Grant grant =
      must(target.region.grant(kGrantPart, kGrantPart, Rights::kReadWrite, kLong, {.single_use = true}));
  const GrantedRegion granted = must(a().import_grant(grant.bytes()));
  EXPECT_TRUE(granted.single_use());
  const Plan plan = must(plan_into(a(), source, granted));
  EXPECT_FALSE(grant.ended());
  fill(source.bytes, 7);
  must(run(plan, {.notify = "there"}));
  EXPECT_TRUE(holds(target.bytes.subspan(kGrantPart, kGrantPart), 7));
  EXPECT_TRUE(says(run(plan), Code::kDenied, {"is for one transfer, and has had it", "another grant"}));
  ASSERT_TRUE(env().eventually([&] { return grant.ended(); }));
  EXPECT_EQ(next_notification(b()).text, "there");
  const SignalTarget signal{.word = granted.range(0, 8), .add = 1};
  EXPECT_EQ(plan.submit({.signal = &signal}).error().code(), Code::kInvalid);
  if (!GetParam().files) {
    EXPECT_TRUE(says(fetch_add(a(), granted.range(0, 8), 1).error(), Code::kInvalid, {"for one transfer"}));
  }
  if (self()) return;
  std::ranges::fill(target.bytes, kGrantCanary);
  Agent* const late = open(options("late"));
  Area loot = add(*late, "loot", kGrantArea);
  know(*late, b());
  EXPECT_TRUE(is_ended(run(must(plan_into(*late, loot, must(late->import_grant(grant.bytes())))))));
  EXPECT_TRUE(all_are(target.bytes, kGrantCanary));
}

TEST_P(Conformance, AGrantForOneIsUsedOnceHoweverOftenItIsImported) {
  open_pair();
  Area target = add(b(), "target", kGrantArea), source = add(a(), "source", kGrantArea);
  meet();
  for (int round = 0; round < 3; ++round) {
    const Grant grant = must(target.region.grant(0, kGrantPart, Rights::kWrite, kLong, {.single_use = true}));
    must(run(must(plan_into(a(), source, must(a().import_grant(grant.bytes()))))));
    // No handle of it is left here, and the owner may not know yet that it was used.
    const Status again = run(must(plan_into(a(), source, must(a().import_grant(grant.bytes())))));
    EXPECT_TRUE(says(again, Code::kDenied, {"is for one transfer, and has had it"})) << again.to_string();
    ASSERT_TRUE(env().eventually([&] { return grant.ended(); }));
  }
}

TEST_P(Conformance, AGrantForOneTransferOfOnePeerEndsWithIt) {
  HAWSER_NEEDS_TWO_AGENTS();
  if (backend() == "verbs" || is_plugin()) GTEST_SKIP() << "it keeps no grant for one peer";
  open_pair();
  Area target = add(b(), "target", kGrantArea), source = add(a(), "source", kGrantArea);
  meet();
  const GrantOptions options{.peer = b_to_a(), .single_use = true};
  for (int round = 0; round < 20; ++round) {
    const Grant grant = must(target.region.grant(0, kGrantPart, Rights::kWrite, kLong, options));
    fill(source.bytes, static_cast<unsigned char>(round));
    must(run(must(plan_into(a(), source, must(a().import_grant(grant.bytes()))))));
    ASSERT_TRUE(env().eventually([&] { return grant.ended(); }));
    EXPECT_TRUE(holds(target.bytes.first(kGrantPart), static_cast<unsigned char>(round)));
    std::ranges::fill(target.bytes, kGrantCanary);
    pass(3);
    ASSERT_TRUE(all_are(target.bytes, kGrantCanary));
  }
}

TEST_P(Conformance, ATransferThatFailedHasUsedItsGrant) {
  open_pair();
  Area target = add(b(), "target", kGrantArea), source = add(a(), "source", kGrantArea);
  meet();
  const Grant grant = must(target.region.grant(0, kGrantPart, Rights::kWrite, kLong, {.single_use = true}));
  const Plan plan = must(plan_into(a(), source, must(a().import_grant(grant.bytes()))));
  Transfer sent = must(plan.submit());
  sent.cancel();
  (void)finish(sent);
  EXPECT_EQ(run(plan).code(), Code::kDenied);
  EXPECT_TRUE(env().eventually([&] { return grant.ended(); }));
}

TEST_P(Conformance, TheTargetServesOneTransferOfAGrantForOne) {
  HAWSER_NEEDS_TWO_AGENTS();
  const bool reports = backend() == "shm" || backend() == "verbs" || is_plugin();
  if (reports) GTEST_SKIP() << "its target sees no transfers: the holder reports";
  open_pair();
  Area target = add(b(), "target", kGrantArea), source = add(a(), "source", kGrantArea);
  meet();
  Agent* const thief = open(options("thief"));
  Area loot = add(*thief, "loot", kGrantArea);
  know(*thief, b());
  const Grant grant = must(target.region.grant(0, kGrantPart, Rights::kWrite, kLong, {.single_use = true}));
  // This one never says that it is done, and begins a second transfer.
  const std::string forged = forged_grant(grant.bytes(), [](wire::Grant& its) { its.single_use = false; });
  const Plan plan = must(plan_into(*thief, loot, must(thief->import_grant(forged))));
  must(run(plan));
  std::ranges::fill(target.bytes, kGrantCanary);
  EXPECT_TRUE(is_ended(run(plan)));
  EXPECT_TRUE(is_ended(run(must(plan_into(a(), source, must(a().import_grant(forged)))))));
  EXPECT_TRUE(all_are(target.bytes, kGrantCanary));
}

TEST_P(Conformance, ClosingARegionEndsItsGrants) {
  open_pair();
  Area source = add(a(), "source", kGrantArea);
  meet();
  Area target = add(b(), "target", kGrantArea);
  std::vector<Grant> grants;
  for (int i = 0; i < 100; ++i) grants.push_back(must(target.region.grant(0, kGrantPart, Rights::kWrite, kLong)));
  const Plan plan = must(plan_into(a(), source, must(a().import_grant(grants[42].bytes()))));
  must(run(plan));
  const Grant brief = must(target.region.grant(0, kGrantPart, Rights::kWrite, 1ms));
  ASSERT_TRUE(env().eventually([&] { return brief.ended(); }));
  env().blocking(b(), [&] { must(target.region.close(kPatience)); });
  std::ranges::fill(target.bytes, kGrantCanary);
  for (const Grant& grant : grants) EXPECT_TRUE(grant.ended());
  EXPECT_TRUE(is_ended(run(plan)));
  EXPECT_TRUE(all_are(target.bytes, kGrantCanary));
  env().blocking(b(), [&] { must(grants[0].revoke(kPatience)); });
  EXPECT_TRUE(says(target.region.grant(0, 8, Rights::kWrite, kLong).error(), Code::kInvalid, {"grant", "closed"}));
}

TEST_P(Conformance, ADroppedRegionEndsItsGrants) {
  open_pair();
  Area source = add(a(), "source", kGrantArea);
  meet();
  Area target = add(b(), "target", kGrantArea);
  const Grant grant = must(target.region.grant(0, kGrantPart, Rights::kWrite, kLong));
  const Plan plan = must(plan_into(a(), source, must(a().import_grant(grant.bytes()))));
  must(run(plan));
  target.region = Region();
  EXPECT_TRUE(env().eventually([&] { return grant.ended(); }));
  EXPECT_TRUE(is_ended(run(plan)));
}

TEST_P(Conformance, BoundsOfGrants) {
  AgentOptions few = options(self() ? "a" : "b");
  few.limits.grants = 2;
  if (self()) {
    open_pair(few, few);
  } else {
    open_pair(options("a"), few);
  }
  Area target = add(b(), "target", kGrantArea, Rights::kWrite);
  const auto refused = [&](std::uint64_t offset, std::uint64_t size, Rights rights, Duration expiry) {
    return target.region.grant(offset, size, rights, expiry).error();
  };
  EXPECT_TRUE(says(refused(kGrantArea - 7, 8, Rights::kWrite, kLong), Code::kInvalid, {"leave the region", "target"}));
  EXPECT_TRUE(says(refused(0, 0, Rights::kWrite, kLong), Code::kInvalid, {"no bytes"}));
  EXPECT_EQ(refused(UINT64_MAX, 2, Rights::kWrite, kLong).code(), Code::kInvalid);
  EXPECT_TRUE(says(refused(0, 8, Rights::kNone, kLong), Code::kInvalid, {"right"}));
  EXPECT_TRUE(says(refused(0, 8, Rights::kRead, kLong), Code::kDenied, {"does not give the right to read"}));
  EXPECT_TRUE(says(refused(0, 8, Rights::kWrite, 0s), Code::kInvalid, {"expiry of 0 ns"}));
  EXPECT_TRUE(says(Region().grant(0, 8, Rights::kRead, kLong).error(), Code::kInvalid, {"empty"}));
  const Grant last = must(target.region.grant(kGrantArea - 8, 8, Rights::kWrite, kLong));
  const Grant second = must(target.region.grant(0, kGrantArea, Rights::kWrite, kLong));
  EXPECT_TRUE(says(refused(0, 8, Rights::kWrite, kLong), Code::kBusy, {"limits.grants = 2", "revoke some"}));
  env().blocking(b(), [&] { must(last.revoke(kPatience)); });
  const Grant third = must(target.region.grant(0, 8, Rights::kWrite, kLong));
  EXPECT_EQ(refused(0, 8, Rights::kWrite, kLong).code(), Code::kBusy);
  EXPECT_TRUE(says(Grant().revoke(0s), Code::kInvalid, {"empty"}));
  EXPECT_TRUE(Grant().ended());
  EXPECT_EQ(b().counters().grants_gauge, 2u);
  EXPECT_EQ(b().counters().regions_gauge, 1u) << "a grant is no further region of the user's";
}

TEST_P(Conformance, GrantsOfOthersAreRefused) {
  open_pair();
  Area target = add(b(), "target", kGrantArea);
  meet();
  const Grant grant = must(target.region.grant(0, kGrantPart, Rights::kWrite, kLong));
  EXPECT_TRUE(says(a().import_grant("no grant").error(), Code::kCorrupt, {"grant"}));
  std::string damaged(grant.bytes());
  damaged[20] = static_cast<char>(damaged[20] ^ 1);
  EXPECT_TRUE(says(a().import_grant(damaged).error(), Code::kCorrupt, {"checksum"}));
  const std::string unknown = forged_grant(grant.bytes(), [](wire::Grant& its) { its.owner.hi ^= 1; });
  EXPECT_TRUE(says(a().import_grant(unknown).error(), Code::kNotFound, {"does not know", "find or add that peer"}));
  EXPECT_TRUE(says(a_to_b().import_grant(unknown).error(), Code::kNotFound, {"another incarnation"}));
  EXPECT_TRUE(says(Peer().import_grant(grant.bytes()).error(), Code::kInvalid, {"empty"}));
  EXPECT_EQ(GrantedRegion().size(), 0u);
  EXPECT_FALSE(GrantedRegion().table(8).status().ok());
  if (self()) return;
  EXPECT_TRUE(
      says(a().self().import_grant(grant.bytes()).error(), Code::kNotFound, {"made by agent 'b'", "not by 'a'"}));
  EXPECT_TRUE(says(target.region.grant(0, 8, Rights::kWrite, kLong, {.peer = a_to_b()}).error(), Code::kInvalid,
                   {"known to another agent"}));
  const Peer gone = a_to_b();
  must(a().invalidate(gone));
  EXPECT_EQ(gone.import_grant(grant.bytes()).error().code(), Code::kDisconnected);
  EXPECT_EQ(a().import_grant(grant.bytes()).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace hawser::conformance
