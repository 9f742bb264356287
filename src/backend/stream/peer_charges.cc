#include "backend/stream/peer_charges.h"

#include <utility>

#include "backend/stream/chunk_limits.h"
#include "backend/stream/frame_writer.h"

namespace hawser::backend::stream {
namespace {

std::shared_ptr<PeerAccount> own_account() { return std::make_shared<PeerGuard>()->account({}); }

}  // namespace

PeerCharges::PeerCharges(std::shared_ptr<PeerAccount> account, std::string peer)
    : account_(account != nullptr ? std::move(account) : own_account()), peer_(std::move(peer)) {}

wire::Outcome PeerCharges::take(OperationCharge& charge, std::uint64_t bytes) {
  Quota over = Quota::kOperations;
  if (charge.take(*account_, bytes, &over)) return wire::Outcome::kOk;
  account_->refused(over, peer_, Clock::steady().now());
  owes_quotas_ = !told_quotas_;
  return over == Quota::kBytes ? wire::Outcome::kTooManyBytes : wire::Outcome::kTooManyOperations;
}

void PeerCharges::stage_quotas(Outlet& control) {
  if (!owes_quotas_ || !control.has_room(kFrameRoom)) return;
  FrameWriter frame(control, {.type = wire::FrameType::kQuotas, .meta_size = wire::kQuotasSize});
  const PeerQuotas& ours = account_->quotas();
  wire::encode_quotas(frame.meta(), {.operations = ours.operations, .bytes = ours.bytes});
  owes_quotas_ = false;
  told_quotas_ = true;
}

}  // namespace hawser::backend::stream
