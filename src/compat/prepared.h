#pragma once

// What stands behind a PreparedList: rows of regions of this agent or of one peer, ready to be picked by index.
//
// Thread rule: immutable. Lifetime: keeps the agent and its regions' registrations alive, never the memory.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "agent/region.h"
#include "compat/core.h"
#include "plan/row_table.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

struct PreparedCore {
  explicit PreparedCore(std::shared_ptr<AgentCore> its) : core(std::move(its)) {}
  PreparedCore(const PreparedCore&) = delete;
  PreparedCore& operator=(const PreparedCore&) = delete;
  ~PreparedCore() { core->keep_room(rows.take_room()); }

  std::shared_ptr<AgentCore> core;
  std::optional<Peer> peer;  ///< None: local.
  MemType type = MemType::kDram;
  std::vector<std::shared_ptr<agent::LocalRegion>> locals;
  std::vector<std::shared_ptr<const agent::RemoteRegion>> remotes;
  hawser::plan::RowTable rows;  ///< Offsets are addresses when it is local.
  BackendMask backends = 0;     ///< That can all of it.
  bool has_empty = false;       ///< Some are of no bytes, and lie nowhere: pairs of them are left out of requests.
  bool is_synced = false;       ///< What is written to some of it ends on its device.
};

/// What create_xfer_req needs for one call: both lists resolved, without handles.
struct PreparedPair {
  explicit PreparedPair(const std::shared_ptr<AgentCore>& core) : local(core), remote(core) {}
  PreparedCore local, remote;
};

}  // namespace compat
HAWSER_NAMESPACE_END
