#include "base/quantity.h"

#include <gtest/gtest.h>

namespace hawser::base {
namespace {

using namespace std::chrono_literals;

TEST(Quantity, Counts) {
  EXPECT_EQ(parse_count("0"), 0u);
  EXPECT_EQ(parse_count(" 42\n"), 42u);
  EXPECT_EQ(parse_count("18446744073709551615"), UINT64_MAX);
  for (const char* bad : {"", " ", "-1", "+1", "1x", "0x10", "1 2", "18446744073709551616", "1.0"}) {
    EXPECT_FALSE(parse_count(bad)) << bad;
  }
}

TEST(Quantity, Sizes) {
  EXPECT_EQ(parse_size("65536"), 65536u);
  EXPECT_EQ(parse_size("64KiB"), 65536u);
  EXPECT_EQ(parse_size("64 kib "), 65536u);
  EXPECT_EQ(parse_size("1m"), 1u << 20);
  EXPECT_EQ(parse_size("2G"), 2ull << 30);
  EXPECT_EQ(parse_size("3MB"), 3'000'000u);
  EXPECT_EQ(parse_size("16777215TiB"), 16777215ull << 40);
  for (const char* bad : {"", "KiB", "1.5G", "1X", "16777216TiB", "99999999999999999999", "-1k", "1k2"}) {
    EXPECT_FALSE(parse_size(bad)) << bad;
  }
}

TEST(Quantity, Durations) {
  EXPECT_EQ(parse_duration("500ms"), Duration(500ms));
  EXPECT_EQ(parse_duration("1.5S"), Duration(1500ms));
  EXPECT_EQ(parse_duration("0.000000001s"), Duration(1ns));
  EXPECT_EQ(parse_duration("1.50000000000000000000000000us"), Duration(1500ns));
  EXPECT_EQ(parse_duration("7\xc2\xb5s"), Duration(7us));
  EXPECT_EQ(parse_duration("2min"), Duration(2min));
  EXPECT_EQ(parse_duration("1.5h"), Duration(90min));
  EXPECT_EQ(parse_duration("0"), Duration(0));
  EXPECT_EQ(parse_duration("9223372036854775807ns"), Duration::max());
  for (const char* bad : {"", "5", "ms", "-1s", "1.s", ".5s", "1.0000000001s", "0.5ns", "9223372037s",
                          "9223372036854775808ns", "1 s 2", "1..5s", "0.5"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

TEST(Quantity, Switches) {
  for (const char* yes : {"true", "ON", "Yes", "1", " true "}) EXPECT_EQ(parse_switch(yes), true) << yes;
  for (const char* no : {"false", "off", "NO", "0"}) EXPECT_EQ(parse_switch(no), false) << no;
  for (const char* bad : {"", "maybe", "2", "tru"}) EXPECT_FALSE(parse_switch(bad)) << bad;
}

TEST(Quantity, WrittenFormsReadBack) {
  EXPECT_EQ(format_size(0), "0");
  EXPECT_EQ(format_size(1000), "1000");
  EXPECT_EQ(format_size(65536), "64KiB");
  EXPECT_EQ(format_size(1536), "1536");
  EXPECT_EQ(format_duration(Duration(0)), "0");
  EXPECT_EQ(format_duration(1500ms), "1500ms");
  EXPECT_EQ(format_duration(2min), "120s");
  EXPECT_EQ(format_duration(1001ns), "1001ns");
  for (const std::uint64_t size : {0ull, 1ull, 1024ull, 1025ull, 3ull << 40, ~0ull}) {
    EXPECT_EQ(parse_size(format_size(size)), size);
  }
  for (const Duration d : {Duration(0), Duration(1), Duration(1us), Duration(90s), Duration::max()}) {
    EXPECT_EQ(parse_duration(format_duration(d)), d);
  }
}

TEST(Quantity, TextHelpers) {
  EXPECT_EQ(to_lower("HAWSER_\xc3\x84"), "hawser_\xc3\x84");
  EXPECT_EQ(trim(" \t a b\n"), "a b");
  EXPECT_TRUE(equal_ignoring_case("Tcp", "TCP"));
  EXPECT_FALSE(equal_ignoring_case("tcp", "tcp2"));
}

}  // namespace
}  // namespace hawser::base
