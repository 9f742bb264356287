#pragma once

// What stands behind a PreparedList: rows of regions of this agent or of one peer, ready to be picked by index.
//
// Thread rule: immutable. Lifetime: keeps the agent and its regions' registrations alive, never the memory.

#include <memory>
#include <utility>

#include "compat/core.h"
#include "compat/resolved.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

struct PreparedCore : ResolvedList {
  explicit PreparedCore(std::shared_ptr<AgentCore> its) : core(std::move(its)) {}
  PreparedCore(const PreparedCore&) = delete;
  PreparedCore& operator=(const PreparedCore&) = delete;
  ~PreparedCore() { core->rooms().keep(rows.take_room()); }

  std::shared_ptr<AgentCore> core;
};

/// What create_xfer_req needs for one call: both lists resolved, without handles.
struct PreparedPair {
  explicit PreparedPair(const std::shared_ptr<AgentCore>& core) : local(core), remote(core) {}
  PreparedCore local, remote;
};

}  // namespace compat
HAWSER_NAMESPACE_END
