#include "base/shown.h"

#include <gtest/gtest.h>

namespace hawser::base {
namespace {

TEST(Shown, PlainTextStaysAsItIs) {
  for (const std::string_view text : {"", "10.0.0.1:5000",
                                      "Gr\xc3\xbc\xc3\x9f"
                                      "e",
                                      "\xe6\x97\xa5\xe6\x9c\xac", "\xf0\x9f\x9a\xa2", "a\\b'\""})
    EXPECT_EQ(shown(text), text);
}

TEST(Shown, WhatMovesATerminalIsWrittenOut) {
  EXPECT_EQ(shown("\x1b[2Jgone\r\nINFO: all is well\x7f"), "\\x1b[2Jgone\\x0d\\x0aINFO: all is well\\x7f");
  EXPECT_EQ(shown(std::string_view("a\0b\tc", 5)), "a\\x00b\\x09c");
  EXPECT_EQ(shown("\xc2\x9b"
                  "2J"),
            "\\xc2\\x9b2J")
      << "a control of eight bits";
  EXPECT_EQ(shown("\xe2\x80\xae"
                  "txt"),
            "\\xe2\\x80\\xaetxt")
      << "turned round";
  EXPECT_EQ(shown("\xe2\x80\xa8"), "\\xe2\\x80\\xa8") << "ends a line";
}

TEST(Shown, WhatIsNoUtf8IsWrittenOut) {
  EXPECT_EQ(shown("\xff\x9b"), "\\xff\\x9b");
  EXPECT_EQ(shown("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(shown("\xc3("), "\\xc3(");
  EXPECT_EQ(shown("\xc0\x9b"), "\\xc0\\x9b") << "longer than need be";
  EXPECT_EQ(shown("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(shown("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond the last";
}

TEST(Shown, LongTextsAreCut) {
  EXPECT_EQ(shown(std::string(400, 'x')), std::string(kShownMax, 'x') + "...");
  EXPECT_EQ(shown(std::string(kShownMax, 'x')), std::string(kShownMax, 'x'));
  EXPECT_EQ(shown("ab\xc3\xbc"
                  "c",
                  3),
            "ab...")
      << "not within a character";
  EXPECT_EQ(shown("\x01\x02\x03", 2), "\\x01\\x02...");
}

}  // namespace
}  // namespace hawser::base
