#include "identity/name_rules.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace hawser::identity {
namespace {

Holder holder(const char* id, std::vector<std::string> dns = {}) {
  return {.id = *SpiffeId::parse(id), .dns = std::move(dns)};
}

TEST(Matches, AStarStandsForAnyCharacters) {
  for (const auto& [pattern, text] : {std::pair("", ""),
                                      {"*", ""},
                                      {"*", "abc"},
                                      {"a*", "a"},
                                      {"a*c", "abbc"},
                                      {"*c", "abcc"},
                                      {"a*b*c", "aXbYbZc"},
                                      {"**", "x"},
                                      {"a", "a"}}) {
    EXPECT_TRUE(matches(pattern, text)) << pattern << " " << text;
  }
  for (const auto& [pattern, text] : {std::pair("", "a"),
                                      {"a", ""},
                                      {"a*", "b"},
                                      {"a*c", "abcd"},
                                      {"*c", "ab"},
                                      {"a*b*c", "aXcYb"},
                                      {"ab", "a"},
                                      {"a", "ab"}}) {
    EXPECT_FALSE(matches(pattern, text)) << pattern << " " << text;
  }
}

TEST(Matches, TakesNoTimeThatGrowsByPowers) {
  const std::string text(20'000, 'a');
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "a*";
  EXPECT_FALSE(matches(pattern + "b", text));
}

TEST(NameRules, AnIdentitySpeaksForItsPathAndWhatIsBeneath) {
  const NameRules none;
  const Holder store = holder("spiffe://example.org/store");
  EXPECT_TRUE(none.allows(store, "store"));
  EXPECT_TRUE(none.allows(store, "store/ping-1"));
  EXPECT_FALSE(none.allows(store, "store-2"));  // Which may be another identity.
  EXPECT_FALSE(none.allows(store, "sto"));
  EXPECT_FALSE(none.allows(store, "reader"));
  EXPECT_FALSE(none.allows(store, ""));
  EXPECT_TRUE(none.allows(holder("spiffe://example.org/ns/a/sa/b"), "ns/a/sa/b"));
  EXPECT_FALSE(none.allows(holder("spiffe://example.org/ns/a/sa/b"), "b"));
}

TEST(NameRules, TheDomainItselfSpeaksForNobody) {
  EXPECT_FALSE(NameRules().allows(holder("spiffe://example.org"), ""));
  EXPECT_FALSE(NameRules().allows(holder("spiffe://example.org"), "store"));
  EXPECT_FALSE(NameRules().allows(holder("spiffe://example.org"), "/store"));
}

TEST(NameRules, DnsNamesArePatterns) {
  const Holder worker = holder("spiffe://example.org/worker", {"worker-*", "gate.example.org"});
  EXPECT_TRUE(NameRules().allows(worker, "worker-17"));
  EXPECT_TRUE(NameRules().allows(worker, "gate.example.org"));
  EXPECT_FALSE(NameRules().allows(worker, "gateXexample.org"));
  EXPECT_FALSE(NameRules().allows(worker, "my-worker-17"));
  EXPECT_EQ(NameRules().names_of(worker), "worker, worker/*, worker-*, gate.example.org");
}

TEST(NameRules, RulesOfTheUserAdd) {
  const auto rules = NameRules::parse("spiffe://prod/ns/inference/*=decoder-*,spiffe://prod/admin=*");
  ASSERT_TRUE(rules.has_value()) << rules.error().to_string();
  EXPECT_TRUE(rules->allows(holder("spiffe://prod/ns/inference/sa/x"), "decoder-3"));
  EXPECT_FALSE(rules->allows(holder("spiffe://prod/ns/inference/sa/x"), "prefill-3"));
  EXPECT_FALSE(rules->allows(holder("spiffe://prod/ns/other/sa/x"), "decoder-3"));
  EXPECT_TRUE(rules->allows(holder("spiffe://prod/admin"), "anything"));
  EXPECT_EQ(rules->names_of(holder("spiffe://prod/admin")), "admin, admin/*, *");
}

TEST(NameRules, ErrorsQuoteTheRule) {
  for (const char* text : {"x", "=x", "spiffe://a/b=", "spiffe://a/b", "a/b=c", "spiffe://a/b=c,,"}) {
    const auto rules = NameRules::parse(text);
    ASSERT_FALSE(rules.has_value()) << text;
    EXPECT_EQ(rules.error().code(), Code::kInvalid);
  }
  EXPECT_TRUE(NameRules::parse("").has_value());
}

}  // namespace
}  // namespace hawser::identity
