#include "backend/peer_guard.h"

#include <algorithm>

#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::backend {

std::string_view to_string(Quota quota) {
  switch (quota) {
    case Quota::kConnections:
      return "peer_connections";
    case Quota::kOperations:
      return "peer_operations";
    case Quota::kBytes:
      return "peer_bytes";
    case Quota::kRegions:
      return "peer_regions";
    case Quota::kPeers:
      return "peers";
    case Quota::kName:
      return "name";
  }
  return "";
}

PeerAccount::PeerAccount(const std::shared_ptr<PeerGuard>& guard, const base::Id128& incarnation)
    : guard_(guard), quotas_(guard->quotas()), incarnation_(incarnation) {}

PeerAccount::~PeerAccount() {
  if (const std::shared_ptr<PeerGuard> guard = guard_.lock()) guard->accounts_.erase(incarnation_);
}

void PeerAccount::refused(Quota quota, std::string_view peer, Instant now) const {
  const std::shared_ptr<PeerGuard> guard = guard_.lock();
  if (guard == nullptr) return;
  const std::uint64_t value = quota == Quota::kOperations ? quotas_.operations : quotas_.bytes;
  guard->refused(quota, peer, base::format("limits.{} = {} is in use", to_string(quota), value), now);
}

std::shared_ptr<PeerAccount> PeerGuard::account(const base::Id128& incarnation) {
  std::weak_ptr<PeerAccount>& known = accounts_[incarnation];
  if (std::shared_ptr<PeerAccount> account = known.lock()) return account;
  auto account = std::make_shared<PeerAccount>(shared_from_this(), incarnation);
  known = account;
  return account;
}

void PeerGuard::learn(PeerAccount& account, const PeerClaim& claim) {
  if (claim.is_key_proven) {
    account.public_key_ = claim.public_key;
    account.has_key_ = true;
  }
  if (!claim.identity.empty()) account.identity_ = claim.identity;
}

/// Null: nobody has the name, or a replica.
const PeerAccount* PeerGuard::holder_in_the_way(const PeerClaim& claim) const {
  const auto [first, last] = names_.equal_range(claim.name);
  const auto is_itself = [&](const auto& each) { return each.second->incarnation_ == claim.incarnation; };
  if (std::any_of(first, last, is_itself)) return nullptr;
  for (auto at = first; at != last; ++at) {
    const PeerAccount& holder = *at->second;
    const bool is_replica = !claim.identity.empty() && holder.identity_ == claim.identity;
    if (!is_replica) return &holder;
  }
  return nullptr;
}

Status PeerGuard::check(const PeerClaim& claim, Instant now) {
  if (!claim.is_key_proven) return {};
  const auto known = accounts_.find(claim.incarnation);
  const std::shared_ptr<PeerAccount> account = known == accounts_.end() ? nullptr : known->second.lock();
  if (account != nullptr && account->has_key_ && account->public_key_ != claim.public_key) {
    refused(Quota::kName, claim.name, "its incarnation belongs to another key", now);
    return Status(Code::kDenied, base::format("incarnation {} of {} belongs to another key", to_hex(claim.incarnation),
                                              base::shown(claim.name)))
        .with_scope(Scope::kPath);
  }
  const PeerAccount* const holder = holder_in_the_way(claim);
  if (holder == nullptr || (is_expected_ && is_expected_(claim))) return {};
  refused(Quota::kName, claim.name, "another incarnation of that name is connected", now);
  // Whoever is refused is told the message alone.
  const std::string as = holder->identity_.empty() ? "" : base::format(" ({})", base::shown(holder->identity_, 60));
  return Status(Code::kBusy,
                base::format("the name '{}' is held by the live incarnation {}{}: take another name, or wait until it "
                             "is down",
                             base::shown(claim.name, 40), to_hex(holder->incarnation_), as))
      .with_scope(Scope::kPath);
}

Result<PeerSeat> PeerGuard::admit(const PeerClaim& claim, Instant now) {
  PeerSeat seat;
  seat.account_ = account(claim.incarnation);
  if (seat.account_->connections_ >= quotas_.connections) {
    const std::string why = base::format("limits.peer_connections = {} is in use", quotas_.connections);
    refused(Quota::kConnections, claim.name, why, now);
    return Status(Code::kBusy, base::format("{} for {}: close some, or raise HAWSER_LIMITS_PEER_CONNECTIONS there", why,
                                            base::shown(claim.name, 40)))
        .with_scope(Scope::kPath);
  }
  learn(*seat.account_, claim);
  ++seat.account_->connections_;
  seat.is_counted_ = true;
  return seat;
}

PeerSeat PeerGuard::seat(const PeerClaim& claim) {
  PeerSeat seat;
  seat.account_ = account(claim.incarnation);
  learn(*seat.account_, claim);
  return seat;
}

void PeerGuard::note_session(const base::Id128& incarnation, std::string_view name, bool is_live) {
  const auto [first, last] = names_.equal_range(name);
  const auto held =
      std::find_if(first, last, [&](const auto& each) { return each.second->incarnation_ == incarnation; });
  if (is_live && held == last) {
    names_.emplace(std::string(name), account(incarnation));
  } else if (!is_live && held != last) {
    names_.erase(held);
  }
}

void PeerGuard::refused(Quota quota, std::string_view peer, std::string_view why, Instant now) {
  ++refusals_[static_cast<std::size_t>(quota)];
  if (log_ == nullptr || !log_->enabled(LogLevel::kWarn)) return;
  const auto held_back = gate_.pass_kind(static_cast<std::uint64_t>(quota), now);
  if (!held_back) return;
  log_->write(LogLevel::kWarn, "refused {}: {}{}", base::shown(peer), why, base::LineGate::more(*held_back));
}

std::vector<std::pair<std::string, std::uint64_t>> PeerGuard::refusals() const {
  std::vector<std::pair<std::string, std::uint64_t>> all;
  for (std::size_t quota = 0; quota < refusals_.size(); ++quota) {
    if (refusals_[quota] > 0) all.emplace_back(to_string(static_cast<Quota>(quota)), refusals_[quota]);
  }
  return all;
}

}  // namespace hawser::backend
