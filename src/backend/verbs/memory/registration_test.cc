#include "backend/verbs/memory/registration.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "backend/verbs/memory/registration_fake.h"
#include "backend/verbs/memory/registration_pages.h"

namespace hawser::backend::verbs {
namespace {

class RegistrationTest : public testing::Test {
 protected:
  RegistrationTest() : fake_(std::make_shared<MemoryFake>()), domain_(Domain::open(fake_, "mock0").value()) {}
  ~RegistrationTest() override {
    domain_.reset();
    EXPECT_EQ(fake_->alive(), 0);
    EXPECT_EQ(fake_->violations, 0);
  }
  Result<std::shared_ptr<Registration>> make(const Access& access) {
    return register_host(domain_, memory_.data(), memory_.size(), access);
  }

  std::shared_ptr<MemoryFake> fake_;
  std::shared_ptr<Domain> domain_;
  std::vector<char> memory_ = std::vector<char>(10000);
};

TEST_F(RegistrationTest, CoversExactlyTheRange) {
  const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
  const std::shared_ptr<Registration> made = make({}).value();
  ASSERT_EQ(fake_->asked.size(), 1u);
  EXPECT_EQ(fake_->asked[0].address, start);
  EXPECT_EQ(fake_->asked[0].size, 10000u);
  EXPECT_TRUE(made->covers(start, 10000));
  EXPECT_TRUE(made->covers(start + 10000, 0));
  EXPECT_FALSE(made->covers(start, 10001));
  EXPECT_FALSE(made->covers(start - 1, 1));
  EXPECT_FALSE(made->covers(start + 1, ~std::size_t{0}));
  const Keys keys = made->keys(start + 100, 50);
  EXPECT_EQ(keys.iova, start + 100);
  EXPECT_EQ(keys.size, 50u);
  EXPECT_EQ(keys.lkey, made->lkey());
  EXPECT_EQ(keys.rkey, made->rkey());
}

TEST_F(RegistrationTest, TheLastUserDeregisters) {
  std::shared_ptr<Registration> made = make({}).value();
  std::shared_ptr<Registration> in_flight = made;
  domain_.reset();
  made.reset();
  EXPECT_EQ(fake_->memories, 1);
  EXPECT_EQ(fake_->domains, 1) << "a registration holds its domain";
  in_flight.reset();
  EXPECT_EQ(fake_->alive(), 0);
}

TEST_F(RegistrationTest, RightsAreExactlyTheOnesAskedFor) {
  const auto flags = [&](const Access& access) {
    (void)make(access).value();
    return fake_->asked.back().access;
  };
  constexpr int kLocal = IBV_ACCESS_LOCAL_WRITE;
  constexpr int kBoth = kLocal | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  EXPECT_EQ(flags({.rights = Rights::kNone}), kLocal);
  EXPECT_EQ(flags({.rights = Rights::kRead}), kLocal | IBV_ACCESS_REMOTE_READ);
  EXPECT_EQ(flags({.rights = Rights::kWrite}), kLocal | IBV_ACCESS_REMOTE_WRITE);
  EXPECT_EQ(flags({.rights = Rights::kReadWrite}), kBoth) << "no atomics";
  EXPECT_EQ(flags({.rights = Rights::kRead, .relaxed_ordering = true}),
            kLocal | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING);
}

TEST_F(RegistrationTest, ServesWhoAsksForItsRightsExactly) {
  const std::shared_ptr<Registration> made = make({}).value();
  EXPECT_EQ(made->rights(), Rights::kReadWrite);
  EXPECT_TRUE(made->grants({}));
  EXPECT_FALSE(made->grants({.relaxed_ordering = true}));
  EXPECT_FALSE(made->grants({.rights = Rights::kRead})) << "more than asked for is too much";
}

TEST_F(RegistrationTest, ReadOnlyMemoryServesReaders) {
  fake_->read_only.insert(reinterpret_cast<std::uintptr_t>(memory_.data()));
  const std::shared_ptr<Registration> made = make({.rights = Rights::kRead}).value();
  EXPECT_FALSE(made->is_writable());
  EXPECT_EQ(made->rights(), Rights::kRead);
  const Status refused = make({}).error();
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_NE(refused.advice().find("writable"), std::string_view::npos);
}

TEST_F(RegistrationTest, LimitOfLockedMemoryIsExplained) {
  fake_->bytes_max = 4096;
  const Status status = make({}).error();
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_EQ(status.device(), "mock0");
  EXPECT_NE(status.advice().find("ulimit -l"), std::string_view::npos);
  EXPECT_NE(status.message().find("errno 12"), std::string_view::npos);
}

TEST_F(RegistrationTest, RefusesWhatIsNoRange) {
  EXPECT_EQ(register_host(domain_, memory_.data(), 0, Rights::kRead).error().code(), Code::kInvalid);
  EXPECT_EQ(register_host(domain_, nullptr, 8, Rights::kRead).error().code(), Code::kInvalid);
  const void* high = reinterpret_cast<const void*>(~std::uintptr_t{0} - 10);
  EXPECT_EQ(register_host(domain_, high, 100, Rights::kRead).error().code(), Code::kInvalid);
  fake_->attributes.max_mr_size = 4096;
  domain_ = Domain::open(fake_, "mock0").value();
  EXPECT_EQ(make({}).error().code(), Code::kUnsupported);
  EXPECT_EQ(fake_->registrations, 0);
}

TEST(Registration, FailureOfEachCallLeaksNothing) {
  std::vector<char> memory(100);
  const int calls = fail_each_call<MemoryFake>([&](const std::shared_ptr<MemoryFake>& fake) {
    const Result<std::shared_ptr<Domain>> domain = Domain::open(fake, "mock0");
    if (!domain) return false;
    const auto made = register_host(*domain, memory.data(), memory.size(), Rights::kReadWrite);
    return made.has_value();
  });
  EXPECT_EQ(calls, 5);
}

TEST(RegistrationPages, SlicesCoverAllPagesOnceAndCutAtHugePages) {
  constexpr std::uintptr_t kStart = 0x7f0000001234;
  const std::size_t size = 3 * kTouchBytesMin + 77;
  for (const unsigned count : {1u, 2u, 3u, 7u, 8u}) {
    const std::vector<PageSlice> slices = touch_slices(kStart, size, count);
    ASSERT_FALSE(slices.empty());
    EXPECT_LE(slices.size(), count);
    EXPECT_EQ(slices.front().address, 0x7f0000001000u);
    std::uintptr_t at = slices.front().address;
    for (const PageSlice& slice : slices) {
      EXPECT_EQ(slice.address, at);
      EXPECT_GT(slice.size, 0u);
      at += slice.size;
      EXPECT_TRUE(at % (2u << 20) == 0 || &slice == &slices.back());
    }
    EXPECT_EQ(at, (kStart + size + 4095) & ~std::uintptr_t{4095});
  }
}

TEST(RegistrationPages, SmallRangesAreLeftToTheRegistration) {
  EXPECT_TRUE(touch_slices(0x1000, kTouchBytesMin - 1, 8).empty());
}

TEST(RegistrationPages, PresenceIsToldByASample) {
  constexpr std::size_t kSize = 1 << 20;
  void* memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  ::madvise(memory, kSize, MADV_NOHUGEPAGE);
  EXPECT_FALSE(mostly_present(start, kSize));
  std::memset(memory, 1, kSize / 2);
  EXPECT_FALSE(mostly_present(start, kSize));
  std::memset(memory, 1, kSize);
  EXPECT_TRUE(mostly_present(start, kSize));
  ::munmap(memory, kSize);
  EXPECT_FALSE(mostly_present(start, kSize)) << "nothing is there";
}

TEST(NumaNode, IsThatOfPagesThatAreThere) {
  constexpr std::size_t kSize = 1 << 20;
  void* const pages = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  const auto address = reinterpret_cast<std::uintptr_t>(pages);
  EXPECT_EQ(numa_node_of(address, kSize), -1) << "nobody touched them";
  static_cast<char*>(pages)[kSize / 2] = 1;
  void* page = static_cast<char*>(pages) + kSize / 2;
  int node = -1;
  const bool is_told = ::syscall(SYS_move_pages, 0, 1, &page, nullptr, &node, 0) == 0 && node >= 0;
  EXPECT_EQ(numa_node_of(address, kSize), is_told ? node : -1) << "of the one that is there";
  EXPECT_EQ(numa_node_of(address + kSize / 2 + 1, 1), is_told ? node : -1);
  ASSERT_EQ(::munmap(pages, kSize), 0);
  EXPECT_EQ(numa_node_of(address, kSize), -1);
  if (!is_told) GTEST_SKIP() << "this kernel does not tell where pages are";
}

}  // namespace
}  // namespace hawser::backend::verbs
