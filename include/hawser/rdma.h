#pragma once

// One-sided memory access in the shape of an RDMA backend: registered buffers with handles that travel as bytes, and
// batches of operations on them with one timeout, each with an outcome of its own. It stands on an Agent, and takes
// whatever path that has to the owner: verbs, shared memory or tcp.
//
//   auto rdma = hawser::rdma::Backend::open(agent);                         // both sides
//   auto memory = rdma->local_memory(bytes);
//   auto buffer = rdma->request_buffer(7, *memory);                         // the owner
//   std::string handle = buffer->encode();                                  // to a peer, by any way there is
//
//   auto remote = hawser::rdma::RemoteBuffer::decode(handle);               // the peer
//   auto batch = rdma->submit({{.type = OpType::kReadIntoLocal, .local = *mine, .remote = *remote}}, 5s);
//   batch->wait();
//   auto gone = rdma->release(*remote, 5s);                            // any holder may; acknowledged by the owner
//
// Sizes: a read moves the whole remote buffer and needs a local one at least as large, whose rest stays as it is; a
// write moves the whole local buffer and needs a remote one at least as large. Wrong sizes end an
// operation before a byte moves. An operation of zero bytes ends well at once and asks nobody.
//
// Thread rule: thread-safe. Lifetime: the Agent must outlive the Backend and stay where it is; handles of buffers,
// memory and batches may outlive both. A batch in flight keeps alive all that it touches, dropped handles or not.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/agent.h>
#include <hawser/counters.h>
#include <hawser/export.h>
#include <hawser/memory.h>
#include <hawser/peer.h>
#include <hawser/status.h>
#include <hawser/time.h>

HAWSER_NAMESPACE_BEGIN

struct Inside;
namespace rdma {

class Engine;
class BatchCore;
class BellCore;
struct MemoryCore;
struct BufferCore;

/// By what bytes reach a peer, slowest first.
enum class TransportLevel : std::uint8_t { kTcp = 1, kNic = 2, kMemory = 3 };
HAWSER_API std::string_view to_string(TransportLevel level);

struct TransportInfo {
  std::string backend;  ///< As the agent names it: verbs, shm, tcp, or self for a buffer of this agent.
  TransportLevel level = TransportLevel::kTcp;
  std::vector<QueuePairCounters> queue_pairs = {};  ///< Of the path that carries them, where it has some.
};

/// A queue pair as a device-side poster needs it. The agent posts on it as well and may connect it anew at any time:
/// then `state.epoch` and `state.number` are others, and all that was told here is void.
struct QueuePairInfo {
  QueuePairCounters state;  ///< Its numbers, device, port, GIDs, MTU and counts.
  std::uint32_t local_key = 0, remote_key = 0;
  std::uint64_t local_address = 0;   ///< As the local key knows the memory that was asked for.
  std::uint64_t remote_address = 0;  ///< As the remote key knows the buffer's first byte.
  // Where the device's provider tells them (mlx5), else null. Owned by the queue pair.
  void* send_queue = nullptr;
  std::uint32_t send_queue_entries = 0, send_queue_stride = 0;  ///< Entries, and bytes of one.
  void* doorbell_record = nullptr;                              ///< The queue's counter in memory.
  void* doorbell = nullptr;                                     ///< The device's register.
};

/// Memory of this process that operations may use, with what keeps it alive. Cheap to copy.
class HAWSER_API LocalMemory {
 public:
  LocalMemory() = default;
  explicit LocalMemory(std::shared_ptr<MemoryCore> core, std::uint64_t offset, std::uint64_t size)
      : core_(std::move(core)), offset_(offset), size_(size) {}

  bool valid() const { return core_ != nullptr; }
  std::uint64_t size() const { return size_; }
  std::span<std::byte> bytes() const;  ///< Of a GPU: addresses, not for the processor.
  bool writable() const;
  Device device() const;
  /// kInvalid when it leaves this memory.
  Result<LocalMemory> slice(std::uint64_t offset, std::uint64_t size) const;

  std::uint64_t offset() const { return offset_; }

