#pragma once

// The objects behind the handles of the C ABI: those of the public headers.
//
// Thread rule: a handle may be used by several threads at once. That Region and Transfer are for one thread at a time
// is about moving and destroying them, which happens here while nobody uses them (see Handles).

#include <memory>
#include <vector>

#include <hawser/agent.h>
#include <hawser/atomic.h>
#include <hawser/driver.h>

#include "agent/fork_guard.h"
#include "api/c/call.h"
#include "base/mutex.h"

namespace hawser::api {

/// An object that this process made. In a forked child it is the parent's, and can only be released.
struct OwnObject : Object {
  bool is_parents() const { return forks_ != agent::forks_so_far(); }

 private:
  const std::uint32_t forks_ = agent::watch_forks();
};

/// A driver that several agents share. Its threads do not exist in a forked child, where it can only be left alone.
struct SharedDriver {
  explicit SharedDriver(Driver its);
  ~SharedDriver();
  SharedDriver(const SharedDriver&) = delete;
  SharedDriver& operator=(const SharedDriver&) = delete;
  bool forked() const;

  Driver driver;
  const int pid;
};

struct AgentObject final : OwnObject {
  static constexpr std::uint8_t kKind = 1;
  static constexpr std::string_view kName = "agent";
  AgentObject(std::shared_ptr<SharedDriver> its_driver, Agent its_agent)
      : driver(std::move(its_driver)), agent(std::move(its_agent)) {}
  ~AgentObject() override;

  std::shared_ptr<SharedDriver> driver;  ///< Null: polled. Outlives the agent.
  Agent agent;
};

struct RegionObject final : OwnObject {
  static constexpr std::uint8_t kKind = 2;
  static constexpr std::string_view kName = "region";
  explicit RegionObject(Region its) : region(std::move(its)) {}
  Region region;
};

struct PeerObject final : OwnObject {
  static constexpr std::uint8_t kKind = 3;
  static constexpr std::string_view kName = "peer";
  explicit PeerObject(Peer its) : peer(std::move(its)) {}
  const Peer peer;
};

struct TableObject final : OwnObject {
  static constexpr std::uint8_t kKind = 4;
  static constexpr std::string_view kName = "table";
  explicit TableObject(RangeTable its) : table(std::move(its)) {}
  const RangeTable table;
};

struct PlanObject final : OwnObject {
  static constexpr std::uint8_t kKind = 5;
  static constexpr std::string_view kName = "plan";
  PlanObject(Plan its, Peer its_peer) : plan(std::move(its)), peer(std::move(its_peer)) {}
  const Plan plan;
  const Peer peer;
};

struct TransferObject final : OwnObject {
  static constexpr std::uint8_t kKind = 6;
  static constexpr std::string_view kName = "transfer";
  explicit TransferObject(Transfer its) : transfer(std::move(its)) {}
  Transfer transfer;
};

struct QueueObject final : OwnObject {
  static constexpr std::uint8_t kKind = 7;
  static constexpr std::string_view kName = "queue";
  explicit QueueObject(CompletionQueue its) : queue(std::move(its)) {}
  CompletionQueue queue;
};

struct DirectoryObject final : OwnObject {
  static constexpr std::uint8_t kKind = 8;
  static constexpr std::string_view kName = "directory";
  explicit DirectoryObject(std::shared_ptr<Directory> its) : directory(std::move(its)) {}
  const std::shared_ptr<Directory> directory;
};

struct DriverObject final : OwnObject {
  static constexpr std::uint8_t kKind = 9;
  static constexpr std::string_view kName = "driver";
  explicit DriverObject(std::shared_ptr<SharedDriver> its) : driver(std::move(its)) {}
  const std::shared_ptr<SharedDriver> driver;
};

struct AtomicObject final : OwnObject {
  static constexpr std::uint8_t kKind = 10;
  static constexpr std::string_view kName = "atomic";
  AtomicOp op;
};

/// The question to a user's function, while it runs.
struct SegmentsObject final : OwnObject {
  static constexpr std::uint8_t kKind = 11;
  static constexpr std::string_view kName = "segments";
  base::Mutex mutex;
  std::vector<MemorySegment> told HAWSER_GUARDED_BY(mutex);
};

struct GrantObject final : OwnObject {
  static constexpr std::uint8_t kKind = 16;
  static constexpr std::string_view kName = "grant";
  explicit GrantObject(Grant its) : grant(std::move(its)) {}
  const Grant grant;
};

struct GrantedObject final : OwnObject {
  static constexpr std::uint8_t kKind = 17;
  static constexpr std::string_view kName = "granted region";
  explicit GrantedObject(GrantedRegion its) : granted(std::move(its)) {}
  const GrantedRegion granted;
};

/// Empty where the options have none.
SegmentProvider segments_of(const hawser_agent_options& options);

Status parents_handle(std::string_view call, std::string_view name);

/// The object behind one of c.h's handles.
template <typename T, typename Handle>
Result<Handles::Ref<T>> find(const char* call, Handle handle) {
  Result<Handles::Ref<T>> found = handles().find<T>(call, handle.id);
  if (found && (*found)->is_parents()) return parents_handle(call, T::kName);
  return found;
}

template <typename T, typename Handle>
int release(const char* call, Handle handle) {
  return run(call, [&](const char* name) -> Status { return handles().release<T>(name, handle.id); });
}

/// A range of a region handle. kInvalid, naming `what`, when the handle is wrong.
Result<LocalRange> local_range(const char* call, const hawser_local_range& range);
/// A range of one of the peer's regions, which is named by its number.
Result<RemoteRange> remote_range(const Peer& peer, const hawser_remote_range& range);
std::vector<StridedRange> ranges_of(const hawser_strided_range* ranges, std::size_t count);
/// A handle of the table, or why there is none.
Status give_table(const char* call, hawser_table* out, RangeTable table);
/// Of a peer's region.
hawser_region_info info_of(const RemoteRegionInfo& region);
/// Whether a flag of a struct is set; kInvalid for what is neither 0 nor 1.
Result<bool> flag_of(const char* call, std::uint32_t value, std::string_view name);
/// HAWSER_RIGHTS_*.
Result<Rights> rights_of(const char* call, std::uint32_t number);

}  // namespace hawser::api
