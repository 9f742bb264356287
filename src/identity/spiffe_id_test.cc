#include "identity/spiffe_id.h"

#include <gtest/gtest.h>

#include <string>

namespace hawser::identity {
namespace {

TEST(SpiffeId, HasADomainAndAPath) {
  const auto id = SpiffeId::parse("spiffe://example.org/ns/inference/sa/decoder");
  ASSERT_TRUE(id.has_value()) << id.error().to_string();
  EXPECT_EQ(id->domain(), "example.org");
  EXPECT_EQ(id->path(), "ns/inference/sa/decoder");
  EXPECT_EQ(id->text(), "spiffe://example.org/ns/inference/sa/decoder");
}

TEST(SpiffeId, MayHaveNoPath) {
  const auto id = SpiffeId::parse("spiffe://example.org");
  ASSERT_TRUE(id.has_value()) << id.error().to_string();
  EXPECT_EQ(id->domain(), "example.org");
  EXPECT_EQ(id->path(), "");
}

TEST(SpiffeId, NoneHasNeither) {
  EXPECT_EQ(SpiffeId().domain(), "");
  EXPECT_EQ(SpiffeId().path(), "");
}

TEST(SpiffeId, RefusesWhatTheStandardDoesNotAllow) {
  for (const char* text :
       {"", "spiffe:", "spiffe://", "spiffe:///store", "https://example.org/store", "SPIFFE://example.org/store",
        "spiffe://Example.org/store", "spiffe://example.org/", "spiffe://example.org//store", "spiffe://example.org/a/",
        "spiffe://example.org/.", "spiffe://example.org/a/../b", "spiffe://example.org:80/store",
        "spiffe://me@example.org/store", "spiffe://example.org/store?x=1", "spiffe://example.org/store#x",
        "spiffe://example.org/st%20ore", "spiffe://example.org/st*re"}) {
    const auto id = SpiffeId::parse(text);
    ASSERT_FALSE(id.has_value()) << text;
    EXPECT_EQ(id.error().code(), Code::kInvalid) << text;
  }
}

TEST(SpiffeId, BoundsAreTheStandards) {
  const std::string domain(kDomainMax, 'a');
  EXPECT_TRUE(SpiffeId::parse("spiffe://" + domain + "/x").has_value());
  EXPECT_FALSE(SpiffeId::parse("spiffe://" + domain + "a/x").has_value());
  const std::string start = "spiffe://example.org/";
  const std::string longest = start + std::string(kSpiffeIdMax - start.size(), 'x');
  EXPECT_TRUE(SpiffeId::parse(longest).has_value());
  EXPECT_FALSE(SpiffeId::parse(longest + "x").has_value());
}

}  // namespace
}  // namespace hawser::identity
