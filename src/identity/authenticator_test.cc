#include "identity/authenticator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "base/bytes.h"
#include "identity/test_authority.h"
#include "identity/whole_file.h"

namespace hawser::identity {
namespace {

using namespace std::chrono_literals;

Transcript transcript(int seed) {
  Transcript bytes{};
  bytes[0] = static_cast<std::byte>(seed);
  return bytes;
}

Result<std::unique_ptr<Authenticator>> try_open(const std::string& agent, const std::string& folder,
                                                const std::string& names = "") {
  return Authenticator::open({.agent = agent, .folder = folder, .names = names, .period = 10s}, base::Logger());
}

std::unique_ptr<Authenticator> open(const std::string& agent, const std::string& folder) {
  auto opened = try_open(agent, folder);
  EXPECT_TRUE(opened.has_value()) << opened.error().to_string();
  return *std::move(opened);
}

/// `from` proves itself to `to`, as `name`.
Result<PeerIdentity> shown(const Authenticator& from, const Authenticator& to, const std::string& name) {
  const auto bytes = from.prove(Speaker::kOpener, Occasion::kOpening, transcript(1));
  EXPECT_TRUE(bytes.has_value()) << bytes.error().to_string();
  return to.check(base::as_bytes(*bytes), Speaker::kOpener, Occasion::kOpening, transcript(1), name);
}

TEST(Authenticator, ProvesAndChecks) {
  TestAuthority authority;
  const auto store = open("store", authority.issue_to("store"));
  const auto reader = open("reader", authority.issue_to("reader"));
  auto peer = shown(*reader, *store, "reader");
  ASSERT_TRUE(peer.has_value()) << peer.error().to_string();
  EXPECT_EQ(peer->holder.id.text(), "spiffe://example.org/reader");
  EXPECT_TRUE(store->check_again(*peer, "reader").ok());
}

TEST(Authenticator, AnotherAgentsNameIsDenied) {
  TestAuthority authority;
  const auto store = open("store", authority.issue_to("store"));
  const auto reader = open("reader", authority.issue_to("reader"));
  const auto peer = shown(*reader, *store, "store");
  ASSERT_FALSE(peer.has_value());
  EXPECT_EQ(peer.error().code(), Code::kDenied);
  EXPECT_NE(peer.error().message().find("may not speak for"), std::string::npos) << peer.error().to_string();
}

TEST(Authenticator, ANameIsLookedAtBeforeSignaturesAndStrangersHearNoRules) {
  TestAuthority authority, another;
  const auto store = *try_open("store", authority.issue_to("store"), "spiffe://example.org/reader=private-*");
  const auto reader = open("reader", another.issue_to("reader"));
  const auto named = shown(*reader, *store, "store"), unknown = shown(*reader, *store, "private-1");
  ASSERT_FALSE(named.has_value() || unknown.has_value());
  EXPECT_NE(named.error().message().find("may not speak for an agent called 'store'"), std::string::npos)
      << "nothing is computed for it: " << named.error().to_string();
  EXPECT_EQ(named.error().to_string().find("private-"), std::string::npos) << named.error().to_string();
  EXPECT_NE(unknown.error().message().find("no authority that is trusted here"), std::string::npos)
      << "a name that fits is no proof: " << unknown.error().to_string();
}

TEST(Authenticator, AProofHoldsOnceOnly) {
  TestAuthority authority;
  const auto store = open("store", authority.issue_to("store"));
  const auto reader = open("reader", authority.issue_to("reader"));
  const std::string bytes = *reader->prove(Speaker::kOpener, Occasion::kOpening, transcript(1));
  const auto as = [&](Speaker speaker, Occasion occasion, int seed) {
    return store->check(base::as_bytes(bytes), speaker, occasion, transcript(seed), "reader").status().code();
  };
  EXPECT_EQ(as(Speaker::kOpener, Occasion::kOpening, 1), Code::kOk);
  EXPECT_EQ(as(Speaker::kOpener, Occasion::kOpening, 2), Code::kDenied);
  EXPECT_EQ(as(Speaker::kOpener, Occasion::kRenewal, 1), Code::kDenied);
  EXPECT_EQ(as(Speaker::kAcceptor, Occasion::kOpening, 1), Code::kDenied);
}

TEST(Authenticator, AnIdentityMustFitItsAgent) {
  TestAuthority authority, other;
  EXPECT_EQ(try_open("gate", authority.issue_to("store")).error().code(), Code::kDenied);
  EXPECT_TRUE(try_open("gate", authority.issue_to("store", {"gate"})).has_value());
  EXPECT_TRUE(try_open("gate", authority.issue_to("store"), "spiffe://example.org/st*=gate").has_value());
  EXPECT_EQ(try_open("store", authority.issue_to("store"), "nonsense").error().code(), Code::kInvalid);
  const std::string folder = authority.issue_to("store");
  ASSERT_TRUE(write_whole_file(folder + "/ca.crt", other.issue("x").authorities, 0644).ok());
  std::filesystem::remove(folder + "/ca.crl");
  EXPECT_EQ(try_open("store", folder).error().code(), Code::kDenied);
}

TEST(Authenticator, ARenewedCertificateCountsWithinAPeriod) {
  TestAuthority authority;
  const std::string folder = authority.issue_to("store");
  const auto store = open("store", folder);
  const std::string before = store->own().serial;
  const Instant now = Instant::from_ns(0);
  store->look(now);
  ASSERT_TRUE(authority.issue("store").write(folder).ok());
  store->look(now + 9s);
  EXPECT_EQ(store->own().serial, before);
  store->look(now + 10s);
  EXPECT_NE(store->own().serial, before);
  EXPECT_EQ(store->renewals(), 2u);
}

// A list of revoked certificates is news for those who check, not for the peers of who has it.
TEST(Authenticator, OnlyAnotherCertificateIsARenewal) {
  TestAuthority authority;
  const std::string folder = authority.issue_to("store");
  const auto store = open("store", folder);
  ASSERT_TRUE(authority.get().copy_revoked(folder).ok());
  store->look(Instant::from_ns(0));
  EXPECT_EQ(store->renewals(), 1u);
}

TEST(Authenticator, APeerIsLookedAtAgainWhenItEndsOrTheFilesChangeOrAfterAWhile) {
  TestAuthority authority;
  const auto store = open("store", authority.issue_to("store"));
  const auto reader = open("reader", authority.issue_to("reader"));
  auto peer = shown(*reader, *store, "reader");
  ASSERT_TRUE(peer.has_value()) << peer.error().to_string();
  peer->chain = {"no certificate"};  // Looking at it would fail.
  EXPECT_TRUE(store->check_again(*peer, "reader").ok());
  peer->at -= Authenticator::kAgainSeconds - 2;
  EXPECT_TRUE(store->check_again(*peer, "reader").ok());
  peer->at -= 2;
  EXPECT_FALSE(store->check_again(*peer, "reader").ok());
  peer->at = unix_seconds() + 100;  // A clock was set back.
  EXPECT_FALSE(store->check_again(*peer, "reader").ok());
  peer->at = unix_seconds();
  peer->holder.ends = unix_seconds();
  EXPECT_FALSE(store->check_again(*peer, "reader").ok());
}

TEST(Authenticator, WhatIsNewAndBadIsNotUsed) {
  TestAuthority authority;
  const std::string folder = authority.issue_to("store");
  const auto store = open("store", folder);
  const std::string before = store->own().serial;
  const Issued renewed = authority.issue("store");
  ASSERT_TRUE(write_whole_file(folder + "/tls.key", renewed.key, 0600).ok());  // Its certificate is still to come.
  store->look(Instant::from_ns(0));
  EXPECT_EQ(store->own().serial, before);
  ASSERT_TRUE(write_whole_file(folder + "/tls.crt", renewed.certificate, 0644).ok());
  store->look(Instant::from_ns(0) + 10s);
  EXPECT_EQ(store->own().serial, renewed.holder.serial);
}

// By this host's clock a new certificate may not be valid yet. Nobody writes the files once more when it is.
TEST(Authenticator, WhatIsNotValidYetCountsOnceItIs) {
  TestAuthority authority;
  const std::string folder = authority.issue_to("store");
  const auto store = open("store", folder);
  const std::string before = store->own().serial;
  const Issued renewed = authority.issue("store", {}, 2, 3600);
  ASSERT_TRUE(renewed.write(folder).ok());
  store->look(Instant::from_ns(0));
  EXPECT_EQ(store->own().serial, before);
  Instant now = Instant::from_ns(0);
  while (store->own().serial == before && unix_seconds() < renewed.holder.begins + 20) store->look(now = now + 10s);
  EXPECT_EQ(store->own().serial, renewed.holder.serial);
  EXPECT_GE(unix_seconds(), renewed.holder.begins);
}

TEST(Authenticator, ARevokedPeerIsDeniedOnceTheListIsThere) {
  TestAuthority authority;
  const std::string folder = authority.issue_to("store");
  const auto store = open("store", folder);
  const auto reader = open("reader", authority.issue_to("reader"));
  auto peer = shown(*reader, *store, "reader");
  ASSERT_TRUE(peer.has_value()) << peer.error().to_string();
  ASSERT_TRUE(authority.get().revoke("reader", unix_seconds()).has_value());
  EXPECT_TRUE(store->check_again(*peer, "reader").ok());
  ASSERT_TRUE(write_whole_file(folder + "/ca.crl", *authority.get().revoked(), 0644).ok());
  store->look(Instant::from_ns(0));
  EXPECT_EQ(store->check_again(*peer, "reader").code(), Code::kDenied);
  EXPECT_EQ(shown(*reader, *store, "reader").error().code(), Code::kDenied);
}

TEST(Authenticator, AListThatCameAnotherWayCountsBesideTheFolders) {
  TestAuthority authority, stranger;
  const std::string folder = authority.issue_to("store");
  const auto store = open("store", folder);
  const auto reader = open("reader", authority.issue_to("reader")),
             writer = open("writer", authority.issue_to("writer"));
  auto peer = shown(*reader, *store, "reader"), other = shown(*writer, *store, "writer");
  ASSERT_TRUE(peer.has_value() && other.has_value());
  const std::string nobody = *authority.get().revoked();
  ASSERT_TRUE(authority.get().revoke("reader", unix_seconds()).has_value());
  const std::string first = *authority.get().revoked();
  ASSERT_TRUE(store->take_revoked(first, "a list").ok());
  EXPECT_TRUE(store->take_revoked(first, "a list").ok()) << "once more";
  EXPECT_EQ(store->renewals(), 1u);
  EXPECT_EQ(store->check_again(*peer, "reader").code(), Code::kDenied);
  EXPECT_TRUE(store->check_again(*other, "writer").ok());

  // Neither an older list nor one that the authority has not signed takes it back.
  EXPECT_EQ(store->take_revoked(nobody, "a list").code(), Code::kInvalid);
  EXPECT_EQ(store->take_revoked(*stranger.get().revoked(), "a list").code(), Code::kInvalid);
  EXPECT_EQ(store->take_revoked("noise", "a list").code(), Code::kInvalid);
  EXPECT_EQ(store->take_revoked("", "a list").code(), Code::kInvalid);
  EXPECT_EQ(shown(*reader, *store, "reader").error().code(), Code::kDenied);

  // The folder's list comes later, and both count, also once the files are read again.
  ASSERT_TRUE(authority.get().revoke("writer", unix_seconds()).has_value());
  ASSERT_TRUE(authority.get().copy_revoked(folder).ok());
  store->look(Instant::from_ns(0));
  EXPECT_EQ(store->check_again(*other, "writer").code(), Code::kDenied);
  std::filesystem::remove(folder + "/ca.crl");
  store->look(Instant::from_ns(0) + 10s);
  EXPECT_EQ(shown(*reader, *store, "reader").error().code(), Code::kDenied);
  EXPECT_TRUE(shown(*writer, *store, "writer").has_value());
  EXPECT_TRUE(store->take_revoked(*authority.get().revoked(), "a list").ok());
  EXPECT_EQ(shown(*writer, *store, "writer").error().code(), Code::kDenied);
}

// An agent whose own certificate was taken back goes on with what it has: its peers end the sessions.
TEST(Authenticator, ItsOwnRevocationChangesNothingForItself) {
  TestAuthority authority;
  const auto store = open("store", authority.issue_to("store"));
  ASSERT_TRUE(authority.get().revoke("store", unix_seconds()).has_value());
  EXPECT_EQ(store->take_revoked(*authority.get().revoked(), "a list").code(), Code::kDenied);
  EXPECT_EQ(store->renewals(), 1u);
}

}  // namespace
}  // namespace hawser::identity
