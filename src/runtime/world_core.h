#pragma once

// WorldCore: what the handles of one rank of a world share.
//
// Thread rule: thread-safe; what is below the line is under the lane's lock.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/world.h>

#include "runtime/accord.h"
#include "runtime/calls.h"
#include "runtime/collective_call.h"
#include "runtime/collective_desk.h"
#include "runtime/failure_desk.h"
#include "runtime/lineage.h"
#include "runtime/mailbox.h"
#include "runtime/rank_seat.h"
#include "runtime/requests.h"
#include "runtime/roster.h"
#include "runtime/succession.h"
#include "runtime/user_messages.h"

namespace hawser::runtime {

class WorldCore final : public std::enable_shared_from_this<WorldCore>, public Watcher {
 public:
  /// An agent of that rank, driven, with its mailbox. It knows nobody yet.
  static Result<std::shared_ptr<WorldCore>> open_agent(const WorldOptions& options, std::uint32_t rank,
                                                       std::uint32_t size, SeatHooks hooks = {});
  /// The same, on an agent of the program's.
  static Result<std::shared_ptr<WorldCore>> open_guest(Agent& agent, WorldOptions options, SeatHooks hooks = {});
  WorldCore() = default;
  /// Where an inline handler of the rank drops the last handle, the world ends soon after, by another thread.
  static std::shared_ptr<WorldCore> make();
  ~WorldCore();

  Agent& agent() { return seat_->agent; }
  const std::shared_ptr<RankSeat>& seat() const { return seat_; }
  std::uint32_t rank() const { return roster_.own(); }
  std::uint32_t size() const { return roster_.size(); }
  const std::vector<Peer>& ranks() const { return roster_.peers(); }
  const WorldOptions& options() const { return options_; }
  std::uint32_t root_rank(std::uint32_t rank) const { return roster_.root_rank(rank); }
  bool is_sparse() const { return seat_->relay != nullptr; }
  bool has_direct_peer(std::uint32_t rank) const;
  /// By rank, from 0 in the order of the hosts' first ranks. Empty until all have entered.
  const std::vector<std::uint32_t>& hosts() const { return collectives_.hosts(); }

  // The beginning.
  /// Has paths to all of them, by rank; of a sparse world to the neighbours.
  Status connect(const std::vector<Peer>& ranks, Instant until) const;
  /// These are the world's ranks from now on.
  Status enter(std::vector<Peer> ranks);
  /// Finds the others in the directory, and returns when all have entered. `given`: by rank, who they are; nobody is
  /// looked up then.
  Status find_and_join(Duration timeout, std::span<const Peer> given = {});
  /// Ends when all ranks have entered: each knows the host of every other then.
  Request all_entered(Duration timeout);
  /// Ranks were given settings that do not go together. All ranks have the same status, once they have entered.
  const Status& misfit() const { return misfit_; }

  void note_place(std::string place) { place_ = std::move(place); }
  std::vector<ConfigValue> config() const;
  std::vector<MemoryUse> memory() const;

  // What ranks do together.
  const UserMessages& messages() const { return messages_; }
  CollectiveDesk& collectives() { return collectives_; }
  Succession& succession() { return succession_; }
  Status register_handler(std::string_view name, CallHandler handler, const HandlerOptions& options);
  Status register_handler(std::uint64_t number, CallHandler handler, const HandlerOptions& options);
  Request call(std::uint32_t to, std::string_view name, std::span<const std::byte> arguments,
               const CallOptions& options);
  Request call(std::uint32_t to, std::uint64_t number, std::span<const std::byte> arguments,
               const CallOptions& options);
  /// The number of the last collective that this rank began.
  std::uint64_t last_number() const;

  // Failure.
  void revoke(const Status& why);
  std::vector<std::uint32_t> failed() const;
  /// Receives from any source are possible again, until the next failure. Returns the ranks that had failed.
  std::vector<std::uint32_t> acknowledge();
  /// Ranks that failed, in the order in which it was found, without the first `known`. Waits for one.
  std::vector<std::uint32_t> failures(std::size_t known, Duration timeout) const;
  /// 0: of the world that was opened.
  std::uint64_t id() const { return id_; }
  std::uint64_t epoch() const { return epoch_; }
  std::uint32_t old_rank(std::uint32_t rank) const { return old_ranks_.empty() ? rank : old_ranks_[rank]; }
  std::uint64_t last_good() const { return last_good_before_; }

  // Groups.
  /// A world of these ranks in this order, without a message: each of them calls it, in the same order with others of
  /// the same ranks.
  Result<std::shared_ptr<WorldCore>> group(std::span<const std::uint32_t> ranks);
  /// All ranks call it; those of one color are a world, ordered by key, then by rank. No color: null.
  Result<std::shared_ptr<WorldCore>> split(std::optional<std::uint32_t> color, std::int64_t key);

  // The end.
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
  Received received(const Receive& receive) const { return messages_.received(receive); }

