#pragma once

// WorldCore: what the handles of one rank of a world share.
//
// Thread rule: thread-safe; what is below the line is under the lane's lock.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <hawser/world.h>

#include "runtime/accord.h"
#include "runtime/calls.h"
#include "runtime/collective.h"
#include "runtime/collective_book.h"
#include "runtime/collective_call.h"
#include "runtime/collective_maker.h"
#include "runtime/hearing.h"
#include "runtime/lineage.h"
#include "runtime/mailbox.h"
#include "runtime/prompt_call.h"
#include "runtime/rank_fates.h"
#include "runtime/rank_seat.h"
#include "runtime/recovery.h"

namespace hawser::runtime {

class WorldCore final : public std::enable_shared_from_this<WorldCore>, public Watcher {
 public:
  /// An agent of that rank, driven, with its mailbox. It knows nobody yet.
  static Result<std::shared_ptr<WorldCore>> open_agent(const WorldOptions& options, std::uint32_t rank,
                                                       std::uint32_t size, SeatHooks hooks = {});
  WorldCore() = default;
  ~WorldCore();

  Agent& agent() { return seat_->agent; }
  const std::shared_ptr<RankSeat>& seat() const { return seat_; }
  /// Has paths to all of them, by rank; of a sparse world to the neighbours.
  Status connect(const std::vector<Peer>& ranks, Instant until) const;
  /// These are the world's ranks from now on.
  Status enter(std::vector<Peer> ranks);
  /// Finds the others in the directory, and returns when all have entered.
  Status find_and_join(Duration timeout);
  /// Ends when all ranks have entered: each knows the host of every other then.
  Request all_entered(Duration timeout);
  /// Ranks were given settings that do not go together. All ranks have the same status, once they have entered.
  const Status& misfit() const { return misfit_; }
  std::uint32_t rank() const { return rank_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(ranks_.size()); }
  const std::vector<Peer>& ranks() const { return ranks_; }
  const WorldOptions& options() const { return options_; }

  Request send_parts(std::span<const std::span<const std::byte>> parts, std::uint32_t to, std::uint64_t tag,
                     const MessageOptions& options);
  Request receive_parts(std::span<const std::span<std::byte>> parts, std::uint32_t from,
                        std::optional<std::uint64_t> tag, const MessageOptions& options);
  Request send(std::span<const std::byte> bytes, std::uint32_t to, std::uint64_t tag, const MessageOptions& options);
  /// Without `into` a buffer is made.
  Request receive(std::optional<std::span<std::byte>> into, std::uint32_t from, std::optional<std::uint64_t> tag,
                  const MessageOptions& options);
  std::optional<Received> probe(std::uint32_t from, std::optional<std::uint64_t> tag, Duration timeout) const;
  Request collective(CollectiveCall call, const CollectiveOptions& options);
  /// The same, and waits for it: the agent's driver need not run it meanwhile.
  Status collective_now(CollectiveCall call, const CollectiveOptions& options);
  std::vector<Request> all_reduce_bucketed(std::span<const Tensor> tensors, DataType type, ReduceOp op,
                                           std::size_t bucket_bytes, const CollectiveOptions& options);
  Status register_handler(std::string_view name, CallHandler handler, const HandlerOptions& options);
  Request call(std::uint32_t to, std::string_view name, std::span<const std::byte> arguments,
               const CallOptions& options);
  void revoke(const Status& why);
  std::vector<std::uint32_t> failed() const;
  /// Receives from any source are possible again, until the next failure. Returns the ranks that had failed.
  std::vector<std::uint32_t> acknowledge();
  /// Ranks that failed, in the order in which it was found, without the first `known`. Waits for one.
  std::vector<std::uint32_t> failures(std::size_t known, Duration timeout) const;
  /// All ranks that have not failed call it.
  Request agree(bool flag, Duration timeout);
  Result<AgreementValue> outcome(runtime::Operation* operation);
  /// What came of the recovery by itself; waits for it.
  Result<Recovery::Made> recovered(Duration timeout);
  /// `without`: taken for failed.
  Request begin_shrink(std::span<const std::uint32_t> without, Duration timeout);
  Result<std::shared_ptr<WorldCore>> shrunk(runtime::Operation* operation);
  /// 0: of the world that was opened.
  std::uint64_t id() const { return id_; }
  std::uint64_t epoch() const { return epoch_; }
  std::uint32_t old_rank(std::uint32_t rank) const { return old_ranks_.empty() ? rank : old_ranks_[rank]; }
  std::uint64_t last_good() const { return last_good_before_; }
  /// The number of the last collective that this rank began.
  std::uint64_t last_number() const;
  /// A world of these ranks in this order, without a message: each of them calls it, in the same order with others of
  /// the same ranks.
  Result<std::shared_ptr<WorldCore>> group(std::span<const std::uint32_t> ranks);
  /// All ranks call it; those of one color are a world, ordered by key, then by rank. No color: null.
  Result<std::shared_ptr<WorldCore>> split(std::optional<std::uint32_t> color, std::int64_t key);
  std::uint32_t root_rank(std::uint32_t rank) const { return root_ranks_[rank]; }
  bool is_sparse() const { return seat_->relay != nullptr; }
  bool has_direct_peer(std::uint32_t rank) const;
  /// By rank, from 0 in the order of the hosts' first ranks. Empty until all have entered.
  const std::vector<std::uint32_t>& hosts() const { return maker_.hosts(); }
  /// Of a group only this view is given up, of the whole world the agent, too.
  Status close(Duration timeout);
  /// Leaves without having failed, once the others have what this rank sent. `waits`: all ranks do so, and one of a
  /// sparse world relays until then.
  Status depart(Duration timeout, bool waits = false);
  /// Under the lane. `depart` in steps, for a simulator: says that this rank leaves, and whether nobody needs it as a
  /// relay any more. Called until it is so; then `depart` waits for nobody.
  bool is_free_to_leave(Instant now);
  /// The same, once all ranks have called it.
  Status shutdown(Duration timeout);

