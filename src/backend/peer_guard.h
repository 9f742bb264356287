#pragma once

// PeerGuard: what each peer of one agent may use of it at once, and which names live peers hold. One guard serves all
// stream backends of an agent, so a peer gains nothing by spreading its work over several of them.
//
// A peer is an incarnation. Its account exists while one of its paths or its session does. The first key that proves to
// be an incarnation's is the only one that may use it.
//
// A name belongs to the incarnation that has a session under it. Another incarnation that proves itself by its key (TLS
// or QUIC) and claims the name is refused with kBusy until the holder is down, unless this agent has its card.
// Incarnations whose certificates have the same identity are replicas: they may share a name.
//
// Thread rule: confined to the agent's lane. Lifetime: accounts may outlive the guard. Memory: an account for each peer
// that has a path or a session.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hawser/counters.h>
#include <hawser/status.h>
#include <hawser/time.h>

#include "base/id128.h"
#include "base/line_gate.h"
#include "base/log.h"

namespace hawser::backend {

/// What one peer may use at once: AgentLimits::peer_*.
struct PeerQuotas {
  std::uint32_t connections = 16;      ///< Paths that it opened, over all stream backends.
  std::uint32_t operations = 1024;     ///< Reads that are not answered and writes that are landing.
  std::uint64_t bytes = 512ull << 20;  ///< Of those operations.
};

/// What a peer was refused for.
enum class Quota : std::uint8_t { kConnections, kOperations, kBytes, kRegions, kPeers, kName };
inline constexpr std::size_t kQuotas = 6;
/// As counters, metrics and the log name it.
std::string_view to_string(Quota quota);

/// A peer that asks to come in.
struct PeerClaim {
  base::Id128 incarnation = {};
  std::array<std::byte, 32> public_key = {};
  std::string_view name = {};
  std::string_view identity = {};  ///< By an authority, as text; empty: none was proven.
  bool is_key_proven = false;      ///< The connection is TLS or QUIC, and keys count at this agent's level.
};

class PeerGuard;

/// What one incarnation uses.
class PeerAccount {
 public:
  PeerAccount(const std::shared_ptr<PeerGuard>& guard, const base::Id128& incarnation);
  ~PeerAccount();
  PeerAccount(const PeerAccount&) = delete;
  PeerAccount& operator=(const PeerAccount&) = delete;

  const base::Id128& incarnation() const { return incarnation_; }
  const PeerQuotas& quotas() const { return quotas_; }
  /// An operation was refused: counts it, and says so in the log.
  void refused(Quota quota, std::string_view peer, Instant now) const;
  std::uint32_t connections() const { return connections_; }
  std::uint32_t operations() const { return operations_; }
  std::uint64_t bytes() const { return bytes_; }

  /// Memory of the FileDesk that the peer's chunks hold.
  std::uint64_t staged = 0;

 private:
  friend class PeerGuard;
  friend class OperationCharge;
  friend class PeerSeat;

  const std::weak_ptr<PeerGuard> guard_;
  const PeerQuotas quotas_;
  const base::Id128 incarnation_;
  std::string identity_;  ///< That it proved last.
  std::array<std::byte, 32> public_key_ = {};
  bool has_key_ = false;  ///< A connection proved it.
  std::uint32_t connections_ = 0;
  std::uint32_t operations_ = 0;
  std::uint64_t bytes_ = 0;
};

/// One operation of a peer, until it is destroyed or released. Must not outlive its account.
class OperationCharge {
 public:
  OperationCharge() = default;
  OperationCharge(OperationCharge&& other) noexcept
      : account_(std::exchange(other.account_, nullptr)), bytes_(other.bytes_) {}
  OperationCharge& operator=(OperationCharge&& other) noexcept {
    release();
    account_ = std::exchange(other.account_, nullptr);
    bytes_ = other.bytes_;
    return *this;
  }
  ~OperationCharge() { release(); }

