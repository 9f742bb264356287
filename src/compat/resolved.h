#pragma once

// A list of descriptors resolved to rows of regions: of this agent, of its other side, or of one peer.
//
// Thread rule: the agent's mutex while it is made; then immutable. Lifetime: keeps the regions' registrations alive,
// never the memory.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <hawser/compat/agent.h>

#include "agent/region.h"
#include "compat/local_book.h"
#include "compat/remote.h"
#include "plan/row_table.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// Blocks in one list: its rows may be strided, but a request's indices are 32 bits.
inline constexpr std::uint64_t kBlocksMax = std::uint64_t{1} << 31;

struct ResolvedList {
  std::optional<Peer> peer;  ///< None: local.
  MemType type = MemType::kDram;
  std::vector<std::shared_ptr<agent::LocalRegion>> locals;
  std::vector<std::shared_ptr<const agent::RemoteRegion>> remotes;
  hawser::plan::RowTable rows;          ///< Offsets are addresses when it is local.
  BackendMask backends = kAllBackends;  ///< That can all of it.
  bool has_empty = false;  ///< Some are of no bytes, and lie nowhere: pairs of them are left out of requests.
  bool is_synced = false;  ///< What is written to some of it ends on its device.
};

/// Of this agent's memory. Errors name the descriptor.
template <typename Row>
Status resolve_local(std::string_view call, const Book<LocalSpot>& book, std::span<const Row> list, ResolvedList& out);
/// Of this agent's memory, seen from its other side: `out.peer` is the agent itself.
template <typename Row>
Status resolve_own(std::string_view call, const Book<LocalSpot>& book, std::span<const Row> list, ResolvedList& out);
/// Of the memory of `out.peer`.
template <typename Row>
Status resolve_remote(std::string_view call, const Book<RemoteSpot>& book, std::span<const Row> list,
                      ResolvedList& out);

}  // namespace compat
HAWSER_NAMESPACE_END
