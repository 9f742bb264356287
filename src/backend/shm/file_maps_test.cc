#include "backend/shm/file_maps.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace hawser::backend::shm {
namespace {

constexpr std::size_t kSize = 8192;

TEST(FileMaps, AFileIsMappedOnceForAllRegionsInIt) {
  FileMaps maps;
  const base::Fd file = make_sealed_file("test", kSize, true).value();
  const base::Fd other = make_sealed_file("test", kSize, true).value();
  std::shared_ptr<Mapping> first = maps.map(file.get(), kSize, Mapping::Access::kReadWrite).value();
  std::shared_ptr<Mapping> second = maps.map(file.get(), kSize, Mapping::Access::kReadWrite).value();
  EXPECT_EQ(first->base(), second->base());
  EXPECT_NE(maps.map(other.get(), kSize, Mapping::Access::kReadWrite).value()->base(), first->base());
  EXPECT_NE(maps.map(file.get(), kSize, Mapping::Access::kRead).value()->base(), first->base())
      << "who may only read gets no mapping that can be written";
  EXPECT_FALSE(FileMaps::let_go(std::move(first))) << "the other binding uses it";
  EXPECT_EQ(maps.count(), 1u);
  EXPECT_TRUE(FileMaps::let_go(std::move(second)));
  EXPECT_EQ(maps.count(), 0u);
}

TEST(FileMaps, FilesThatCameAndWentAreNotKept) {
  FileMaps maps;
  for (int i = 0; i < 1000; ++i) {
    const base::Fd file = make_sealed_file("test", kSize, false).value();
    (void)maps.map(file.get(), kSize, Mapping::Access::kRead).value();
    ASSERT_LE(maps.count(), 1u);
  }
}

}  // namespace
}  // namespace hawser::backend::shm
