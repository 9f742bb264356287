#pragma once

// Engine: what the handles of one rdma::Backend share. Batches in flight, and requests between holders and owners
// (release, atomics), which travel as messages on one channel of the agent. LentBuffers keeps the buffers that were
// given out, HeldMemory what is registered, PartingRegions what does not close at once.
//
// One round of `serve` takes completions and messages, posts what waited for room, and ends what is due. A thread runs
// it, asleep on the completion queue's descriptor and a bell of its own; or the user does. Where no Driver runs the
// agent, the thread does that, too.
//
// Thread rule: thread-safe. `mutex_` guards the books; neither the agent nor a batch is called under it.
// Lifetime: held by the Backend alone (batches refer to it weakly), whose end stops the thread.

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hawser/agent.h>
#include <hawser/rdma.h>

#include "base/events.h"
#include "base/id128.h"
#include "base/mutex.h"
#include "rdma/batch.h"
#include "rdma/handle.h"
#include "rdma/held_memory.h"
#include "rdma/lent_buffers.h"
#include "rdma/messages.h"
#include "rdma/parting_regions.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  static Result<std::shared_ptr<Engine>> open(Agent& agent, const BackendOptions& options);
  ~Engine();
  /// Ends the thread and all that is under way.
  void stop();

  Agent& agent() const { return agent_; }
  bool runs_itself() const { return options_.thread; }
  bool serve();

  Result<LocalMemory> local_memory(std::span<std::byte> bytes, std::shared_ptr<const void> owner, bool writable,
                                   Device device);
  Result<std::shared_ptr<BatchCore>> submit(std::span<const Op> ops, Duration timeout);

  // engine_routes.cc
  Result<TransportInfo> transport_info(const RemoteBuffer& buffer);
  Result<QueuePairInfo> queue_pair_info(const RemoteBuffer& buffer, const LocalMemory& local);
  std::string explain(const RemoteBuffer& buffer, const LocalMemory& local);
  /// What an operation ended with for want of a way, and what is known of each way.
  Status with_ways(const Status& why, const RemoteBuffer& buffer) const;
  /// What to tell of a transfer that failed. Rights and bounds were looked at before, so a refusal is the buffer's end.
  Status of_transfer(const Status& why, const RemoteBuffer& buffer) const;

  Result<RemoteBuffer> request_buffer(std::uint64_t id, const LocalMemory& memory, const Lending& lending);
  Result<LocalMemory> local_of(const RemoteBuffer& buffer) const;
  std::size_t buffer_count() const { return lent_.size(); }
  Result<std::shared_ptr<BatchCore>> release(const RemoteBuffer& buffer, Duration timeout);

  // engine_renewal.cc
  Result<RemoteBuffer> renew(const RemoteBuffer& buffer, Duration timeout);

  /// While somebody waits for an operation, who moves the agent on meanwhile.
  void begin_wait() { waiters_.fetch_add(1, std::memory_order_relaxed); }
  void end_wait() { waiters_.fetch_sub(1, std::memory_order_relaxed); }
  /// For who stops waiting before the end: the backend's thread moves the agent on again, at once.
  void take_over() { wake_.signal(); }
  /// Of a batch that has ended: nothing is kept for it any more.
  void ended(std::uint64_t serial);
  void cancelled(BatchCore& batch);

 private:
  struct Request {
    std::shared_ptr<BatchCore> batch;
    std::size_t index = 0;
    RemoteBuffer buffer;                  ///< What it is about.
    std::shared_ptr<std::string> handle;  ///< For an answer that is one.
    Peer peer;
    std::string bytes;
    bool sent = false;
    Status refusal;  ///< Why it could not be sent the last time.
    bool is_release = false;
  };
  struct PendingReply {
    Peer peer;
    std::string bytes;
    Instant deadline;
  };

  Engine(Agent& agent, const BackendOptions& options, CompletionQueue queue, base::EventFd wake);
  void run();
  Duration nap() const;
  bool is_own(const BufferCore& buffer) const { return buffer.incarnation == incarnation_; }
  std::shared_ptr<BatchCore> make_batch(std::size_t size, Duration timeout);
  /// The owner and its region, looked up once.
  Result<Found> find(const RemoteBuffer& buffer);
  Result<Found> meet(const BufferCore& core);
  Result<Plan> plan(const Found& found, OpType type, const LocalMemory& local, const RemoteBuffer& remote,
                    std::uint64_t bytes);
  void start(const std::shared_ptr<BatchCore>& batch, std::size_t index, const Op& op, bool is_late);
  void start_atomic(const std::shared_ptr<BatchCore>& batch, std::size_t index, const Op& op);
  void start_empty(BatchCore& batch, std::size_t index, const Op& op);
  void post(const std::shared_ptr<BatchCore>& batch, std::size_t index, bool is_near);
  bool drain_queue();
  bool post_waiting();
  bool look_at_watched();

  // engine_routes.cc
  std::vector<std::string> ways_to(const RemoteBuffer& buffer) const;
  /// Whether bytes to this peer go through shared memory, by what was known when it was met.
  bool is_near(const Found& found, const RemoteBuffer& buffer);
  /// A plan of one byte, which nobody submits: what carries it carries all of the buffer.
  Result<Plan> probe(const Found& found, const RemoteBuffer& buffer);

  // engine_requests.cc
  void request(const std::shared_ptr<BatchCore>& batch, std::size_t index, const RemoteBuffer& buffer, Peer peer,
               Ask ask, std::shared_ptr<std::string> handle = {});
  Status end_of(const Request& request, bool is_dead);
  bool send_requests();
  void turned_back(std::uint64_t number, Status refusal);
  bool take_messages();
  void on_reply(const Peer& from, const Reply& reply);
  void reply(const Peer& to, const Reply& reply);
  bool send_replies();

  // engine_renewal.cc
  Result<RemoteBuffer> named(const std::string& name) const;
  Reply handle_of(const Ask& ask) const;
  Result<RemoteBuffer> ask_for_handle(const RemoteBuffer& buffer, Instant until);

  using Batches = std::unordered_map<std::uint64_t, std::shared_ptr<BatchCore>>;
  void close(const base::Id128& token, Ack ack);
  /// Whether somebody was told something.
  bool look_at_closing(const std::shared_ptr<Owned>& owned);
  bool look_at_closings();
  void acknowledge(const Ack& ack, const Status& status);
  static void end_all(const Batches& batches, std::vector<std::shared_ptr<Owned>>& buffers, Instant until);

  Agent& agent_;
  const BackendOptions options_;
  const std::uint64_t number_;  ///< Of this engine in its process.
  const Incarnation incarnation_;
  const pid_t opener_;
  CompletionQueue queue_;
  base::EventFd wake_;
  std::atomic<bool> stop_{false};
  bool said_driven_ = false;  ///< The agent says so because of this engine.
  std::atomic<unsigned> waiters_{0};
  LocalMemory scratch_;  ///< For plans that are only asked about.

  HeldMemory held_;
  LentBuffers lent_;
  const std::shared_ptr<PartingRegions> parting_;

  base::Mutex serving_;  ///< One round at a time.
  mutable base::Mutex mutex_;
  std::uint64_t next_serial_ HAWSER_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_request_ HAWSER_GUARDED_BY(mutex_) = 0;
  Batches batches_ HAWSER_GUARDED_BY(mutex_);
  /// Posted when there is room again. Bounded by the operations of batches in flight.
  std::deque<std::pair<std::shared_ptr<BatchCore>, std::size_t>> waiting_ HAWSER_GUARDED_BY(mutex_);
  /// Whose transfers do not report to the queue: small ones that are nearly always over within submit.
  std::deque<std::pair<std::shared_ptr<BatchCore>, std::size_t>> watched_ HAWSER_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Request> requests_ HAWSER_GUARDED_BY(mutex_);
  std::deque<PendingReply> replies_ HAWSER_GUARDED_BY(mutex_);
  std::unordered_map<base::Id128, bool> near_ HAWSER_GUARDED_BY(mutex_);  ///< By the peer's incarnation.
  std::thread thread_;
};

}  // namespace rdma
HAWSER_NAMESPACE_END
