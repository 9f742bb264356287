#pragma once

// BoardRoom: the boards of the ranks of one host, its mates, in one world at one rank: whether they are open, which
// collectives go by them, and how a rank that waits for them looks, sleeps and is woken. Mates are known by their
// places, in the order of their ranks.
//
// Collectives that may go by boards are counted, so all mates have the same count. Those of the counts 1, 2, 4, 8 ...
// find out, until the boards are open, whether they can be: all mates tell each other where their boards lie, and
// whether they see all others' (see mapped_call.h). If all do, that collective and all later ones go by boards, else
// that one and those up to the next try go by messages. All decide by the same letters. A collective that begins before
// a try is decided waits for that. Other hosts need not know: see schedule/host_phases.h.
//
// A collective takes one turn of the boards for each of its phases there, all at its beginning. A phase may wait for
// messages, and so for collectives of other hosts, but never for a later turn: so turns that wait for a slot end.
//
// Thread rule: under the lane's lock, but for the constructor and the destructor, which may close the region of its
// memory. Lifetime: `close` comes before the end of what its Site names.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hawser/peer.h>
#include <hawser/status.h>

#include "runtime/board.h"
#include "runtime/mailbox.h"
#include "runtime/mapped_call.h"

namespace hawser::runtime {

/// What goes by boards, as the room knows it.
class BoardUser {
 public:
  /// Tells all where the board lies. Then BoardRoom::decide.
  virtual void begin_to_tell(MappedCall& letters, Instant now) = 0;
  /// So many turns of boards it takes, the same at all mates.
  virtual std::uint64_t turns() const = 0;
  /// `turn` is the first of them.
  virtual void begin_on_board(Board& board, std::uint64_t turn, Instant now) = 0;
  virtual void begin_by_messages(Instant now) = 0;
  /// Goes on as far as it can. May end, and leave the room.
  virtual bool look(Instant now) = 0;
  virtual bool has_news() const = 0;
  /// See BoardCall::awaits_one_on.
  virtual bool awaits_one_on(int core) const = 0;

 protected:
  ~BoardUser() = default;
};

class BoardRoom final : Lookout {
 public:
  struct Site {
    std::uint64_t world = 0;
    std::uint32_t rank = 0;
    std::span<const Peer> ranks;  ///< Of the world. It outlives the room.
    Mailbox* mailbox = nullptr;
    MappedMemory* memory = nullptr;
    /// As of MappedCall::Uses.
    std::function<std::optional<agent::inner::MappedPlace>(std::span<const std::byte>)> place;
    std::function<Result<std::unique_ptr<backend::View>>(const RankRegion&)> view;
  };
  explicit BoardRoom(Site site) : site_(std::move(site)) {}
  BoardRoom(const BoardRoom&) = delete;
  BoardRoom& operator=(const BoardRoom&) = delete;

  /// Before the first `enter`: by rank of the world, the number of its host. Empty: all are on one.
  void know_hosts(std::vector<std::uint32_t> hosts);
  /// Mates, this rank among them.
  std::uint32_t size() const { return static_cast<std::uint32_t>(mates_.size()); }
  std::uint32_t rank_at(std::uint32_t place) const { return mates_[place]; }
  /// Before the first `enter`: kBoardBytes of 0 that the others may map, for as long as `owner` is held. Never called:
  /// this rank has none.
  void give_memory(std::span<std::byte> memory, std::shared_ptr<const void> owner) {
    memory_ = memory;
    memory_owner_ = std::move(owner);
  }
  /// Mates that look may keep others from running: there are more than cores.
  bool is_crowded() const;
  /// The next collective that may go by boards may do so at once.
  bool is_open() const { return state_ == State::kOpen && held_.empty(); }
  /// While it is open, instead of `enter`: the first of so many turns for a collective that goes on with them by
  /// itself. It ends them by `end_well`, or becomes a user.
  std::uint64_t take_turns(std::uint64_t count);
  /// The next collective that may go by boards. It is told how it goes, now or later.
  void enter(BoardUser& user, Instant now);
  /// All letters are there. True: boards are open, and this collective goes by them as the one of `*turn`.
  Result<bool> decide(std::uint64_t* turn);
  Board& board() { return *board_; }
  /// This rank wrote on its board: who asked to be told is.
  void ring(Instant now);
  /// A collective on boards waits for others,
  void wait_for(BoardUser& user);
  /// or for messages: it is not looked at meanwhile.
  void rest(BoardUser& user);
  /// It reads nothing of that turn any more, and goes on.
  void finish(std::uint64_t turn, Instant now);
  /// Of one that took its turns by itself: it has ended well, with all of them.
  void end_well(std::uint64_t turn, std::uint64_t count, Instant now);
  /// It has ended, with all its turns from `turn` on.
  void leave(BoardUser& user, std::uint64_t turn, bool is_good, Instant now);
  /// One that has not come to a board has ended.
  void forget(const BoardUser& user);
  /// Goes on with what is on boards. Returns how much was new.
  std::size_t look(Instant now) override;
  bool has_users() const { return !users_.empty(); }
  /// This rank waits on that core of the host. True: for a rank that told last that it is there, too.
  bool wait_on(int core);
  /// A collective on boards began messages.
  void note_messages() { has_messages_ = true; }
  /// There are bells or messages since the last time: they go out in a turn of the lane.
  bool take_messages() { return std::exchange(has_messages_, false); }
  /// A rank has written, and rung.
  void on_bell(Instant now);
  /// Those of the other mates, by rank, that can be seen, and have not read all that this one wrote.
  std::vector<std::uint32_t> unread() const { return unread_before(turns_); }
  /// The same of what this rank wrote for collectives that ended well here. All mates have come to these.
  std::vector<std::uint32_t> unread_of_good_ones() const { return unread_before(good_turns_); }
  /// Nobody looks at boards any more.
  void close();

 private:
  enum class State : std::uint8_t { kShut, kUndecided, kOpen };

  std::vector<std::uint32_t> unread_before(std::uint64_t turn) const;
  void begin(BoardUser& user, Instant now);
  void begin_held(Instant now);
  void wake();
  void sleep_if_idle();
  bool ask() override;

  const Site site_;
  std::vector<std::uint32_t> hosts_;  ///< By rank of the world.
  std::vector<std::uint32_t> mates_;  ///< Ranks, in order.
  std::span<std::byte> memory_;
  std::shared_ptr<const void> memory_owner_;
  std::unique_ptr<MappedCall> letters_;  ///< Of the try that goes on, or of the one by which boards are open.
  const BoardUser* teller_ = nullptr;    ///< Who made the last try.
  std::unique_ptr<Board> board_;         ///< From the first try on.
  State state_ = State::kShut;
  std::uint64_t begun_ = 0;        ///< Of those that may go by boards.
  std::uint64_t turns_ = 0;        ///< Of those that do.
  std::uint64_t good_turns_ = 0;   ///< The last one that has ended well has turns before this one.
  std::deque<BoardUser*> held_;    ///< In order, until a try is decided.
  std::vector<BoardUser*> users_;  ///< On boards, in order.
  bool is_looking_ = false;        ///< In each turn of the lane,
  bool has_asked_ = false;         ///< or the others ring.
  bool was_woken_ = false;
  bool has_messages_ = false;
};

}  // namespace hawser::runtime
