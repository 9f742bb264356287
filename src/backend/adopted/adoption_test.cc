#include "backend/adopted/adoption.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

#include "backend/test_pages.h"
#include "base/fd.h"

namespace hawser::backend {
namespace {

constexpr std::size_t kPage = TestPages::kPage;

std::string access_at(const std::byte* at) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  return mapped_areas({begin, begin + kPage}, AreaDetail::kPlain).value().at(0).access;
}
/// As a peer maps it.
class PeerView {
 public:
  explicit PeerView(const Adoption& adoption, int protection = PROT_READ | PROT_WRITE)
      : size_(adoption.covered().size()), at_(::mmap(nullptr, size_, protection, MAP_SHARED, adoption.fd(), 0)) {}
  ~PeerView() {
    if (is_mapped()) ::munmap(at_, size_);
  }
  PeerView(const PeerView&) = delete;
  PeerView& operator=(const PeerView&) = delete;
  bool is_mapped() const { return at_ != MAP_FAILED; }
  std::byte* bytes() const { return static_cast<std::byte*>(at_); }

 private:
  std::size_t size_;
  void* at_;
};

std::string refusal(std::span<std::byte> bytes) { return Adoption::make(bytes, true, nullptr).error().to_string(); }
bool says(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Adoption, BytesStayThroughBothMoves) {
  TestPages pages(100);
  auto adoption = Adoption::make(pages.bytes(), true, nullptr).value();
  EXPECT_EQ(access_at(pages.base()), "rw-s");
  EXPECT_TRUE(pages.holds(1));
  const PeerView peer(*adoption);
  ASSERT_TRUE(peer.is_mapped());
  EXPECT_EQ(std::memcmp(peer.bytes(), pages.base(), pages.bytes().size()), 0);
  pages.fill(3);  // what each side writes the other sees
  EXPECT_EQ(std::memcmp(peer.bytes(), pages.base(), pages.bytes().size()), 0);
  peer.bytes()[5000] = std::byte{0x77};
  EXPECT_EQ(pages.base()[5000], std::byte{0x77});
  pages.base()[5000] = TestPages::value(5000, 3);
  ASSERT_TRUE(adoption->give_back().ok());
  EXPECT_EQ(access_at(pages.base()), "rw-p");
  EXPECT_TRUE(pages.holds(3));
  peer.bytes()[5000] = std::byte{0x77};  // who stayed inside touches nothing of ours
  EXPECT_TRUE(pages.holds(3));
  adoption.reset();
  EXPECT_TRUE(pages.holds(3));
}

TEST(Adoption, PrivateAgainMeansThatZeroesComeAfterDontneed) {
  TestPages pages(4);
  ASSERT_TRUE(Adoption::make(pages.bytes(), true, nullptr).value()->give_back().ok());
  ASSERT_EQ(::madvise(pages.base(), kPage, MADV_DONTNEED), 0);
  EXPECT_EQ(pages.base()[1], std::byte{0});
}

TEST(Adoption, OnlyWholePagesMove) {
  TestPages pages(5);
  auto adoption = Adoption::make(pages.bytes(100, 4 * kPage), true, nullptr).value();
  const auto begin = reinterpret_cast<std::uintptr_t>(pages.base());
  EXPECT_EQ(adoption->pages(), (AddressRange{begin + kPage, begin + 4 * kPage}));
  EXPECT_EQ(adoption->covered(), (AddressRange{begin, begin + 5 * kPage}));
  EXPECT_EQ(access_at(pages.base()), "rw-p");
  EXPECT_EQ(access_at(pages.base() + kPage), "rw-s");
  EXPECT_EQ(access_at(pages.base() + 4 * kPage), "rw-p");
  const PeerView peer(*adoption);
  ASSERT_TRUE(peer.is_mapped());
  std::memset(peer.bytes(), 0x11, kPage);  // in place of the ends: must be there, and is nobody's
  std::memset(peer.bytes() + 4 * kPage, 0x11, kPage);
  EXPECT_TRUE(pages.holds(1));
  ASSERT_TRUE(adoption->give_back().ok());
  EXPECT_TRUE(pages.holds(1));
}

TEST(Adoption, TheFileIsSealed) {
  TestPages pages(2);
  auto adoption = Adoption::make(pages.bytes(), true, nullptr).value();
  EXPECT_NE(::ftruncate(adoption->fd(), kPage), 0);
  EXPECT_NE(::ftruncate(adoption->fd(), 8 * kPage), 0);
  EXPECT_NE(::fcntl(adoption->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_NE(::fcntl(adoption->fd(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_TRUE(adoption->give_back().ok());
}

TEST(Adoption, PeersThatMayNotWriteCannotMapForWriting) {
  TestPages pages(3);
  auto adoption = Adoption::make(pages.bytes(), false, nullptr).value();
  EXPECT_FALSE(PeerView(*adoption).is_mapped());
  EXPECT_TRUE(PeerView(*adoption, PROT_READ).is_mapped());
  pages.fill(5);  // the owner may
  ASSERT_TRUE(adoption->give_back().ok());
  EXPECT_TRUE(pages.holds(5));
}

TEST(Adoption, WhatIsNotOursToMoveStays) {
#ifdef HAWSER_EMULATED
  GTEST_SKIP() << "an emulator does not tell what madvise and munmap did";
#endif
  TestPages pages(4);
  EXPECT_TRUE(says(refusal(pages.bytes(100, 3000)), "no whole page"));
  EXPECT_TRUE(says(refusal(pages.bytes(100, kPage + 200)), "no whole page"));
  auto adoption = Adoption::make(pages.bytes(), true, nullptr).value();
  EXPECT_TRUE(says(refusal(pages.bytes()), "is shared"));
  ASSERT_TRUE(adoption->give_back().ok());
  ASSERT_EQ(::mprotect(pages.base() + kPage, kPage, PROT_READ), 0);
  EXPECT_TRUE(says(refusal(pages.bytes()), "cannot be read and written"));
  ASSERT_EQ(::mprotect(pages.base() + kPage, kPage, PROT_READ | PROT_WRITE), 0);
  ASSERT_EQ(::madvise(pages.base() + kPage, kPage, MADV_DONTFORK), 0);
  EXPECT_TRUE(says(refusal(pages.bytes()), "MADV_DONTFORK"));
  ASSERT_EQ(::madvise(pages.base() + kPage, kPage, MADV_DOFORK), 0);
  ASSERT_EQ(::madvise(pages.base() + kPage, kPage, MADV_WIPEONFORK), 0);
  EXPECT_TRUE(says(refusal(pages.bytes()), "MADV_WIPEONFORK"));
  ASSERT_EQ(::madvise(pages.base() + kPage, kPage, MADV_KEEPONFORK), 0);
  EXPECT_TRUE(pages.holds(1));
  ASSERT_EQ(::munmap(pages.base() + kPage, kPage), 0);
  EXPECT_TRUE(says(refusal(pages.bytes()), "nothing is mapped"));
}

TEST(Adoption, LockedMemoryStays) {
  TestPages pages(4);
  // Not by mlock(): sanitizers make nothing of it.
  if (::syscall(SYS_mlock, pages.base(), kPage) != 0) GTEST_SKIP() << "mlock is not allowed here";
  EXPECT_TRUE(says(refusal(pages.bytes()), "mlock"));
  EXPECT_EQ(access_at(pages.base()), "rw-p");
  ASSERT_EQ(::syscall(SYS_munlock, pages.base(), kPage), 0);
  auto adoption = Adoption::make(pages.bytes(), true, nullptr);
  ASSERT_TRUE(adoption) << adoption.error().to_string();
  EXPECT_TRUE((*adoption)->give_back().ok());
}

TEST(Adoption, FilesStay) {
  const int fd = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  void* const at = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  ASSERT_NE(at, MAP_FAILED);
  EXPECT_TRUE(says(refusal({static_cast<std::byte*>(at), kPage}), "is mapped from a file"));
  ::munmap(at, kPage);
  ::close(fd);
}

TEST(Adoption, WithoutDescriptorsAllStaysAsItIs) {
  TestPages pages(4);
  // UBSan looks through a pipe at what it meets for the first time, and takes it for invalid where there can be none.
  (void)base::errno_status("as here", EMFILE);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(0);
  ::close(next);
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto made = Adoption::make(pages.bytes(), true, nullptr);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(made);
  EXPECT_EQ(access_at(pages.base()), "rw-p");
  EXPECT_TRUE(pages.holds(1));
}

constexpr std::size_t kBlock = 64u << 20;  // What moves at once.

/// Whether each page of them begins with `value`.
bool begin_with(std::span<const std::byte> bytes, std::byte value) {
  for (std::size_t at = 0; at < bytes.size(); at += kPage) {
    if (bytes[at] != value) return false;
  }
  return true;
}
void mark(std::span<std::byte> bytes, std::byte value) {
  for (std::size_t at = 0; at < bytes.size(); at += kPage) bytes[at] = value;
}

/// Memory of several blocks, mapped and not touched.
class Blocks {
 public:
  explicit Blocks(std::size_t size)
      : size_(size), at_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Blocks() { ::munmap(at_, size_); }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(at_), size_}; }

 private:
  std::size_t size_;
  void* at_;
};

TEST(Adoption, AFailureHalfWayGivesAllBack) {
  Blocks blocks(kBlock + 16 * kPage);
  mark(blocks.bytes(), std::byte{0x42});
  const auto made = Adoption::make(blocks.bytes(), true, nullptr, [](AddressRange block) {
    if (block.size() != kBlock) ::mprotect(block.data(), block.size(), PROT_NONE);  // the second cannot be read
  });
  ASSERT_FALSE(made);
  EXPECT_TRUE(says(made.error().to_string(), "moving pages")) << made.error().to_string();
  EXPECT_EQ(access_at(blocks.bytes().data()), "rw-p");
  ASSERT_EQ(::mprotect(blocks.bytes().data() + kBlock, 16 * kPage, PROT_READ | PROT_WRITE), 0);
  EXPECT_TRUE(begin_with(blocks.bytes(), std::byte{0x42}));
  EXPECT_EQ(mapped_areas({reinterpret_cast<std::uintptr_t>(blocks.bytes().data()),
                          reinterpret_cast<std::uintptr_t>(blocks.bytes().data()) + kBlock},
                         AreaDetail::kPlain)
                .value()[0]
                .inode,
            0u);
}

TEST(Adoption, SeveralBlocksMoveBothWays) {
  Blocks blocks(kBlock + 16 * kPage);
  mark(blocks.bytes(), std::byte{0x42});
  auto adoption = Adoption::make(blocks.bytes(), true, nullptr).value();
  EXPECT_TRUE(begin_with(blocks.bytes(), std::byte{0x42}));
  mark(blocks.bytes(), std::byte{0x43});
  ASSERT_TRUE(adoption->give_back().ok());
  EXPECT_TRUE(begin_with(blocks.bytes(), std::byte{0x43}));
}

/// Bytes of address space that this process has.
std::size_t address_space() {
  std::size_t pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr || std::fscanf(file, "%zu", &pages) != 1) pages = 0;
  if (file != nullptr) std::fclose(file);
  return pages * kPage;
}

TEST(Adoption, WithoutRoomToGiveBackTheBytesStay) {
#ifdef HAWSER_EMULATED
  GTEST_SKIP() << "an emulator does not bound address space";
#endif
  Blocks blocks(kBlock);
  mark(blocks.bytes(), std::byte{0x42});
  auto adoption = Adoption::make(blocks.bytes(), true, nullptr).value();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit tight{address_space() + kBlock / 2, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &tight), 0);
  const Status status = adoption->give_back();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(status.advice().empty());
  const PeerView peer(*adoption);
  adoption.reset();
  EXPECT_TRUE(begin_with(blocks.bytes(), std::byte{0x42}));
  mark(blocks.bytes(), std::byte{0x43});  // a private view: no peer sees it
  EXPECT_TRUE(begin_with({peer.bytes(), kBlock}, std::byte{0x42}));
}

TEST(Adoption, WhatTheCallerUnmappedIsNotMappedAgain) {
  TestPages pages(8);
  auto adoption = Adoption::make(pages.bytes(), true, nullptr).value();
  ASSERT_EQ(::munmap(pages.base() + 2 * kPage, kPage), 0);
  void* const other =
      ::mmap(pages.base() + 4 * kPage, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ASSERT_EQ(other, pages.base() + 4 * kPage);
  std::memset(other, 0x33, kPage);
  ASSERT_TRUE(adoption->give_back().ok());
  EXPECT_EQ(pages.base()[4 * kPage], std::byte{0x33});
  EXPECT_EQ(pages.base()[kPage], TestPages::value(kPage, 1));
  EXPECT_EQ(pages.base()[7 * kPage], TestPages::value(7 * kPage, 1));
  const auto begin = reinterpret_cast<std::uintptr_t>(pages.base());
  const auto areas = mapped_areas({begin, begin + 8 * kPage}, AreaDetail::kPlain).value();
  for (const MappedArea& area : areas) {
    EXPECT_EQ(area.access, "rw-p");
    EXPECT_FALSE(area.range.begin <= begin + 2 * kPage && area.range.end > begin + 2 * kPage);
  }
}

}  // namespace
}  // namespace hawser::backend
