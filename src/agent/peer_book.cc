#include "agent/peer_book.h"

#include <utility>

#include "base/try.h"

namespace hawser::agent {

void PeerBook::open(std::shared_ptr<PeerCore> self) {
  self->is_self = true;
  self_ = std::move(self);
}

template <typename Make>
Result<PeerBook::Met> PeerBook::meet(const base::Id128& incarnation, std::string_view name, std::uint64_t born,
                                     const Make& make) {
  if (incarnation == self_->incarnation) return Met{.peer = self_};
  const base::MutexLock lock(mutex_);
  const auto found = peers_.find(incarnation);
  if (found != peers_.end()) {
    (*found)->note_born(born);
    return Met{.peer = *found};
  }
  if (peers_.size() + 1 >= limit_) {
    return Status(Code::kBusy, "agent '" + agent_ + "' knows limits.peers = " + std::to_string(limit_) +
                                   " peers already; " + std::string(name) + " is not taken in")
        .with_advice("raise limits.peers, or invalidate peers that are not needed");
  }
  std::shared_ptr<PeerCore> peer = make();
  peers_.insert(peer);
  return Met{.peer = std::move(peer), .is_new = true};
}

Result<std::shared_ptr<PeerCore>> PeerBook::meet(const backend::Identity& who) {
  HAWSER_TRY_ASSIGN(Met met, meet(who.incarnation, who.name, who.born, [&] {
                      return std::make_shared<PeerCore>(self_->core, who.name, who.incarnation, who.born);
                    }));
  return std::move(met.peer);
}

Result<PeerBook::Met> PeerBook::meet(const CardRef& card) {
  return meet(card->incarnation, card->name, card->born, [&] { return std::make_shared<PeerCore>(self_->core, card); });
}

std::shared_ptr<PeerCore> PeerBook::known(const base::Id128& incarnation) const {
  if (incarnation == self_->incarnation) return self_;
  const base::MutexLock lock(mutex_);
  const auto found = peers_.find(incarnation);
  return found != peers_.end() ? *found : nullptr;
}

bool PeerBook::expects(const backend::PeerClaim& claim) const {
  const std::shared_ptr<PeerCore> peer = known(claim.incarnation);
  return peer != nullptr && peer->ticket().public_key == claim.public_key;
}

std::vector<std::shared_ptr<PeerCore>> PeerBook::all() const {
  std::vector<std::shared_ptr<PeerCore>> all;
  const base::MutexLock lock(mutex_);
  all.assign(peers_.begin(), peers_.end());
  return all;
}

void PeerBook::forget(const PeerCore& peer) {
  std::shared_ptr<PeerCore> gone;  // Let go without the lock: it may be the last reference.
  const base::MutexLock lock(mutex_);
  const auto found = peers_.find(peer.incarnation);
  if (found == peers_.end() || found->get() != &peer) return;
  gone = std::move(peers_.extract(found).value());
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
