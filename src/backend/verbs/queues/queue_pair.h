#pragma once

// QueuePair: one connection of a path: the object of the adapter, what is posted on it, and what came back.
// When it is made, joined and reset is the business of proto/queue_pair.h; PathPair carries that out.
//
// A chunk becomes one work request per run of remote bytes; requests are chained and posted by one call per batch.
// Where they end in order (queue_pair_object.h) the last request of each chunk alone is signalled, else each. A chunk's
// place (its slot) and the epoch are in the request's number, so completions of an earlier life of the queue pair are
// recognised.
//
// Thread rule: confined to the lane. Lifetime: within its NicLane's; destroys its object.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/queue_pair_source.h"
#include "backend/verbs/devices/nic.h"
#include "backend/verbs/queues/cq_pool.h"
#include "backend/verbs/queues/queue_pair_object.h"
#include "proto/immediate.h"
#include "wire/queue_pair.h"

namespace hawser::backend::verbs {

/// A Nic in one lane.
struct NicLane {
  NicLane(std::shared_ptr<Nic> its_nic, std::unique_ptr<CqPool> its_queues)
      : nic(std::move(its_nic)), queues(std::move(its_queues)), memory(nic->cache) {}

  std::shared_ptr<Nic> nic;
  std::unique_ptr<CqPool> queues;
  MrReader memory;
  QueuePairFlow flow;  ///< Of all its queue pairs, those that are gone as well.
  std::uint32_t queue_pairs = 0;
  std::uint64_t faults = 0;
  std::uint32_t device = 0;  ///< The first lane of the same device: events are the device's.
  bool is_gone = false;      ///< Its device was removed, and another lane has what came back.
  bool is_deaf = false;      ///< Asynchronous events could not be read the last time.
  /// Nothing new can be made on it.
  bool is_away() const { return is_gone || nic->domain->is_removed(); }
};

/// Where a remote region is for one of the peer's ports. All zero: its device is gone, and only has its place.
struct RemoteKey {
  std::uint64_t iova = 0;
  std::uint32_t rkey = 0;
  friend bool operator==(const RemoteKey&, const RemoteKey&) = default;
};

/// A chunk that was posted.
struct Flight {
  Chunk chunk;
  bool cancelled = false;
  bool struck = false;          ///< The queue pair broke at it, which `failure` tells; it may be posted again.
  Status failure;               ///< Else its own fault: it must not be posted again.
  std::uint64_t immediate = 0;  ///< Number of the word that tells of it (proto/immediate.h); 0: none does.
};

/// What one completion means.
struct Completed {
  enum class Kind : std::uint8_t { kNothing, kChunk, kProved, kFault, kSent, kReceived, kImmediate };
  Kind kind = Kind::kNothing;
  Flight flight;            ///< kChunk: it ended, well or with its own failure.
  Status cause;             ///< kFault.
  std::uint32_t place = 0;  ///< kSent, kReceived, kImmediate: as it was posted with.
  std::uint32_t bytes = 0;  ///< kReceived.
  std::uint32_t word = 0;   ///< kImmediate.
};

/// What a connection is tried with.
struct QueuePairAttempt {
  std::span<const Gid> peer = {};  ///< The peer's addresses, as far as they are known.
  std::uint32_t further = 0;       ///< See Nic::gid_for.
  std::uint8_t mtu_max = 0;        ///< Code of the largest packets; 0: the port's.
};

class QueuePair {
 public:
  QueuePair(NicLane& lane, const QueuePairOptions& options);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // Life. Errors name the call and the device.
  /// Makes the object, or takes it from RESET: in INIT, with a new first packet number, at the port's address that
  /// suits the peer, with the packets that the port has now.
  Status make(std::uint32_t epoch, base::Rng& rng, const QueuePairAttempt& attempt = {});
  /// INIT -> RTR -> RTS.
  Status join(const wire::QueuePairEndpoint& peer);
  /// Posts a write of no bytes: its completion shows that the connection carries.
  Status prove();
  /// To the error state: what is posted comes back.
  void drain();
  /// Ends what was posted; nothing touches memory for it any more. What had not ended goes to `back`.
  void reset(std::vector<Flight>* back);
  bool is_drained() const { return used_ == 0 && !proving_; }

