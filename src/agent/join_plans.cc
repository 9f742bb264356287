// Plans that move as one: Plan::join, Plan::submit_group, and plans over several tables.

#include <algorithm>
#include <utility>
#include <vector>

#include "agent/core.h"
#include "agent/plan.h"
#include "base/inside.h"
#include "base/try.h"
#include "plan/join.h"

namespace hawser::agent {
namespace {

Status bad_join(std::string_view call, std::size_t number, const std::string& what) {
  return Status(Code::kInvalid, std::string(call) + ": plan " + std::to_string(number) + " " + what);
}

Status check_like_first(std::string_view call, std::span<const Plan> plans, std::size_t number) {
  const PlanCore* const one = core_of(plans[number]).get();
  if (one == nullptr) return bad_join(call, number, "is empty: it was never made");
  const PlanCore& first = *core_of(plans.front());
  if (one->core != first.core) {
    return bad_join(
        call, number,
        "is of agent '" + one->core->options.name + "', the first one of '" + first.core->options.name + "'");
  }
  if (one->peer != first.peer) {
    return bad_join(call, number, "goes to peer '" + one->peer->name + "', the first one to '" + first.peer->name + "'")
        .with_advice("one transfer has one peer: make a group for each peer");
  }
  if (one->operation != first.operation) {
    return bad_join(call, number, "does not go in the same direction as the first one")
        .with_advice("group writes with writes and reads with reads");
  }
  return {};
}

/// The place of each of `from` in `all`, to which those that are new are added.
template <typename Regions>
std::vector<std::uint32_t> places_in(Regions& all, const Regions& from) {
  std::vector<std::uint32_t> places;
  for (const auto& region : from) {
    const auto found = std::find(all.begin(), all.end(), region);
    places.push_back(static_cast<std::uint32_t>(found - all.begin()));
    if (found == all.end()) all.push_back(region);
  }
  return places;
}

Result<Plan> join(std::string_view call, std::span<const Plan> plans) {
  if (plans.empty()) return Status(Code::kInvalid, std::string(call) + ": there are no plans");
  for (std::size_t i = 0; i < plans.size(); ++i) HAWSER_TRY(check_like_first(call, plans, i));
  if (plans.size() == 1) return plans.front();
  inner::MadePieces made;
  std::vector<std::vector<std::uint32_t>> places;
  std::vector<plan::JoinPart> parts;
  for (const Plan& plan : plans) {
    (void)places_in(made.locals, core_of(plan)->locals);
    places.push_back(places_in(made.remotes, core_of(plan)->remotes));
    parts.push_back({.pieces = &core_of(plan)->pieces, .regions = places.back()});
  }
  HAWSER_TRY_ASSIGN(made.pieces, plan::join_pieces(call, parts, static_cast<std::uint32_t>(made.remotes.size())));
  // A group's region is the place in the list of those that it came from; the plan's own list is in order of first use.
  const PlanCore& first = *core_of(plans.front());
  return pieces_plan(call, first.core, Peer(first.peer), first.operation, std::move(made));
}

/// Plans the same blocks of each pair of tables.
template <typename PlanOne>
Result<Plan> plan_each(std::string_view call, std::size_t source, std::size_t target, PlanOne plan_one) {
  if (source != target) {
    return Status(Code::kInvalid, std::string(call) + ": " + std::to_string(source) + " source tables and " +
                                      std::to_string(target) + " target tables; tables are paired one to one");
  }
  std::vector<Plan> plans;
  plans.reserve(source);
  for (std::size_t i = 0; i < source; ++i) {
    Result<Plan> one = plan_one(i);
    if (!one) return one.error().because(Status(Code::kInvalid, "in pair " + std::to_string(i) + " of the tables"));
    plans.push_back(std::move(*one));
  }
  return join(call, plans);
}

}  // namespace
}  // namespace hawser::agent

HAWSER_NAMESPACE_BEGIN

Result<Plan> Plan::join(std::span<const Plan> plans) { return agent::join("Plan::join", plans); }

Result<Transfer> Plan::submit_group(std::span<const Plan> plans, const SubmitOptions& options) {
  HAWSER_TRY_ASSIGN(const Plan joined, agent::join("submit_group", plans));
  return joined.submit(options);
}

Result<Plan> Agent::plan_write(const Peer& peer, std::span<const RangeTable> source,
                               std::span<const std::uint32_t> source_index, std::span<const RangeTable> target,
                               std::span<const std::uint32_t> target_index) {
  return agent::plan_each("plan_write", source.size(), target.size(), [&](std::size_t i) {
    return plan_write(peer, source[i], source_index, target[i], target_index);
  });
}

Result<Plan> Agent::plan_read(const Peer& peer, std::span<const RangeTable> source,
                              std::span<const std::uint32_t> source_index, std::span<const RangeTable> target,
                              std::span<const std::uint32_t> target_index) {
  return agent::plan_each("plan_read", source.size(), target.size(), [&](std::size_t i) {
    return plan_read(peer, source[i], source_index, target[i], target_index);
  });
}

HAWSER_NAMESPACE_END
