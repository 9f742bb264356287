#include "runtime/failure_desk.h"

#include <utility>

#include "base/planted.h"
#include "base/shown.h"
#include "runtime/proof_of_death.h"
#include "runtime/rank_list.h"

namespace hawser::runtime {

using base::planted;
using base::Planted;

void FailureDesk::open(Site site, Hooks hooks) {
  site_ = std::move(site);
  hooks_ = std::move(hooks);
  fates_.open({.world = site_.name, .size = size(), .name_of = [this](std::uint32_t rank) {
                 return std::string(site_.roster->peer(rank).name());
               }});
  if (site_.relay == nullptr) open_hearing();
}

void FailureDesk::open_hearing() {
  hearing_ = std::make_unique<Hearing>(Hearing::Site{.world = site_.world,
                                                     .rank = site_.roster->own(),
                                                     .ranks = site_.roster->peers(),
                                                     .heartbeat = site_.heartbeat,
                                                     .peer_timeout = site_.peer_timeout},
                                       *site_.mailbox,
                                       Hearing::Hooks{.convict = [this](std::uint32_t rank) { convict(rank); },
                                                      .decided = [this](Instant now) { on_decided(now); }});
}

void FailureDesk::close(const Status& why) {
  fates_.revoke(why);
  hearing_.reset();
}

bool FailureDesk::is_undecided() const {
  if (site_.relay != nullptr) return !fates_.is_excluded() && site_.relay->is_undecided();
  return hearing_ != nullptr && hearing_->is_undecided();
}

void FailureDesk::tell_all(const Word& word, Instant now) {
  for (const Peer& peer : site_.roster->peers()) site_.mailbox->tell(peer, word, now);
}

// ---- Verdicts.

/// All are told, so that who hears of it first, and leaves for it, is not taken for the one that failed; that one, too,
/// if it can hear: a verdict is final.
void FailureDesk::note_failure(std::uint32_t rank, const Status& cause) {
  if (!fates_.note_failed(rank, cause)) return;
  const Status status = fates_.failure(rank);
  const Instant now = site_.mailbox->now();
  tell_revoked_again(now);
  tell_all(failed_word(site_.world, rank, fates_.is_dead(rank)), now);
  if (!planted(Planted::kPendingKept)) hooks_.end_collectives(status, now);
  if (!planted(Planted::kAnySourceKept)) site_.mailbox->stop_any(site_.world, status);
  site_.accord->note_failed(rank, now);
  site_.mailbox->note_end();
  hooks_.failed();
  if (hearing_ != nullptr) hearing_->note_gone(rank);
}

/// Whose end is proven does not count for a quorum.
void FailureDesk::note_dead(std::uint32_t rank) {
  if (fates_.note_dead(rank)) site_.accord->note_dead(rank);
}

/// The rank that told this one may die before it has told all others. So this rank tells them, too.
void FailureDesk::exclude(const Status& why) {
  if (!fates_.exclude(why)) return;
  const Instant now = site_.mailbox->now();
  tell_all(failed_word(site_.world, site_.roster->own(), false), now);
  revoke(why, false, now);
  site_.mailbox->stop_any(site_.world, why);
  site_.accord->stop(why);
  hearing_.reset();
  on_decided(now);
  site_.mailbox->note_end();
  hooks_.excluded(why);
}

void FailureDesk::on_failed(const Peer& by, std::uint32_t rank, bool is_dead) {
  const std::optional<std::uint32_t> teller = site_.roster->rank_of(by);
  if (!teller || rank >= size()) return;
  if (rank == *teller && is_dead && site_.roster->is_guest(rank)) return note_closed(by, rank);
  if (fates_.has_failed(*teller)) return;
  const std::uint32_t own = site_.roster->own();
  if (rank != own) {
    if (is_dead) note_dead(rank);
    return note_failure(rank, Status(Code::kDisconnected, "rank " + std::to_string(*teller) + " found so"));
  }
  std::string text = "rank " + std::to_string(*teller) + " of world '" + site_.name + "' holds this rank, " +
                     std::to_string(own) + ", for failed";
  if (const std::vector<std::uint32_t> lost = lost_by_this(); !lost.empty()) {
    text += ": it and rank " + list_of(lost) + " have lost each other, and of such ranks the one that ";
    text += site_.relay != nullptr
                ? "lost more is left out, then the one that fewer others need as a relay, then the higher"
                : "reaches fewer is left out, then the higher";
  }
  exclude(
      Status(Code::kDisconnected, text).with_advice("the others go on without this rank: end it, or start it anew"));
}

/// Its agent goes on, so no session's end says it.
void FailureDesk::note_closed(const Peer& peer, std::uint32_t rank) {
  hooks_.end_calls(peer);
  note_dead(rank);
  note_failure(rank, Status(Code::kDisconnected, "it closed the world"));
  const Status status = fates_.failure(rank);
  site_.mailbox->stop_landing(site_.world, {&peer, 1}, status, site_.mailbox->now());
  end_dealings(peer, status);
}

void FailureDesk::end_dealings(const Peer& peer, const Status& status) {
  site_.mailbox->stop_from(site_.world, peer, status);
  site_.mailbox->stop_sends(site_.world, {&peer, 1}, status, site_.mailbox->now());
}

Status FailureDesk::why_gone(std::uint32_t rank) const {
  if (!site_.roster->is_guest(rank)) return {};
  const Status failure = fates_.failure(rank);
  if (!failure.ok() || !fates_.has_left(rank)) return failure;
  return fates_.departure_of(rank);
}

void FailureDesk::take_over(const FailureDesk& parent, std::span<const std::uint32_t> ranks) {
  for (std::uint32_t rank = 0; rank < size(); ++rank) {
    const Status failure = parent.fates_.failure(ranks[rank]);
    if (!failure.ok()) note_failure(rank, failure);
    const Status loss = parent.fates_.loss(ranks[rank]);  // No session will tell of it again.
    if (failure.ok() && !loss.ok() && site_.roster->own() != rank) note_lost(rank, loss.cause());
  }
}

// ---- Ranks that go.

void FailureDesk::on_down(const Peer& peer, const Status& cause) {
  const std::optional<std::uint32_t> rank = site_.roster->rank_of(peer);
  if (rank && peer.is_self()) return exclude(cause);
  if (!rank) return;
  hooks_.end_calls(peer);
  const bool is_dead = proves_death(cause);
  if (is_dead) note_dead(*rank);
  if (is_dead || planted(Planted::kCourtSkipped)) return note_failure(*rank, cause);
  note_lost(*rank, cause);
}

void FailureDesk::on_left(const Peer& peer) {
  const std::optional<std::uint32_t> rank = site_.roster->rank_of(peer);
  if (!rank || !fates_.note_left(*rank)) return;
  note_dead(*rank);
  if (fates_.has_failed(*rank)) return;
  const Instant now = site_.mailbox->now();
  // What it has not written on its board by now never comes. Receives of it end with its session, if that ends.
  hooks_.end_waits_for(*rank, fates_.departure_of(*rank), now);
  site_.accord->note_failed(*rank, now);  // It votes no more.
  if (hearing_ != nullptr) hearing_->note_gone(*rank);
  if (!site_.roster->is_guest(*rank)) return;
  hooks_.end_calls(peer);
  end_dealings(peer, fates_.departure_of(*rank));
}

// ---- Live ranks that lose sight of one another.

void FailureDesk::note_lost(std::uint32_t rank, const Status& cause) {
  if (fates_.has_failed(rank) || fates_.has_left(rank) || fates_.is_excluded()) return;
  const bool has_court =
      site_.relay != nullptr ? !site_.relay->has_failed(site_.roster->root_rank(rank)) : hearing_ != nullptr;
  if (!has_court) return note_failure(rank, cause);
  // Whoever of the two stays, together they do nothing any more.
  if (!fates_.note_lost(rank, cause)) return;
  const Status loss = fates_.loss(rank);
  hooks_.end_collectives(loss, site_.mailbox->now());
  site_.mailbox->stop_any(site_.world, loss);
  if (hearing_ != nullptr) hearing_->note_lost(rank);
}

void FailureDesk::on_lost(const Peer& by, std::span<const std::byte> lost, bool asks) {
  const std::optional<std::uint32_t> rank = site_.roster->rank_of(by);
  if (!rank || hearing_ == nullptr || fates_.has_failed(*rank) || fates_.is_excluded()) return;
  hearing_->hear(*rank, lost, asks);
}

void FailureDesk::convict(std::uint32_t rank) {
  const Status loss = fates_.loss(rank);
  const Status others(Code::kDisconnected,
                      "other ranks and it have lost each other, and it reaches fewer ranks, or has "
                      "the higher number");
  note_failure(rank, loss.ok() ? others : loss.cause());
}

void FailureDesk::on_decided(Instant now) {
  if (std::exchange(tells_later_, false)) tell_revoked(now);
  site_.accord->release(now);
}

/// While it is undecided who of them failed.
std::vector<std::uint32_t> FailureDesk::lost_by_this() const {
  if (site_.relay == nullptr) return hearing_ == nullptr ? std::vector<std::uint32_t>() : hearing_->lost();
  std::vector<std::uint32_t> all;
  for (const std::uint32_t root : site_.relay->lost()) {
    if (const std::optional<std::uint32_t> rank = site_.roster->rank_of_root(root)) all.push_back(*rank);
  }
  return all;
}

// ---- The end of the world.

void FailureDesk::revoke(const Status& why, bool tell, Instant now) {
  if (!fates_.revoke(why)) return;
  if (tell) tell_revoked(now);
  hooks_.end_collectives(why, now);
}

void FailureDesk::revoke_once_decided(const Status& why, Instant now) {
  tells_later_ = !fates_.is_revoked() && is_undecided();
  revoke(why, !tells_later_, now);
}

void FailureDesk::tell_revoked_again(Instant now) {
  const bool is_told = fates_.is_revoked() && !tells_later_;
  if (is_told && fates_.revoked().code() != Code::kDisconnected) tell_revoked(now);
}

void FailureDesk::tell_revoked(Instant now) {
  if (!planted(Planted::kRevokeUntold)) tell_all(revoke_word(site_.world, fates_.revoked()), now);
}

void FailureDesk::on_revoke(const Peer& by, const Status& why) {
  const std::optional<std::uint32_t> rank = site_.roster->rank_of(by);
  if (!rank) return;
  revoke(Status(why.code(),
                "rank " + std::to_string(*rank) + " revoked world '" + site_.name + "': " + base::shown(why.message())),
         false, site_.mailbox->now());
}

void FailureDesk::tell_why_not(const Peer& peer, Instant now) {
  if (is_undecided()) return;  // It will hear who failed.
  for (const std::uint32_t rank : fates_.failed()) {
    site_.mailbox->tell(peer, failed_word(site_.world, rank, fates_.is_dead(rank)), now);
  }
  if (!fates_.has_any_failed()) site_.mailbox->tell(peer, revoke_word(site_.world, fates_.why_not()), now);
}

}  // namespace hawser::runtime
