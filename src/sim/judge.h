#pragma once

// Judge: checks what agents do against what they promised. It looks at memory directly, so it sees what no agent could.
// A member judges one thing each; Judge joins them.
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
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/atomic_judge.h"
#include "sim/book_judge.h"
#include "sim/life.h"
#include "sim/message_judge.h"
#include "sim/reasons.h"
#include "sim/transfer_judge.h"
#include "sim/verdict.h"

namespace hawser::simulation {

class Judge {
 public:
  using Lives = std::vector<std::unique_ptr<Life>>;
  /// `may_fill`: a write that is given up midway ends with zeros, as over streams.
  explicit Judge(sim::Universe& universe, bool may_fill = false);

  bool failed() const { return verdict_.failed(); }
  const std::string& failure() const { return verdict_.failure(); }
  void fail(const Life& life, const std::string& what) { verdict_.fail(life, what); }

  Reasons& reasons() { return reasons_; }
  TransferJudge& transfers() { return transfers_; }
  AtomicJudge& atomics() { return atomics_; }
  MessageJudge& messages() { return messages_; }
  BookJudge& books() { return books_; }

  void enroll(Life& life) { lives_[life.incarnation] = &life; }
  /// Keeps the record of a course that its life gave up.
  void forget(std::unique_ptr<Course> course) { forgotten_.push_back(std::move(course)); }
  std::uint64_t new_writer() { return writers_.take(); }

  /// After anything that may have moved `life` on: finals, completions, words of its memory.
  void observe(Life& life);
  /// The user took it from the agent.
  void on_notification(Life& life, const Notification& notification);
  /// A region's close answered.
  void on_close(Life& life, Area& area, const Status& status);

  // At the end, once all is healed and quiet.
  bool settled(const Lives& lives) const;
  void check_settled(const Lives& lives);
  void check_memory(const Lives& lives);

 private:
  void observe_queue(Life& life);

  sim::Universe& universe_;
  Verdict verdict_;
  WriterNumbers writers_;
  MessageJudge::Lives lives_;
  std::vector<std::unique_ptr<Course>> forgotten_;
  Reasons reasons_;
  TransferJudge transfers_;
  AtomicJudge atomics_;
  MessageJudge messages_;
  BookJudge books_;
};

/// The text of a move's notification, and back; 0: none of ours.
std::string note_of(std::uint64_t uid);
std::uint64_t uid_of(std::string_view note);

}  // namespace hawser::simulation
