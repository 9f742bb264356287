#pragma once

// Watchers: which worlds a rank is in, and who of them hears what its peers say.
//
// What a peer says of a world that this rank has not entered yet is kept, with the peer's other things, until then.
// What it says of one that was closed is dropped, but for an agreement that still goes on there (see past_accord.h).
//
// Thread rule: under the lane's lock. A watcher may add and remove itself and others in any call. Memory:
// kEarlyWordsMax words of each peer, and kClosedMax numbers of closed worlds.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include <hawser/peer.h>

#include "runtime/closed_worlds.h"
#include "runtime/watcher.h"
#include "runtime/word.h"

namespace hawser::runtime {

inline constexpr std::size_t kEarlyWordsMax = 256;  ///< Of one peer, about worlds not known yet.
inline constexpr std::size_t kClosedMax = 16'384;   ///< Closed worlds that are remembered.

class Watchers {
 public:
  void add(std::uint64_t world, Watcher& watcher) { known_.emplace(world, &watcher); }
  /// Tells the watcher of this world what the peer said of it before.
  void tell_early(std::uint64_t world, const Peer& by, EarlyWords& early, Instant now);
  /// What still comes for this world is dropped. False: it was removed before.
  bool remove(std::uint64_t world);
  /// Hears what peers say of agreements of this world, which is closed here, and which peers fail.
  void add_past(std::uint64_t world, Watcher& watcher) { past_.insert_or_assign(world, &watcher); }
  void remove_past(std::uint64_t world) { past_.erase(world); }

  /// Null: this rank is not in that world.
  Watcher* find(std::uint64_t world) const;
  bool is_closed(std::uint64_t world) const { return closed_.contains(world); }

  /// The peer says that. `early` is what of it was kept so far.
  void tell(const Peer& by, const wire::RuntimeMessage& word, EarlyWords& early, Instant now);
  /// The peer has failed.
  void tell_down(const Peer& peer, const Status& why);
  void tell_decided(Instant now);
  void close_all(Instant now) {
    while (!known_.empty()) known_.begin()->second->on_close(now);
  }
  /// Calls it for each world of that family. It may remove the world.
  void for_family(std::uint64_t family, const std::function<void(Watcher&)>& visit) const;
  /// The same for all.
  void for_each(const std::function<void(Watcher&)>& visit) const;
  /// This rank is in that world, or was.
  bool has_known(std::uint64_t world) const { return known_.contains(world) || is_closed(world); }

 private:
  std::map<std::uint64_t, Watcher*> known_, past_;  ///< By world.
  ClosedWorlds closed_{kClosedMax};
};

}  // namespace hawser::runtime
