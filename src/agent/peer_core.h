#pragma once

// A peer as this agent knows it. One that is known and unused costs this struct, its place in PeerBook and the card
// that it shares with the process's other agents; the decoded card, credits and the session come at first use
// (PeerUse).
//
// Thread rule: thread-safe; `use` may be called by any thread, and all get the same one. The session is under the
// lane's lock.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hawser/peer.h>

#include "agent/fork_guard.h"
#include "agent/peer_use.h"
#include "agent/shared_card.h"

namespace hawser::agent {

class Core;

struct PeerCore {
 private:
  const CardRef card_;  ///< The first that came; newer ones are in PeerUse.

 public:
  PeerCore(std::weak_ptr<Core> owner, CardRef card);
  /// One that was met without a card.
  PeerCore(std::weak_ptr<Core> owner, std::string its_name, const base::Id128& its_incarnation,
           std::uint64_t its_born = 0);
  ~PeerCore();

  /// Made by the first call. Not for those that go over all known peers: `used` is for them.
  PeerUse& use() const {
    PeerUse* const its = use_.load(std::memory_order_acquire);
    if (its != nullptr) [[likely]]
      return *its;
    return make_use();
  }
  /// Null: it is known, and nothing else.
  PeerUse* used() const { return use_.load(std::memory_order_acquire); }
  /// Under the lane's lock. Null: there is none.
  Session* session() const {
    const PeerUse* const its = used();
    return its == nullptr ? nullptr : its->session.get();
  }
  /// The card that it was known by first. It may have no bytes.
  const CardRef& first_card() const { return card_; }
  bool has_card() const;
  /// As its cards tell it.
  AdmissionTicket ticket() const;
  std::uint64_t born() const {
    const PeerUse* const its = used();
    return its == nullptr ? card_->born : its->born.load(std::memory_order_relaxed);
  }
  /// A card or a hello told it.
  void note_born(std::uint64_t its) {
    if (its > born()) use().note_born(its);
  }
  /// Which of two incarnations of a name lives, for all that is known: one that is down does not, one whose session is
  /// up does, else the one that was born later. Clocks lie, so the other is kept until this one was reached.
  bool outranks(const PeerCore& other) const;

  const std::weak_ptr<Core> core;
  const std::string& name;                    ///< The card's.
  const base::Id128& incarnation;             ///< The card's.
  const std::uint32_t forks = watch_forks();  ///< When it was made.
  bool is_self = false;                       ///< Set before it is shared.
  std::atomic<PeerState> state{PeerState::kKnown};

 private:
  PeerUse& make_use() const;

  mutable std::atomic<PeerUse*> use_{nullptr};  ///< Owned; it never changes again.
};
// With the counts of its shared_ptr it fills a block of 80 bytes of glibc's heap.
static_assert(sizeof(PeerCore) <= 56);

/// The region of that very id; null when the peer's cards say that it is closed, or none of them told of it.
std::shared_ptr<const RemoteRegion> find_remote(const std::shared_ptr<PeerCore>& peer, const RegionId& id);
/// Which of them `find_remote` would find.
std::vector<bool> are_known(PeerCore& peer, std::span<const RegionId> ids);

}  // namespace hawser::agent
