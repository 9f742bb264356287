#include "base/cpu_features.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace hawser::base {
namespace {

constexpr std::uint32_t kAll = 0xffffffff;

TEST(CpuFeatures, AProcessorThatHasAllAndASystemThatSavesAll) {
  const CpuFeatures all = cpu_features_of({kAll, kAll, kAll, 0xe7});
  EXPECT_TRUE(all.avx2 && all.f16c && all.avx512f && all.avx512dq && all.avx512bw && all.avx512vl && all.avx512vbmi2);
}

TEST(CpuFeatures, RegistersThatAreNotSavedAreNotUsed) {
  const CpuFeatures none = cpu_features_of({kAll, kAll, kAll, 0x3});
  EXPECT_FALSE(none.avx2 || none.f16c || none.avx512f || none.avx512dq || none.avx512bw || none.avx512vl ||
               none.avx512vbmi2);
  for (const std::uint64_t saved : {0x07, 0x27, 0x67, 0xc7}) {
    const CpuFeatures narrow = cpu_features_of({kAll, kAll, kAll, saved});
    EXPECT_TRUE(narrow.avx2 && narrow.f16c) << saved;
    EXPECT_FALSE(narrow.avx512f || narrow.avx512bw || narrow.avx512vbmi2) << saved;
  }
}

TEST(CpuFeatures, AProcessorWithoutAvx512HasNoneOfIt) {
  const CpuFeatures narrow = cpu_features_of({kAll, kAll & ~(1u << 16), kAll, 0xe7});
  EXPECT_TRUE(narrow.avx2);
  EXPECT_FALSE(narrow.avx512f || narrow.avx512dq || narrow.avx512bw || narrow.avx512vl || narrow.avx512vbmi2);
}

// What the kernel says of this processor; it looks at what it saves of the registers, too.
TEST(CpuFeatures, TheKernelSaysTheSame) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "these are features of x86-64 (and an emulator's /proc/cpuinfo may be that of its host)";
#else
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> flags;
  for (std::string line; flags.empty() && std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) flags.insert(word);
  }
  if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo has no line of flags";
  const CpuFeatures& features = cpu_features();
  EXPECT_EQ(features.avx2, flags.contains("avx2"));
  EXPECT_EQ(features.f16c, flags.contains("f16c"));
  EXPECT_EQ(features.avx512f, flags.contains("avx512f"));
  EXPECT_EQ(features.avx512dq, flags.contains("avx512dq"));
  EXPECT_EQ(features.avx512bw, flags.contains("avx512bw"));
  EXPECT_EQ(features.avx512vl, flags.contains("avx512vl"));
  EXPECT_EQ(features.avx512vbmi2, flags.contains("avx512_vbmi2"));
#endif
}

}  // namespace
}  // namespace hawser::base
