#pragma once

// Accord: the agreements of one world, as operations with deadlines whose messages go by the mailbox.
//
// Thread rule: under the lane's lock. Lifetime: its world's; it ends what is under way.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/agreement.h"
#include "runtime/mailbox.h"

namespace hawser::runtime {

/// One call of this rank.
struct Agreeing final : Operation, Listener {
  Agreeing() : Operation(OperationKind::kSeveral) { listener = this; }
  void on_late(Operation&, Instant now) override { late(now); }
  void on_cancel(Operation&, const Status& why, Instant) override { cancelled(why); }

  AgreementValue value;  ///< This rank's vote; the ranks' decision, once the call has ended well.
  std::uint64_t number = 0;
  Instant until;
  bool has_asked = false;  ///< The leader, for whom it waits.
  bool is_taken = false;   ///< A world was made of it.
  bool is_own = false;     ///< Of the runtime, which recovers by itself.
  std::function<void(Instant now)> late;
  /// Called at its end, just before it is final. It may change `status`.
  std::function<void(Agreeing& over)> ending;
  std::function<void(const Status& why)> cancelled;
};

class Accord {
 public:
  /// `mailbox` outlives it.
  Accord(std::uint64_t world, std::string name, std::uint32_t rank, std::span<const Peer> ranks, Mailbox& mailbox);
  ~Accord();
  Accord(const Accord&) = delete;
  Accord& operator=(const Accord&) = delete;

  /// Votes. kBusy where another call is under way. A call that takes the place of one that ran out of time takes up the
  /// same agreement, with the vote that was given then.
  void begin(const std::shared_ptr<Agreeing>& call, Duration timeout, Instant now);
  void note_failed(std::uint32_t rank, Instant now);
  /// Its end is proven, or it has left.
  void note_dead(std::uint32_t rank) { agreement_.note_dead(rank); }
  void hear(std::uint32_t from, const wire::RuntimeMessage& message, Instant now);
  /// This rank takes part no more: ends the call that is under way, and all later ones.
  void stop(const Status& why);
  /// This rank calls no more, and still answers the others: ends the call that is under way, and refuses later ones.
  void close(const Status& why);
  /// Others may still ask for what was decided.
  bool has_decided() const { return agreement_.has_decided(); }

 private:
  void tell(std::uint32_t to, const AgreementMessage& message);
  void on_late(Instant now);
  void end_if_decided();
  void end(Status status);

  const std::uint64_t world_;
  const std::string name_;
  const std::vector<Peer> ranks_;
  Mailbox& mailbox_;
  Instant now_;  ///< When the present call or message came: `tell` needs it.
  Agreement agreement_;
  std::shared_ptr<Agreeing> call_;
  std::uint64_t unfinished_ = 0;  ///< The agreement that the last call gave up before it was decided. 0: it did not.
  Status stopped_, closed_;
};

}  // namespace hawser::runtime
