#include "compat/book.h"

#include <gtest/gtest.h>

namespace hawser::compat {
namespace {

using Names = Book<int>;

Names::Entry entry(std::uint64_t len, int name, BackendMask backends = 1) {
  return {.len = len, .range = name, .backends = backends};
}

int find(const Names& book, const Desc& desc, MemType type = MemType::kDram) {
  std::uint64_t offset = 0;
  const auto* const found = Names::Cursor(book, type).find(desc, &offset);
  return found == nullptr ? -1 : found->range;
}

TEST(Book, ADescriptorMustLieInOneRegistration) {
  Names book;
  book.add(MemType::kDram, {1000, 100, 0}, entry(100, 1));
  book.add(MemType::kDram, {1100, 100, 0}, entry(100, 2));
  book.add(MemType::kDram, {1000, 50, 7}, entry(50, 3));
  EXPECT_EQ(find(book, {1000, 100, 0}), 1);
  EXPECT_EQ(find(book, {1099, 1, 0}), 1);
  EXPECT_EQ(find(book, {1100, 1, 0}), 2);
  EXPECT_EQ(find(book, {1099, 2, 0}), -1);
  EXPECT_EQ(find(book, {999, 2, 0}), -1);
  EXPECT_EQ(find(book, {1199, 2, 0}), -1);
  EXPECT_EQ(find(book, {1000, 50, 7}), 3);
  EXPECT_EQ(find(book, {1000, 51, 7}), -1);
  EXPECT_EQ(find(book, {1000, 50, 7}, MemType::kVram), -1);
  EXPECT_EQ(find(book, {1000, UINT64_MAX, 0}), -1);
}

TEST(Book, ACoveringRegistrationIsFoundBehindSmallerOnes) {
  Names book;
  book.add(MemType::kDram, {0, 1000, 0}, entry(1000, 1));
  for (std::uint64_t at = 100; at < 900; at += 100) {
    book.add(MemType::kDram, {at, 10, 0}, entry(10, 2));
  }
  EXPECT_EQ(find(book, {850, 100, 0}), 1);
  EXPECT_EQ(find(book, {805, 5, 0}), 2);
}

TEST(Book, ACursorGoesForwardsBackwardsAndFails) {
  Names book;
  for (int i = 0; i < 10; ++i) {
    book.add(MemType::kDram, {static_cast<std::uint64_t>(i) * 100, 100, 0}, entry(100, i));
  }
  Names::Cursor cursor(book, MemType::kDram);
  std::uint64_t offset = 0;
  for (const int i : {0, 0, 1, 2, 9, 8, 3, 3, 4, 0}) {
    const auto* const found = cursor.find({static_cast<std::uint64_t>(i) * 100 + 5, 95, 0}, &offset);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->range, i);
    EXPECT_EQ(offset, 5u);
    EXPECT_EQ(cursor.find({5000, 1, 0}, &offset), nullptr);
  }
}

// A search looks no further back than the longest registration reaches, so it must not remember one that is gone.
TEST(Book, TheLongestIsThatOfWhatIsThere) {
  Names book;
  constexpr std::uint64_t kUnbounded = UINT64_MAX >> 1;
  EXPECT_EQ(book.longest(MemType::kFile), 0u);
  book.add(MemType::kFile, {0, kUnbounded, 3}, entry(kUnbounded, 1));
  book.add(MemType::kFile, {0, 4096, 3}, entry(4096, 2));
  book.add(MemType::kFile, {0, 4000, 3}, entry(4000, 3));
  book.add(MemType::kDram, {0, 100, 0}, entry(100, 4));
  EXPECT_EQ(book.longest(MemType::kFile), kUnbounded);
  EXPECT_GE(book.longest(MemType::kDram), 100u);
  EXPECT_LT(book.longest(MemType::kDram), 200u) << "of another type";
  std::optional<Names::Entry> out;
  ASSERT_TRUE(book.take(MemType::kFile, {0, kUnbounded, 3}, ~0u, &out));
  EXPECT_GE(book.longest(MemType::kFile), 4096u);
  EXPECT_LT(book.longest(MemType::kFile), 8192u) << "it remembers what is gone";
  ASSERT_TRUE(book.take(MemType::kFile, {0, 4096, 3}, ~0u, &out));
  EXPECT_LT(book.longest(MemType::kFile), 4096u);
  EXPECT_EQ(find(book, {10, 20, 3}, MemType::kFile), 3);
  ASSERT_TRUE(book.take(MemType::kFile, {0, 4000, 3}, ~0u, &out));
  EXPECT_EQ(book.longest(MemType::kFile), 0u);
}

TEST(Book, WhatIsThereTwiceGoesOneByOneAndByBackend) {
  Names book;
  book.add(MemType::kDram, {1, 2, 0}, entry(2, 1, 1));
  book.add(MemType::kDram, {1, 2, 0}, entry(2, 2, 3));
  std::optional<Names::Entry> out;
  EXPECT_FALSE(book.take(MemType::kDram, {1, 3, 0}, ~0u, &out));
  EXPECT_FALSE(book.take(MemType::kDram, {1, 2, 0}, 4, &out));
  EXPECT_TRUE(book.take(MemType::kDram, {1, 2, 0}, 2, &out));  // Stays for the other backend.
  EXPECT_FALSE(out);
  EXPECT_TRUE(book.take(MemType::kDram, {1, 2, 0}, ~0u, &out));
  EXPECT_TRUE(out);
  EXPECT_TRUE(book.take(MemType::kDram, {1, 2, 0}, ~0u, &out));
  EXPECT_FALSE(book.take(MemType::kDram, {1, 2, 0}, ~0u, &out));
  EXPECT_TRUE(book.entries().empty());
}

TEST(Book, OfSeveralThatHoldADescriptorTheWantedOneIsFound) {
  Names book;
  book.add(MemType::kDram, {0, 1000, 0}, entry(1000, 1));
  book.add(MemType::kDram, {100, 100, 0}, entry(100, 2));
  book.add(MemType::kDram, {100, 50, 0}, entry(50, 3));
  book.add(MemType::kDram, {100, 50, 7}, entry(50, 4));
  std::uint64_t offset = 0;
  for (const int wanted : {1, 2, 3}) {
    const auto* const found =
        book.find_if(MemType::kDram, {110, 20, 0}, &offset, [&](const auto& one) { return one.range == wanted; });
    ASSERT_NE(found, nullptr) << wanted;
    EXPECT_EQ(offset, wanted == 1 ? 110u : 10u);
  }
  const auto any = [](const auto&) { return true; };
  EXPECT_EQ(book.find_if(MemType::kDram, {110, 60, 0}, &offset, [](const auto& one) { return one.range == 3; }),
            nullptr)
      << "it does not hold all of it";
  EXPECT_EQ(book.find_if(MemType::kDram, {2000, 1, 0}, &offset, any), nullptr);
  EXPECT_EQ(book.find_if(MemType::kVram, {110, 20, 0}, &offset, any), nullptr);
  EXPECT_EQ(book.find_exact(MemType::kDram, {100, 50, 0})->range, 3);
  EXPECT_EQ(book.find_exact(MemType::kDram, {100, 51, 0}), nullptr);
}

TEST(Book, WhatIsUnwantedGoes) {
  Names book;
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t len = i == 9 ? 4096 : 10;
    book.add(MemType::kDram, {static_cast<std::uint64_t>(i) * 100, len, 0}, entry(len, i));
  }
  book.erase_if([](const Names::Key&, const Names::Entry& one) { return one.range % 2 == 1; });
  EXPECT_EQ(book.entries().size(), 5u);
  EXPECT_EQ(find(book, {205, 5, 0}), 2);
  EXPECT_EQ(find(book, {305, 5, 0}), -1);
  EXPECT_LT(book.longest(MemType::kDram), 20u);
}

}  // namespace
}  // namespace hawser::compat
