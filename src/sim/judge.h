#pragma once

// Judge: checks what agents do against what they promised. It looks at memory directly, so it sees what no agent could.
//
// The first broken promise ends the run: `failure` says which, with the seed's virtual time, agents and transfer.
// What each check is for:
//   finals        every transfer ends once, with a plausible status, not before its deadline if it timed out and not
//                 much after it, and its bytes are what the status says they are
//   notifications at most once, only when their bytes are visible, from whom they say; exactly once between peers that
//                 stayed together
//   signals       once, only when the bytes are visible
//   messages      in order, none twice, none lost while both stayed together; numbered one by one, and none told
//                 as acknowledged that the peer's agent did not take
//   memory        nothing outside of leases changes; nothing at all in a closed region, nor local memory of a transfer
//                 that is final (both are overwritten by us at once, and must stay so)
//   hangs         nothing waits longer than its bound in virtual time, and nobody turns for nothing
//   atomics       each is done once or not at all, as its status says, and one order explains all values of a word
//   reasons       nobody is reported down, disconnected or too late unless something was done to it: what a reset or a
//                 half-close breaks is mended unnoticed, and a cut or a stop that is shorter than peer_timeout ends
//                 nothing
//   silence       once nobody wants anything, there is nothing but heartbeats
//   books         when all is read and quiet, counters say what was seen, room taken at one side was used at the other
//                 and is free again, and nothing is left over
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/credit.h"
#include "sim/life.h"

namespace hawser::simulation {

class Judge {
 public:
  /// `may_fill`: a write that is given up midway ends with zeros, as over streams.
  explicit Judge(sim::Universe& universe, bool may_fill = false) : universe_(universe), may_fill_(may_fill) {}
  /// Two that do not hear each other for so long in all stay together, whatever else is done to them.
  void expect_patience(Duration patience) { patience_ = patience; }

  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  void fail(const Life& life, const std::string& what);

  Life* life_of(const Incarnation& incarnation);
  void enroll(Life& life) { lives_[life.incarnation] = &life; }
  Move& new_move(Course& course);
  /// The newest move was refused: it never was.
  void drop_move(Move& move);
  /// Nothing of the course is on its way: it may be submitted again, or its leases given back.
  bool idle(const Course& course) const;
  /// Keeps the record of a course that its life gave up.
  void forget(std::unique_ptr<Course> course) { forgotten_.push_back(std::move(course)); }
  std::uint64_t new_writer() { return next_writer_++; }

  /// After anything that may have moved `life` on: finals, completions, words of its memory.
  void observe(Life& life);
  // What the user took from the agent.
  void on_notification(Life& life, const Notification& notification);
  void on_message(Life& life, const Message& message);
  /// `life` sent the next message on the channel to `to`; the agent calls it `number`.
  void on_sent(Life& life, Life& to, std::uint32_t channel, std::uint64_t number);
  /// The agent takes nothing any more: what it was told to have taken is compared with what it took.
  void on_end(Life& life);
  void on_event(Life& life, const PeerEvent& event);
  /// Submit was refused.
  void on_refused(Life& life, Course& course, const Status& status);
  /// An atomic operation that is to be asked; `drop` when it was refused and so never was.
  AtomicCall& new_atomic(Life& from, Life& to, Area& area);
  void drop_atomic(AtomicCall& call);
  /// Refused at once; `fault` is what was wrong with its word, kOk: nothing.
  void on_atomic_refused(AtomicCall& call, const Status& status, Code fault);
  /// The owner did it itself.
  void on_own_atomic(AtomicCall& call, std::uint64_t found);
  /// A region's close answered.
  void on_close(Life& life, Area& area, const Status& status);

  /// How long a host stood still or slow: added to its bounds.
  void excuse(const Life& life, Duration span);
  enum class Harm : std::uint8_t {
    kDelays,    ///< Bytes that one sends to the other come late.
    kSilences,  ///< They do not hear each other, and where that lasts too long they give each other up.
    kCutsOff,   ///< They may give each other up.
  };
  /// Between these nodes things may go wrong for `span` from now, and for as long as mending takes.
  void trouble(std::size_t a, std::size_t b, Duration span, Harm harm);

