#include "base/copy_shared_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/test_folder.h"

namespace hawser::base {
namespace {

class SharedCache : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(root()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  void put_cache(int cpu, int index, int level, const std::string& sharers) {
    const std::string cache = "cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index);
    put(cache + "/level", std::to_string(level));
    put(cache + "/shared_cpu_list", sharers);
  }
  std::string root() const { return folder_.path(); }

 private:
  TestFolder folder_;
};

TEST_F(SharedCache, TheLastLevelCountsNotTheFirst) {
  put("online", "0-1");
  put_cache(0, 0, 1, "0");
  put_cache(0, 2, 2, "0");
  EXPECT_FALSE(one_cache_for_all(root().c_str()));
  put_cache(0, 3, 3, "0-1");
  EXPECT_TRUE(one_cache_for_all(root().c_str()));
}

TEST_F(SharedCache, TwoLastLevelCachesAreNotOne) {
  put("online", "0-15");
  put_cache(0, 3, 3, "0-7");
  EXPECT_FALSE(one_cache_for_all(root().c_str()));
}

TEST_F(SharedCache, TheFirstProcessorNeedNotBeZero) {
  put("online", "2,4-5");
  put_cache(2, 0, 1, "2");
  put_cache(2, 3, 3, "2,4-5");
  EXPECT_TRUE(one_cache_for_all(root().c_str()));
}

TEST_F(SharedCache, NothingToReadMeansNo) {
  EXPECT_FALSE(one_cache_for_all(root().c_str()));
  put("online", "0-1");
  EXPECT_FALSE(one_cache_for_all(root().c_str()));
  put("cpu0/cache/index3/level", "unknown");
  EXPECT_FALSE(one_cache_for_all(root().c_str()));
}

}  // namespace
}  // namespace hawser::base
