// Ports with identities admit, or refuse, honest agents, strangers, and attackers between the two ends.

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backend/stream/test_admitting.h"
#include "identity/test_authority.h"
#include "identity/whole_file.h"

namespace hawser::backend::stream {
namespace {

using namespace std::chrono_literals;
using base::FarEnd;
using identity::Authenticator;
using identity::TestAuthority;
using wire::Admission;

constexpr Duration kLookPeriod = 1s;

/// An owner with an identity on another host than all others, and what TLS would make of their connections.
struct Identified : Admitting {
  void SetUp() override {
    network.far_end = FarEnd::kElsewhere;
    seal("one", "one");
    owner_folder = authority.issue_to("owner");
    owner_identity = identity_from("owner", owner_folder);
    owner = std::make_unique<TestAgent>(network, "owner", Security::kDefault, kTestSecret, owner_identity.get());
    owner->identity.public_key = public_key_of('o');
  }
  /// The two ends know their connection by these; they differ where somebody sits between them.
  void seal(const std::string& at_owner, const std::string& at_opener) {
    network.seals = {{"owner", {.binding = at_owner, .peer_key = key_of('f')}},
                     {"friend", {.binding = at_opener, .peer_key = key_of('o')}},
                     {"hand", {.binding = at_opener, .peer_key = key_of('o')}}};
  }
  static std::unique_ptr<Authenticator> identity_from(const std::string& name, const std::string& folder) {
    auto opened =
        Authenticator::open({.agent = name, .folder = folder, .names = "", .period = kLookPeriod}, base::Logger());
    EXPECT_TRUE(opened.has_value()) << opened.error().to_string();
    return *std::move(opened);
  }
  TestAgent& add_friend(Authenticator* its) {
    friendly = std::make_unique<TestAgent>(network, "friend", Security::kDefault, base::Id128{5, 6}, its);
    friendly->identity.public_key = public_key_of('f');
    others = {friendly.get()};
    return *friendly;
  }
  void expect_denied(const std::string& words) {
    EXPECT_TRUE(owner->ups.empty());
    ASSERT_EQ(friendly->down.size(), 1u);
    EXPECT_EQ(friendly->down[0].code(), Code::kDenied) << friendly->down[0].to_string();
    EXPECT_NE(friendly->down[0].to_string().find(words), std::string::npos) << friendly->down[0].to_string();
  }
  /// Opens and says a word.
  Path* come_in(TestAgent& from) {
    Path* path = open(from);
    run(2ms);
    EXPECT_EQ(path->state(), PathState::kUp) << (from.down.empty() ? "" : from.down[0].to_string());
    if (path->state() == PathState::kUp) greet(path);
    run(1ms);
    EXPECT_EQ(owner->ups, std::vector<std::string>{"friend"});
    return path;
  }

