#include "agent/peer_book.h"

#include <utility>

namespace hawser::agent {

void PeerBook::open(std::shared_ptr<PeerCore> self) {
  self->is_self = true;
  self_ = std::move(self);
}

Result<std::shared_ptr<PeerCore>> PeerBook::meet(const backend::Identity& who) {
  if (who.incarnation == self_->incarnation) return self_;
  const base::MutexLock lock(mutex_);
  const auto found = peers_.find(who.incarnation);
  if (found != peers_.end()) {
    found->second->note_born(who.born);
    return found->second;
  }
  if (peers_.size() + 1 >= limit_) {
    return Status(Code::kBusy, "agent '" + agent_ + "' knows limits.peers = " + std::to_string(limit_) +
                                   " peers already; " + who.name + " is not taken in")
        .with_advice("raise limits.peers, or invalidate peers that are not needed");
  }
  auto peer = std::make_shared<PeerCore>(self_->core, who.name, who.incarnation);
  peer->note_born(who.born);
  peers_.emplace(who.incarnation, peer);
  return peer;
}

std::shared_ptr<PeerCore> PeerBook::known(const base::Id128& incarnation) const {
  if (incarnation == self_->incarnation) return self_;
  const base::MutexLock lock(mutex_);
  const auto found = peers_.find(incarnation);
  return found != peers_.end() ? found->second : nullptr;
}

bool PeerBook::expects(const backend::PeerClaim& claim) const {
  const std::shared_ptr<PeerCore> peer = known(claim.incarnation);
  if (peer == nullptr) return false;
  const base::MutexLock lock(peer->mutex);
  return peer->ticket.public_key == claim.public_key;
}

std::vector<std::shared_ptr<PeerCore>> PeerBook::all() const {
  std::vector<std::shared_ptr<PeerCore>> all;
  const base::MutexLock lock(mutex_);
  all.reserve(peers_.size());
  for (const auto& [incarnation, peer] : peers_) all.push_back(peer);
  return all;
}

void PeerBook::forget(const PeerCore& peer) {
  std::shared_ptr<PeerCore> gone;  // Let go without the lock: it may be the last reference.
  const base::MutexLock lock(mutex_);
  const auto found = peers_.find(peer.incarnation);
  if (found == peers_.end() || found->second.get() != &peer) return;
  gone = std::move(found->second);
  peers_.erase(found);
}

void PeerBook::forget_all() {
  Peers gone;
  const base::MutexLock lock(mutex_);
  gone.swap(peers_);
}

void PeerBook::note_death(const PeerCore& peer, const Status& why) {
  if (peer.is_self) return;
  const base::MutexLock lock(mutex_);
  if (departed_ == nullptr) departed_ = std::make_unique<Departed>();
  departed_->add(peer.incarnation, why);
}

void PeerBook::note_life(const PeerCore& peer) {
  const base::MutexLock lock(mutex_);
  if (departed_ != nullptr) departed_->remove(peer.incarnation);
}

std::optional<Status> PeerBook::judge(const base::Id128& incarnation, std::uint64_t version) {
  const base::MutexLock lock(mutex_);
  return departed_ != nullptr ? departed_->judge(incarnation, version) : std::nullopt;
}

}  // namespace hawser::agent
