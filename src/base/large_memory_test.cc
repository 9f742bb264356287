#include "base/large_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdint>
#include <numeric>

namespace hawser::base {
namespace {

long faults() {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  return used.ru_minflt;
}

/// True where the kernel gives huge pages, and nobody (an emulator, a sanitizer with pages of its own) comes between.
bool has_huge_pages() {
  constexpr std::size_t kSize = 4 * kHugePage;
  void* const memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  const long before = faults();
  const bool advised = ::madvise(memory, kSize, MADV_HUGEPAGE) == 0;
  for (std::size_t at = 0; at < kSize; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
  const long taken = faults() - before;
  ::munmap(memory, kSize);
  return advised && taken < static_cast<long>(kSize / 4096 / 2);
}

TEST(LargeMemory, ContentsStay) {
  std::vector<std::uint32_t> values(3 << 20);
  std::iota(values.begin(), values.end(), 0u);
  prefer_huge_pages(values.data() + 1, (values.size() - 2) * sizeof(values[0]));
  for (std::uint32_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i);
}

TEST(LargeMemory, NothingIsNoError) {
  prefer_huge_pages(nullptr, 0);
  prefer_huge_pages(nullptr, kLargeFrom);
  std::byte one{1};
  prefer_huge_pages(&one, 1);
  EXPECT_EQ(one, std::byte{1});
}

TEST(LargeMemory, FillingFaultsSeldom) {
  if (!has_huge_pages()) GTEST_SKIP() << "no huge pages here";
  constexpr std::size_t kSize = 8u << 20;  // 64 MiB: 16,384 small pages, at most 1,022 of them at its ends.
  std::vector<std::uint64_t> room;
  reserve_large(room, kSize);
  const long before = faults();
  for (std::uint64_t i = 0; i < kSize; ++i) room.push_back(i);
  EXPECT_LT(faults() - before, 8'000);
  EXPECT_EQ(room[4'000'000], 4'000'000u);
}

TEST(LargeMemory, RoomThatIsThereIsTaken) {
  std::vector<std::uint64_t> room;
  room.reserve(1 << 20);
  const auto* const at = room.data();
  reserve_large(room, 1 << 10);
  EXPECT_EQ(room.data(), at);
  EXPECT_EQ(room.capacity(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace hawser::base
