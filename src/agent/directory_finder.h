#pragma once

// DirectoryFinder finds peers by the cards that lie in a directory.
//
// Thread rule: thread-safe. Not under the lane's lock.

#include <memory>
#include <string_view>

#include <hawser/agent.h>

#include "agent/card_intake.h"
#include "agent/lane_access.h"
#include "agent/life.h"
#include "agent/peer_book.h"

namespace hawser::agent {

class DirectoryFinder {
 public:
  /// What it works on. All of it outlives the finder.
  struct Parts {
    LaneAccess& lane;
    const Clock& clock;
    const AgentOptions& options;
    const Life& life;
    PeerBook& peers;
    CardIntake& intake;
  };
  explicit DirectoryFinder(const Parts& parts) : its_(parts) {}

  using Found = Result<std::shared_ptr<PeerCore>>;

  /// Without it nothing may be asked here.
  bool has_directory() const { return its_.options.directory != nullptr; }
  /// One look. Null: there is no card of a peer that may live; `why_not` may tell more.
  Found look(std::string_view name, Instant deadline, Status* why_not) HAWSER_EXCLUDES(in_lane);
  /// Looks until there is one.
  Found find(std::string_view name, Instant deadline) HAWSER_EXCLUDES(in_lane);

 private:
  Status not_found(std::string_view name, const Status& last) const;

  const Parts its_;
};

}  // namespace hawser::agent
