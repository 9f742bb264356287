#include "base/control_group.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/test_folder.h"

namespace hawser::base {
namespace {

class ControlGroup : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<GroupMemory> memory() const { return group_memory(root_.path()); }

  const TestFolder root_{"hawser-control-group"};
};

TEST_F(ControlGroup, VersionTwoCountsWhatCanBeDropped) {
  put("/proc/self/cgroup", "0::/pod/app\n");
  put("/sys/fs/cgroup/pod/app/memory.max", "max\n");
  put("/sys/fs/cgroup/pod/memory.max", "1000000\n");
  put("/sys/fs/cgroup/pod/memory.current", "900000\n");
  put("/sys/fs/cgroup/pod/memory.stat", "anon 100\ninactive_file 200000\nactive_file 100000\nshmem 5\n");
  const auto found = memory();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->limit, 1000000u);
  EXPECT_EQ(found->left, 400000u);
  EXPECT_TRUE(found->file.ends_with("/sys/fs/cgroup/pod/memory.max")) << found->file;
}

TEST_F(ControlGroup, TheTightestOfAllAboveCounts) {
  put("/proc/self/cgroup", "0::/a/b\n");
  put("/sys/fs/cgroup/a/b/memory.max", "5000\n");
  put("/sys/fs/cgroup/a/b/memory.current", "1000\n");
  put("/sys/fs/cgroup/a/memory.max", "9000\n");
  put("/sys/fs/cgroup/a/memory.current", "8000\n");
  EXPECT_EQ(memory()->left, 1000u);
}

TEST_F(ControlGroup, VersionOneHasATreeOfItsOwn) {
  put("/proc/self/cgroup", "12:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n0::/docker/x\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");  // The mount is the container's own group.
  put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1500000\n");
  put("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 100000\ntotal_active_file 0\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(memory()->limit, 2000000u);
  EXPECT_EQ(memory()->left, 600000u);
  EXPECT_EQ(group_processors(root_.path()), 1.5);
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(memory());
  put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(group_processors(root_.path()));
}

TEST_F(ControlGroup, WithoutGroupsThereIsNoLimit) {
  EXPECT_FALSE(memory());
  put("/proc/self/cgroup", "0::/\n");
  EXPECT_FALSE(memory());
  put("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_FALSE(group_processors(root_.path()));
  put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(group_processors(root_.path()), 2.0);
}

TEST_F(ControlGroup, WhatDoesNotFitIsNamed) {
  put("/proc/self/cgroup", "0::/\n");
  put("/sys/fs/cgroup/memory.max", "1000000\n");
  put("/sys/fs/cgroup/memory.current", "250000\n");
  EXPECT_TRUE(check_group_memory("an arena", 750000, root_.path()).ok());
  const Status status = check_group_memory("an arena", 750001, root_.path());
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_NE(status.message().find("an arena of 750001 bytes"), std::string_view::npos) << status.to_string();
  EXPECT_NE(status.message().find("memory.max"), std::string_view::npos) << status.to_string();
}

}  // namespace
}  // namespace hawser::base