 private:
  friend struct hawser::Inside;
  std::shared_ptr<MemoryCore> core_;
  std::uint64_t offset_ = 0, size_ = 0;
};

/// A buffer of some agent, or a part of one: all that its peers must know, good in any process. Cheap to copy.
class HAWSER_API RemoteBuffer {
 public:
  RemoteBuffer() = default;
  explicit RemoteBuffer(std::shared_ptr<BufferCore> core, std::uint64_t offset, std::uint64_t size)
      : core_(std::move(core)), offset_(offset), size_(size) {}

  bool valid() const { return core_ != nullptr; }
  std::uint64_t id() const;
  std::uint64_t offset() const { return offset_; }  ///< From the start of the whole buffer.
  std::uint64_t size() const { return size_; }
  std::string_view name() const;   ///< By which it was lent (Lending::name); empty: none.
  std::string_view owner() const;  ///< The owning agent's name.
  Incarnation owner_incarnation() const;
  /// The backends that the handle says something of; those that this process does not know are passed over.
  std::vector<std::string> contexts() const;
  Result<RemoteBuffer> slice(std::uint64_t offset, std::uint64_t size) const;

  std::string encode() const;
  /// kCorrupt for what is no handle, kUnsupported for one of another version.
  static Result<RemoteBuffer> decode(std::span<const std::byte> bytes);
  static Result<RemoteBuffer> decode(std::string_view bytes) {
    return decode(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())));
  }

 private:
  friend struct hawser::Inside;
  std::shared_ptr<BufferCore> core_;
  std::uint64_t offset_ = 0, size_ = 0;
};

/// How memory is lent.
struct Lending {
  Rights rights = Rights::kReadWrite;
  /// Unique in its agent, at most 255 bytes: by it `renew` finds the buffer again after its owner's restart. Every peer
  /// of the owner may ask for it. Empty: none.
  std::string name = {};
};

enum class OpType : std::uint8_t { kReadIntoLocal = 1, kWriteFromLocal = 2, kFetchAdd = 3, kCompareSwap = 4 };

struct Op {
  OpType type = OpType::kReadIntoLocal;
  LocalMemory local = {};    ///< Atomics: none, or 8 bytes of the host for what was found.
  RemoteBuffer remote = {};  ///< Atomics: 8 bytes of the owner's host, aligned to 8 in its memory.
  std::uint64_t value = 0;   ///< What kFetchAdd adds, what kCompareSwap puts there.
  std::uint64_t expected = 0;
  /// With a write or read: told to the owner's agent once, after the bytes are visible. Copied.
  std::optional<std::string_view> notify = {};
};

struct Outcome {
  Status status;
  std::uint64_t bytes = 0;     ///< Moved.
  std::uint64_t previous = 0;  ///< What an atomic found.
};

/// Where ended batches are told, for an event loop that watches a descriptor.
class HAWSER_API Bell {
 public:
  static Result<Bell> open();
  int fd() const;  ///< Readable while there is something to take. Owned by the bell.
  /// Cookies of batches that ended, each once.
  std::vector<std::uint64_t> take();

 private:
  friend struct hawser::Inside;
  explicit Bell(std::shared_ptr<BellCore> core) : core_(std::move(core)) {}
  std::shared_ptr<BellCore> core_;
};

/// Operations under way. Dropping the handle leaves them running.
class HAWSER_API Batch {
 public:
  Batch() = default;
  explicit Batch(std::shared_ptr<BatchCore> core) : core_(std::move(core)) {}

  bool done() const;
  /// Waits until all have ended: then their common status. kTimedOut with `done() == false` when `timeout` is over.
  Status wait(Duration timeout = Duration::max()) const;
  /// Good, or the first failure, with the number of those that failed when there were more operations.
  Status status() const;
  std::vector<Outcome> outcomes() const;
  std::size_t size() const;
  /// Asks for the end of what has not ended; those end as kCancelled. A release goes on.
  void cancel() const;
  /// Rings `bell` with `cookie` once all have ended. False: they have, and nothing will ring.
  bool tell(const Bell& bell, std::uint64_t cookie) const;

 private:
  std::shared_ptr<BatchCore> core_;
};