  // For requests.
  bool wait(Operation& operation, Duration timeout) const;
  void cancel(Operation& operation);
  Received received(const Receive& receive) const;

  // Under the lane.
  void on_close(Instant now) override;
  void on_down(const Peer& peer, const Status& cause) override;
  void on_failed(const Peer& by, std::uint32_t rank, bool is_dead) override;
  void on_left(const Peer& peer) override;
  void on_revoke(const Peer& by, const Status& why) override;
  void on_agreement(const Peer& by, const wire::RuntimeMessage& message) override;
  void on_lost(const Peer& by, std::span<const std::byte> lost, bool asks) override;
  bool is_misfit(const wire::MessageEnvelope& envelope) override;
  void on_misfit(const Peer& by, const wire::MessageEnvelope& envelope, Instant now) override;
  void on_check(const Peer& by, const Question& question, Instant now) override;
  void on_decided(Instant now) override;
  void on_bell(const Peer& by, Instant now) override;
  void on_checked(const Peer& by, std::uint64_t number, Code code, Instant now) override;

 private:
  /// Ranks with other settings are found out by it.
  std::uint64_t settings_digest() const;
  void take_entries(std::span<const std::uint64_t> words);
  std::vector<std::uint32_t> wait_until_read(Instant until) const;
  Status begin_world(std::vector<Peer> ranks, std::uint64_t nonce);
  void begin_under_lane(std::vector<Peer> ranks, std::uint64_t nonce, Instant now);
  /// A world of these of its ranks, over the same agent.
  std::shared_ptr<WorldCore> offspring(std::span<const std::uint32_t> ranks, std::uint32_t own,
                                       std::vector<Peer>& peers) const;
  void take_over_failures(WorldCore& made, std::span<const std::uint32_t> ranks);
  void exclude(const Status& why);
  Result<std::shared_ptr<WorldCore>> child(std::span<const std::uint32_t> ranks, std::uint32_t own);
  bool leave(Duration patience, bool with_groups);
  static void refuse(Operation& operation, const Status& why);
  /// Its operation has ended before it began, if it was refused.
  Request request(std::shared_ptr<Operation> operation, const Status& refused);
  /// Calls `begin` in the lane: at once where the lane is free, else soon, by the driver. A caller never waits for what
  /// other threads do in the lane.
  template <typename Begin>
  Request begin(const std::shared_ptr<Operation>& operation, std::string_view what, const Begin& begin);
  Request begin_send(std::shared_ptr<Send> operation, std::uint32_t to, std::uint64_t tag,
                     const MessageOptions& options);
  Request begin_receive(std::shared_ptr<Receive> operation, std::uint32_t from, std::optional<std::uint64_t> tag,
                        const MessageOptions& options);
  void start_receive(Receive& receive, std::uint32_t from, Instant deadline, Instant now);
  Pattern pattern_of(std::uint32_t from, std::optional<std::uint64_t> tag) const;
  Status check_rank(std::string_view call, std::uint32_t rank) const;
  void open_collectives();
  BoardRoom* board_room();
  void furnish_room();
  Result<std::unique_ptr<backend::View>> view(const RankRegion& region) const;
  std::unique_ptr<MappedCall> mapped_call(const CollectiveCall& call);
  std::optional<Request> begin_waited(CollectiveCall call, const CollectiveOptions& options);
  Status begin_at_once(const CollectiveCall& call, schedule::Algorithm algorithm, const CollectiveOptions& options,
                       std::shared_ptr<Collective>* rest);
  Request begin_collective(const CollectiveMaker::Made& made, const CollectiveOptions& options, bool waits = false);
  bool ends_within(const Operation& operation, Duration timeout) const;
  Instant deadline(Duration timeout, Instant now) const;
  std::optional<std::uint32_t> rank_of(const Peer& peer) const;
  // Under the lane.
  void begin_agreement(const std::shared_ptr<Agreeing>& call, std::uint8_t calls, bool flag, Duration timeout,
                       Instant now);
  void on_agreement_over(Agreeing& over);
  Result<AgreementValue> settle(const Agreeing& call);
  Result<std::shared_ptr<WorldCore>> make_shrunk(const AgreementValue& decision, Instant now);
  Quorum quorum() const { return options_.quorum.value_or(Quorum::kNone); }
  std::uint8_t shrinking() const;
  void take_step(Recovery::Step step);
  void recover(const std::shared_ptr<Agreeing>& call, Instant now);
  void abort(Instant now);
  agent::inner::Need end_unbegun(Operation& operation, const Status& why);
  void revoke_under_lane(const Status& why, bool tell, Instant now);
  bool end_out_of_sight(Collective& waiting, std::uint32_t rank, Instant now);
  void tell_why_not(const Peer& peer, Instant now);
  void say_left(Instant now);
  void open_hearing();
  void note_lost(std::uint32_t rank, const Status& cause);
  void note_dead(std::uint32_t rank);
  std::vector<std::uint32_t> lost_by_this() const;
  void convict(std::uint32_t rank);
  void tell_revoked(Instant now);
  void retell_revoked(Instant now);
  /// Ranks have lost each other. Nobody votes until it is decided who failed.
  bool is_undecided() const {
    if (is_sparse()) return !fates_.is_excluded() && seat_->relay->is_undecided();
    return hearing_ != nullptr && hearing_->is_undecided();
  }
  void note_failure(std::uint32_t rank, const Status& cause);
  Status check_left_without(const std::vector<std::uint32_t>& without) const;

