#include "base/host_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/test_folder.h"

namespace hawser::base {
namespace {

class HostMemory : public testing::Test {
 protected:
  void put(const std::string& text) const {
    std::filesystem::create_directories(root_.path("proc"));
    std::ofstream(root_.path("proc/meminfo")) << text;
  }
  const base::TestFolder root_{"hawser-meminfo"};
};

TEST_F(HostMemory, IsWhatIsAvailableAndSwap) {
  put("MemTotal:       24683652 kB\nMemFree:  1 kB\nMemAvailable:      1000 kB\nSwapTotal: 900 kB\nSwapFree:   24 "
      "kB\n");
  EXPECT_EQ(host_memory_left(root_.path()), 1024u * 1024);
  EXPECT_TRUE(check_host_memory("an arena", 1024 * 1024, root_.path()).ok());
  const Status status = check_host_memory("an arena", 1024 * 1024 + 1, root_.path());
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_NE(status.message().find("an arena of 1048577 bytes: the host has 1048576"), std::string_view::npos)
      << status.to_string();
}

TEST_F(HostMemory, WhereTheKernelDoesNotTellAllIsTaken) {
  EXPECT_TRUE(check_host_memory("an arena", UINT64_MAX, root_.path()).ok());
  for (const char* text : {"", "MemAvailable:", "MemAvailable: many kB", "MemAvailable: 99999999999999999999 kB"}) {
    put(text);
    EXPECT_TRUE(check_host_memory("an arena", UINT64_MAX, root_.path()).ok()) << text;
  }
}

TEST_F(HostMemory, ThisHostHasSome) {
  const auto left = host_memory_left();
  ASSERT_TRUE(left);
  EXPECT_GT(*left, 1u << 20);
}

}  // namespace
}  // namespace hawser::base
