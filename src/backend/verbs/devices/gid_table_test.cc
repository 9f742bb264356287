#include "backend/verbs/devices/gid_table.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

#include "backend/verbs/devices/device_test_tree.h"
#include "backend/verbs/mock/mock_verbs.h"

namespace hawser::backend::verbs {
namespace {

class GidTableTest : public ::testing::Test {
 protected:
  Result<std::vector<Gid>> read(std::uint8_t number = 1, const std::string& sysfs = "/nowhere") {
    const PortInfo port{.number = number, .link_layer = LinkLayer::kEthernet};
    ibv_port_attr attr{};
    attr.gid_tbl_len = 4;
    return read_gids(*domain_, port, attr, sysfs);
  }

  MockFabric fabric_{{"mock0"}};
  std::shared_ptr<Domain> domain_ = [this] {
    fabric_.device("mock0").more.emplace_back();
    return *Domain::open(std::make_shared<MockVerbs>(fabric_), "mock0");
  }();
};

TEST_F(GidTableTest, TheDeviceTellsEachPortsOwn) {
  const auto first = read(1), second = read(2);
  ASSERT_TRUE(first.has_value() && second.has_value());
  ASSERT_EQ(first->size(), 2u);
  EXPECT_EQ((*first)[0].type, GidType::kRoceV1);
  EXPECT_EQ((*first)[1].index, 1u);
  EXPECT_EQ((*first)[1].type, GidType::kRoceV2);
  EXPECT_EQ((*first)[1].text(), "10.0.0.1");
  EXPECT_EQ((*second)[1].text(), "10.0.1.1");
}

TEST_F(GidTableTest, AFullTableIsReadWhole) {
  std::vector<Gid> gids(4);
  for (std::uint32_t i = 0; i < 4; ++i) {
    gids[i].index = 3 - i;
    gids[i].bytes[15] = static_cast<std::uint8_t>(2 + i);
  }
  fabric_.device("mock0").gids = fabric_.device("mock0").port(2).gids = gids;
  const auto table = read(2);
  ASSERT_TRUE(table.has_value()) << table.error().to_string();
  ASSERT_EQ(table->size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ((*table)[i].index, i);
}

TEST_F(GidTableTest, ALibraryWithoutTheCallLeavesItToSysfs) {
  const SysfsTree tree;
  tree.port("mock0", "1", "4: ACTIVE");
  tree.gid("mock0", "3", "0000:0000:0000:0000:0000:ffff:0a4d:0001", "RoCE v2", "veth0");
  fabric_.fail_always("query_gid_table", EOPNOTSUPP);
  const auto table = read(1, tree.root());
  ASSERT_TRUE(table.has_value());
  ASSERT_EQ(table->size(), 1u);
  EXPECT_EQ((*table)[0].index, 3u);
  EXPECT_EQ((*table)[0].text(), "10.77.0.1");
}

TEST_F(GidTableTest, OtherErrorsAreTold) {
  fabric_.fail_always("query_gid_table", EIO);
  const auto table = read();
  ASSERT_FALSE(table.has_value());
  EXPECT_NE(table.error().to_string().find("errno 5"), std::string::npos) << table.error().to_string();
}

TEST_F(GidTableTest, DevicesCanBeListedWithoutTheirTables) {
  const SysfsTree tree;
  tree.port("mock0", "1", "4: ACTIVE");
  tree.gid("mock0", "3", "0000:0000:0000:0000:0000:ffff:0a4d:0001", "RoCE v2", "veth0");
  EXPECT_EQ(read_devices(tree.root()).at(0).ports.at(0).gids.size(), 1u);
  EXPECT_TRUE(read_devices(tree.root(), GidTables::kLeave).at(0).ports.at(0).gids.empty());
}

}  // namespace
}  // namespace hawser::backend::verbs