  TestAuthority authority;
  std::string owner_folder;
  std::unique_ptr<Authenticator> owner_identity;
  std::unique_ptr<TestAgent> friendly;
};

TEST_F(Identified, NoCardIsNeeded) {
  const auto its = identity_from("friend", authority.issue_to("friend"));
  Path* path = come_in(add_friend(its.get()));
  EXPECT_NE(path->describe().find("spiffe://example.org/owner until"), std::string::npos) << path->describe();
  EXPECT_EQ(friendly->ups, std::vector<std::string>{"owner"});
}

TEST_F(Identified, BytesComeInAnyPieces) {
  const auto its = identity_from("friend", authority.issue_to("friend"));
  network.step_max = 7;
  Path* path = open(add_friend(its.get()));
  run(20ms);
  EXPECT_EQ(path->state(), PathState::kUp);
}

TEST_F(Identified, TheCardAloneDoesNotLetIn) {
  Path* path = open(add_friend(nullptr), kTestSecret);
  run(2ms);
  EXPECT_NE(path->state(), PathState::kUp);
  expect_denied("identity by its authority");
}

TEST_F(Identified, OneWithoutAnIdentityIsNotTakenForThePeer) {
  owner.reset();  // Its listener goes with it.
  owner = std::make_unique<TestAgent>(network, "owner", Security::kDefault, kTestSecret);
  owner->identity.public_key = public_key_of('o');
  const auto its = identity_from("friend", authority.issue_to("friend"));
  Path* path = open(add_friend(its.get()), kTestSecret);
  run(2ms);
  EXPECT_NE(path->state(), PathState::kUp);
  expect_denied("no identity to show in return");
}

TEST_F(Identified, AnotherAuthorityIsDenied) {
  TestAuthority other;
  const auto its = identity_from("friend", other.issue_to("friend"));
  open(add_friend(its.get()));
  run(2ms);
  expect_denied("no authority that is trusted here");
}

// The opener believes in both authorities, so it goes on until the owner has looked at its certificate.
TEST_F(Identified, AnotherAuthorityIsDeniedByTheOneThatIsAskedToo) {
  TestAuthority other;
  const std::string folder = other.issue_to("friend");
  const std::string both = other.issue("x").authorities + authority.issue("x").authorities;
  ASSERT_TRUE(identity::write_whole_file(folder + "/ca.crt", both, 0644).ok());
  const auto its = identity_from("friend", folder);
  open(add_friend(its.get()));
  run(2ms);
  expect_denied("owner turned us away");
  expect_denied("no authority that is trusted here");
}

// Both trust the opener's authority; its certificate is for another agent.
TEST_F(Identified, AnotherAgentsCertificateIsDenied) {
  const auto opened = Authenticator::open({.agent = "friend",
                                           .folder = authority.issue_to("reader"),
                                           .names = "spiffe://example.org/reader=friend",
                                           .period = kLookPeriod},
                                          base::Logger());
  ASSERT_TRUE(opened.has_value()) << opened.error().to_string();
  open(add_friend(opened->get()));
  run(2ms);
  expect_denied("may not speak for an agent called 'friend'");
}

// A card was swapped on its way: who answers there has its key, and a certificate for another name.
TEST_F(Identified, AnAcceptorWithAnotherNamesCertificateIsNotThePeer) {
  const auto evil = Authenticator::open({.agent = "owner",
                                         .folder = authority.issue_to("evil"),
                                         .names = "spiffe://example.org/evil=owner",
                                         .period = kLookPeriod},
                                        base::Logger());
  ASSERT_TRUE(evil.has_value()) << evil.error().to_string();
  owner.reset();
  owner = std::make_unique<TestAgent>(network, "owner", Security::kDefault, kTestSecret, evil->get());
  owner->identity.public_key = public_key_of('o');
  const auto its = identity_from("friend", authority.issue_to("friend"));
  open(add_friend(its.get()));
  run(2ms);
  expect_denied("may not speak for an agent called 'owner'");
}

TEST_F(Identified, WhoSitsBetweenTheEndsPassesNoProofOn) {
  seal("one", "other");
  const auto its = identity_from("friend", authority.issue_to("friend"));
  Path* path = open(add_friend(its.get()));
  run(2ms);
  EXPECT_NE(path->state(), PathState::kUp);
  expect_denied("did not prove to have its key");
}

TEST_F(Identified, ARevokedOneIsDenied) {
  const auto its = identity_from("friend", authority.issue_to("friend"));
  ASSERT_TRUE(authority.get().revoke("friend", identity::unix_seconds()).has_value());
  ASSERT_TRUE(identity::write_whole_file(owner_folder + "/ca.crl", *authority.get().revoked(), 0644).ok());
  open(add_friend(its.get()));
  run(2ms);
  expect_denied("revoked");
}

TEST_F(Identified, AnAnswerThatAsksForLessIsRefused) {
  const auto its = identity_from("friend", authority.issue_to("friend"));
  for (const Admission less : {Admission::kNone, Admission::kUser, Admission::kCard, Admission::kCookie}) {
    owner.reset();
    MemoryNetwork fake(network, "owner");
    others.clear();
    TestAgent& opener = add_friend(its.get());
    open(opener);
    for (int i = 0; i < 20; ++i) opener.collect(now = now + 10us);
    auto shake = std::make_unique<Handshake>(fake.accept(), wire::Versions());
    for (int i = 0; i < 20 && !shake->heard(); ++i) ASSERT_TRUE(shake->turn().ok());
    ASSERT_TRUE(shake->heard());
    EXPECT_EQ(shake->hello().admission, Admission::kIdentity);
    wire::Hello answer;
    answer.name = "owner";
    answer.incarnation = {9, 9};
    answer.session = shake->hello().session;
    answer.public_key = public_key_of('o');
    answer.admission = less;
    shake->say(answer);
    ASSERT_TRUE(shake->turn().ok());
    for (int i = 0; i < 20; ++i) opener.collect(now = now + 10us);
    ASSERT_EQ(opener.down.size(), 1u) << static_cast<int>(less);
    EXPECT_EQ(opener.down[0].code(), Code::kDenied) << opener.down[0].to_string();
  }
}

TEST_F(Identified, WhatIsNoProofIsDeniedAndItsSizeIsBounded) {
  for (const std::uint32_t size : {64u, 0u, 24u, 16u, static_cast<unsigned>(identity::kProofMax) + 16u, 0xfffffff0u}) {
    wire::Hello what = hello(Admission::kIdentity);
    what.public_key = public_key_of('f');
    auto shake = say(what);
    ASSERT_TRUE(shake->heard());
    ASSERT_EQ(shake->hello().admission, Admission::kIdentity);
    std::string bytes(64, 'x');
    std::memcpy(bytes.data(), &size, sizeof size);
    bytes[4] = 1;
    const iovec part = {bytes.data(), bytes.size()};
    ASSERT_EQ(shake->stream().send({&part, 1}).bytes, bytes.size());
    run(7s, 10ms);
    EXPECT_TRUE(owner->ups.empty());
  }
  EXPECT_TRUE(owner->port->idle());
}

TEST_F(Identified, TheSameUserOfThisHostNeedsNone) {
  network.far_end = FarEnd::kSameUser;
  Path* path = open(add_friend(nullptr));
  run(2ms);
  EXPECT_EQ(path->state(), PathState::kUp);
}

TEST_F(Identified, AnotherUserOfThisHostDoes) {
  network.far_end = FarEnd::kOtherUser;
  open(add_friend(nullptr), kTestSecret);
  run(2ms);
  expect_denied("identity by its authority");
  const auto its = identity_from("friend", authority.issue_to("friend"));
  owner->ups.clear();
  Path* path = open(add_friend(its.get()));
  run(2ms);
  EXPECT_EQ(path->state(), PathState::kUp);
}

TEST_F(Identified, APathEndsOnceItsPeerIsRevoked) {
  const auto its = identity_from("friend", authority.issue_to("friend"));
  Path* path = come_in(add_friend(its.get()));
  ASSERT_TRUE(authority.get().revoke("friend", identity::unix_seconds()).has_value());
  ASSERT_TRUE(identity::write_whole_file(owner_folder + "/ca.crl", *authority.get().revoked(), 0644).ok());
  run(kLookPeriod + 10ms, 1ms);
  ASSERT_EQ(owner->down.size(), 1u);
  EXPECT_EQ(owner->down[0].code(), Code::kDenied);
  EXPECT_NE(owner->down[0].message().find("revoked"), std::string::npos) << owner->down[0].to_string();
  EXPECT_EQ(path->state(), PathState::kDown);
  EXPECT_EQ(owner->messages, 1);
}

TEST_F(Identified, APathEndsWithItsPeersCertificate) {
  identity::Issued shortly = authority.issue("friend", {}, -10, 2);
  const std::string folder = authority.issue_to("friend");
  ASSERT_TRUE(shortly.write(folder).ok());
  const auto its = identity_from("friend", folder);
  come_in(add_friend(its.get()));
  run(kLookPeriod + 10ms, 1ms);
  EXPECT_TRUE(owner->down.empty());
  while (identity::unix_seconds() < shortly.holder.ends) {
    // The times of certificates are the system's.
  }
  run(kLookPeriod + 10ms, 1ms);
  ASSERT_EQ(owner->down.size(), 1u);
  EXPECT_NE(owner->down[0].message().find("expired"), std::string::npos) << owner->down[0].to_string();
}

TEST_F(Identified, ARenewedCertificateKeepsThePath) {
  identity::Issued shortly = authority.issue("friend", {}, -10, 2);
  const std::string folder = authority.issue_to("friend");
  ASSERT_TRUE(shortly.write(folder).ok());
  const auto its = identity_from("friend", folder);
  Path* path = come_in(add_friend(its.get()));
  ASSERT_TRUE(authority.issue("friend").write(folder).ok());
  run(kLookPeriod + 10ms, 1ms);
  while (identity::unix_seconds() < shortly.holder.ends) {
    // The times of certificates are the system's.
  }
  run(2 * kLookPeriod, 1ms);
  EXPECT_TRUE(owner->down.empty()) << owner->down[0].to_string();
  greet(path);
  run(1ms);
  EXPECT_EQ(owner->messages, 2);
}

}  // namespace
}  // namespace hawser::backend::stream
