#include "schedule/boards_in_hosts.h"

#include <algorithm>

#include "schedule/hosts.h"
#include "schedule/two_levels.h"

namespace hawser::schedule {
namespace {

/// The call of ranks of this host alone.
Call among_mates(const Call& call, Operation operation, const Hosts& hosts) {
  const std::vector<std::uint32_t> mates = Hosts::sharing(call.hosts, call.rank, call.size);
  const auto place = [&](std::uint32_t rank) {
    return static_cast<std::uint32_t>(std::ranges::find(mates, rank) - mates.begin());
  };
  return {.operation = operation,
          .rank = place(call.rank),
          .size = static_cast<std::uint32_t>(mates.size()),
          .root = place(hosts.mates().world_rank(0)),
          .count = call.count,
          .element_bytes = call.element_bytes,
          .has_input_in_output = call.has_input_in_output};
}

}  // namespace

BoardsInHosts boards_in_hosts(const Call& call, const CostModel& model) {
  BoardsInHosts made;
  const Hosts hosts(call.hosts, call.rank, call.root);
  switch (call.operation) {
    case Operation::kBroadcast:
      broadcast_of_leaders(made.between, hosts, call.count, call.element_bytes, model);
      made.after = among_mates(call, Operation::kBroadcast, hosts);
      break;
    case Operation::kReduce: {
      const bool is_root = call.rank == call.root;
      made.before = among_mates(call, Operation::kReduce, hosts);
      made.before->has_input_in_output = call.has_input_in_output && is_root;
      if (hosts.is_leader() && !is_root) {
        made.result = Buffer::kScratch;
        made.between.take_scratch(call.count);
      }
      reduce_of_leaders(made.between, hosts, {made.result, 0, call.count}, call.element_bytes, model);
      break;
    }
    case Operation::kAllReduce:
      made.before = among_mates(call, Operation::kReduce, hosts);
      all_reduce_of_leaders(made.between, hosts, call.count, call.element_bytes, model);
      made.after = among_mates(call, Operation::kBroadcast, hosts);
      break;
    default:
      made.before = among_mates(call, Operation::kBarrier, hosts);
      barrier_of_leaders(made.between, hosts);
      made.after = made.before;
  }
  return made;
}

}  // namespace hawser::schedule
