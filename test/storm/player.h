#pragma once

// Player: a thread that writes to and reads from all peers at random, and knows what must come of it.
//
// It has slots in each peer's region that nobody else writes to, and remembers what they hold. Each transfer must end
// in time; what ended is touched no more (its memory is scribbled at once, and that stays); what was written well is
// what a later read brings; a notification comes once, after its bytes.
//
// Thread rule: the thread that plays.

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hawser/hawser.h>

#include "base/rng.h"
#include "board.h"
#include "options.h"

namespace hawser::storm {

class Player {
 public:
  /// `closing` is set before the agent is closed, by whichever thread.
  Player(Agent& agent, const std::atomic<bool>& closing, Board& board, const StormOptions& options, std::size_t worker,
         std::size_t number, std::uint64_t seed);
  ~Player();
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  /// One thing at random, and a look at what ended.
  void act();
  /// Ends what is under way; then everything must work with everybody. Gives up when the board has a fault.
  void prove();
  /// Ends what is under way, in time.
  void finish();

 private:
  enum class Kind : std::uint8_t { kWrite, kRead };
  /// A write ended badly over bytes that were known; its status says `state` of them.
  struct Doubt {
    BufferState state = BufferState::kUnknown;
    std::size_t begin = 0;
    std::vector<std::byte> before, brought;
  };
  /// A place at a peer.
  struct Slot {
    std::size_t offset = 0, size = 0;
    std::vector<std::byte> content;  ///< What it holds there.
    bool known = false;
    std::optional<Doubt> doubt;  ///< Until the next write.
    bool busy = false;
    bool lost = false;           ///< Its transfer was dropped: nobody tells when its memory here is free.
    std::uint64_t scribble = 0;  ///< What its memory here was filled with when its last transfer ended.
  };
  struct Target {
    Peer peer;
    std::uint32_t life = 0;       ///< Of the worker, whose card it is.
    bool is_unreachable = false;  ///< Its socket is gone.
    std::string region;           ///< In which all this is.
    std::uint64_t region_number = 0;
    std::uint64_t stream = 0;  ///< Of messages to this peer's handle.
    std::uint64_t sent = 0;    ///< Of these.
    std::vector<Slot> slots;
  };
  struct Part {
    std::size_t slot = 0, begin = 0, size = 0;
  };
  struct Flight {
    Kind kind = Kind::kWrite;
    std::size_t worker = 0;
    std::uint32_t life = 0;
    std::string region;
    std::vector<Part> parts;
    std::uint64_t uid = 0;
    bool noted = false, cancelled = false;
    Transfer transfer;
    Instant due;
  };
  /// A good write whose notification has not been seen yet: its slots stay as they are.
  struct Note {
    std::uint64_t uid = 0;
    std::size_t worker = 0;
    std::vector<Part> parts;
    Peer peer;
    std::uint32_t interruptions = 0;
    Instant due;
  };

  bool is_fair(const Status& status) const;
  /// Of a call or transfer to this life of a worker.
  bool is_fair(const Status& status, std::size_t worker, std::uint32_t life);
  /// An addition to the word of a region.
  struct Addition {
    std::size_t worker = 0;
    std::uint32_t life = 0;
    std::uint64_t region = 0;
    AtomicOp op;
    Instant due;
  };

  Instant tick();
  std::uint32_t interruptions(std::size_t worker);
  [[noreturn]] void fail(const std::string& what);
  std::string who(const Flight& flight) const;
  bool meet(std::size_t worker, bool anew);
  void look_at_region(std::size_t worker);
  void hear_old_news(std::size_t worker);
  std::span<std::byte> ours(std::size_t worker, const Slot& slot);
  std::vector<Part> pick(Target& target, bool whole);
  Result<Plan> plan(const Flight& flight);
  /// An error where it could not be started; one that must not be ends all.
  Status start(std::size_t worker, Kind kind, std::vector<Part> parts, Duration deadline, bool noted);
  void fill_source(const Flight& flight);
  std::string note_of(const Flight& flight) const;
  void set_busy(std::size_t worker, const std::vector<Part>& parts, bool busy);
  void reap();
  void judge(Flight& flight);
  void judge_write(Target& target, const Flight& flight, const Status& status);
  void judge_read(Target& target, const Flight& flight, const Status& status);
  void judge_doubt(const Flight& flight, const Part& part, const Doubt& doubt);
  void scribble(std::size_t worker, Slot& slot, std::uint64_t uid);
  void check_scribble(std::size_t worker, const Slot& slot);
  void watch_note(const Flight& flight);
  void look_at_notes();
  bool is_excused(const Note& note);
  void talk(std::size_t worker);
  void add_one(std::size_t worker);
  void reap_additions(Instant now);
  void cancel_one();
  void drop_one();
  void forget_one();
  void renew_memory();
  void add_memory();
  void prove_with(std::size_t worker);
  /// False: it did not work until `end`; `last` tells why.
  bool prove_by(std::size_t worker, bool may_meet_anew, Instant end, Status& last);
  /// The last error, if not all slots could be done.
  Status do_all(std::size_t worker, Kind kind);

  Agent& agent_;
  const std::atomic<bool>& closing_;
  Board& board_;
  const StormOptions& options_;
  const std::size_t worker_, number_;
  base::Rng rng_;
  std::vector<std::byte> storage_;
  Region region_;
  std::span<std::byte> memory_;
  std::vector<Target> targets_;
  std::vector<Flight> flights_;
  std::vector<Note> notes_;
  std::vector<Addition> additions_;
  const bool is_heavy_ = rng_.chance(0.3);  ///< It moves much at a time, mostly.
  std::size_t drops_left_ = 2;
  bool is_over_ = false;  ///< The agent was closed, and there is no memory any more.
  Instant last_tick_;
};

/// A fault was found; the board has it.
struct Fault {};

}  // namespace hawser::storm
