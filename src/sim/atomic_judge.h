#pragma once

// AtomicJudge: each atomic operation is done once or not at all, as its status says. There is one order of them that
// explains every word's value and everything that was found there.
//
// It looks at words after every turn. A word's values are sets of operations (see AtomicWord), so an order exists
// exactly when all values that were seen or found are sets of which one contains the other; what was found must hold
// what the word held when the operation was asked, and be held by what the word holds at its end.
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

class AtomicJudge {
 public:
  struct Uses {
    sim::Universe& universe;
    Verdict& verdict;
    Reasons& reasons;
    WriterNumbers& writers;
  };
  explicit AtomicJudge(const Uses& uses) : uses_(uses) {}

  /// An operation that is to be asked; `drop` when it was refused and so never was.
  AtomicCall& make(Life& from, Life& to, Area& area);
  void drop(AtomicCall& call);
  AtomicCall* find(std::uint64_t uid) const;
  /// Refused at once; `fault` is what was wrong with its word, kOk: nothing.
  void on_refused(AtomicCall& call, const Status& status, Code fault);
  /// The owner did it itself.
  void on_own(AtomicCall& call, std::uint64_t found);
  void on_completion(Life& life, AtomicCall& call, const Completion& entry);

  void observe_finals(Life& life);
  void observe_words(Life& life);
  void check_hangs(const Life& life);
  void check_memory(Life& life, const Area& area);
  void check_settled();

  std::uint64_t count() const { return all_.size(); }
  std::uint64_t good() const { return good_; }

 private:
  bool failed() const { return uses_.verdict.failed(); }
  void fail(const Life& life, const std::string& what) { uses_.verdict.fail(life, what); }
  void on_word(Life& life, Area& area, std::size_t index, std::uint64_t value);
  void on_final(AtomicCall& call);
  void check_status(AtomicCall& call);
  void check_good(AtomicCall& call);
  void check_bad(AtomicCall& call);
  void add_state(const AtomicCall& call, std::uint64_t value);

  const Uses uses_;
  std::deque<AtomicCall> all_;
  std::map<std::uint64_t, AtomicCall*> by_uid_;
  std::uint64_t good_ = 0;
};

}  // namespace hawser::simulation
