// By what bytes reach a buffer's owner, and why not by anything else.

#include <algorithm>

#include "agent/inner_peers.h"
#include "agent/inner_plans.h"
#include "base/inside.h"
#include "base/try.h"
#include "rdma/engine.h"
#include "rdma/rules.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

/// Backends that never lead from one process to another are no ways.
bool is_way(std::string_view backend) { return backend != "loopback" && backend != "file" && backend != "self"; }

std::string first_line(const Status& why) {
  std::string text(why.message());
  if (const Status cause = why.cause(); !cause.ok()) text += " (" + std::string(cause.message()) + ")";
  return text;
}

}  // namespace

bool Engine::is_near(const Found& found, const RemoteBuffer& buffer) {
  constexpr std::size_t kKnownMax = 4096;
  const base::Id128 who = agent::inner::incarnation_of(found.peer);
  {
    const base::MutexLock lock(mutex_);
    if (const auto known = near_.find(who); known != near_.end()) return known->second;
  }
  const Result<Plan> made = probe(found, buffer);
  if (!made) return false;
  const Result<agent::inner::RouteCost> route = agent::inner::route_cost(*made);
  const bool near = route && level_of(route->backend) == TransportLevel::kMemory;
  const base::MutexLock lock(mutex_);
  if (near_.size() >= kKnownMax) near_.clear();
  near_[who] = near;
  return near;
}

Result<Plan> Engine::probe(const Found& found, const RemoteBuffer& buffer) {
  const Rights rights = region_info(found.whole).rights;
  const OpType type = allows(rights, Rights::kRead) ? OpType::kReadIntoLocal : OpType::kWriteFromLocal;
  return plan(found, type, scratch_, RemoteBuffer(core_of(buffer), 0, 1), 1);
}

Result<TransportInfo> Engine::transport_info(const RemoteBuffer& buffer) {
  if (!buffer.valid()) return Status(Code::kInvalid, "transport_info: the buffer's handle is empty");
  HAWSER_TRY_ASSIGN(const Found found, find(buffer));
  if (is_own(*core_of(buffer))) return TransportInfo{.backend = "self", .level = TransportLevel::kMemory};
  HAWSER_TRY_ASSIGN(const Plan made, probe(found, buffer));
  HAWSER_TRY_ASSIGN(const agent::inner::RouteCost route, agent::inner::route_cost(made));
  return TransportInfo{
      .backend = route.backend, .level = level_of(route.backend), .queue_pairs = agent::inner::queue_pairs_of(made)};
}

Result<QueuePairInfo> Engine::queue_pair_info(const RemoteBuffer& buffer, const LocalMemory& local) {
  if (!buffer.valid()) return Status(Code::kInvalid, "queue_pair_info: the buffer's handle is empty");
  if (!agent_.has_backend("verbs")) {
    return Status(Code::kUnsupported, "queue_pair_info: this agent has no verbs backend")
        .with_advice("`hawser doctor` tells what it needs");
  }
  if (local.valid() && core_of(local)->engine != number_) {
    return Status(Code::kInvalid, "queue_pair_info: the local memory is registered with another backend");
  }
  HAWSER_TRY_ASSIGN(const Found found, find(buffer));
  if (is_own(*core_of(buffer))) {
    return Status(Code::kUnsupported, "queue_pair_info: the buffer is this agent's own, which no queue pair leads to");
  }
  HAWSER_TRY_ASSIGN(const Plan made, probe(found, buffer));
  const std::span<std::byte> bytes = local.bytes();
  HAWSER_TRY_ASSIGN(
      backend::QueuePairView view,
      agent::inner::queue_pair_of(made, {.local = bytes.data(), .remote = buffer.offset(), .size = bytes.size()}));
  return QueuePairInfo{.state = std::move(view.state),
                       .local_key = view.local_key,
                       .remote_key = view.remote_key,
                       .local_address = view.local_address,
                       .remote_address = view.remote_address,
                       .send_queue = view.send_queue,
                       .send_queue_entries = view.send_queue_entries,
                       .send_queue_stride = view.send_queue_stride,
                       .doorbell_record = view.doorbell_record,
                       .doorbell = view.doorbell};
}