  /// As the peer must know it.
  wire::QueuePairEndpoint endpoint() const;
  std::uint32_t epoch() const { return epoch_; }
  std::uint32_t number() const { return qp_ == nullptr ? 0 : qp_->qp_num; }
  Nic& nic() const { return *lane_.nic; }
  /// The address that it was made with.
  const Gid& gid() const { return gid_; }
  /// Code of its packets' size: of both ends once it was joined.
  std::uint8_t mtu() const { return mtu_; }
  /// Since it was made: whether a packet of full size was among what got no answer, and whether any came through.
  bool lost_full() const { return lost_full_; }
  bool carried_full() const { return carried_full_; }
  /// For who posts on it by himself, on a queue pair that carries nothing else. Null: there is none now.
  ibv_qp* object() const { return qp_; }

  // Data.
  enum class Staged : std::uint8_t { kYes, kNoRoom, kRefused };
  /// Puts the chunk's requests into the batch. kRefused: `why` tells what is wrong with the chunk.
  Staged stage(const Chunk& chunk, const RemoteKey& remote, Status* why);
  /// Posts the batch. After an error the queue pair is at fault; what was staged comes back by `reset`.
  Status flush();
  /// A send into a receive of the peer. `place` comes back in kSent; the bytes stay until then.
  Status post_message(std::uint32_t place, const ibv_sge& bytes);
  bool has_message_room() const;
  /// Room for one message, or for an immediate alone when it has no length; from INIT on. `place` comes back in
  /// kReceived or kImmediate.
  Status post_receive(std::uint32_t place, const ibv_sge& room);
  /// From now on covered chunks carry words, and the peer's are read. `credits`: receives that the peer has for them.
  void begin_immediates(std::uint32_t receives, std::uint32_t credits);
  proto::ImmediateSender& words_out() { return words_out_; }
  proto::ImmediateCounter& words_in() { return words_in_; }
  /// Marks chunks of this transfer. True: there is one.
  bool cancel(std::uint64_t transfer);
  bool has_cancelled() const;
  Completed on_completion(const ibv_wc& wc);

  /// How many ports are nearer to the chunk's local memory.
  std::uint8_t distance(const Chunk& chunk) const {
    const Nic& nic = *lane_.nic;
    const bool ranks =
        nic.ranks_gpus.load(std::memory_order_relaxed) || nic.ranks_nodes.load(std::memory_order_relaxed);
    if (!ranks || chunk.bytes == 0) return 0;
    const Keys keys = lane_.memory.find(reinterpret_cast<std::uintptr_t>(chunk.pieces.front().local), 1);
    return keys.gpu >= 0 ? nic.gpu_rank(keys.gpu) : nic.node_rank(keys.node);
  }
  std::uint64_t bytes_posted() const { return bytes_posted_; }  ///< Not ended yet: its load.
  std::uint32_t in_flight() const { return used_; }
  /// Whether it broke at an operation that was at fault itself.
  bool is_fault_own() const { return is_fault_own_; }
  /// No request more is taken now.
  bool is_full() const { return !slots_.empty() && (free_.empty() || requests_ >= chunk_depth()); }
  std::uint32_t depth() const { return options_.send_depth; }
  bool is_idle() const { return used_ == 0 && failed_.empty(); }
  /// Grows with everything that went through it in either direction.
  std::uint64_t carried() const {
    return flow_.operations + flow_.messages_out + flow_.messages_in + words_in_.counted();
  }
  /// It is ready; the first time is no reconnect.
  void on_ready();
  const QueuePairFlow& flow() const { return flow_; }
  /// Keys of this end for a piece, and where the send queue is. kUnsupported: the memory is not registered here.
  Status view(const Piece& piece, QueuePairView* out) const;
  /// Whether something that is posted may have these bytes' keys as they were before this version of the look-ups.
  bool may_use(std::uintptr_t address, std::size_t size, std::uint64_t before) const;

