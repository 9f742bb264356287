#include "identity/credential.h"

#include <gtest/gtest.h>

#include <string>

#include "identity/test_authority.h"

namespace hawser::identity {
namespace {

TEST(Credential, IsACertificateWithItsKey) {
  TestAuthority authority;
  const Issued issued = authority.issue("store", {"gate", "worker-*"});
  const auto credential = credential_of(issued);
  EXPECT_EQ(credential->holder().id.text(), "spiffe://example.org/store");
  EXPECT_EQ(credential->holder().dns, (std::vector<std::string>{"gate", "worker-*"}));
  EXPECT_EQ(credential->chain().size(), 1u);
  const auto trust = authority.trust();
  const auto signature = credential->sign("what is signed");
  ASSERT_TRUE(signature.has_value()) << signature.error().to_string();
  EXPECT_EQ(signature->scheme, 0x0807);
  EXPECT_TRUE(trust->check(credential->chain().front(), *signature, "what is signed").ok());
  EXPECT_EQ(trust->check(credential->chain().front(), *signature, "what is not").code(), Code::kDenied);
}

// What SPIRE and cert-manager issue.
TEST(Credential, KeysOfOtherKindsDo) {
  TestAuthority authority;
  for (const auto& [kind, scheme] : {std::pair(KeyKind::kP256, 0x0403), {KeyKind::kRsa2048, 0x0804}}) {
    const auto issued = authority.get().issue(
        {.name = "store", .dns = {}, .begins = unix_seconds() - 1, .ends = unix_seconds() + 60, .key = kind});
    ASSERT_TRUE(issued.has_value()) << issued.error().to_string();
    const auto credential = credential_of(*issued);
    const auto signature = credential->sign("x");
    ASSERT_TRUE(signature.has_value()) << signature.error().to_string();
    EXPECT_EQ(signature->scheme, scheme);
    EXPECT_TRUE(authority.trust()->verify(credential->chain()).has_value());
    EXPECT_TRUE(authority.trust()->check(credential->chain().front(), *signature, "x").ok());
    EXPECT_EQ(authority.trust()->check(credential->chain().front(), *signature, "y").code(), Code::kDenied);
  }
}

TEST(Credential, AnotherKeyDoesNotFit) {
  TestAuthority authority;
  const auto wrong = Credential::make(authority.issue("a").certificate, authority.issue("a").key);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code(), Code::kInvalid);
  EXPECT_NE(wrong.error().message().find("key is not that of the certificate"), std::string::npos);
}

TEST(Credential, WhatIsNoPemIsRefused) {
  TestAuthority authority;
  const Issued issued = authority.issue("a");
  for (const std::string& text : {std::string(), std::string("x"), issued.key}) {
    EXPECT_EQ(Credential::make(text, issued.key).error().code(), Code::kInvalid);
  }
  for (const std::string& text : {std::string(), std::string("x"), issued.certificate}) {
    EXPECT_EQ(Credential::make(issued.certificate, text).error().code(), Code::kInvalid);
  }
}

TEST(Credential, AnAuthoritysCertificateIsNoAgents) {
  TestAuthority authority;
  const Issued issued = authority.issue("a");
  const auto wrong = Credential::make(issued.authorities, issued.key);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().message().find("authority's"), std::string::npos);
}

TEST(Credential, AChainHasABound) {
  TestAuthority authority;
  const Issued issued = authority.issue("a");
  std::string chain = issued.certificate;
  for (std::size_t i = 1; i < kChainMax; ++i) chain += issued.authorities;
  EXPECT_TRUE(Credential::make(chain, issued.key).has_value());
  EXPECT_EQ(Credential::make(chain + issued.authorities, issued.key).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::identity
