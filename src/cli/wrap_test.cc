#include "cli/wrap.h"

#include <gtest/gtest.h>

namespace hawser::cli {
namespace {

TEST(Wrap, ShortLinesStay) {
  for (const std::string text : {"", "\n", "one\ntwo\n", "  12345678", "no end\n\nhere"}) {
    EXPECT_EQ(wrap(text, 10), text);
  }
}

TEST(Wrap, LongLinesFoldAtBlanks) {
  EXPECT_EQ(wrap("1234 6789 1", 10), "1234 6789\n1");
  EXPECT_EQ(wrap("1234 67890", 10), "1234 67890");
  EXPECT_EQ(wrap("1234 678901", 10), "1234\n678901");
  EXPECT_EQ(wrap("  one two three", 10), "  one two\n  three");
  EXPECT_EQ(wrap("one two three four five six\n", 10), "one two\nthree four\nfive six\n");
}

TEST(Wrap, WhatGoesOnStandsBelowTheLastColumn) {
  EXPECT_EQ(wrap("  -x  the first thing to say", 16), "  -x  the first\n      thing to\n      say");
  // A column far to the right would leave no room.
  EXPECT_EQ(wrap("  --long-option-name  some words", 24), "  --long-option-name\n  some words");
}

TEST(Wrap, AWordLongerThanALineStaysWhole) {
  EXPECT_EQ(wrap("123456789012345 7", 10), "123456789012345\n7");
  EXPECT_EQ(wrap("1 123456789012345", 10), "1\n123456789012345");
  EXPECT_EQ(wrap("123456789012345", 10), "123456789012345");
}

}  // namespace
}  // namespace hawser::cli