  WorldOptions options_;
  std::shared_ptr<RankSeat> seat_;
  std::atomic<bool> is_root_{false};  ///< The agent closes with it.
  std::uint32_t rank_ = 0;
  std::vector<std::uint32_t> root_ranks_;           ///< By rank: what it is in the world that was opened.
  std::optional<schedule::CostModel> given_costs_;  ///< To this rank.
  std::vector<std::uint64_t> entries_;              ///< While the ranks enter: the EntryWords of all.
  Status misfit_;
  std::vector<std::uint64_t> host_ids_;  ///< By rank, as all have told when they entered.
  CollectiveMaker maker_;
  std::vector<Peer> ranks_;
  std::unordered_set<const void*> members_;  ///< Their sources,
  std::unordered_map<const void*, std::uint32_t> rank_by_source_;
  std::uint64_t nonce_ = 0;
  std::uint64_t id_ = 0;                  ///< Of a group its nonce. Shrinking keeps it.
  std::uint64_t epoch_ = 0;               ///< How often it was shrunk.
  std::vector<std::uint32_t> old_ranks_;  ///< By rank: in the world that was shrunk to this one. Empty: none was.
  std::once_flag has_board_;
  std::optional<BoardShelf::Memory> board_memory_;  ///< Written before a collective begins, taken under the lane.
  std::uint64_t last_good_before_ = 0;              ///< There: the last collective that was good on all of these ranks.

  // ---- Under the lane.
  CollectiveBook book_;
  MappedMemory mapped_memory_;
  std::unique_ptr<BoardRoom> room_;  ///< From the world's beginning on. Null: in a sparse world.
  std::shared_ptr<Accord> accord_;   ///< From the world's beginning on,
  std::shared_ptr<Calls> calls_;     ///< and this.
  bool has_said_left_ = false;
  RankFates fates_;
  std::unique_ptr<Hearing> hearing_;  ///< Of a full world, as long as the others do not hold this rank for failed.
  bool revokes_later_ = false;        ///< The others are told of the end once the court has decided.
  Recovery recovery_;
  Status aborted_;  ///< By RecoveryPolicy::kAbort.
  Lineage lineage_;
};

}  // namespace hawser::runtime