  // At the end, once all is healed and quiet.
  void check_settled(const std::vector<std::unique_ptr<Life>>& lives);
  void check_memory(const std::vector<std::unique_ptr<Life>>& lives);
  /// Also before the course is used again.
  void check_stays(const Course& course);
  void check_counters(Life& life);
  /// Whether each session that stands has a path by the agents' first backend.
  bool all_go_best(const std::vector<std::unique_ptr<Life>>& lives) const;
  void check_best(const std::vector<std::unique_ptr<Life>>& lives);
  /// Nothing waits or is unacknowledged between two that stand in session.
  bool all_told(const std::vector<std::unique_ptr<Life>>& lives) const;
  void check_books(const std::vector<std::unique_ptr<Life>>& lives);
  /// What `life` sent within so many heartbeats though nobody wanted anything.
  void check_silent(const Life& life, std::uint64_t sends, std::int64_t heartbeats);
  bool settled(const std::vector<std::unique_ptr<Life>>& lives);
  /// Messages of sessions that ended: told as acknowledged, and not.
  std::uint64_t acknowledged() const { return acknowledged_; }
  std::uint64_t left_open() const { return left_open_; }
  std::uint64_t moves() const { return moves_.size(); }
  std::uint64_t good_moves() const { return good_moves_; }
  std::uint64_t atomics() const { return atomics_.size(); }
  std::uint64_t good_atomics() const { return good_atomics_; }

  /// Whether all bytes of a write are at its target; whether any is.
  static bool all_landed(const Move& move);
  static bool any_landed(const Move& move);
  /// A remote area in which a write has begun to land, and not ended; null: none.
  static Area* landing_in(const Move& move);
  /// Whether what is known now of the course's remote region is not so, or the course goes beyond it.
  static bool is_lie(const Course& course);

  /// Of one that another follows, as far as is known.
  static bool ended_badly(const Move& move);

 private:
  void observe_finals(Life& life);
  void observe_queue(Life& life);
  void observe_words(Life& life);
  void on_final(Life& life, Move& move);
  static bool may_have_ended_well(const Move& move);
  static Instant began(const Move& move);
  void check_status(Life& life, Move& move);
  bool troubled(const Life& a, const Life& b, Instant since, Harm harm) const;
  bool may_be_late(const Life& life, const Life& to, Instant submitted, Instant due) const;
  bool are_parted(const Life& a, const Life& b, Instant since) const;
  bool may_be_cut_off(Life& life, Life& other, Instant since);
  void check_good_write(Life& life, Move& move);
  void check_bad_write(Life& life, Move& move);
  void check_read(Life& life, Move& move);
  void scribble(Life& life, Move& move);
  void check_hangs(Life& life);
  void check_tainted(Course& course);
  void observe_atomics(Life& life);
  void observe_atomic_words(Life& life);
  void on_atomic_word(Life& life, Area& area, std::size_t index, std::uint64_t value);
  void on_atomic_completion(Life& life, AtomicCall& call, const Completion& entry);
  void on_atomic_final(AtomicCall& call);
  void check_atomic_status(AtomicCall& call);
  void check_good_atomic(AtomicCall& call);
  void check_bad_atomic(AtomicCall& call);
  void add_atomic_state(const AtomicCall& call, std::uint64_t value);
  void check_atomic_memory(Life& life, const Area& area);
  void check_atomic_hangs(const Life& life);
  void check_atomics_settled();
  void check_local(Life& life, const Course& course);
  void check_credit(Life& from, Life& to);
  template <typename Receiver>
  void check_room(Life& from, Life& to, std::string_view what, const proto::CreditSender& sender,
                  const Receiver& receiver, std::uint64_t untold);
  void check_pair(Life& from, Life& to, Bond& bond);
  void check_acknowledged(Life& life, Life& other, const PeerEvent& event);
  void check_claims(Life& from, Life& to);
  Duration allowance(const Life& life) const;

  sim::Universe& universe_;
  const bool may_fill_;
  std::string failure_;
  std::map<Incarnation, Life*> lives_;
  std::deque<Move> moves_;
  std::vector<std::unique_ptr<Course>> forgotten_;
  std::map<std::uint64_t, Move*> by_uid_;
  std::deque<AtomicCall> atomics_;
  std::map<std::uint64_t, AtomicCall*> atomics_by_uid_;
  std::map<const Life*, Duration, EarlierLife> excused_;
  struct Trouble {
    std::size_t a, b;
    Duration span;
    Instant until;
    Harm harm;
    bool is_between(const Life& one, const Life& other) const {
      return (a == one.node && b == other.node) || (a == other.node && b == one.node);
    }
  };
  std::vector<Trouble> troubles_;
  Duration patience_{};
  std::uint64_t next_writer_ = 1;
  std::uint64_t good_moves_ = 0;
  std::uint64_t acknowledged_ = 0, left_open_ = 0;  ///< Messages, in the end of sessions.
  std::uint64_t good_atomics_ = 0;
};

/// The text of a move's notification, and back; 0: none of ours.
std::string note_of(std::uint64_t uid);
std::uint64_t uid_of(std::string_view note);

/// Bodies of messages: who, which, and a pattern of any length.
std::string message_of(const Life& from, std::uint32_t channel, std::uint64_t number, std::size_t size);

}  // namespace hawser::simulation