  // Under the lane: what peers say.
  void on_close(Instant now) override {
    end(Status(Code::kCancelled, "world '" + options_.name + "' was closed"), now);
  }
  void on_agent_closing(const Status& why, Instant now) override;
  std::uint64_t family() const override { return family_; }
  void say_gone(bool left, Instant now) override;
  void add_memory(WorldMemory& sum) override;
  void on_down(const Peer& peer, const Status& cause) override { failures_.on_down(peer, cause); }
  void on_failed(const Peer& by, std::uint32_t rank, bool is_dead) override { failures_.on_failed(by, rank, is_dead); }
  void on_left(const Peer& peer) override { failures_.on_left(peer); }
  void on_revoke(const Peer& by, const Status& why) override { failures_.on_revoke(by, why); }
  void on_lost(const Peer& by, std::span<const std::byte> lost, bool asks) override {
    failures_.on_lost(by, lost, asks);
  }
  void on_decided(Instant now) override { failures_.on_decided(now); }
  void on_agreement(const Peer& by, const wire::RuntimeMessage& message) override;
  bool is_misfit(const wire::MessageEnvelope& envelope) override { return collectives_.book().is_misfit(envelope); }
  void on_misfit(const Peer& by, const wire::MessageEnvelope& envelope, Instant now) override {
    collectives_.book().on_misfit(by, envelope.tag, now);
  }
  void on_check(const Peer& by, const Question& question, Instant now) override {
    collectives_.on_check(by, question, now);
  }
  void on_checked(const Peer& by, std::uint64_t number, Code code, Instant now) override {
    collectives_.book().on_checked(by, number, code, now);
  }
  void on_bell(const Peer& by, Instant now) override { collectives_.on_bell(by, now); }

 private:
  void open_requests();
  /// Ranks with other settings are found out by it.
  std::uint64_t settings_digest() const;
  void take_entries(std::span<const std::uint64_t> words);
  std::vector<std::uint32_t> wait_until_read(Instant until) const;
  Status begin_world(std::vector<Peer> ranks, std::uint64_t nonce);
  void begin_under_lane(std::vector<Peer> ranks, std::uint64_t nonce, Instant now);
  void open_failures();
  void open_succession();
  /// A world of these of its ranks, over the same agent.
  std::shared_ptr<WorldCore> offspring(std::span<const std::uint32_t> ranks, std::uint32_t own,
                                       std::vector<Peer>& peers) const;
  Result<std::shared_ptr<WorldCore>> child(std::span<const std::uint32_t> ranks, std::uint32_t own);
  std::shared_ptr<WorldCore> make_shrunk(std::vector<std::uint32_t> ranks, std::uint64_t last_good, Instant now);
  /// What it was made with, once that has been found good.
  static Result<std::shared_ptr<WorldCore>> prepare(const WorldOptions& options, std::uint32_t rank, std::uint32_t size,
                                                    const std::optional<schedule::CostModel>& told_costs);
  std::uint64_t own_nonce(std::span<const Peer> ranks) const;
  Status check_name() const;
  void end(const Status& status, Instant now);
  /// The opened world of a guest ends.
  void end_family(Instant now);
  bool leave(Duration patience, bool with_groups);
  void say_left(Instant now);
  void abort(const Status& why, Instant now);

  Status add_handler(const HandlerKey& key, CallHandler handler, const HandlerOptions& options);
  Request call_by(std::uint32_t to, const HandlerKey& key, std::span<const std::byte> arguments,
                  const CallOptions& options);

  WorldOptions options_;
  std::string place_;  ///< For World::config.
  std::shared_ptr<RankSeat> seat_;
  std::atomic<bool> is_root_{false};  ///< The agent closes with it.
  Roster roster_;
  Requests requests_;
  std::optional<schedule::CostModel> given_costs_;  ///< To this rank.
  std::vector<std::uint64_t> entries_;              ///< While the ranks enter: the EntryWords of all.
  Status misfit_;
  std::vector<std::uint64_t> host_ids_;  ///< By rank, as all have told when they entered.
  std::uint64_t nonce_ = 0;
  std::uint64_t family_ = 0;              ///< The nonce of the world that was opened.
  std::uint64_t id_ = 0;                  ///< Of a group its nonce. Shrinking keeps it.
  std::uint64_t epoch_ = 0;               ///< How often it was shrunk.
  std::vector<std::uint32_t> old_ranks_;  ///< By rank: in the world that was shrunk to this one. Empty: none was.
  std::uint64_t last_good_before_ = 0;    ///< There: the last collective that was good on all of these ranks.
  std::shared_ptr<const BufferSource> buffers_;
  UserMessages messages_;

  // ---- Under the lane.
  CollectiveDesk collectives_;
  std::shared_ptr<Accord> accord_;  ///< From the world's beginning on,
  std::shared_ptr<Calls> calls_;    ///< and this.
  FailureDesk failures_;
  Succession succession_;
  Lineage lineage_;
  bool has_said_left_ = false;
  bool has_said_closed_ = false;
};

}  // namespace hawser::runtime
