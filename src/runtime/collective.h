#pragma once

// Collective: one rank's run of a schedule over the mailbox.
//
// Thread rule: under the lane's lock, but for `final` of the operation, and for what is constant once it is true.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/intrusive_list.h"
#include "reduce/reduce.h"
#include "runtime/board_call.h"
#include "runtime/board_room.h"
#include "runtime/exchange_call.h"
#include "runtime/mailbox.h"
#include "runtime/mapped_call.h"
#include "runtime/roll_call.h"
#include "runtime/staged_call.h"
#include "schedule/collective.h"
#include "schedule/host_phases.h"

namespace hawser::runtime {

/// Bytes that are combined with one rank's after the other's, while they are in the cache.
inline constexpr std::uint64_t kReadBlock = 16 * 1024;

/// Where the elements are, and how two are combined.
struct Elements {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::uint64_t bytes = 1;  ///< Of one.
  /// out[i] = first[i] op second[i]; see reduce::Combine. Empty where nothing is combined.
  std::function<void(void* out, const void* first, const void* second, std::size_t count)> combine;
  /// What is left to do with the output once all is combined. May be empty.
  std::function<Status()> finish;
};

class Collective final : public Operation, public Listener, public BoardUser {
 public:
  Collective() : Operation(OperationKind::kSeveral) { listener = this; }

  std::string name;             ///< The operation's: "all_reduce".
  std::string_view world_name;  ///< Of its world, which outlives it as long as it is under way.
  std::uint64_t world = 0, number = 0, digest = 0;
  FlightEntry flight;          ///< As it is written down,
  std::uint64_t recorded = 0;  ///< and where; 0: it is not.
  schedule::Schedule schedule;
  /// How that came to be, for the record.
  schedule::Algorithm algorithm = schedule::Algorithm::kDirect;
  /// By which it went, once it is over.
  schedule::Algorithm taken = schedule::Algorithm::kDirect;
  /// The ranks may read each other's buffers, and tell each other first whether they do. Else they go by `schedule`.
  std::unique_ptr<MappedCall> mapped;
  /// Where there are mates it may go by boards, as `call`, or meet there, if `mapped`. Else it gets a schedule, as the
  /// model says.
  BoardRoom* room = nullptr;
  /// The algorithm by which the call goes on boards: kBoards, kStaged, kBoardsInHosts or kStagedInHosts. A call with
  /// `mapped` goes by it only where its ranks find that the buffers are not mapped. Empty: it sends messages then.
  std::optional<schedule::Algorithm> on_boards;
  schedule::Call call;
  schedule::CostModel model;
  std::uint64_t read_at_once = kReadAtOnce;  ///< Bytes that are read at other ranks in one turn.
  Elements elements;
  std::span<const Peer> ranks;
  Mailbox* mailbox = nullptr;
  /// Told when it fails, before its messages are stopped: whoever gets less than it waits for has heard the reason.
  std::function<void(const Status& why, Instant now)> failing;
  /// Told once, when it has ended.
  std::function<void(Collective&, Instant now)> ended;
  /// Told when its deadline has come.
  std::function<void(Collective&, Instant now)> late;
  /// Told when `taken` has been found. May be empty.
  std::function<void(const Collective&)> rerouted;
  /// Told while it is under way, when `roll` says so.
  std::function<void(Collective&, Instant now)> checking;
  RollCall roll;
  std::optional<Instant> unseen_since;  ///< When `out_of_sight` had one first.
  base::ListHook hook;                  ///< Among those of its world that are under way.

  /// Names it in errors: "all_reduce number 7 of world 'w'". Made when it is wanted: most collectives have none.
  std::string title() const;
  /// kInvalid where a buffer that the schedule uses is null, or what comes would land in what is still to be sent.
  Status check_buffers();
  /// Before it begins.
  void set_deadline(Instant deadline, Instant now);
  void begin(Instant now);
  /// Turns of the boards that the call takes, if it goes on boards.
  static std::uint64_t turns_of(const schedule::Call& call, schedule::Algorithm on_boards);
  /// Instead of `begin`, for a call by the boards of one host whose turns somebody took, and may have written the first
  /// of: see PromptCall.
  void take_over(std::uint64_t turn, bool is_written, Instant now);
  /// Ends it with `why`, unless it is over. Its messages are stopped first, so nothing touches the buffers afterwards.
  void fail(const Status& why, Instant now);
  void on_end(Operation& operation) override;
  void on_late(Operation&, Instant now) override;
  void on_cancel(Operation&, const Status& why, Instant now) override {
    fail(Status(why.code(), title() + ": " + std::string(why.message())), now);
  }
  /// Ranks of whom the round still waits for a message.
  std::vector<std::uint32_t> awaited() const;
  /// The rank whose board it waits for, and cannot read any more.
  std::optional<std::uint32_t> out_of_sight() const;
  bool is_over() const { return is_over_; }
  std::string_view algorithm_name() const override {
    return name.empty() ? std::string_view() : to_string(taken);  // Without a name it was refused before it was made.
  }
  bool is_on_board() const { return on_board_ != nullptr; }
  /// Copies of elements that it needs while it is under way.
  std::uint64_t held_bytes() const { return held_bytes_; }

