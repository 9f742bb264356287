#include "base/dylib.h"

#include <gtest/gtest.h>

namespace hawser::base {
namespace {

TEST(Dylib, OpensTheFirstThatIsThere) {
  Result<Dylib> lib = Dylib::open({"libnothing-of-hawser.so.9", "libm.so.6"});
  ASSERT_TRUE(lib) << lib.error().to_string();
  EXPECT_EQ(lib->name(), "libm.so.6");
  const auto cosine = lib->symbol<double(double)>("cos");
  ASSERT_TRUE(cosine);
  EXPECT_EQ((**cosine)(0.0), 1.0);
  EXPECT_EQ(lib->find_symbol<void()>("hawser_has_no_such"), nullptr);
  const Status missing = lib->symbol<void()>("hawser_has_no_such").error();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_EQ(missing.message(), "libm.so.6 has no symbol hawser_has_no_such");
  Dylib moved = *std::move(lib);
  EXPECT_NE(moved.find_symbol<double(double)>("sin"), nullptr);
}

TEST(Dylib, TheErrorTellsWhatWasTried) {
  const Result<Dylib> lib = Dylib::open({"libnothing-a.so", "libnothing-b.so"});
  ASSERT_FALSE(lib);
  EXPECT_EQ(lib.error().code(), Code::kNotFound);
  const std::string text = lib.error().to_string();
  EXPECT_NE(text.find("libnothing-a.so: "), std::string::npos) << text;
  EXPECT_NE(text.find("libnothing-b.so: "), std::string::npos) << text;
}

}  // namespace
}  // namespace hawser::base
