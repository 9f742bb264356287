#include "wire/grant.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "wire/checksum.h"
#include "wire/test_bytes.h"

namespace hawser::wire {
namespace {

Grant plain() {
  Grant grant;
  grant.owner_name = "store";
  grant.owner = {1, 2};
  grant.key = {3, 4};
  grant.index = 7;
  grant.generation = 1;
  grant.size = 4096;
  grant.rights = Rights::kWrite;
  return grant;
}

Grant full() {
  Grant grant = plain();
  grant.holder = {5, 6};
  grant.lifetime_ms = 5000;
  grant.rights = Rights::kReadWrite;
  grant.single_use = true;
  grant.device = {.kind = DeviceKind::kCuda, .ordinal = 1};
  grant.region_name = "kv";
  grant.extras = {{"shm", "\x01"}, {"verbs", "abc"}};
  return grant;
}

void expect_round_trip(const Grant& grant) {
  const Result<std::string> bytes = encode(grant);
  ASSERT_TRUE(bytes) << bytes.error().to_string();
  const Result<Grant> got = decode_grant(base::as_bytes(*bytes));
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(got->owner_name, grant.owner_name);
  EXPECT_EQ(got->owner, grant.owner);
  EXPECT_EQ(got->holder, grant.holder);
  EXPECT_EQ(got->key, grant.key);
  EXPECT_EQ(got->index, grant.index);
  EXPECT_EQ(got->generation, grant.generation);
  EXPECT_EQ(got->size, grant.size);
  EXPECT_EQ(got->lifetime_ms, grant.lifetime_ms);
  EXPECT_EQ(got->rights, grant.rights);
  EXPECT_EQ(got->single_use, grant.single_use);
  EXPECT_EQ(got->device, grant.device);
  EXPECT_EQ(got->region_name, grant.region_name);
  EXPECT_EQ(got->extras, grant.extras);
  EXPECT_EQ(encode(*got).value(), *bytes) << "equal grants have equal bytes";
}

std::string mended(std::string bytes) {
  const std::size_t covered = bytes.size() - kChecksumSize;
  base::store_little_endian(bytes.data() + covered, checksum(base::as_bytes(bytes).first(covered)));
  return bytes;
}

TEST(WireGrant, Golden) {
  EXPECT_EQ(hex(encode(plain()).value()),
            "48574752010202000000000000000100000000000000040000000000000003000000000000000701"
            "8020000573746f72650000270d32fa9764868d");
  EXPECT_EQ(hex(encode(full()).value()),
            "48574752011f02000000000000000100000000000000060000000000000005000000000000000400"
            "000000000000030000000000000007018020882702010573746f7265026b76020373686d01010576"
            "6572627303616263da9c0a94f22fafea");
  GrantUsedBuffer buffer;
  EXPECT_EQ(hex(base::as_text(encode(GrantUsed{.index = 7, .generation = 1, .key = {3, 4}}, buffer))),
            "070000000100000004000000000000000300000000000000");
}

TEST(WireGrant, RoundTrips) {
  expect_round_trip(plain());
  expect_round_trip(full());
}

TEST(WireGrant, BoundsAtTheirValueAndOneBeyond) {
  const auto with = [](auto change) {
    Grant grant = plain();
    change(grant);
    return encode(grant);
  };
  EXPECT_TRUE(with([](Grant& its) { its.owner_name = std::string(255, 'a'); }));
  EXPECT_FALSE(with([](Grant& its) { its.owner_name = std::string(256, 'a'); }));
  EXPECT_FALSE(with([](Grant& its) { its.owner_name = ""; }));
  EXPECT_TRUE(with([](Grant& its) { its.region_name = std::string(255, 'a'); }));
  EXPECT_FALSE(with([](Grant& its) { its.region_name = std::string(256, 'a'); }));
  EXPECT_TRUE(with([](Grant& its) { its.lifetime_ms = kGrantLifetimeMax; }));
  EXPECT_FALSE(with([](Grant& its) { its.lifetime_ms = kGrantLifetimeMax + 1; }));
  EXPECT_TRUE(with([](Grant& its) { its.size = UINT64_MAX; }));
  EXPECT_FALSE(with([](Grant& its) { its.size = 0; }));
  EXPECT_FALSE(with([](Grant& its) { its.rights = Rights::kNone; }));
  EXPECT_TRUE(with([](Grant& its) { its.extras = {{"b", std::string(kGrantExtraMax, 'x')}}; }));
  EXPECT_FALSE(with([](Grant& its) { its.extras = {{"b", std::string(kGrantExtraMax + 1, 'x')}}; }));
  EXPECT_TRUE(with([](Grant& its) { its.extras.assign(kGrantExtrasMax, {"b", "x"}); }));
  EXPECT_FALSE(with([](Grant& its) { its.extras.assign(kGrantExtrasMax + 1, {"b", "x"}); }));
}

TEST(WireGrant, AllOfItIsBounded) {
  Grant grant = plain();
  grant.extras.assign(3, {"b", std::string(kGrantExtraMax, 'x')});
  grant.extras.push_back({"b", ""});
  const std::size_t room = kGrantSizeMax - encode(grant)->size();
  grant.extras.back().second.assign(room - 1, 'x');  // Its length takes two bytes then.
  const Result<std::string> largest = encode(grant);
  ASSERT_TRUE(largest) << largest.error().to_string();
  EXPECT_EQ(largest->size(), kGrantSizeMax);
  EXPECT_TRUE(decode_grant(base::as_bytes(*largest)));
  grant.extras.back().second += 'x';
  EXPECT_EQ(encode(grant).error().code(), Code::kInvalid);
  EXPECT_EQ(decode_grant(base::as_bytes(*largest + "x")).error().code(), Code::kCorrupt);
}

TEST(WireGrant, RefusesWhatItDoesNotWrite) {
  const std::string good = encode(full()).value();
  feed_every_cut(good, [](std::span<const std::byte> bytes) { EXPECT_FALSE(decode_grant(bytes)); });
  std::string newer = good;
  newer[4] = 2;
  EXPECT_EQ(decode_grant(base::as_bytes(mended(newer))).error().code(), Code::kUnsupported);
  std::string flags = good;
  flags[5] = 32;
  EXPECT_EQ(decode_grant(base::as_bytes(mended(flags))).error().code(), Code::kCorrupt);
  std::string nobody = good;
  nobody.replace(6 + 16, 16, 16, '\0');  // It says that it has a holder, and that is zero.
  EXPECT_EQ(decode_grant(base::as_bytes(mended(nobody))).error().code(), Code::kCorrupt);
  std::string longer = good;
  longer.insert(longer.size() - kChecksumSize, 1, 'x');
  EXPECT_EQ(decode_grant(base::as_bytes(mended(longer))).error().code(), Code::kCorrupt);
  feed_garbage(good, 2000, [](std::span<const std::byte> bytes) { (void)decode_grant(bytes); });
}

TEST(WireGrant, TheEndOfItsUse) {
  GrantUsedBuffer buffer;
  const std::string good(base::as_text(encode(GrantUsed{.index = 7, .generation = 1, .key = {3, 4}}, buffer)));
  const Result<GrantUsed> used = decode_grant_used(base::as_bytes(good));
  ASSERT_TRUE(used);
  EXPECT_EQ(used->index, 7u);
  EXPECT_EQ(used->generation, 1u);
  EXPECT_EQ(used->key, (base::Id128{3, 4}));
  feed_every_cut(good, [](std::span<const std::byte> bytes) { EXPECT_FALSE(decode_grant_used(bytes)); });
  EXPECT_FALSE(decode_grant_used(base::as_bytes(good + "x")));
}

}  // namespace
}  // namespace hawser::wire
