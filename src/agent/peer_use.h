#pragma once

// PeerUse: what a peer takes once it is in use: its decoded card, credits, what its session leaves to threads without
// the lane's lock, and the session itself. PeerCore::use makes it at the first use; it stays as long as the peer.
//
// Thread rule: fields say theirs.

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include <hawser/peer.h>

#include "agent/admission_ticket.h"
#include "agent/card_store.h"
#include "agent/channel_credits.h"
#include "agent/region.h"
#include "agent/shared_card.h"
#include "base/mutex.h"
#include "base/spin.h"
#include "plan/split.h"
#include "proto/credit.h"
#include "proto/notify_credit.h"

namespace hawser::agent {

struct Session;

/// What a peer may be sent before its first Welcome was seen: every agent grants it unasked.
inline constexpr wire::CreditLimits kFirstCredit{.messages = wire::kNoMessageLimit,
                                                 .bytes = proto::kNotificationCostMax};

/// That an agent opens, and that a peer may grant credit for.
inline constexpr std::size_t kChannelsMax = ChannelCredits::kUsersMax;

/// Bytes of credit that may stay untold while the sender is not pinched.
inline constexpr std::uint64_t kUntoldMax = 16 * 1024;

/// Credit for notifications and signals to one peer. Thread-safe.
class NotifyCredit {
 public:
  bool try_take(std::size_t bytes) {
    const base::SpinGuard guard(lock_);
    return credit_.try_take(proto::notification_cost(bytes));
  }
  void give_back(std::size_t bytes) {
    const base::SpinGuard guard(lock_);
    credit_.give_back(proto::notification_cost(bytes));
  }
  bool on_credit(const wire::CreditLimits& limits) {
    const base::SpinGuard guard(lock_);
    return credit_.on_credit(limits);
  }
  proto::CreditSender state() {
    const base::SpinGuard guard(lock_);
    return credit_;
  }

 private:
  base::SpinLock lock_;
  proto::CreditSender credit_ HAWSER_GUARDED_BY(lock_){kFirstCredit};
};

/// What the user released of a peer's notifications, and the lane has not told yet. One word: it is counted at each one
/// that is taken. The lane takes it long before it is full. Thread-safe.
class Released {
 public:
  struct Sum {
    std::uint32_t messages = 0;
    std::uint64_t bytes = 0;
  };

  /// One message more; answers what there is now.
  Sum add(std::size_t bytes) {
    const std::uint64_t one = std::uint64_t{1} << kBytesBits | bytes;
    return sum_of(word_.fetch_add(one, std::memory_order_seq_cst) + one);
  }
  Sum sum() const { return sum_of(word_.load(std::memory_order_acquire)); }
  Sum take() { return sum_of(word_.exchange(0, std::memory_order_seq_cst)); }

 private:
  static constexpr int kBytesBits = 40;
  static constexpr Sum sum_of(std::uint64_t word) {
    return {.messages = static_cast<std::uint32_t>(word >> kBytesBits),
            .bytes = word & ((std::uint64_t{1} << kBytesBits) - 1)};
  }
  std::atomic<std::uint64_t> word_{0};
};

/// What chunks for a peer may hold, while its card and the agent's backends are the same.
struct KnownChunkLimits {
  plan::ChunkLimits limits;
  std::uint32_t opened = 0;  ///< BackendOpener::opened.
};

struct PeerUse {
  /// `known`: the card that the agent has known the peer by.
  explicit PeerUse(const SharedCard& known);
  ~PeerUse();

  void note_born(std::uint64_t its) {
    std::uint64_t known = born.load(std::memory_order_relaxed);
    while (known < its && !born.compare_exchange_weak(known, its, std::memory_order_relaxed)) {
    }
  }

  /// Orders the incarnations of its name (docs/wire.md, `born`). 0: no card and no hello told it yet.
  std::atomic<std::uint64_t> born;
  /// Counts the cards that told of regions that are gone: what was looked up before has to be looked up again.
  std::atomic<std::uint64_t> regions_gone{0};
  /// Whether some path of it may move a small transfer before submit returns. A hint for submit, which has no lock yet.
  std::atomic<bool> moves_at_once{false};
  /// No path led to it the last time that one was sought: what is sent to it may never leave.
  std::atomic<bool> is_unreached{false};
  /// Its credit may be too little for a notification of the largest size: each that is taken is told to the lane. The
  /// lane sets it, and takes `released` after that.
  std::atomic<bool> is_pinched{false};
  /// Its greeting is here: what it lets us send is known.
  std::atomic<bool> is_greeted{false};
  /// Counts the answers of CardExchange::check.
  std::atomic<std::uint8_t> card_checks{0};
  Released released;
  /// Places in its inbox. Shared, for submit takes them also where it leaves the rest to the lane's holder.
  NotifyCredit notify_out;

  /// Places on its channels, for the same reason.
  ChannelCredits channels;

  /// Counts how often it was found that no path leads to it, for those that wait for one.
  std::atomic<std::uint32_t> unreached{0};
  /// Counts when more room on some channel was told.
  std::atomic<std::uint32_t> news{0};

  base::Mutex mutex;
  Status unreached_why HAWSER_GUARDED_BY(mutex);  ///< The last time.
  Status down_cause HAWSER_GUARDED_BY(mutex);     ///< Why it is down.
  /// What it had taken when it went down. Null: nothing was sent to it.
  std::unique_ptr<std::vector<Acknowledged>> acknowledged HAWSER_GUARDED_BY(mutex);
  std::unique_ptr<CardStore> card HAWSER_GUARDED_BY(mutex);                 ///< Null: no card yet.
  AdmissionTicket ticket HAWSER_GUARDED_BY(mutex);                          ///< As its card tells it.
  std::unique_ptr<KnownChunkLimits> chunk_limits HAWSER_GUARDED_BY(mutex);  ///< Null until a plan asked for them.
  /// What was given out of one region of the peer.
  struct Given {
    std::weak_ptr<const RemoteRegion> handle;  ///< So that equal ranges share one.
    std::uint32_t used = 0;  ///< The generation of a grant for one transfer that was used here; 0: none was.
  };
  Given& given(std::uint32_t region) HAWSER_REQUIRES(mutex) {
    if (handles == nullptr) handles = std::make_unique<Handles>();
    return (*handles)[region];
  }
  std::weak_ptr<const RemoteRegion>& handle_of(std::uint32_t region) HAWSER_REQUIRES(mutex) {
    return given(region).handle;
  }
  using Handles = std::unordered_map<std::uint32_t, Given>;
  std::unique_ptr<Handles> handles HAWSER_GUARDED_BY(mutex);  ///< Null until one is given out.

  std::unique_ptr<Session> session;  ///< Under the lane's lock.
};

}  // namespace hawser::agent
