#include "backend/adopted/foreign_pages.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

#include "backend/adopted/test_writers.h"
#include "backend/test_pages.h"
#include "base/rng.h"

namespace hawser::backend {
namespace {

constexpr std::size_t kPage = TestPages::kPage;

bool is_shared(const std::byte* at) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  return mapped_areas({begin, begin + kPage}, AreaDetail::kPlain).value().at(0).access == "rw-s";
}
bool says(const Status& status, std::string_view part) { return status.to_string().find(part) != std::string::npos; }

auto adopt(std::span<std::byte> bytes, Rights rights = Rights::kReadWrite) {
  return ForeignPages::hold(bytes, rights, true);
}
auto leave(std::span<std::byte> bytes) { return ForeignPages::hold(bytes, Rights::kReadWrite, false); }

TEST(RangeList, KnowsLikeAnArray) {
  constexpr std::uintptr_t kEnd = 64;
  struct Held {
    AddressRange range;
    std::size_t place;
  };
  base::Rng rng(7);
  RangeList list;
  std::vector<Held> held;
  std::array<int, kEnd> expected{};
  for (int step = 0; step < 3000; ++step) {
    if (held.size() > 12 || (!held.empty() && rng.u64() % 2 == 0)) {
      const std::size_t at = rng.u64() % held.size();
      list.remove(held[at].place);
      for (std::uintptr_t i = held[at].range.begin; i < held[at].range.end; ++i) --expected[i];
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      const std::uintptr_t begin = rng.u64() % (kEnd - 1);
      const AddressRange range{begin, std::min(begin + 1 + rng.u64() % (kEnd - begin), kEnd)};
      held.push_back({range, list.add(range)});
      for (std::uintptr_t i = begin; i < range.end; ++i) ++expected[i];
    }
    ASSERT_EQ(list.count(), held.size());
    ASSERT_LE(list.room(), 14u);  // Places are used again.
    for (std::uintptr_t i = 0; i < kEnd; ++i) ASSERT_EQ(list.any({i, i + 1}), expected[i] != 0) << step << " " << i;
  }
  for (const Held& one : held) list.remove(one.place);
  EXPECT_EQ(list.count(), 0u);
  EXPECT_EQ(list.room(), 0u);
  EXPECT_FALSE(list.any({0, kEnd}));
}

TEST(RangeList, AnEmptyRangeHoldsNothing) {
  RangeList list;
  list.remove(list.add({8, 8}));
  list.add({8, 8});
  EXPECT_FALSE(list.any({8, 9}));
  EXPECT_FALSE(list.any({7, 8}));
}

TEST(ForeignPages, AdoptsAndGivesBack) {
  TestPages pages(8);
  auto held = adopt(pages.bytes(100, 5 * kPage));
  ASSERT_TRUE(held->file()) << held->refusal().to_string();
  EXPECT_TRUE(held->refusal().ok());
  EXPECT_EQ(held->file()->place, 100u);
  EXPECT_EQ(held->file()->head, kPage - 100);
  EXPECT_EQ(held->file()->tail, 100u);
  EXPECT_TRUE(is_shared(pages.base() + kPage));
  EXPECT_TRUE(held->release().ok());
  EXPECT_TRUE(held->release().ok());
  EXPECT_FALSE(is_shared(pages.base() + kPage));
  EXPECT_TRUE(pages.holds(1));
  held = adopt(pages.bytes());
  ASSERT_TRUE(held->file()) << held->refusal().to_string();
  EXPECT_EQ(held->file()->head, 0u);
  EXPECT_EQ(held->file()->tail, 0u);
  held.reset();  // a registration that dies gives back, too
  EXPECT_FALSE(is_shared(pages.base()));
  EXPECT_TRUE(pages.holds(1));
}

/// What threads count in memory that is adopted and given back again and again, and is lost.
std::uint64_t lost_in_moves() {
  TestPages pages(1024);
  std::memset(pages.base(), 0, pages.bytes().size());
  TestWriters writers(pages.bytes());
  for (int round = 0; round < 10; ++round) {
    writers.await_some();
    const auto held = adopt(pages.bytes());
    writers.await_some();
    if (!held->file() || !held->release().ok()) return UINT64_MAX;
  }
  writers.stop();
  return writers.lost();
}

TEST(ForeignPages, WhatThreadsStoreMeanwhileIsNotLost) {
  if (const auto guard = WriteGuard::make(); !guard) GTEST_SKIP() << guard.error().to_string();
  EXPECT_EQ(lost_in_moves(), 0u);
}

TEST(ForeignPages, NotAskedIsNotTouched) {
  TestPages pages(4);
  const auto held = leave(pages.bytes());
  EXPECT_FALSE(held->file());
  EXPECT_FALSE(held->was_asked());
  EXPECT_TRUE(says(held->refusal(), "HAWSER_ADOPT"));
  EXPECT_FALSE(is_shared(pages.base()));
}

TEST(ForeignPages, WhatLiesInsideSharesTheFile) {
  TestPages pages(8);
  auto outer = adopt(pages.bytes());
  auto inner = adopt(pages.bytes(2 * kPage + 8, kPage));
  auto small = adopt(pages.bytes(16, 64));
  ASSERT_TRUE(inner->file() && small->file());
  EXPECT_EQ(inner->file()->fd, outer->file()->fd);
  EXPECT_EQ(inner->file()->place, 2 * kPage + 8);
  EXPECT_EQ(inner->file()->head + inner->file()->tail + small->file()->head + small->file()->tail, 0u);
  EXPECT_TRUE(outer->release().ok());
  EXPECT_TRUE(is_shared(pages.base() + 7 * kPage));  // the others are in it still
  EXPECT_TRUE(small->release().ok());
  pages.fill(2);
  EXPECT_TRUE(is_shared(pages.base()));
  EXPECT_TRUE(inner->release().ok());
  EXPECT_FALSE(is_shared(pages.base()));
  EXPECT_TRUE(pages.holds(2));
}

TEST(ForeignPages, EndsOfAnInnerRangeAreItsOwn) {
  TestPages pages(4);
  const auto outer = adopt(pages.bytes(100, 3 * kPage));  // moves pages 1 and 2
  const auto head = adopt(pages.bytes(200, 2 * kPage));
  ASSERT_TRUE(head->file());
  EXPECT_EQ(head->file()->place, 200u);
  EXPECT_EQ(head->file()->head, kPage - 200);
  EXPECT_EQ(head->file()->tail, 0u);
  const auto end = adopt(pages.bytes(200, 300));  // holds none of its pages, and nothing of it is moved
  EXPECT_FALSE(end->file());
  EXPECT_TRUE(says(end->refusal(), "holds a part of it"));
}

TEST(ForeignPages, OverlapsThatCannotShareStayForeignAndHold) {
  TestPages pages(8);
  auto first = adopt(pages.bytes(0, 4 * kPage));
  auto larger = adopt(pages.bytes());
  EXPECT_FALSE(larger->file());
  EXPECT_TRUE(larger->was_asked());
  EXPECT_TRUE(says(larger->refusal(), "adopted for another registration"));
  EXPECT_TRUE(says(larger->refusal(), "larger range first"));
  auto second = adopt(pages.bytes(4 * kPage, 4 * kPage));
  EXPECT_TRUE(says(second->refusal(), "holds a part of it as it is"));
  EXPECT_TRUE(first->release().ok());
  EXPECT_TRUE(is_shared(pages.base()));  // peers of the larger one may be at work in it
  EXPECT_TRUE(larger->release().ok());
  EXPECT_FALSE(is_shared(pages.base()));
  EXPECT_TRUE(pages.holds(1));
}

TEST(ForeignPages, TwoAdoptionsUnderOneRegistration) {
  TestPages pages(8);
  auto first = adopt(pages.bytes(0, 4 * kPage));
  auto second = adopt(pages.bytes(4 * kPage, 4 * kPage));
  ASSERT_TRUE(first->file() && second->file());
  auto both = adopt(pages.bytes());
  EXPECT_TRUE(says(both->refusal(), "parts of it were adopted"));
  first.reset();
  second.reset();
  EXPECT_TRUE(is_shared(pages.base()) && is_shared(pages.base() + 7 * kPage));
  both.reset();
  EXPECT_FALSE(is_shared(pages.base()) || is_shared(pages.base() + 7 * kPage));
  EXPECT_TRUE(pages.holds(1));
}

TEST(ForeignPages, MemoryInUseIsNotMoved) {
  TestPages pages(4);
  auto plain = leave(pages.bytes(10, 20));
  auto asked = adopt(pages.bytes());
  EXPECT_FALSE(asked->file());
  EXPECT_TRUE(says(asked->refusal(), "another registration holds a part"));
  EXPECT_FALSE(is_shared(pages.base()));
  asked.reset();
  plain.reset();
  EXPECT_TRUE(adopt(pages.bytes())->file());
  EXPECT_FALSE(is_shared(pages.base()));
}

TEST(ForeignPages, RightsOfTheFirstBindTheOthers) {
  TestPages pages(4);
  const auto reader = adopt(pages.bytes(), Rights::kRead);
  EXPECT_TRUE(reader->file());
  EXPECT_TRUE(says(adopt(pages.bytes())->refusal(), "may not write"));
  EXPECT_TRUE(adopt(pages.bytes(), Rights::kRead)->file());
}

TEST(ForeignPages, WhatIsKeptStaysSharedAndCanBeSharedAgain) {
  TestPages pages(4);
  auto dropped = adopt(pages.bytes());
  const int fd = dropped->file()->fd;
  dropped->keep();
  dropped.reset();
  EXPECT_TRUE(is_shared(pages.base()));
  pages.fill(2);
  auto again = adopt(pages.bytes());
  ASSERT_TRUE(again->file());
  EXPECT_EQ(again->file()->fd, fd);
  EXPECT_TRUE(again->release().ok());
  EXPECT_TRUE(is_shared(pages.base()));
  EXPECT_TRUE(pages.holds(2));
  ASSERT_NE(::mmap(pages.base(), 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  pages.fill(3);  // other memory at these addresses
  again = adopt(pages.bytes());
  ASSERT_TRUE(again->file()) << again->refusal().to_string();
  EXPECT_TRUE(again->release().ok());
  EXPECT_FALSE(is_shared(pages.base()));
  EXPECT_TRUE(pages.holds(3));
}

TEST(ForeignPages, OtherMemoryAtTheSameAddressIsNotTheFile) {
  TestPages pages(4);
  const auto stale = adopt(pages.bytes());
  ASSERT_NE(::mmap(pages.base() + kPage, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  EXPECT_TRUE(says(adopt(pages.bytes())->refusal(), "were unmapped"));
  EXPECT_TRUE(adopt(pages.bytes(2 * kPage, kPage))->file());  // still there
}

TEST(ForeignPages, RefusalsKeepTheirReason) {
  TestPages pages(4);
  ASSERT_EQ(::mprotect(pages.base(), kPage, PROT_READ), 0);
  const auto held = adopt(pages.bytes());
  EXPECT_TRUE(says(held->refusal(), "cannot be read and written"));
  EXPECT_TRUE(held->release().ok());
}

/// Exit status of a child that runs `child`; 100 and more: how it died.
template <typename Child>
int in_child(Child child) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(child());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

TEST(ForeignPages, AChildWritesToItsOwn) {
  TestPages pages(8);
  auto held = adopt(pages.bytes(100, 6 * kPage));
  ASSERT_TRUE(held->file());
  EXPECT_EQ(in_child([&] {
              if (!pages.holds(1)) return 1;
              pages.fill(2);
              if (!pages.holds(2)) return 2;
              held.reset();  // the parent's business
              if (!pages.holds(2)) return 3;
              return is_shared(pages.base() + kPage) ? 4 : 0;
            }),
            0);
  EXPECT_TRUE(pages.holds(1));
  EXPECT_TRUE(is_shared(pages.base() + kPage));
  pages.fill(3);
  EXPECT_TRUE(held->release().ok());
  EXPECT_TRUE(pages.holds(3));
}

TEST(ForeignPages, AChildAdoptsItsOwnAndForks) {
  TestPages pages(8), more(8);
  const auto held = adopt(pages.bytes());
  const auto plain = leave(more.bytes());
  EXPECT_EQ(in_child([&] {
              const auto again = adopt(pages.bytes());  // a view of the parent's file
              if (again->file() || !says(again->refusal(), "mapped from a file")) return 1;
              const auto own = adopt(more.bytes());
              if (!own->file()) return 2;
              const int grandchild = in_child([&] {
                more.fill(9);
                pages.fill(9);
                return 0;
              });
              if (grandchild != 0 || !more.holds(1) || !pages.holds(1)) return 3;
              return own->release().ok() && more.holds(1) ? 0 : 4;
            }),
            0);
  EXPECT_TRUE(pages.holds(1) && more.holds(1));
}

TEST(ForeignPages, AChildGuardsItsOwn) {
  if (const auto guard = WriteGuard::make(); !guard) GTEST_SKIP() << guard.error().to_string();
  TestPages pages(4);
  const auto held = adopt(pages.bytes());  // so that there is a guard in the parent
  EXPECT_EQ(in_child([] { return lost_in_moves() == 0 ? 0 : 1; }), 0);
}

/// As in a container whose profile does not know userfaultfd, without privileges. For this process.
bool forbid_userfaultfd() {
  if (::geteuid() == 0 && ::setuid(65534) != 0) return false;
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{.len = std::size(rules), .filter = rules};
  return ::prctl(PR_SET_DUMPABLE, 1) == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(ForeignPages, ThatThereIsNoGuardIsToldOnce) {
#ifdef HAWSER_EMULATED
  GTEST_SKIP() << "an emulator has no filters of system calls";
#endif
  TestPages pages(4), more(4);
  EXPECT_EQ(in_child([&] {
              if (!forbid_userfaultfd()) return 77;
              const auto first = adopt(pages.bytes());
              const auto second = adopt(more.bytes());
              if (!first->file() || !second->file()) return 1;
              if (!says(first->unguarded(), "userfaultfd") || first->unguarded().advice().empty()) return 2;
              return second->unguarded().ok() ? 0 : 3;
            }),
            0);
}

TEST(ForeignPages, AForkLeavesAloneWhatWasUnmapped) {
  TestPages pages(4);
  const auto held = adopt(pages.bytes());
  ASSERT_NE(::mmap(pages.base() + kPage, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            MAP_FAILED);
  pages.base()[kPage] = std::byte{0x21};
  EXPECT_EQ(in_child([&] { return pages.base()[kPage] == std::byte{0x21} ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace hawser::backend
