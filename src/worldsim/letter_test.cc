#include "worldsim/letter.h"

#include <gtest/gtest.h>

#include "worldsim/letter_book.h"

namespace hawser::worldsim {
namespace {

TEST(LetterTest, ReadsWhatWasWritten) {
  const Letter letter = {
      .realm = 3, .from = 1, .to = 2, .tag = 9, .number = 4, .size = 500, .priority = Priority::kCritical};
  std::vector<std::byte> bytes = write_letter(letter);
  EXPECT_EQ(read_letter(bytes), letter);
  bytes[499] ^= std::byte{1};
  EXPECT_EQ(read_letter(bytes), std::nullopt);
  EXPECT_EQ(read_letter(std::span(bytes).first(499)), std::nullopt);
  EXPECT_EQ(read_letter({}), std::nullopt);
}

Letter of(std::uint32_t from, std::uint64_t tag, std::uint64_t number, Priority priority = Priority::kBulk) {
  return {.realm = 1, .from = from, .to = 0, .tag = tag, .number = number, .size = kLetterMin, .priority = priority};
}

TEST(LetterBookTest, OfOneSourceAndTagTheOrderOfReceivesIsThatOfLetters) {
  LetterBook book;
  const std::size_t first = book.post(std::nullopt, 5), second = book.post(2, std::nullopt), third = book.post(2, 5);
  EXPECT_EQ(book.take(third, of(2, 5, 7)), "");
  EXPECT_EQ(book.take(first, of(3, 5, 9)), "");  // Another source: it has an order of its own.
  EXPECT_NE(book.take(second, of(2, 5, 8)), "");
  EXPECT_TRUE(book.has(of(2, 5, 7)));
  EXPECT_FALSE(book.has(of(2, 5, 6)));
}

TEST(LetterBookTest, EachClassHasAnOrderOfItsOwn) {
  LetterBook book;
  const std::size_t first = book.post(2, 5), second = book.post(2, 5), third = book.post(2, 5);
  EXPECT_EQ(book.take(first, of(2, 5, 2, Priority::kCritical)), "");
  EXPECT_EQ(book.take(second, of(2, 5, 1, Priority::kRealtime)), "");
  EXPECT_NE(book.take(third, of(2, 5, 1, Priority::kCritical)), "");
  EXPECT_FALSE(book.has(of(2, 5, 2, Priority::kBulk)));
}

TEST(LetterBookTest, ALetterComesOnceAndToWhoAskedForIt) {
  LetterBook book;
  const std::size_t first = book.post(2, 5), second = book.post(2, 5), other = book.post(1, 5);
  EXPECT_EQ(book.take(first, of(2, 5, 1)), "");
  EXPECT_NE(book.take(second, of(2, 5, 1)), "");
  EXPECT_NE(book.take(other, of(2, 5, 2)), "");
  book.give_up(other);
  EXPECT_EQ(book.lost(), 1U);
}

}  // namespace
}  // namespace hawser::worldsim
