#pragma once

// TransferJudge: every transfer ends once and with a plausible status. One that timed out ends not before its deadline,
// and not much after it. Its bytes are what the status says they are. Its notification and its signal come once, and
// only when the bytes are visible. Nothing touches its local memory once it is final, and what a good write brought
// stays.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "sim/life.h"
#include "sim/reasons.h"
#include "sim/verdict.h"

namespace hawser::simulation {

class TransferJudge {
 public:
  struct Uses {
    sim::Universe& universe;
    Verdict& verdict;
    Reasons& reasons;
    WriterNumbers& writers;
    bool may_fill = false;  ///< A write that is given up midway ends with zeros, as over streams.
  };
  explicit TransferJudge(const Uses& uses) : uses_(uses) {}

  Move& make(Course& course);
  /// The newest move was refused: it never was.
  void drop(Move& move);
  Move* find(std::uint64_t uid) const;
  /// Nothing of the course is on its way: it may be submitted again, or its leases given back.
  static bool idle(const Course& course);
  /// Submit was refused.
  void on_refused(Life& life, Course& course, const Status& status);
  void on_completion(Life& life, const Completion& entry);
  /// Its notification came to `life`, from `from`.
  void on_notified(Life& life, Life& from, Move& move);

  void observe_finals(Life& life);
  void observe_words(Life& life);
  void check_hangs(Life& life);
  /// What a good write brought stays until the next one, or until its region is closed.
  void check_stays(const Course& course);
  void check_memory(Life& life, const Course& course);
  void check_ended(const Life& from);
  /// All notifications and signals that are owed came.
  bool are_told() const;
  void check_settled();

  std::uint64_t count() const { return all_.size(); }
  std::uint64_t good() const { return good_; }

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
  bool failed() const { return uses_.verdict.failed(); }
  void fail(const Life& life, const std::string& what) { uses_.verdict.fail(life, what); }
  static bool may_have_ended_well(const Move& move);
  static Instant began(const Move& move);
  void on_final(Life& life, Move& move);
  void check_status(Life& life, Move& move);
  void check_good_write(Life& life, Move& move);
  void check_bad_write(Life& life, Move& move);
  void check_read(Life& life, Move& move);
  void check_tainted(const Course& course);
  void check_local(Life& life, const Course& course);
  void scribble(Move& move);

  const Uses uses_;
  std::deque<Move> all_;
  std::map<std::uint64_t, Move*> by_uid_;
  std::uint64_t good_ = 0;
};

}  // namespace hawser::simulation
