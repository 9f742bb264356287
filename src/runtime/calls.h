#pragma once

// Calls: the remote calls of one world, those that this rank makes and those that it answers. A call is a message, its
// arguments, and an answer, which is another one.
//
// A rank takes calls in as long as fewer than kJobsMax wait or run there, with arguments of less than kJobBytesMax;
// beyond that they wait as messages do, the large ones at their senders. A caller that gives up frees its arguments at
// once, and tells so; the answer that still comes is passed over.
//
// Thread rule: under the lane's lock, but for what says otherwise. Lifetime: jobs hold it weakly.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <hawser/call.h>

#include "base/mutex.h"
#include "runtime/rank_seat.h"

namespace hawser::runtime {

/// True where this thread runs an inline handler of that rank, whose lane it holds.
bool runs_inline_for(const RankSeat* seat);

inline constexpr std::size_t kJobsMax = 1024;
inline constexpr std::uint64_t kJobBytesMax = std::uint64_t{1} << 30;
inline constexpr std::size_t kCallsMax = 65'536;  ///< Under way from one rank in one world.
inline constexpr std::size_t kCallTextMax = 4096;
inline constexpr std::size_t kHandlerNameMax = 255;

/// How a call names its handler: by a number of 64 bits, which is FNV-1a of its name, or of the number that the user
/// gave it and a byte that no text of UTF-8 has.
struct HandlerKey {
  static HandlerKey of(std::string_view name);
  static HandlerKey of(std::uint64_t number);
  /// For people: "'add'", or "7".
  std::string shown() const;

  std::uint64_t number = 0;
  std::string name;  ///< Of a number the number as text.
  bool is_named = true;
};
/// kInvalid: it is empty, or too long.
Status check_handler_name(std::string_view name);

class Calls;
struct CallFlight;

/// A call, as its caller sees it.
struct Calling final : Operation, Listener {
  Calling() : Operation(OperationKind::kSeveral) { listener = this; }
  void on_late(Operation& operation, Instant now) override;
  void on_cancel(Operation& operation, const Status& why, Instant now) override;
  std::span<const std::byte> made_bytes() const override { return {answer.get(), answer_size}; }

  Calls* calls = nullptr;  ///< While it is under way.
  CallFlight* flight = nullptr;
  std::string text;  ///< Names it in errors: "handler 'x' of rank 3".
  MadeBuffer answer;
  std::size_t answer_size = 0;
};

class Calls final : public std::enable_shared_from_this<Calls> {
 public:
  /// The unit of the deadline that travels with a call.
  static constexpr Duration kShortestCall = std::chrono::microseconds(1);

  struct Site {
    std::uint64_t world = 0;
    std::string name;
    const std::unordered_set<const void*>* members = nullptr;
    std::function<std::optional<std::uint32_t>(const Peer&)> rank_of;
  };
  Calls(std::weak_ptr<RankSeat> seat, Mailbox& mailbox, Site site);
  ~Calls();
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  /// Takes calls in from now on.
  void open(Instant now);
  /// kInvalid where the key is taken.
  Status add_handler(const HandlerKey& key, CallHandler handler, HandlerOptions options);
  /// `handler`: see HandlerKey. The caller keeps the arguments until the call is over. kTimedOut without a word to
  /// anybody where the timeout is below kShortestCall.
  void begin(const std::shared_ptr<Calling>& call, const Peer& to, std::uint64_t handler,
             std::span<const std::byte> arguments, Duration timeout, Instant now);
  /// Its calls need no answer any more.
  void on_down(const void* source);
  /// Ends all calls, drops those that have not begun to run here, and asks the others to end.
  void stop(const Status& why, Instant now);
  /// How long a call without a timeout waits: within a handler until the handler's own deadline, for then nobody waits
  /// for what comes of it, and `otherwise` at most.
  static Duration patience(Duration otherwise, Instant now);
  /// Arguments of calls that wait or run here.
  std::uint64_t held_bytes() const { return job_bytes_; }
  /// Not under the lane: waits until no handler runs, except for the one that this is called from.
  bool wait_quiet(Duration patience);

 private:
  friend struct Calling;
  friend struct CallFlight;
  struct Handler {
    std::string name;
    CallHandler call;
    HandlerOptions options;
  };
  /// A call that comes in.
  struct Incoming;
  struct Job;
  /// What this rank says without waiting for anything: an answer, or that it gives up.
  struct Parting;
  using JobKey = std::pair<const void*, std::uint64_t>;  ///< By whom, and the caller's number.

  bool is_quiet();
  // The caller's side.
  void give_up(Calling& call, const Status& why, Instant now);
  void settle(CallFlight& flight, Instant now);
  void end_call(Calling& call, Status status);
  // The other side.
  bool has_room() const { return jobs_.size() < kJobsMax && job_bytes_ < kJobBytesMax; }
  void take_in(Instant now);
  void on_in_end(Incoming& incoming, Instant now);
  /// The oldest call that came cannot be taken in for this reason: its caller is told.
  void turn_away(const Status& why, Instant now);
  Pattern calls_pattern() const;
  void dispatch(std::unique_ptr<Incoming> incoming, Instant now);
  void begin_job(std::unique_ptr<Incoming> incoming, std::shared_ptr<const Handler> handler, Instant now);
  void take_back(const void* source, std::uint64_t id);
  void finish(const Job& job, Result<CallAnswer> result, Instant now);
  void answer(const Peer& to, std::uint64_t id, Result<CallAnswer> result, Instant now);
  void say(const Peer& to, wire::MessageEnvelope envelope, CallAnswer bytes, Instant now);
  static Result<CallAnswer> run(const Job& job, Instant now);
  Result<CallAnswer> run_inline(Job& job, Instant now);
  void run_apart(const std::shared_ptr<Job>& job);
  /// Runs it after what the mailbox is about, unless this object is gone then.
  void soon(std::function<void(Instant now)> job);

  const std::weak_ptr<RankSeat> seat_;
  Mailbox& mailbox_;
  const Site site_;
  Status stopped_;
  std::map<std::uint64_t, std::shared_ptr<const Handler>> handlers_;  ///< By number.
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, std::unique_ptr<CallFlight>> flights_;
  std::list<std::unique_ptr<Incoming>> incoming_;
  Incoming* open_one_ = nullptr;  ///< The one that waits for the next call.
  std::map<JobKey, std::shared_ptr<Job>> jobs_;
  std::uint64_t job_bytes_ = 0;
  std::list<Parting> partings_;

  base::Mutex mutex_;
  base::CondVar quiet_;
  std::size_t running_ HAWSER_GUARDED_BY(mutex_) = 0;
};

}  // namespace hawser::runtime
