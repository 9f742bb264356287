#pragma once

// PeerCharges: what a peer has under way here, by all of its paths, stays within its quotas. The first refusal on a
// path tells the peer what its quotas are, so that its error can name them.
//
// Thread rule: one thread. Lifetime: the account outlives the charges.

#include <cstdint>
#include <memory>
#include <string>

#include "backend/peer_guard.h"
#include "backend/stream/outlet.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

class PeerCharges {
 public:
  /// `peer` is a name, for the log. Without an `account` the path has one of its own, with the default quotas.
  PeerCharges(std::shared_ptr<PeerAccount> account, std::string peer);

  /// Charges an operation of `bytes`. An outcome but kOk: it is beyond a quota, and nothing is held.
  wire::Outcome take(OperationCharge& charge, std::uint64_t bytes);
  /// Frames QUOTAS on stream 0, once for a path, if the peer has to know.
  void stage_quotas(Outlet& control);
  const std::string& peer() const { return peer_; }
  PeerAccount& account() const { return *account_; }

 private:
  const std::shared_ptr<PeerAccount> account_;
  const std::string peer_;
  bool owes_quotas_ = false, told_quotas_ = false;  ///< The peer is to be told its quotas; it was.
};

}  // namespace hawser::backend::stream
