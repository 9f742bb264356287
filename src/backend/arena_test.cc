#include "backend/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace hawser::backend {
namespace {

TEST(Arena, IsWritableAndRoundedUp) {
  auto arena = Arena::create(5000, Rights::kReadWrite, HugePages::kOff).value();
  EXPECT_EQ(arena->bytes().size() % arena->page_size(), 0u);
  ASSERT_GE(arena->bytes().size(), 5000u);
  std::memset(arena->bytes().data(), 0x5a, arena->bytes().size());
  void* other = ::mmap(nullptr, arena->bytes().size(), PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd(), 0);
  ASSERT_NE(other, MAP_FAILED);
  EXPECT_EQ(std::memcmp(other, arena->bytes().data(), arena->bytes().size()), 0);
  ::munmap(other, arena->bytes().size());
}

TEST(Arena, IsSealed) {
  auto arena = Arena::create(8192, Rights::kReadWrite, HugePages::kOff).value();
  EXPECT_NE(::ftruncate(arena->fd(), 4096), 0);
  EXPECT_NE(::ftruncate(arena->fd(), 1 << 20), 0);
  EXPECT_NE(::fcntl(arena->fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  EXPECT_NE(::fcntl(arena->fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Arena, ReadOnlyCannotBeMappedForWritingAgain) {
  auto arena = Arena::create(8192, Rights::kRead, HugePages::kOff).value();
  arena->bytes()[0] = std::byte{1};  // the owner may
  EXPECT_EQ(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd(), 0), MAP_FAILED);
  void* other = ::mmap(nullptr, 8192, PROT_READ, MAP_SHARED, arena->fd(), 0);
  ASSERT_NE(other, MAP_FAILED);
  EXPECT_EQ(*static_cast<std::byte*>(other), std::byte{1});
  ::munmap(other, 8192);
}

TEST(Arena, AbandonedMemoryStaysMapped) {
  auto arena = Arena::create(4096, Rights::kReadWrite, HugePages::kOff).value();
  std::byte* base = arena->bytes().data();
  const std::size_t size = arena->bytes().size();
  arena->abandon();
  arena.reset();
  *base = std::byte{7};
  EXPECT_EQ(*base, std::byte{7});
  ::munmap(base, size);
}

TEST(Arena, BadSizesAndMissingHugePagesAreSaid) {
  EXPECT_EQ(Arena::create(0, Rights::kRead, HugePages::kOff).error().code(), Code::kInvalid);
  EXPECT_EQ(Arena::create(SIZE_MAX, Rights::kRead, HugePages::kAuto).error().code(), Code::kInvalid);
  auto automatic = Arena::create(4u << 20, Rights::kReadWrite, HugePages::kAuto);
  ASSERT_TRUE(automatic) << automatic.error().to_string();
  auto huge = Arena::create(4u << 20, Rights::kReadWrite, HugePages::kRequire);
  if (!huge) {
    EXPECT_FALSE(huge.error().advice().empty());
  } else {
    EXPECT_GT((*huge)->page_size(), 4096u);
  }
}

}  // namespace
}  // namespace hawser::backend
