#include "backend/shm/line_marks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/rng.h"

namespace hawser::backend::shm {
namespace {

TEST(LineMarks, HoldsWhatAPlainListHolds) {
  for (const std::uint64_t lines : {4U, 32U, 64U, 128U, 1024U}) {
    LineMarks marks;
    EXPECT_TRUE(marks.empty());
    marks.open(lines);
    EXPECT_FALSE(marks.empty());
    std::vector<bool> plain(lines);
    base::Rng rng(lines);
    for (int step = 0; step < 2000; ++step) {
      const std::uint64_t position = rng.below(lines * 8), count = rng.below(lines + 1);
      const bool sets = rng.chance(0.5);
      if (sets) marks.set(position, count);
      if (!sets) marks.clear(position, count);
      for (std::uint64_t i = 0; i < count; ++i) plain[(position + i) % lines] = sets;
      for (std::uint64_t line = 0; line < lines; ++line) ASSERT_EQ(marks.has(line), plain[line]) << line;
    }
  }
}

TEST(LineMarks, OneLineAndAllOfThem) {
  LineMarks marks;
  marks.open(64);
  marks.set(63, 1);
  EXPECT_TRUE(marks.has(63));
  EXPECT_FALSE(marks.has(62));
  EXPECT_FALSE(marks.has(64));  // The first one, a lap later.
  marks.set(63, 64);
  for (std::uint64_t line = 0; line < 64; ++line) EXPECT_TRUE(marks.has(line));
  marks.clear(100, 64);
  for (std::uint64_t line = 0; line < 64; ++line) EXPECT_FALSE(marks.has(line));
}

}  // namespace
}  // namespace hawser::backend::shm
