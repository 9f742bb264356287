#include "compat/spot_maker.h"

#include <gtest/gtest.h>

#include "compat/test_peers.h"

namespace hawser::compat {
namespace {

TEST(SpotMaker, MakesARegionForEachDescriptorThatHasBytes) {
  TestAgent own("a");
  RegDescList list(MemType::kDram);
  for (std::size_t i = 0; i < 2 * kRegionsAtOnce + 1; ++i) list.add(own.address(i * 8), i % 3 == 0 ? 0 : 8);
  SpotMaker maker("register_mem", own.agent, MemType::kDram, {});
  ASSERT_TRUE(maker.make(list.span()).ok());
  const std::vector<LocalSpot> spots = maker.take();
  ASSERT_EQ(spots.size(), list.size());
  for (std::size_t i = 0; i < spots.size(); ++i) {
    ASSERT_EQ(spots[i].region != nullptr, i % 3 != 0) << i;
    if (!spots[i].region) continue;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(spots[i].region->entry->base), own.address(i * 8));
    EXPECT_EQ(spots[i].index, spots[i].region->entry->index);
  }
}

TEST(SpotMaker, AnErrorNamesTheDescriptorAndLeavesNothing) {
  TestAgent own("a");
  RegDescList list(MemType::kDram);
  list.add(own.address(), 0);
  list.add(own.address(), 8);
  list.add(0, 8);
  {
    SpotMaker maker("register_mem", own.agent, MemType::kDram, {});
    const Status status = maker.make(list.span());
    EXPECT_EQ(code_of(status), NixlCode::kBackend) << status.to_string();
    EXPECT_NE(status.message().find("descriptor 2"), std::string::npos) << status.to_string();
  }
  EXPECT_TRUE(own.card().regions.empty()) << "those that were made close themselves";
}

TEST(SpotMaker, ADeviceNumberStandsForOneFile) {
  TestAgent own("a");
  RegDescList list(MemType::kFile);
  list.add(0, 16, 1, "ro:/dev/null");
  SpotMaker maker("register_mem", own.agent, MemType::kFile, {{1, FileId{.device = 1, .inode = 2}}});
  const Status status = maker.make(list.span());
  EXPECT_EQ(code_of(status), NixlCode::kInvalidParam) << status.to_string();
}

}  // namespace
}  // namespace hawser::compat
