#include "identity/trust.h"

#include <gtest/gtest.h>

#include <string>

#include "identity/test_authority.h"

namespace hawser::identity {
namespace {

Status verdict(const Trust& trust, const Issued& issued) {
  return trust.verify(credential_of(issued)->chain()).status();
}

void expect_denied(const Status& status, std::string_view words) {
  EXPECT_EQ(status.code(), Code::kDenied) << status.to_string();
  EXPECT_NE(status.to_string().find(words), std::string::npos) << status.to_string();
}

TEST(Trust, BelievesWhatItsAuthorityIssued) {
  TestAuthority authority;
  const Issued issued = authority.issue("store");
  const auto holder = authority.trust()->verify(credential_of(issued)->chain());
  ASSERT_TRUE(holder.has_value()) << holder.error().to_string();
  EXPECT_EQ(holder->id.text(), "spiffe://example.org/store");
  EXPECT_EQ(holder->serial, issued.holder.serial);
}

TEST(Trust, DeniesAnotherAuthorityOfTheSameDomain) {
  TestAuthority authority, other;
  expect_denied(verdict(*authority.trust(), other.issue("store")), "no authority that is trusted here");
}

TEST(Trust, DeniesAnotherDomain) {
  TestAuthority authority, other("example.com");
  const Issued foreign = other.issue("store");
  expect_denied(verdict(*authority.trust(), foreign), "another domain");
  // Also where its authority is trusted by mistake.
  const auto both = Trust::make(authority.issue("x").authorities + foreign.authorities, "", "example.org");
  ASSERT_TRUE(both.has_value()) << both.error().to_string();
  expect_denied(verdict(**both, foreign), "another domain");
}

TEST(Trust, DeniesOutsideOfItsTimes) {
  TestAuthority authority;
  const auto trust = authority.trust();
  expect_denied(verdict(*trust, authority.issue("store", {}, -100, -10)), "it expired at");
  expect_denied(verdict(*trust, authority.issue("store", {}, 100, 1000)), "it is valid from");
  EXPECT_TRUE(verdict(*trust, authority.issue("store", {}, -1, 100)).ok());
}

TEST(Trust, DeniesWhatWasRevoked) {
  TestAuthority authority;
  const Issued bad = authority.issue("store"), good = authority.issue("store");
  EXPECT_TRUE(verdict(*authority.trust(), bad).ok());
  ASSERT_TRUE(authority.get().revoke(bad.holder.serial, unix_seconds()).has_value());
  const auto trust = authority.trust();
  expect_denied(verdict(*trust, bad), "revoked");
  EXPECT_TRUE(verdict(*trust, good).ok());
}

TEST(Trust, AListOfRevokedOnesMustBeItsAuthoritys) {
  TestAuthority authority, other;
  const auto trust = Trust::make(authority.issue("a").authorities, other.issue("a").revoked, "example.org");
  ASSERT_FALSE(trust.has_value());
  EXPECT_NE(trust.error().message().find("not signed by an authority"), std::string::npos);
}

TEST(Trust, AnAgentsCertificateIsNoAuthority) {
  TestAuthority authority;
  const Issued issued = authority.issue("store");
  EXPECT_FALSE(Trust::make(issued.certificate, "", "example.org").has_value());
  EXPECT_FALSE(Trust::make("", "", "example.org").has_value());
}

// An agent that signs for others: its certificate must not do as an authority's in a chain.
TEST(Trust, AnAgentVouchesForNobody) {
  TestAuthority authority, own;
  const Issued agent = authority.issue("store");
  const Issued made_up = own.issue("admin");
  std::vector<std::string> chain = credential_of(made_up)->chain();
  chain.push_back(credential_of(agent)->chain().front());
  EXPECT_EQ(authority.trust()->verify(chain).error().code(), Code::kDenied);
}

TEST(Trust, GarbageIsCorrupt) {
  TestAuthority authority;
  const auto trust = authority.trust();
  const std::vector<std::string> none, garbage = {"garbage"};
  EXPECT_EQ(trust->verify(none).error().code(), Code::kCorrupt);
  EXPECT_EQ(trust->verify(garbage).error().code(), Code::kCorrupt);
  const std::string der = credential_of(authority.issue("a"))->chain().front();
  EXPECT_TRUE(trust->verify(std::vector<std::string>(1, der)).has_value());
  EXPECT_EQ(trust->verify(std::vector<std::string>(kChainMax + 1, der)).error().code(), Code::kCorrupt);
  for (std::size_t at = 0; at < der.size(); at += 7) {
    std::string bad = der;
    bad[at] = static_cast<char>(bad[at] ^ 0x55);
    EXPECT_FALSE(trust->verify(std::vector<std::string>(1, bad)).has_value()) << at;
  }
}

TEST(Trust, ASchemeMustFitTheKey) {
  TestAuthority authority;
  const auto credential = credential_of(authority.issue("a"));
  const auto trust = authority.trust();
  auto signature = credential->sign("x");
  ASSERT_TRUE(signature.has_value());
  for (const int scheme : {0, 0x0403, 0x0804, 0x0401, 0xffff}) {
    signature->scheme = static_cast<std::uint16_t>(scheme);
    EXPECT_EQ(trust->check(credential->chain().front(), *signature, "x").code(), Code::kDenied) << scheme;
  }
}

}  // namespace
}  // namespace hawser::identity