  // For the room.
  void begin_to_tell(MappedCall& letters, Instant now) override;
  std::uint64_t turns() const override { return turns_; }
  void begin_on_board(Board& board, std::uint64_t turn, Instant now) override;
  void begin_by_messages(Instant now) override;
  bool look(Instant now) override;
  bool has_news() const override { return on_board_->has_news(); }
  bool awaits_one_on(int core) const override { return on_board_->awaits_one_on(core); }

 private:
  std::byte* place(const schedule::Slice& slice);
  std::uint64_t bytes(const schedule::Slice& slice) const { return slice.count * (is_telling_ ? 1 : elements.bytes); }
  bool take_scratch(Instant now);
  bool take_scratch(std::uint64_t size, Instant now);
  std::size_t rounds() const;
  void begin_round(Instant now);
  void tell(MappedCall& letters);
  bool decide(Instant now);
  bool decide_boards(Instant now);
  bool decide_mapped(Instant now);
  bool goes_by_schedule(Instant now);
  void note_algorithm(schedule::Algorithm its);
  void make_schedule();
  bool is_exchange() const { return call.operation == schedule::Operation::kAllToAll; }
  void stage(Board& board, std::uint64_t turn, schedule::AllCounts counts, Instant now);
  void exchange(Board& board, std::uint64_t turn);
  void go_on_from_exchange(Instant now);
  void write_on_board(Board& board, const schedule::Call& phase, std::uint64_t turn, std::byte* output);
  void begin_phase(const schedule::HostPhase& phase, std::uint64_t turn);
  bool begin_after();
  bool begin_last();
  bool keep_input_aside(Instant now);
  void tell_on_board(Board& board, Instant now);
  bool begin_meeting(Instant now);
  void sit_down(Instant now);
  void stand_up();
  bool go_on_from_board(Instant now);
  void go_on_from_meeting(Instant now);
  bool act_on_round(Instant now);
  bool read_some(std::span<const schedule::Step> steps, std::uint64_t* budget, Instant now);
  const std::byte* there(const schedule::Step& step) const;
  void go_on_later();
  void act(const schedule::Step& step);
  void go_on(Instant now);
  void end_well(Instant now);
  void finish(Status status, Instant now);
  Status differs_at(std::uint32_t rank) const;
  Status error_of(const Operation& operation) const;

  std::uint64_t held_bytes_ = 0;
  std::unique_ptr<std::byte[]> scratch_;
  std::unique_ptr<std::byte[]> input_aside_;  ///< A copy, where the output would overwrite the input.
  schedule::HostPhases phases_;               ///< Of several hosts, on boards. What goes between is in `schedule`.
  bool is_after_ = false;                     ///< It has come to the phase after the messages.
  std::optional<std::uint64_t> turn_;         ///< The first one, if it goes by boards,
  std::uint64_t turns_ = 0;                   ///< and how many it takes.
  schedule::Call meeting_;                    ///< Where it is mapped, and meets on boards: what is there now.
  std::uint64_t met_ = 0;                     ///< Turns that are behind it.
  std::optional<BoardCall> board_call_;
  std::optional<ExchangeCall> exchange_call_;
  std::unique_ptr<StagedCall> staged_call_;
  BoardPhase* on_board_ = nullptr;  ///< One of these, while it is in a phase there.
  bool is_seated_ = false;          ///< The room looks at it.
  MappedCall* letters_ = nullptr;
  schedule::Schedule exchange_;  ///< Of letters, while `is_telling_`.
  bool is_telling_ = false;
  std::size_t round_ = 0;
  std::size_t acted_ = 0;   ///< Steps of the round that are done after its messages,
  std::uint64_t done_ = 0;  ///< and elements of those that are being read.
  std::size_t pending_ = 0;
  Status first_error_;
  bool is_begun_ = false;    ///< The round's messages are under way.
  bool is_waiting_ = false;  ///< A job of the mailbox goes on with it.
  bool is_over_ = false;
  std::list<Send> sends_;
  std::list<Receive> receives_;
};

}  // namespace hawser::runtime
