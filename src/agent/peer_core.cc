#include "agent/peer_core.h"

#include <tuple>
#include <utility>

namespace hawser::agent {

PeerCore::PeerCore(std::weak_ptr<Core> owner, CardRef card)
    : card_(std::move(card)), core(std::move(owner)), name(card_->name), incarnation(card_->incarnation) {}

PeerCore::PeerCore(std::weak_ptr<Core> owner, std::string its_name, const base::Id128& its_incarnation,
                   std::uint64_t its_born)
    : PeerCore(std::move(owner), CardRef::alone(std::move(its_name), its_incarnation, its_born)) {}

PeerCore::~PeerCore() { delete used(); }

/// Several threads may make one; the first is kept.
PeerUse& PeerCore::make_use() const {
  auto made = std::make_unique<PeerUse>(*card_);
  PeerUse* known = nullptr;
  if (use_.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *known;
}

bool PeerCore::has_card() const {
  PeerUse* const its = used();
  if (its == nullptr) return card_->has_card();
  const base::MutexLock lock(its->mutex);
  return its->card != nullptr;
}

AdmissionTicket PeerCore::ticket() const {
  PeerUse* const its = used();
  if (its == nullptr) return card_->ticket;
  const base::MutexLock lock(its->mutex);
  return its->ticket;
}

bool PeerCore::outranks(const PeerCore& other) const {
  const auto rank = [](const PeerCore& one) {
    const PeerState its = one.state.load(std::memory_order_acquire);
    return std::tuple(its != PeerState::kDown, its == PeerState::kUp, one.born(), one.incarnation);
  };
  return rank(*this) > rank(other);
}

}  // namespace hawser::agent
