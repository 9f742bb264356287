#include "cli/core_share.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hawser::cli {
namespace {

std::vector<int> numbers(const cpu_set_t& set) {
  std::vector<int> all;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (CPU_ISSET(number, &set)) all.push_back(number);
  }
  return all;
}

std::vector<int> share(std::span<const Processor> all, std::uint32_t rank, std::uint32_t size) {
  const Result<cpu_set_t> its = share_of(all, {.rank = rank, .size = size});
  EXPECT_TRUE(its.has_value());
  return its ? numbers(*its) : std::vector<int>();
}

/// Two packages of two cores of two threads, as Linux numbers them: the second threads come last.
const std::vector<Processor> kTwoPackages = {
    {.number = 0, .package = 0, .core = 0}, {.number = 1, .package = 0, .core = 1},
    {.number = 2, .package = 1, .core = 0}, {.number = 3, .package = 1, .core = 1},
    {.number = 4, .package = 0, .core = 0}, {.number = 5, .package = 0, .core = 1},
    {.number = 6, .package = 1, .core = 0}, {.number = 7, .package = 1, .core = 1},
};

TEST(CoreShare, ThreadsOfACoreStayTogether) {
  EXPECT_EQ(share(kTwoPackages, 0, 4), (std::vector<int>{0, 4}));
  EXPECT_EQ(share(kTwoPackages, 1, 4), (std::vector<int>{1, 5}));
  EXPECT_EQ(share(kTwoPackages, 3, 4), (std::vector<int>{3, 7}));
}

TEST(CoreShare, ARankLiesInOnePackageIfItsShareFits) {
  EXPECT_EQ(share(kTwoPackages, 0, 2), (std::vector<int>{0, 1, 4, 5}));
  EXPECT_EQ(share(kTwoPackages, 1, 2), (std::vector<int>{2, 3, 6, 7}));
}

TEST(CoreShare, TheFirstOnesHaveWhatIsLeftOver) {
  EXPECT_EQ(share(kTwoPackages, 0, 3), (std::vector<int>{0, 1, 4, 5}));
  EXPECT_EQ(share(kTwoPackages, 1, 3), (std::vector<int>{2, 6}));
  EXPECT_EQ(share(kTwoPackages, 2, 3), (std::vector<int>{3, 7}));
}

TEST(CoreShare, OneRankHasThemAll) { EXPECT_EQ(share(kTwoPackages, 0, 1).size(), 8u); }

TEST(CoreShare, MoreRanksThanCoresAreRefused) {
  const Result<cpu_set_t> none = share_of(kTwoPackages, {.rank = 0, .size = 5});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code(), Code::kInvalid);
  EXPECT_NE(none.error().to_string().find("5 ranks on a host, and 4 cores"), std::string::npos);
  EXPECT_FALSE(share_of({}, {.rank = 0, .size = 1}).has_value());
}

TEST(CoreShare, TheKernelTellsThoseThatThisProcessMayUse) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const std::vector<Processor> all = processors();
  EXPECT_EQ(all.size(), static_cast<std::size_t>(CPU_COUNT(&allowed)));
  for (const Processor& one : all) EXPECT_TRUE(CPU_ISSET(one.number, &allowed));
}

}  // namespace
}  // namespace hawser::cli
