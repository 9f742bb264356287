#pragma once

// RankSeat: what all worlds of one rank share: its agent, the mailbox in it, the thread that drives it.
//
// A rank has an agent of its own, or is a guest in an agent of its program's, which may have several seats: one for
// each world that was opened on it. They share its mailbox.
//
// Thread rule: thread-safe. Lifetime: the last world of the rank closes the agent, unless it is a guest.

#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include <hawser/agent.h>
#include <hawser/driver.h>

#include "runtime/board_shelf.h"
#include "runtime/entry.h"
#include "runtime/mailbox.h"
#include "runtime/mapped_call.h"
#include "runtime/past_accord.h"
#include "runtime/recorder.h"
#include "runtime/relay.h"
#include "runtime/workers.h"
#include "schedule/collective.h"

namespace hawser::runtime {

class WorldCore;

inline constexpr std::size_t kHandlersMax = 4;  ///< Of one rank that run at once.
inline constexpr std::size_t kPastsMax = 64;    ///< Closed worlds that it still answers for.

/// How a rank is run other than by threads of this library: for the simulator.
struct SeatHooks {
  using Tenant = std::function<std::shared_ptr<agent::Service>(agent::Carrier& carrier)>;
  /// Opens the agent of a rank that is no guest; somebody else turns it. Empty: as agent::inner::open, with a driver
  /// where one is asked for.
  std::function<Result<Agent>(AgentOptions options, Tenant tenant)> open = {};
  /// Runs a handler's job, later, without the lane's lock. It may drop the job. Empty: the seat's workers run it.
  std::function<void(std::function<void()> job)> run = {};
  /// As if a file had given it to this rank, which tells it the others.
  std::optional<schedule::CostModel> told_costs = {};
  std::uint64_t read_at_once = kReadAtOnce;
  std::uint64_t piece_bytes = schedule::kBoardBytesMax;  ///< See schedule::Call. All ranks have the same value.
  /// Tells ranks on one host from those on others. 0: what the system says.
  std::uint64_t host = 0;
};

class RankSeat {
 public:
  /// An agent with these options, `options.driven` or not. Drivers are shared within the process.
  /// `relays`: where the rank is of a sparse world.
  static Result<std::shared_ptr<RankSeat>> open(AgentOptions options, std::optional<Relay::Site> relays,
                                                SeatHooks hooks = {});
  /// A guest in that agent. `driven`: the library's thread runs it while it has guests, if no other driver does.
  /// kUnsupported: the agent has another service in the mailbox's place.
  static Result<std::shared_ptr<RankSeat>> join(Agent& agent, bool driven, SeatHooks hooks = {});
  bool is_guest() const { return is_guest_; }
  /// Under the lane. Null: what the rank does in its worlds is not written down.
  Recorder* recorder() { return recording_ != nullptr && *recording_ ? &**recording_ : nullptr; }
  /// Writes down what the rank does, beside the agent's status page. Without a page it does not, and without room for
  /// the file it says so in the log.
  void record(Recorder::Site site, const LogOptions& log);
  /// Under the lane.
  void stop_recording() {
    if (recording_ != nullptr) recording_->reset();
  }
  RankSeat() = default;
  ~RankSeat();
  RankSeat(const RankSeat&) = delete;
  RankSeat& operator=(const RankSeat&) = delete;

  /// Whether this rank has a session with that one, by their numbers in the world that was opened.
  bool is_neighbour(std::uint32_t rank) const { return relay == nullptr || relay->is_neighbour(rank); }
  /// Runs a handler of a call.
  void run(std::function<void()> job);
  /// Handlers run by themselves, while the caller waits. Otherwise they run while the agent lets time pass.
  bool has_threads() const { return !hooks_.run; }
  std::uint64_t read_at_once() const { return hooks_.read_at_once; }
  std::uint64_t piece_bytes() const { return hooks_.piece_bytes; }
  /// Memory of boards.
  std::uint64_t board_bytes() const { return boards_->bytes(); }
  /// All worlds of this rank have this cost model. Until the ranks have entered the first one it is the built-in model.
  const SettledCosts& costs() const { return costs_; }
  void settle_costs(const SettledCosts& costs) { costs_ = costs; }
  /// Of ranks on one host the same number.
  std::uint64_t host() const { return host_; }

  /// Memory for the boards of this rank's worlds. Any thread.
  BoardShelf& boards() { return *boards_; }

  /// Under the lane. The oldest goes where there are too many.
  void keep(std::unique_ptr<PastAccord> past);

  Agent agent;                   ///< Of a guest a handle that does not close it.
  std::shared_ptr<Relay> relay;  ///< Null in a full world.
  std::shared_ptr<Mailbox> mailbox;
  std::weak_ptr<WorldCore> root;  ///< The world that the agent closes with: opened, or shrunk from one. Under the lane.

 private:
  struct Drive;
  static Result<std::shared_ptr<Drive>> drive_of(Agent& agent);
  void open_shelf();
  void leave_agent();

  bool is_guest_ = false;
  std::optional<BoardShelf> boards_;
  Recorders::Place* recording_ = nullptr;  ///< In the mailbox.
  std::deque<std::unique_ptr<PastAccord>> pasts_;
  SeatHooks hooks_;
  SettledCosts costs_;
  std::uint64_t host_ = 0;
  Workers workers_{kHandlersMax};
  std::shared_ptr<Driver> driver_;  ///< Null: whoever waits makes the progress.
  std::shared_ptr<Drive> drive_;    ///< Of a guest: the same.
};

}  // namespace hawser::runtime
