#include "compat/backend_set.h"

#include <gtest/gtest.h>

namespace hawser::compat {
namespace {

struct BackendSetTest : ::testing::Test {
  void add(std::string_view name) { set.add({.plugin = find_plugin(name), .params = {}}); }
  OptArgs only(std::string_view name, const void* agent) const {
    OptArgs opt;
    opt.backends = {Backend(std::string(name), agent)};
    return opt;
  }

  int owner = 0;
  BackendSet set{"a", &owner};
};

TEST_F(BackendSetTest, APlaceIsABit) {
  EXPECT_FALSE(set.has_any());
  EXPECT_EQ(set.remote(), 0u);
  add("POSIX");
  EXPECT_TRUE(set.has_any());
  EXPECT_EQ(set.remote(), 0u) << "it reaches no other agent";
  add("UCX");
  EXPECT_EQ(set.remote(), 2u);
  EXPECT_TRUE(set.has(*find_plugin("UCX")));
  EXPECT_EQ(set.names(), "POSIX, UCX");
}

TEST_F(BackendSetTest, TheFirstIsThatOfTheMask) {
  EXPECT_EQ(set.first(1).name(), "");
  add("POSIX");
  add("UCX");
  EXPECT_EQ(set.first(kAllBackends).name(), "POSIX");
  EXPECT_EQ(set.first(2).name(), "") << "not without the lock";
  EXPECT_EQ(set.first_of(2).name(), "UCX");
  EXPECT_EQ(set.first_of(4).name(), "");
  EXPECT_EQ(set.first_of(2).agent(), &owner);
}

TEST_F(BackendSetTest, OptionsNameBackendsOfThisAgent) {
  add("POSIX");
  add("UCX");
  EXPECT_EQ(*set.named("call", nullptr), kAllBackends);
  const OptArgs ucx = only("UCX", &owner);
  EXPECT_EQ(*set.named("call", &ucx), 2u);
  int other = 0;
  const OptArgs foreign = only("UCX", &other);
  EXPECT_FALSE(set.named("call", &foreign).has_value());
  const OptArgs unknown = only("GDS", &owner);
  EXPECT_EQ(code_of(set.named("call", &unknown).error()), NixlCode::kInvalidParam);
}

TEST_F(BackendSetTest, MemoryIsForThoseThatTakeItsType) {
  EXPECT_EQ(code_of(set.takers("call", MemType::kDram, nullptr).error()), NixlCode::kNotFound) << "there is none yet";
  add("POSIX");
  EXPECT_EQ(*set.takers("call", MemType::kFile, nullptr), 1u);
  add("UCX");
  EXPECT_EQ(*set.takers("call", MemType::kFile, nullptr), 1u);
  EXPECT_EQ(*set.takers("call", MemType::kVram, nullptr), 2u);
  const OptArgs posix = only("POSIX", &owner);
  EXPECT_EQ(code_of(set.takers("call", MemType::kVram, &posix).error()), NixlCode::kNotFound);
}

TEST_F(BackendSetTest, BetweenMemoryAndFilesOfOneAgentAllMove) {
  add("POSIX");
  add("UCX");
  EXPECT_EQ(set.movers(MemType::kDram, MemType::kFile, /*is_self=*/true), kAllBackends);
  EXPECT_EQ(set.movers(MemType::kDram, MemType::kDram, /*is_self=*/true), 2u);
  EXPECT_EQ(set.movers(MemType::kDram, MemType::kFile, /*is_self=*/false), 2u);
}

}  // namespace
}  // namespace hawser::compat
