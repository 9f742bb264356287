#include "rdma/route_facts.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "agent/inner_plans.h"
#include "base/inside.h"
#include "base/try.h"
#include "rdma/held_memory.h"
#include "rdma/rules.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

Result<TransportInfo> RouteFacts::transport_info(const RemoteBuffer& buffer) const {
  if (!buffer.valid()) return Status(Code::kInvalid, "transport_info: the buffer's handle is empty");
  HAWSER_TRY_ASSIGN(const Found found, uses_.routes.find(buffer));
  if (uses_.self.owns(*core_of(buffer))) return TransportInfo{.backend = "self", .level = TransportLevel::kMemory};
  HAWSER_TRY_ASSIGN(const Plan made, uses_.routes.probe(found, buffer));
  HAWSER_TRY_ASSIGN(const agent::inner::RouteCost route, agent::inner::route_cost(made));
  return TransportInfo{
      .backend = route.backend, .level = level_of(route.backend), .queue_pairs = agent::inner::queue_pairs_of(made)};
}

Result<QueuePairInfo> RouteFacts::queue_pair_info(const RemoteBuffer& buffer, const LocalMemory& local) const {
  if (!buffer.valid()) return Status(Code::kInvalid, "queue_pair_info: the buffer's handle is empty");
  if (!uses_.agent.has_backend("verbs")) {
    return Status(Code::kUnsupported, "queue_pair_info: this agent has no verbs backend")
        .with_advice("`hawser doctor` tells what it needs");
  }
  if (local.valid() && core_of(local)->engine != uses_.self.number) {
    return Status(Code::kInvalid, "queue_pair_info: the local memory is registered with another backend");
  }
  HAWSER_TRY_ASSIGN(const Found found, uses_.routes.find(buffer));
  if (uses_.self.owns(*core_of(buffer))) {
    return Status(Code::kUnsupported, "queue_pair_info: the buffer is this agent's own, which no queue pair leads to");
  }
  HAWSER_TRY_ASSIGN(const Plan made, uses_.routes.probe(found, buffer));
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

std::string RouteFacts::explain(const RemoteBuffer& buffer, const LocalMemory& local) const {
  if (!buffer.valid()) return "an empty handle: it was never made\n";
  if (local.valid() && core_of(local)->engine != uses_.self.number) {
    return "the local memory is registered with another backend\n";
  }
  const std::string name = "buffer " + std::to_string(buffer.id()) + " of " + std::string(buffer.owner());
  if (uses_.self.owns(*core_of(buffer))) return name + " is this process's own: copied in place\n";
  std::string text;
  const Result<Found> found = uses_.routes.find(buffer);
  if (!found) {
    text = name + ": " + found.error().to_string() + "\n";
  } else {
    const std::uint64_t size = std::min(local.size(), buffer.size());
    const bool reads = allows(region_info(found->whole).rights, Rights::kRead);
    const OpType type = reads ? OpType::kReadIntoLocal : OpType::kWriteFromLocal;
    const Result<Plan> made =
        size > 0 ? uses_.routes.plan(*found, type, local, buffer, size) : uses_.routes.probe(*found, buffer);
    text = made ? uses_.agent.explain(*made) : made.error().to_string() + "\n";
  }
  for (const std::string& line : uses_.ways.lines_of(buffer)) text += "  " + line + "\n";
  return text;
}

}  // namespace rdma
HAWSER_NAMESPACE_END
