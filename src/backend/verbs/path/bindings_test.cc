#include "backend/verbs/path/bindings.h"

#include <gtest/gtest.h>

#include <string>

#include "backend/verbs/memory/region_keys.h"

namespace hawser::backend::verbs {
namespace {

constexpr base::Id128 kKey = {.hi = 1, .lo = 2};
const std::vector<RemoteKey> kOne = {{.iova = 0x1000, .rkey = 1}};
const std::vector<RemoteKey> kTwo = {{.iova = 0x1000, .rkey = 1}, {.iova = 0x1000, .rkey = 2}};

RemoteRegionRef region(std::uint32_t generation, std::string_view extra) {
  RemoteRegionRef ref;
  ref.index = 4;
  ref.generation = generation;
  ref.key = kKey;
  ref.size = 64;
  ref.rights = Rights::kRead;
  ref.extra = extra;
  return ref;
}

bool any(const VerbsBinding&) { return true; }

TEST(Bindings, ARegionIsBoundOnceForEachGeneration) {
  Bindings bindings;
  const std::string keys = encode_region_keys(kOne, kKey);
  const auto first = bindings.bind(region(1, keys), "b", any);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ((*first)->size, 64u);
  EXPECT_EQ((*first)->rights, Rights::kRead);
  EXPECT_TRUE((*first)->has_key(0));
  EXPECT_FALSE((*first)->has_key(1));
  EXPECT_EQ(*bindings.bind(region(1, keys), "b", any), *first);
  EXPECT_EQ(*bindings.bind(region(1, {}), "b", any), *first) << "a card that says nothing new";
  const auto second = bindings.bind(region(2, keys), "b", any);
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(*second, *first);
}

TEST(Bindings, KeysOfPortsThatCameLaterAreAdded) {
  Bindings bindings;
  VerbsBinding* const bound = *bindings.bind(region(1, encode_region_keys(kOne, kKey)), "b", any);
  EXPECT_EQ(*bindings.bind(region(1, encode_region_keys(kTwo, kKey)), "b", any), bound) << "plans hold it";
  EXPECT_TRUE(bound->has_key(1));
  EXPECT_EQ(*bindings.bind(region(1, encode_region_keys(kOne, kKey)), "b", any), bound);
  EXPECT_TRUE(bound->has_key(1)) << "an older card takes none away";
}

TEST(Bindings, WhatNoPortReachesIsRefusedAndMayBeBoundLater) {
  Bindings bindings;
  const auto has_second = [](const VerbsBinding& binding) { return binding.has_key(1); };
  const auto refused = bindings.bind(region(1, encode_region_keys(kOne, kKey)), "b", has_second);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kUnsupported);
  EXPECT_EQ(refused.error().scope(), Scope::kPath);
  EXPECT_EQ(refused.error().message(), "the card of b has no keys of region 4 for the ports in use");
  EXPECT_TRUE(bindings.bind(region(1, encode_region_keys(kTwo, kKey)), "b", has_second).has_value());
}

TEST(Bindings, ARegionWithoutKeysIsNotReachedByRdma) {
  Bindings bindings;
  const auto refused = bindings.bind(region(1, {}), "b", any);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kUnsupported);
  EXPECT_EQ(refused.error().message(), "region 4 of b cannot be reached by RDMA");
}

TEST(Bindings, WhatIsUnboundIsBoundAnew) {
  Bindings bindings;
  ASSERT_TRUE(bindings.bind(region(1, encode_region_keys(kTwo, kKey)), "b", any).has_value());
  bindings.unbind(4, 1);
  const auto anew = bindings.bind(region(1, encode_region_keys(kOne, kKey)), "b", any);
  ASSERT_TRUE(anew.has_value());
  EXPECT_FALSE((*anew)->has_key(1));
}

}  // namespace
}  // namespace hawser::backend::verbs