/// One line for each backend that is open here or that the handle tells of.
std::vector<std::string> Engine::ways_to(const RemoteBuffer& buffer) const {
  const std::vector<std::string> told = buffer.contexts();
  const auto is_told = [&](const std::string& name) { return std::ranges::find(told, name) != told.end(); };
  std::vector<agent::inner::Way> ways;
  for (const Peer& peer : agent_.peers()) {
    if (peer.incarnation() == buffer.owner_incarnation()) ways = agent::inner::ways_to(agent_, peer);
  }
  std::vector<std::string> lines;
  std::vector<std::string> known;
  for (const BackendReport& report : agent_.backends()) {
    if (!is_way(report.name)) continue;
    known.push_back(report.name);
    std::string line = report.name + ": ";
    const auto way = std::ranges::find(ways, report.name, &agent::inner::Way::backend);
    if (!report.open) {
      line += "not open here: " + first_line(report.cause);
    } else if (!is_told(report.name)) {
      line += "the owner had not opened it when it made the handle";
    } else if (way != ways.end() && !way->why.ok()) {
      line += first_line(way->why);
    } else {
      line += "open at both ends";
    }
    lines.push_back(std::move(line));
  }
  for (const std::string& name : told) {
    const bool is_new = is_way(name) && std::ranges::find(known, name) == known.end();
    if (is_new) lines.push_back(name + ": the owner has it, this agent was opened without it");
  }
  return lines;
}

// Of the agent's own backends alone the agent tells; what keeps the others away is mostly what mends it.
Status Engine::with_ways(const Status& why, const RemoteBuffer& buffer) const {
  const Code code = why.code();
  const bool is_of_way = code == Code::kDisconnected || code == Code::kUnsupported || code == Code::kTimedOut;
  if (!is_of_way || !buffer.valid() || is_own(*core_of(buffer))) return why;
  std::string text = "ways to " + std::string(buffer.owner());
  std::string_view mark = ": ";
  for (const std::string& line : ways_to(buffer)) {
    text += std::string(mark) + line;
    mark = "; ";
  }
  return why.because(Status(code, std::move(text)));
}

Status Engine::of_transfer(const Status& why, const RemoteBuffer& buffer) const {
  if (why.code() != Code::kDenied) return with_ways(why, buffer);
  return Status(Code::kDenied, "buffer " + std::to_string(buffer.id()) + " of " + std::string(buffer.owner()) +
                                   " is not lent any more: somebody released it")
      .with_peer(buffer.owner())
      .with_buffer(why.buffer())
      .with_scope(why.scope())
      .with_advice("ask its owner for a new handle")
      .because(why);
}

std::string Engine::explain(const RemoteBuffer& buffer, const LocalMemory& local) {
  if (!buffer.valid()) return "an empty handle: it was never made\n";
  if (local.valid() && core_of(local)->engine != number_)
    return "the local memory is registered with another backend\n";
  const std::string name = "buffer " + std::to_string(buffer.id()) + " of " + std::string(buffer.owner());
  if (is_own(*core_of(buffer))) return name + " is this process's own: copied in place\n";
  std::string text;
  const Result<Found> found = find(buffer);
  if (!found) {
    text = name + ": " + found.error().to_string() + "\n";
  } else {
    const std::uint64_t size = std::min(local.size(), buffer.size());
    const bool reads = allows(region_info(found->whole).rights, Rights::kRead);
    const OpType type = reads ? OpType::kReadIntoLocal : OpType::kWriteFromLocal;
    const Result<Plan> made = size > 0 ? plan(*found, type, local, buffer, size) : probe(*found, buffer);
    text = made ? agent_.explain(*made) : made.error().to_string() + "\n";
  }
  for (const std::string& line : ways_to(buffer)) text += "  " + line + "\n";
  return text;
}

}  // namespace rdma
HAWSER_NAMESPACE_END
