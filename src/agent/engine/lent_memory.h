#pragma once

// LentMemory: memory of this agent that a service lends a peer to write into, over a path that quits at once
// (backend::Traits::quits_at_once). Each loan is a region that no card tells of, for that peer alone, and ends within
// the call that takes it back: the memory is the caller's again.
//
// Thread rule: confined to the lane. Lifetime: what it is made with outlives it.

#include <cstddef>
#include <span>

#include <hawser/status.h>

#include "agent/engine/ports.h"
#include "agent/engine/surroundings.h"
#include "agent/session.h"
#include "backend/region_table.h"
#include "wire/lent.h"

namespace hawser::agent {

class LentMemory {
 public:
  LentMemory(backend::RegionTable& table, Ports& ports, Keys& keys) : table_(table), ports_(ports), keys_(keys) {}

  /// The path for messages quits at once.
  bool lends(Session& session) const;
  /// kBusy: there are as many regions as there may be.
  Result<wire::Lent> lend(const Session& session, std::span<std::byte> bytes);
  /// From now on nobody writes there.
  void take_back(const wire::Lent& lent);

 private:
  backend::RegionTable& table_;
  Ports& ports_;
  Keys& keys_;
};

}  // namespace hawser::agent
