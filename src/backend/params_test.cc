#include "backend/params.h"

#include <gtest/gtest.h>

namespace hawser::backend {
namespace {

using namespace std::chrono_literals;

enum class Mode { kAuto, kOn, kOff };
constexpr Choice<Mode> kModes[] = {{"auto", Mode::kAuto}, {"on", Mode::kOn}, {"off", Mode::kOff}};

TEST(ParamReader, DefaultsAreInForceInCanonicalSpelling) {
  ParamReader read("tcp", {});
  EXPECT_EQ(read.count("lanes", 4), 4u);
  EXPECT_EQ(read.size("buffer", 1 << 20), 1u << 20);
  EXPECT_EQ(read.duration("linger", 1500ms), 1500ms);
  EXPECT_TRUE(read.flag("nodelay", true));
  EXPECT_EQ(read.text("interface", "eth0"), "eth0");
  EXPECT_EQ(read.choice("zero_copy", Mode::kAuto, kModes), Mode::kAuto);
  EXPECT_TRUE(read.finish().ok());
  const Params expected{{"lanes", "4"},      {"buffer", "1MiB"},    {"linger", "1500ms"},
                        {"nodelay", "true"}, {"interface", "eth0"}, {"zero_copy", "auto"}};
  EXPECT_EQ(read.in_force(), expected);
  EXPECT_TRUE(read.warnings().empty());
}

TEST(ParamReader, GivenValuesInAnyCase) {
  ParamReader read("tcp", {{"Lanes", "8"}, {"BUFFER", "64k"}, {"zero_copy", "OFF"}, {"nodelay", "no"}});
  EXPECT_EQ(read.count("lanes", 4, {.min = 1, .max = 8}), 8u);
  EXPECT_EQ(read.size("buffer", 0), 65536u);
  EXPECT_EQ(read.choice("zero_copy", Mode::kAuto, kModes), Mode::kOff);
  EXPECT_FALSE(read.flag("nodelay", true));
  EXPECT_TRUE(read.finish().ok());
  EXPECT_EQ(read.in_force().at("buffer"), "64KiB");
  EXPECT_EQ(read.in_force().at("zero_copy"), "off");
}

TEST(ParamReader, AllWrongValuesInOneError) {
  ParamReader read("shm", {{"slots", "0"}, {"ring", "12 apples"}, {"wait", "5"}, {"mode", "x"}, {"huge", "perhaps"}});
  EXPECT_EQ(read.count("slots", 7, {.min = 1, .max = 64}), 7u);
  EXPECT_EQ(read.size("ring", 4096, {.min = 4096}), 4096u);
  EXPECT_EQ(read.duration("wait", 1s, {.max = 1min}), 1s);
  EXPECT_EQ(read.choice("mode", Mode::kOn, kModes), Mode::kOn);
  EXPECT_FALSE(read.flag("huge", false));
  const Status status = read.finish();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(
      status.message(),
      "backend shm: parameter slots = \"0\" is not a whole number, such as 16, from 1 to 64; ring = \"12 apples\" is "
      "not a size in bytes, such as 65536, 64KiB, 1MiB or 2G (K, M, G, T count by 1024; KB, MB, GB, TB by 1000), "
      "at least 4KiB; wait = \"5\" is not a duration with its unit, such as 250us, 500ms, 1.5s, 2min or 1h, at most "
      "60s; mode = \"x\" is not one of auto, on, off; huge = \"perhaps\" is not true or false (on, off, yes, no, 1 "
      "and 0 do too)");
}

TEST(ParamReader, UnknownAndDoubleKeysWarn) {
  ParamReader read("tcp", {{"lane", "8"}, {"LANES", "2"}, {"lanes", "3"}});
  EXPECT_EQ(read.count("lanes", 4), 2u);
  EXPECT_TRUE(read.finish().ok());
  ASSERT_EQ(read.warnings().size(), 2u);
  EXPECT_EQ(read.warnings()[0], "parameter \"lanes\" is given twice in other spelling; \"3\" is ignored");
  EXPECT_EQ(read.warnings()[1], "unknown parameter \"lane\" is ignored; backend tcp knows: lanes");
}

}  // namespace
}  // namespace hawser::backend
