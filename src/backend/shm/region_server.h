#pragma once

// RegionServer: answers the peer of one path that asks how to reach a region of this agent.
//
// One answer waits at most: as long as the socket has no room for it, the path reads nothing more.
//
// Thread rule: confined to the lane. Lifetime: borrows what the backend shares.

#include <string>

#include <hawser/status.h>

#include "backend/backend.h"
#include "backend/shm/control.h"
#include "backend/shm/options.h"
#include "backend/shm/packet.h"
#include "base/fd.h"
#include "base/id128.h"

namespace hawser::backend::shm {

class RegionServer {
 public:
  RegionServer(const RegionTable& regions, const Options& options) : regions_(regions), options_(options) {}

  struct Holder {
    base::Id128 incarnation;
    bool knows_ends = false;  ///< It understands a region that is mapped but for its ends.
  };
  /// Prepares the answer, also to who may not know; send() it. Only while has_reply() is false. True: the region is
  /// there, and the answer tells where.
  bool answer(const Bind& asked, const Holder& holder);
  bool has_reply() const { return !reply_.empty(); }
  /// kAgain: the socket has no room, and the answer is still there. Else it is gone, sent or not.
  Io send(int socket);

 private:
  Result<Bound> find(const Bind& asked, const Holder& holder);

  const RegionTable& regions_;
  const Options& options_;
  std::string reply_;
  base::Fd memory_;  ///< Goes with the answer.
};

}  // namespace hawser::backend::shm