  /// False: that is beyond a quota, `*over` says which. Nothing was held before.
  bool take(PeerAccount& account, std::uint64_t bytes, Quota* over) {
    const PeerQuotas& quotas = account.quotas();
    const bool is_too_many = account.operations_ >= quotas.operations;
    if (is_too_many || bytes > quotas.bytes || account.bytes_ > quotas.bytes - bytes) {
      *over = is_too_many ? Quota::kOperations : Quota::kBytes;
      return false;
    }
    account_ = &account;
    bytes_ = bytes;
    ++account.operations_;
    account.bytes_ += bytes;
    return true;
  }
  void release() {
    if (account_ == nullptr) return;
    --account_->operations_;
    account_->bytes_ -= bytes_;
    account_ = nullptr;
  }

 private:
  PeerAccount* account_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// A path's hold on its peer's account; counts as a connection where the peer opened it.
class PeerSeat {
 public:
  PeerSeat() = default;
  PeerSeat(PeerSeat&& other) noexcept
      : account_(std::move(other.account_)), is_counted_(std::exchange(other.is_counted_, false)) {}
  PeerSeat& operator=(PeerSeat&& other) noexcept {
    leave();
    account_ = std::move(other.account_);
    is_counted_ = std::exchange(other.is_counted_, false);
    return *this;
  }
  ~PeerSeat() { leave(); }

  /// Null: it holds none.
  const std::shared_ptr<PeerAccount>& account() const { return account_; }
  /// The path is over: its connection is not counted any more. The account stays until the path is gone.
  void end() {
    if (std::exchange(is_counted_, false)) --account_->connections_;
  }
  void leave() {
    end();
    account_.reset();
  }

 private:
  friend class PeerGuard;
  std::shared_ptr<PeerAccount> account_;
  bool is_counted_ = false;
};

class PeerGuard : public std::enable_shared_from_this<PeerGuard> {
 public:
  /// True where this agent has looked for the peer itself: its user gave it the card that has this key.
  using IsExpected = std::function<bool(const PeerClaim& claim)>;

  /// Without a logger refusals are counted only.
  explicit PeerGuard(const PeerQuotas& quotas = {}, const base::Logger* log = nullptr, IsExpected is_expected = {})
      : quotas_(quotas), log_(log), is_expected_(std::move(is_expected)) {}

  const PeerQuotas& quotas() const { return quotas_; }

  /// Before anything of the claim is acted upon. kBusy: a live peer holds the name; kDenied: the incarnation is
  /// another key's.
  Status check(const PeerClaim& claim, Instant now);
  /// A path that the peer opens, after `check`. kBusy: it has limits.peer_connections of them.
  Result<PeerSeat> admit(const PeerClaim& claim, Instant now);
  /// A path that this agent opened: it counts for no quota of connections. `claim.is_key_proven`: the key is the
  /// card's.
  PeerSeat seat(const PeerClaim& claim);
  std::shared_ptr<PeerAccount> account(const base::Id128& incarnation);

  /// The agent has a session with the peer, which it may be mending (`is_live`), or has it no longer.
  void note_session(const base::Id128& incarnation, std::string_view name, bool is_live);

  /// Counts it, and says so in the log: once a second for each quota.
  void refused(Quota quota, std::string_view peer, std::string_view why, Instant now);
  /// Refusals by quota; those that never happened are left out.
  std::vector<std::pair<std::string, std::uint64_t>> refusals() const;
  /// Incarnations with a path or a session.
  std::size_t accounts() const { return accounts_.size(); }

 private:
  friend class PeerAccount;
  using Names = std::multimap<std::string, std::shared_ptr<PeerAccount>, std::less<>>;

  static void learn(PeerAccount& account, const PeerClaim& claim);
  const PeerAccount* holder_in_the_way(const PeerClaim& claim) const;

  const PeerQuotas quotas_;
  const base::Logger* const log_;
  const IsExpected is_expected_;                                          ///< May be empty: nobody is.
  std::unordered_map<base::Id128, std::weak_ptr<PeerAccount>> accounts_;  ///< By incarnation.
  Names names_;  ///< Of peers with a session; keeps their accounts.
  std::array<std::uint64_t, kQuotas> refusals_ = {};
  base::LineGate gate_;
};

}  // namespace hawser::backend
