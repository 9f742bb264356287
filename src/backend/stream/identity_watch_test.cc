#include "backend/stream/identity_watch.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/bytes.h"
#include "identity/test_authority.h"
#include "identity/whole_file.h"

namespace hawser::backend::stream {
namespace {

using namespace std::chrono_literals;
using identity::Authenticator;
using identity::Occasion;
using identity::Speaker;
using identity::TestAuthority;

constexpr Duration kWatchPeriod = 10s;

/// Two agents with a session between them, as seen by the one that accepted it.
class IdentityWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    store_folder_ = authority_.issue_to("store");
    reader_folder_ = authority_.issue_to("reader");
    store_ = open("store", store_folder_);
    reader_ = open("reader", reader_folder_);
    watch_ = IdentityWatch(*store_, {shown(*reader_), {}}, Speaker::kAcceptor, at(0s));
  }
  static Instant at(Duration time) { return Instant::from_ns(0) + time; }
  static std::unique_ptr<Authenticator> open(const std::string& name, const std::string& folder) {
    auto opened =
        Authenticator::open({.agent = name, .folder = folder, .names = "", .period = kWatchPeriod}, base::Logger());
    EXPECT_TRUE(opened.has_value()) << opened.error().to_string();
    return *std::move(opened);
  }
  std::shared_ptr<identity::PeerIdentity> shown(const Authenticator& peer) {
    const std::string proof = *peer.prove(Speaker::kOpener, Occasion::kOpening, {});
    auto checked = store_->check(base::as_bytes(proof), Speaker::kOpener, Occasion::kOpening, {}, "reader");
    EXPECT_TRUE(checked.has_value()) << checked.error().to_string();
    return std::make_shared<identity::PeerIdentity>(*std::move(checked));
  }

  TestAuthority authority_;
  std::string store_folder_, reader_folder_;
  std::unique_ptr<Authenticator> store_, reader_;
  IdentityWatch watch_;
};

TEST(NoIdentity, IsNotWatched) {
  IdentityWatch none;
  EXPECT_FALSE(none.is_on());
  EXPECT_EQ(none.next(), Instant::max());
  EXPECT_TRUE(none.turn(Instant::from_ns(0) + 1h, "x").ok());
  EXPECT_FALSE(none.renewal().has_value());
  EXPECT_EQ(none.renewed({}, "x").code(), Code::kCorrupt);
  EXPECT_EQ(none.describe(), "");
}

TEST_F(IdentityWatchTest, IsLookedAtOnceAPeriod) {
  EXPECT_EQ(watch_.next(), at(kWatchPeriod));
  EXPECT_TRUE(watch_.turn(at(kWatchPeriod), "reader").ok());
  EXPECT_EQ(watch_.next(), at(2 * kWatchPeriod));
  EXPECT_NE(watch_.describe().find("spiffe://example.org/reader"), std::string::npos);
}

TEST_F(IdentityWatchTest, ARevokedPeerIsDenied) {
  ASSERT_TRUE(authority_.get().revoke("reader", identity::unix_seconds()).has_value());
  ASSERT_TRUE(identity::write_whole_file(store_folder_ + "/ca.crl", *authority_.get().revoked(), 0644).ok());
  EXPECT_TRUE(watch_.turn(at(kWatchPeriod - 1ns), "reader").ok());
  const Status status = watch_.turn(at(kWatchPeriod), "reader");
  EXPECT_EQ(status.code(), Code::kDenied);
  EXPECT_NE(status.message().find("revoked"), std::string::npos) << status.to_string();
}

TEST_F(IdentityWatchTest, AnOwnRenewalIsToldOnce) {
  EXPECT_FALSE(watch_.renewal().has_value());
  ASSERT_TRUE(authority_.issue("store").write(store_folder_).ok());
  ASSERT_TRUE(watch_.turn(at(kWatchPeriod), "reader").ok());
  const auto proof = watch_.renewal();
  ASSERT_TRUE(proof.has_value());
  EXPECT_TRUE(watch_.renewal().has_value());  // Until it was told.
  watch_.note_told();
  EXPECT_TRUE(reader_->check(base::as_bytes(*proof), Speaker::kAcceptor, Occasion::kRenewal, {}, "store").has_value());
  EXPECT_FALSE(watch_.renewal().has_value());
}

TEST_F(IdentityWatchTest, ThePeersRenewalCounts) {
  const std::string old = watch_.describe();
  ASSERT_TRUE(authority_.issue("reader", {}, -10, 7200).write(reader_folder_).ok());
  reader_->look(at(kWatchPeriod));
  const std::string proof = *reader_->prove(Speaker::kOpener, Occasion::kRenewal, {});
  EXPECT_TRUE(watch_.renewed(base::as_bytes(proof), "reader").ok());
  EXPECT_NE(watch_.describe(), old);
}

TEST_F(IdentityWatchTest, ARenewalMustBeOfTheSameIdentityAndSession) {
  const auto other = open("reader", authority_.issue_to("other", {"reader"}));
  const std::string foreign = *other->prove(Speaker::kOpener, Occasion::kRenewal, {});
  EXPECT_EQ(watch_.renewed(base::as_bytes(foreign), "reader").code(), Code::kDenied);
  identity::Transcript elsewhere{};
  elsewhere[0] = std::byte{1};
  const std::string replayed = *reader_->prove(Speaker::kOpener, Occasion::kRenewal, elsewhere);
  EXPECT_EQ(watch_.renewed(base::as_bytes(replayed), "reader").code(), Code::kDenied);
  const std::string own = *store_->prove(Speaker::kAcceptor, Occasion::kRenewal, {});
  EXPECT_EQ(watch_.renewed(base::as_bytes(own), "reader").code(), Code::kDenied);
  EXPECT_EQ(watch_.renewed(base::as_bytes(std::string("garbage")), "reader").code(), Code::kCorrupt);
}

}  // namespace
}  // namespace hawser::backend::stream
