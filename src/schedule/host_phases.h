#pragma once

// HostPhases: a collective of several hosts in three phases. The ranks of each host do something among themselves, some
// of them send messages between hosts, and the ranks of each host do something among themselves again. Within a host
// they do that on boards (runtime/board.h), at once or in pieces (staging.h), or by messages.
//
// What goes between hosts is the same in all three cases, so each host may do its part in its own way. Mostly one rank
// of each host, its leader, sends between hosts. A large all_reduce has lanes: see two_levels.h.
//
// An all_to_all has ports: each rank of a host exchanges messages with some of the other hosts, for all ranks of its
// own. So two hosts exchange one message each way, not one for each pair of their ranks. That pays for small blocks.
// First all ranks of a host tell each other all that they have, and then what their ports got. All ranks have as many
// elements for each other one, because a port must know the counts of those that it sends for.
//
// Blocks go to other hosts host by host. Where that is not the order of ranks, leaders pack and unpack them.
//
// Thread rule: values and pure functions.

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/collective.h"
#include "schedule/hosts.h"

namespace hawser::schedule {

/// A buffer of the rank, from an element on.
struct Place {
  Buffer buffer = Buffer::kOutput;
  std::uint64_t at = 0;

  Slice slice(std::uint64_t count) const { return {buffer, at, count}; }
};

/// What the ranks of one host do among themselves. They are numbered in their order.
struct HostPhase {
  Call call;
  Place input = {Buffer::kInput, 0}, output;  ///< Where the call's buffers begin.
};

/// One rank's part. Each phase begins when the one before has ended.
struct HostPhases {
  std::optional<HostPhase> before;
  Schedule between;  ///< Messages. It has the scratch of all phases, and no steps at most ranks that send nothing.
  std::optional<HostPhase> after;
  Schedule last;  ///< Copies and combinations, and no messages.
};

/// How the ranks of a host do a phase.
enum class PhaseKind : std::uint8_t { kBoards, kPieces };
PhaseKind kind_of(const HostPhase& phase, const CostModel& model);
/// Turns of the boards that a phase takes. All ranks of the host get the same answer.
std::uint64_t turns_of(const std::optional<HostPhase>& phase, const CostModel& model);

/// As this rank sees them. Its root leads its host, where the operation has one.
Hosts hosts_of(const Call& call);
/// Whether the operation has such phases. All ranks get the same answer.
bool has_host_phases(const Call& call);
/// Of a call with `hosts` and `has_host_phases`. The algorithm is kBoardsInHosts, or kStagedInHosts, which may have
/// lanes.
HostPhases host_phases(const Call& call, Algorithm algorithm, const CostModel& model);
/// The same where the ranks of the host have no boards.
Schedule phases_by_messages(const HostPhases& phases, const Hosts& hosts, const CostModel& model);

}  // namespace hawser::schedule
