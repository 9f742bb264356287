#pragma once

// What the handles of the C ABI name: the door's objects.
//
// Thread rule: a handle may be used by several threads at once. That Region and Transfer are for one thread at a time
// is about moving and destroying them, which happens here while nobody uses them (see Handles).

#include <optional>

#include <hawser/agent.h>
#include <hawser/driver.h>

#include "api/c/call.h"

namespace hawser::api {

struct AgentObject final : Object {
  static constexpr std::uint8_t kKind = 1;
  static constexpr std::string_view kName = "agent";
  AgentObject(std::optional<Driver> its_driver, Agent its_agent);
  ~AgentObject() override;

  /// Outlives the agent. Its thread does not exist in a forked child, where it can only be left alone.
  std::optional<Driver> driver;
  Agent agent;
  const int pid;
};

struct RegionObject final : Object {
  static constexpr std::uint8_t kKind = 2;
  static constexpr std::string_view kName = "region";
  explicit RegionObject(Region its) : region(std::move(its)) {}
  Region region;
};

struct PeerObject final : Object {
  static constexpr std::uint8_t kKind = 3;
  static constexpr std::string_view kName = "peer";
  explicit PeerObject(Peer its) : peer(std::move(its)) {}
  const Peer peer;
};

struct TableObject final : Object {
  static constexpr std::uint8_t kKind = 4;
  static constexpr std::string_view kName = "table";
  explicit TableObject(RangeTable its) : table(std::move(its)) {}
  const RangeTable table;
};

struct PlanObject final : Object {
  static constexpr std::uint8_t kKind = 5;
  static constexpr std::string_view kName = "plan";
  PlanObject(Plan its, Peer its_peer) : plan(std::move(its)), peer(std::move(its_peer)) {}
  const Plan plan;
  const Peer peer;
};

struct TransferObject final : Object {
  static constexpr std::uint8_t kKind = 6;
  static constexpr std::string_view kName = "transfer";
  explicit TransferObject(Transfer its) : transfer(std::move(its)) {}
  Transfer transfer;
};

struct QueueObject final : Object {
  static constexpr std::uint8_t kKind = 7;
  static constexpr std::string_view kName = "queue";
  explicit QueueObject(CompletionQueue its) : queue(std::move(its)) {}
  CompletionQueue queue;
};

/// The object behind one of c.h's handles.
template <typename T, typename Handle>
Result<Handles::Ref<T>> find(const char* call, Handle handle) {
  return handles().find<T>(call, handle.id);
}

template <typename T, typename Handle>
int release(const char* call, Handle handle) {
  return run(call, [&](const char* name) -> Status { return handles().release<T>(name, handle.id); });
}

/// A range of a region handle. kInvalid, naming `what`, when the handle is wrong.
Result<LocalRange> local_range(const char* call, const hawser_local_range& range);

}  // namespace hawser::api
