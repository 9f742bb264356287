#pragma once

// PeerFinder finds a peer by its name: among those that are known, in the directory, or at the address that the name
// carries ("name@host:port"); and waits until a peer has the regions that the user wants.
//
// Thread rule: thread-safe. Not under the lane's lock.

#include <memory>
#include <span>
#include <string_view>

#include <hawser/status.h>

#include "agent/address_finder.h"
#include "agent/directory_finder.h"
#include "agent/lane_access.h"
#include "agent/life.h"
#include "agent/peer_book.h"

namespace hawser::agent {

class PeerFinder {
 public:
  class Host {
   public:
    /// Opens a session with the peer where there is none.
    virtual void want(const std::shared_ptr<PeerCore>& peer) HAWSER_REQUIRES(in_lane) = 0;
    /// See CardExchange::check.
    virtual void check_card(const std::shared_ptr<PeerCore>& peer) HAWSER_REQUIRES(in_lane) = 0;

   protected:
    ~Host() = default;
  };

  /// What it works on. All of it outlives the finder.
  struct Parts {
    LaneAccess& lane;
    const Clock& clock;
    const std::string& agent;
    const Life& life;
    PeerBook& peers;
    DirectoryFinder& directory;
    AddressFinder& addresses;
    Host& host;
  };
  explicit PeerFinder(const Parts& parts) : its_(parts) {}

  using Found = Result<std::shared_ptr<PeerCore>>;
  using Names = std::span<const std::string_view>;

  /// A peer of that name which has, or gets until then, regions of all these names.
  Found find(std::string_view name, Names regions, Instant deadline) HAWSER_EXCLUDES(in_lane);
  /// Waits until the peer has them. kDisconnected: it is down, or another incarnation took its place.
  Status await_regions(const std::shared_ptr<PeerCore>& peer, Names regions, Instant deadline) HAWSER_EXCLUDES(in_lane);

 private:
  /// The caller may know more of a peer than this agent does: a third party told it, say, that the peer closed a region
  /// and has another one of that name. Asks the peer for its card, and waits a moment for it.
  void check_card(const std::shared_ptr<PeerCore>& peer, Instant deadline) HAWSER_EXCLUDES(in_lane);
  Found find_once(std::string_view name, Instant deadline);
  /// Of several incarnations of the name, that which lives for all that is known. Null: none is known.
  std::shared_ptr<PeerCore> best_known(std::string_view name) const;

  const Parts its_;
};

}  // namespace hawser::agent
