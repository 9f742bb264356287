#pragma once

// What stands behind a TransferRequest: a plan, and the transfer of its last post.
//
// Thread rule: NIXL's is one thread at a time; the mutex makes breaking it harmless. Lifetime: keeps the agent alive.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "compat/core.h"
#include "compat/joined.h"
#include "compat/prepared.h"
#include "compat/request_notice.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

struct RequestCore final : LongRequest {
  std::shared_ptr<AgentCore> core;
  Plan plan;
  Peer peer;
  Backend backend;
  std::uint64_t descs = 0;  ///< As they were given: neighbours that travel as one count each.
  bool is_durable = false;  ///< Over only once its bytes are on the device.
  /// All it lists is of no bytes: it has no plan, and a post only tells the peer.
  bool moves_nothing = false;

  RequestCore(std::shared_ptr<AgentCore> its_core, Peer its_peer)
      : core(std::move(its_core)), peer(std::move(its_peer)), notice(core->sender(), peer, Clock::steady()) {}
  ~RequestCore();
  /// True: in progress. Waits for a moment where the notification finds no room.
  Result<bool> post(const OptArgs* opt);
  Result<bool> look();
  /// `look` where that takes neither work nor a wait; else nothing.
  std::optional<bool> look_at_once() const;
  Result<std::optional<XferTelemetry>> telemetry();
  Result<CostEstimate> estimate();
  /// Cancels what is in flight and waits for it. Good, too, when it was released before.
  Status release();
  bool is_released() const { return released.load(std::memory_order_acquire) || core->is_closed(); }
  /// Also tells there of `finished`, as `tag` or 0.
  void mirror_finished(std::atomic<std::uint64_t>* word, std::uint64_t tag);
  void try_look() override;

  /// The transfer of the last post ended well and all about it is written down: looking at it needs no lock.
  std::atomic<bool> finished{false};
  std::atomic<bool> released{false};
  mutable std::mutex mutex;  ///< Over what follows, and over setting what stands before.
  RequestNotice notice;
  std::optional<Transfer> transfer;
  bool posted = false;
  bool waiting = false;  ///< Posted, but a bound was reached: submitted again when looked at, until `waits_until`.
  Instant waits_until;
  Status refused;        ///< Why the last post failed, where its transfer does not tell.
  bool counted = false;  ///< The telemetry's duration is final.
  XferTelemetry times;

 private:
  Result<bool> post_now(const OptArgs* opt);
  Result<bool> send_on();
  /// For `times`; 0 where nobody asked for telemetry.
  std::uint64_t now_us() const;
  Result<bool> submit();
  /// Under the mutex.
  void set_finished(bool is_finished);
  Status offer(SubmitOptions& options);
  bool is_over() const;
  Result<bool> fail(const Status& status);

  bool is_moving() const { return transfer && !transfer->done(); }
  void end_notice();
  Result<std::string> carried();
  Result<bool> tell_now();
  /// How much of the notification is sent, while there is some that could be.
  std::optional<std::size_t> sending() const;
  Result<bool> look_locked();
  Result<bool> outcome();
  void give_first_turn();

  std::atomic<std::uint64_t>* mirror_ = nullptr;  ///< Under the mutex, like its tag.
  std::uint64_t mirror_tag_ = 0;
};

/// Joins a local and a remote list by index.
Result<std::unique_ptr<RequestCore>> make_request(std::string_view call, XferOp op, const PreparedCore& local,
                                                  std::span<const std::int32_t> local_index, const PreparedCore& remote,
                                                  std::span<const std::int32_t> remote_index, const OptArgs* opt);
/// Of lists that are joined already.
Result<std::unique_ptr<RequestCore>> make_request(std::string_view call, XferOp op,
                                                  const std::shared_ptr<AgentCore>& core, JoinedLists&& lists,
                                                  const OptArgs* opt);

}  // namespace compat
HAWSER_NAMESPACE_END
