#pragma once

// The contents of the Python package's classes.
//
// Lifetime: a transfer holds its plan, a plan the regions it touches, a region the memory's owner in Python and its
// agent. So memory that Hawser may touch cannot go, in whatever order a program drops things.
// Thread rule: used with Python's global lock held; calls that may take long give it up (see gil.h). Destructors run
// with the lock held, too.

#include <hawser/agent.h>
#include <hawser/atomic.h>
#include <hawser/driver.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/gil.h"
#include "api/python/whole.h"

namespace hawser::api::python {

namespace nb = nanobind;

/// Raises the Python exception that fits `status`, with all of its facts.
[[noreturn]] void raise(const Status& status);
[[noreturn]] void raise_invalid(const std::string& what, const std::string& advice = {});
/// Of "critical", "realtime" or "bulk".
Priority priority_of(const char* call, const std::string& text);
inline void check(const Status& status) {
  if (!status.ok()) raise(status);
}
template <typename T>
T take(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}

/// The exception for `status`, not raised; None when it is good.
nb::object error_object(const Status& status);

/// Words, such as "timed out", as a name: timed_out.
std::string name_of(std::string_view words);
/// Text that may hold any bytes.
nb::str text_of(std::string_view text);

/// What an object is, for errors: the name of its type.
std::string kind_of(nb::handle from);

/// The bytes of a str (as UTF-8) or of anything with the buffer protocol; only bytes and str are not copied.
struct Bytes {
  Bytes(nb::handle from, const char* what);
  nb::object owner;
  std::string_view view;
};

/// A path: str or bytes, or what has one (pathlib). Names of files are bytes, so it need not be UTF-8.
std::string path_of(nb::handle from, const std::string& call, const char* what, const char* advice);

/// Seconds (int, float) or a timedelta; None is `otherwise`.
Duration duration_of(nb::handle from, const char* what, Duration otherwise);

struct RegionState;

struct DriverState {
  explicit DriverState(Driver its) : driver(std::move(its)) {}
  ~DriverState();
  Driver driver;
  const int forks = Exit::of_module().forks();
};
using DriverRef = std::shared_ptr<DriverState>;

struct DriverHandle {
  explicit DriverHandle(DriverRef its) : state(std::move(its)) {}
  DriverHandle(DriverHandle&&) noexcept = default;
  DriverHandle& operator=(DriverHandle&&) = delete;
  ~DriverHandle();
  DriverRef state;
};
/// The driver that Agent(driver=) asks for: none, one of its own, a shared one.
DriverRef driver_of(nb::handle driver, nb::handle spin);

/// A function in Python that tells an allocator's segments. Asked by the thread that registers, whether it has the lock
/// or not.
class SegmentTeller {
 public:
  explicit SegmentTeller(nb::object function) : function_(std::move(function)) {}
  Result<std::vector<MemorySegment>> ask();
  /// With the lock held, before the last reference goes: it may go without. The function's objects can go, then.
  void forget() { function_.reset(); }

 private:
  Result<std::vector<MemorySegment>> ask_inside();
  nb::object function_;  ///< Under Python's lock; null once its agent is closed.
};
/// Null: there is none.
std::shared_ptr<SegmentTeller> segments_of(nb::handle function);

struct AgentState {
  AgentState(DriverRef its_driver, Agent its_agent)
      : driver(std::move(its_driver)), agent(std::move(its_agent)), name(agent.name()), pid(::getpid()) {}
  ~AgentState();
  bool forked() const { return forks != Exit::of_module().forks(); }

  DriverRef driver;  ///< Null: polled. Outlives the agent.
  Agent agent;
  const std::string name;
  const pid_t pid;
  const int forks = Exit::of_module().forks();
  std::multimap<std::uintptr_t, std::weak_ptr<RegionState>> regions;  ///< By address, those that may be open.
  /// Where transfers report that an event loop may await; null: no loop has asked.
  std::shared_ptr<CompletionQueue> loop_queue;
  std::uint64_t next_ticket = 0;
  bool has_directory = false;  ///< Cards may come by it.
  bool closed = false;
  std::shared_ptr<SegmentTeller> segments;  ///< Null: none.
  PyObject* wrapper = nullptr;              ///< Its object in Python while that lives; not owned.
};
using AgentRef = std::shared_ptr<AgentState>;

/// The agent, unless it is another process's.
Agent& agent_of(const AgentRef& state);

/// InvalidError for a tensor of torch that is conjugated or negated in name only: its memory holds other values.
void check_not_lazy(nb::handle from, const std::string& what);

/// Anything that is given out as DLPack says, wherever it lies.
using Tensor = nb::ndarray<nb::ro, nb::c_contig>;

struct RegionState {
  ~RegionState();
  /// Nobody of Hawser's touches the memory any more: its owner in Python has it back, once nobody views it here.
  void give_back();

