#include "backend/stream/peer_charges.h"

#include <gtest/gtest.h>

#include "backend/stream/test_frames.h"

namespace hawser::backend::stream {
namespace {

class PeerChargesTest : public testing::Test {
 protected:
  std::shared_ptr<PeerGuard> guard_ = std::make_shared<PeerGuard>(PeerQuotas{.operations = 2, .bytes = 100});
  PeerCharges charges_{guard_->account({1, 1}), "peer"};
  OperationCharge first_, second_, third_;
  Outlet outlet_;
};

TEST_F(PeerChargesTest, OperationsUpToTheQuotaAreHeld) {
  EXPECT_EQ(charges_.take(first_, 1), wire::Outcome::kOk);
  EXPECT_EQ(charges_.take(second_, 1), wire::Outcome::kOk);
  EXPECT_EQ(charges_.take(third_, 1), wire::Outcome::kTooManyOperations);
  first_.release();
  EXPECT_EQ(charges_.take(third_, 1), wire::Outcome::kOk);
}

TEST_F(PeerChargesTest, BytesUpToTheQuotaAreHeld) {
  EXPECT_EQ(charges_.take(first_, 100), wire::Outcome::kOk);
  EXPECT_EQ(charges_.take(second_, 1), wire::Outcome::kTooManyBytes);
}

TEST_F(PeerChargesTest, PathsOfOnePeerShareItsQuota) {
  PeerCharges other(guard_->account({1, 1}), "peer");
  EXPECT_EQ(charges_.take(first_, 60), wire::Outcome::kOk);
  EXPECT_EQ(other.take(second_, 60), wire::Outcome::kTooManyBytes);
  PeerCharges stranger(guard_->account({2, 2}), "stranger");
  OperationCharge its_own;  // Ends before its account does.
  EXPECT_EQ(stranger.take(its_own, 60), wire::Outcome::kOk);
}

TEST_F(PeerChargesTest, ThePeerHearsItsQuotasOnce) {
  charges_.stage_quotas(outlet_);
  EXPECT_FALSE(outlet_.has_unsent()) << "nothing was refused";
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(charges_.take(first_, 101), wire::Outcome::kTooManyBytes);
    charges_.stage_quotas(outlet_);
  }
  const auto frames = frames_of(outlet_);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].head.type, wire::FrameType::kQuotas);
  base::ByteReader in(frames[0].meta);
  wire::Quotas quotas;
  ASSERT_TRUE(wire::decode_quotas(in, &quotas));
  EXPECT_EQ(quotas.operations, 2u);
  EXPECT_EQ(quotas.bytes, 100u);
}

TEST_F(PeerChargesTest, WithoutAnAccountAPathHasItsOwn) {
  PeerCharges alone(nullptr, "peer");
  OperationCharge its_own;
  EXPECT_EQ(alone.take(its_own, 101), wire::Outcome::kOk);
  EXPECT_EQ(alone.account().operations(), 1u);
}

}  // namespace
}  // namespace hawser::backend::stream