struct BackendOptions {
  std::uint32_t channel = 0x52444d41;  ///< For requests to owners; the same at all sides, and used by nobody else.
  /// A thread of its own answers peers, ends what nobody waits for, and runs the agent where no Driver does: the agent
  /// says that it is driven (AgentOptions::driven) as long as the backend is there. Else `serve` must be called.
  bool thread = true;
  std::size_t buffers_max = 1u << 20;
  std::size_t requests_max = 1u << 16;  ///< Releases and atomics on their way, at either side.
};

class HAWSER_API Backend {
 public:
  static Result<Backend> open(Agent& agent, const BackendOptions& options = {});
  Backend(Backend&&) noexcept = default;
  Backend& operator=(Backend&& other) noexcept;
  /// Cancels what is in flight, closes all buffers. Memory that somebody is still inside of after 5 s, in which all
  /// must end, is never let go.
  ~Backend();

  /// Registers memory. `owner` is let go once nothing uses the memory any more, on any thread. Without one the memory
  /// must stay until the batches that use it have ended and the buffers in it were released. What lies in memory that
  /// was registered with an owner, which is still held, is not registered again: it holds that owner, too. A GPU's
  /// memory (kCuda) is reached by verbs alone; kUnsupported where that does not reach it.
  Result<LocalMemory> local_memory(std::span<std::byte> bytes, std::shared_ptr<const void> owner = {},
                                   bool writable = true, Device device = {});
  /// Gives `memory` out under `id`. Asked again, it gives the same buffer; kInvalid when the memory differs.
  Result<RemoteBuffer> request_buffer(std::uint64_t id, const LocalMemory& memory, Rights rights = Rights::kReadWrite) {
    return request_buffer(id, memory, Lending{.rights = rights, .name = {}});
  }
  Result<RemoteBuffer> request_buffer(std::uint64_t id, const LocalMemory& memory, const Lending& lending);
  /// What the owner's agent, as it lives now, lends under the name of `buffer`, and of that the same part. Waits: for
  /// an owner that starts again, found by its name in the directory of `agent()`, and until it has lent the buffer.
  /// kInvalid for a buffer without a name or a part that does not fit any more; else kTimedOut with what stood against
  /// it last.
  Result<RemoteBuffer> renew(const RemoteBuffer& buffer, Duration timeout);
  /// The memory behind a buffer of this agent. kNotFound: it is of another process, or was released.
  Result<LocalMemory> local_of(const RemoteBuffer& buffer) const;
  std::size_t buffer_count() const;  ///< Given out and not released.

  /// Starts operations, in no order. A wrong one fails alone, by its outcome; an error here means that none was taken.
  /// A timeout of zero or less ends all of them at once, untouched, as kTimedOut.
  Result<Batch> submit(std::span<const Op> ops, Duration timeout);
  Result<Batch> submit(std::initializer_list<Op> ops, Duration timeout) {
    return submit(std::span<const Op>(ops.begin(), ops.size()), timeout);
  }
  /// Takes the buffer away from everybody: the owner refuses new uses at once, waits until nobody touches the memory,
  /// and acknowledges. Begins at once, waited for or not. Later operations of holders end as kDenied, the owner's
  /// own and later releases as kNotFound.
  Result<Batch> release(const RemoteBuffer& buffer, Duration timeout);

  bool has_backend(std::string_view name) const;
  /// The best to other agents that is open here.
  TransportLevel transport_level() const;
  /// The backend that carries bytes to the owner of `buffer` now. kUnsupported or kDisconnected when none does.
  Result<TransportInfo> transport_info(const RemoteBuffer& buffer);
  /// For people: what operations on `buffer` go by, what they cost (on all of `local`, where some is given), and of
  /// every other way why it is not taken, at either end.
  std::string explain(const RemoteBuffer& buffer, const LocalMemory& local = {});
  /// Of the queue pair that operations on `buffer` would take now; keys are for the whole of `local` (none: no local
  /// key). kUnsupported where the backend verbs is not open or does not carry bytes to the owner, kNotFound where it
  /// does but no queue pair is ready.
  Result<QueuePairInfo> queue_pair_info(const RemoteBuffer& buffer, const LocalMemory& local = {});

  /// One round of what the thread does, without waiting. Returns whether there was something to do.
  bool serve();

  Agent& agent() const;

 private:
  explicit Backend(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}
  std::shared_ptr<Engine> engine_;
};

}  // namespace rdma
HAWSER_NAMESPACE_END