 private:
  struct Slot {
    Flight flight;
    std::uint32_t requests = 0;
    std::uint32_t to_tell = 0;  ///< Those that are signalled and did not end yet.
    std::uint64_t keys_of = 0;  ///< Version of the look-ups that gave its keys, or an earlier one.
    bool failed = false;        ///< One of them came back with the queue pair's fault.
    bool used = false;
  };

  Status create();
  void destroy();
  Status failed(std::string_view doing, int error) const;
  bool add_piece(const Chunk& chunk, const Piece& piece, const RemoteKey& remote, std::size_t first, Status* why);
  bool add_run(Operation op, std::uint64_t remote, std::uint32_t rkey, const Keys& local, std::uint32_t size,
               std::size_t first);
  void try_inline(const Chunk& chunk, std::size_t first);
  std::uint32_t take_slot(const Chunk& chunk);
  bool add_empty(const Chunk& chunk, const RemoteKey& remote);
  std::uint32_t number_requests(std::uint32_t slot, std::size_t first);
  Staged try_stage(const Chunk& chunk, const RemoteKey& remote, const proto::ImmediateWords& words, Status* why);
  bool add_words(std::span<const std::uint32_t> words);
  void free_slot(std::uint32_t index);
  std::uint64_t number_of(std::uint32_t slot, bool last) const;
  Status failure_of(const ibv_wc& wc) const;
  void note_failure(Flight& flight, const ibv_wc& wc, bool is_first) const;
  Status never_fits(const Chunk& chunk) const;
  Completed on_message(const ibv_wc& wc, std::uint32_t low);
  void count(std::uint64_t QueuePairFlow::*what, std::uint64_t by = 1);
  void count_error(ibv_wc_status status);
  void count_chunk(const Slot& slot);
  std::uint32_t chunk_depth() const;
  bool has_full_packets(const Slot& slot) const { return slot.flight.chunk.bytes >= std::uint64_t{128} << mtu_; }

  NicLane& lane_;
  const QueuePairOptions options_;  ///< As far as the device can.
  const std::unique_ptr<QueuePairObject> object_;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  std::uint32_t epoch_ = 0;
  Gid gid_;
  std::uint16_t lid_ = 0;
  std::uint8_t mtu_ = 0;
  bool lost_full_ = false, carried_full_ = false;
  std::uint32_t inline_max_ = 0;
  std::uint32_t sges_ = 1;          ///< Pieces of local memory in one write,
  std::uint32_t read_sges_ = 1;     ///< and in one read.
  std::uint32_t messages_ = 0;      ///< Sends posted, not ended.
  std::uint32_t message_room_ = 0;  ///< Requests that the queue holds beside those of chunks.
  bool proving_ = false;
  bool was_ready_ = false;
  QueuePairFlow flow_;
  proto::ImmediateSender words_out_;
  proto::ImmediateCounter words_in_;
  bool is_fault_own_ = false;
  Status fault_;  ///< The first error since the last reset: the cause of all flushes.

  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<Flight> failed_;  ///< Came back with an error; kept until the reset.
  std::uint32_t used_ = 0;
  std::uint32_t requests_ = 0;  ///< Posted or staged, not ended.
  std::uint64_t bytes_posted_ = 0;
  // The batch. Reserved once; the chain's pointers are set when it is posted.
  std::vector<ibv_send_wr> batch_;
  std::vector<ibv_sge> pieces_;
  std::uint64_t run_bytes_ = 0;  ///< Of the batch's last request.
  bool from_gpu_ = false;        ///< The chunk that is being staged has bytes that the CPU cannot read.
};

/// Whether the chunk itself is at fault (its memory here, its key), and not the connection. That the peer's device
/// calls a request invalid is no such verdict: rights, bounds and lengths were looked at before it was posted, and
/// Soft-RoCE answers so, under load, to requests that are right.
bool is_own_fault(ibv_wc_status status);
std::string_view to_string(ibv_wc_status status);

}  // namespace hawser::backend::verbs