  AgentRef agent;
  Region region;
  bool writable = true;   ///< Reads from peers may write its memory.
  bool is_lent = false;   ///< The memory is somebody else's in Python.
  bool has_view = false;  ///< `view` is to be released.
  bool closing = false;   ///< Somebody closed it: it takes no new uses.
  bool closed = false;    ///< And it was over.
  long exports = 0;       ///< Views of it by the buffer protocol.
  Py_buffer view{};
  Tensor tensor;  ///< The array that came by DLPack.
};
using RegionRef = std::shared_ptr<RegionState>;

struct AgentHandle {
  explicit AgentHandle(AgentRef its) : state(std::move(its)) {}
  AgentHandle(AgentHandle&& other) noexcept = default;
  AgentHandle(const AgentHandle&) = delete;
  AgentHandle& operator=(const AgentHandle&) = delete;
  ~AgentHandle();
  AgentRef state;
  bool is_wrapper = false;  ///< It is inside of state->wrapper.
};
/// The one Python object of an agent.
nb::object wrapper_of(const AgentRef& state);

struct RegionHandle {
  RegionRef state;
};
struct DirectoryHandle {
  explicit DirectoryHandle(std::shared_ptr<Directory> its) : directory(std::move(its)) {}
  DirectoryHandle(DirectoryHandle&&) noexcept = default;
  DirectoryHandle& operator=(DirectoryHandle&&) = delete;
  ~DirectoryHandle();
  std::shared_ptr<Directory> directory;
};
struct RangeHandle {
  RegionRef region;
  LocalRange range;
};
struct RemoteRangeHandle {
  AgentRef agent;
  RemoteRange range;
};
struct TableHandle {
  AgentRef agent;
  RegionRef region;  ///< Null: a peer's.
  RangeTable table;
};
struct PeerHandle {
  AgentRef agent;
  Peer peer;
};
/// Channel to number.
nb::dict numbers_by_channel(const std::vector<Acknowledged>& acknowledged);

struct GrantHandle {
  AgentRef agent;
  Grant grant;
};
struct GrantedHandle {
  AgentRef agent;
  GrantedRegion granted;
};

struct PlanState {
  AgentRef agent;
  std::vector<RegionRef> regions;
  Plan plan;
};
using PlanRef = std::shared_ptr<PlanState>;

struct PlanHandle {
  PlanRef state;
};
struct TransferHandle {
  TransferHandle(PlanRef its_plan, Transfer its) : plan(std::move(its_plan)), transfer(std::move(its)) {}
  PlanRef plan;
  std::vector<RegionRef> words;
  nb::object leader;  ///< The Transfer that it follows: dropped, that one would be cancelled, and this one with it.
  std::uint64_t ticket = 0;  ///< Its cookie in its agent's loop queue; 0: it does not report there.
  Transfer transfer;
};
struct AtomicHandle {
  AtomicHandle(AgentRef its_agent, AtomicOp its) : agent(std::move(its_agent)), op(std::move(its)) {}
  AgentRef agent;
  std::uint64_t ticket = 0;  ///< As TransferHandle's.
  AtomicOp op;
};
struct QueueHandle {
  pid_t pid = ::getpid();
  std::shared_ptr<CompletionQueue> queue;
};

/// Blocks by number, from a list or a one-dimensional array of any integer type. 32-bit arrays are not copied.
class IndexArray {
 public:
  IndexArray(nb::handle from, const char* what);
  /// All of 0 .. count - 1.
  explicit IndexArray(std::uint64_t count);
  std::span<const std::uint32_t> view() const { return view_; }

 private:
  void from_sequence(nb::handle from, const char* what);
  void from_array(const char* what);

  nb::ndarray<nb::ro, nb::device::cpu> array_;
  std::vector<std::uint32_t> own_;
  std::span<const std::uint32_t> view_;
};

/// Ranges from an array of N x 2 (offset, size) or N x 4 (offset, size, stride, count), or from a list of such tuples.
/// 64-bit arrays of four columns are not copied.
class RangeArray {
 public:
  RangeArray(nb::handle from, const char* what);
  std::span<const StridedRange> view() const { return view_; }

 private:
  void from_sequence(nb::handle from, const char* what);

  nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig> array_;
  std::vector<StridedRange> own_;
  std::span<const StridedRange> view_;
};

RegionHandle add_region(const AgentHandle& self, nb::handle memory, const std::string& name,
                        const std::optional<std::string>& rights, bool listed);
RegionHandle allocate(const AgentHandle& self, Whole<std::uint64_t, "allocate: size"> size, const std::string& name,
                      const std::string& rights, const std::string& huge_pages, bool listed);
GrantHandle make_grant(const RegionHandle& self, Whole<std::uint64_t, "grant: offset"> offset,
                       MaybeWhole<std::uint64_t, "grant: size"> size, const std::string& rights, nb::handle expiry,
                       const PeerHandle* peer, bool single_use);
GrantedHandle import_grant(const AgentHandle& self, nb::handle data);
GrantedHandle import_peers_grant(const PeerHandle& self, nb::handle data);
RegionHandle add_file(const AgentHandle& self, nb::handle file, const std::string& name,
                      Whole<std::uint64_t, "add_file: size"> size, const std::string& rights, bool create,
                      const std::string& direct, bool listed);
const char* text_of_rights(Rights rights);
/// From "read_write", "read", "write", "none".
Rights rights_of(const std::string& text);
/// The part of an open region that is `memory`.
RangeHandle range_of(const AgentHandle& self, nb::handle memory);
PlanHandle plan_write(const AgentHandle& self, const PeerHandle& peer, nb::handle source, nb::handle target,
                      nb::handle source_index, nb::handle target_index);
PlanHandle plan_read(const AgentHandle& self, const PeerHandle& peer, nb::handle source, nb::handle target,
                     nb::handle source_index, nb::handle target_index);

void bind_agents(nb::module_& module);
void bind_atomics(nb::module_& module, nb::class_<AgentHandle>& agent);
void bind_directories(nb::module_& module);
void bind_drivers(nb::module_& module);
void bind_files(nb::module_& module);
void bind_grants(nb::module_& module);
void bind_memory(nb::module_& module);
void bind_peers(nb::module_& module);
void bind_rdma(nb::module_& module);
void bind_transfers(nb::module_& module);
void bind_compressors(nb::module_& module);
void bind_pools(nb::module_& module);
void bind_worlds(nb::module_& module);

}  // namespace hawser::api::python
