#pragma once

// MessageJudge: messages come in order, none twice, none lost while both stayed together; they are numbered one by one,
// and none is told as acknowledged that the peer's agent did not take. Notifications without a transfer come once.
// Nobody is reported down unless something was done to it.
//
// Thread rule: one thread. Lifetime: the run's.

#include <cstdint>
#include <map>
#include <string>

#include "sim/life.h"
#include "sim/reasons.h"
#include "sim/verdict.h"

namespace hawser::simulation {

class MessageJudge {
 public:
  using Lives = std::map<Incarnation, Life*>;
  struct Uses {
    sim::Universe& universe;
    Verdict& verdict;
    const Reasons& reasons;
    const Lives& lives;
  };
  explicit MessageJudge(const Uses& uses) : uses_(uses) {}

  // What the user took from the agent.
  void on_message(Life& life, const Message& message);
  void on_event(Life& life, const PeerEvent& event);
  /// A notification that no transfer brought.
  void on_note(Life& life, Life& from, std::uint64_t uid);
  /// `life` sent the next message on the channel to `to`; the agent calls it `number`.
  void on_sent(Life& life, Life& to, std::uint32_t channel, std::uint64_t number);
  /// The agent takes nothing any more: what it was told to have taken is compared with what it took.
  void on_end(Life& life);

  /// All that this life sent has come.
  static bool is_settled(Life& from);
  void check_settled(Life& from);

  /// Messages of sessions that ended: told as acknowledged, and not.
  std::uint64_t acknowledged() const { return acknowledged_; }
  std::uint64_t left_open() const { return left_open_; }

 private:
  bool failed() const { return uses_.verdict.failed(); }
  void fail(const Life& life, const std::string& what) { uses_.verdict.fail(life, what); }
  Life* life_of(const Incarnation& incarnation) const;
  void check_acknowledged(Life& life, Life& other, const PeerEvent& event);
  void check_claims(Life& from, Life& to);
  void check_pair(Life& from, Life& to, Bond& bond);

  const Uses uses_;
  std::uint64_t acknowledged_ = 0, left_open_ = 0;  ///< Messages, in the end of sessions.
};

/// Bodies of messages: who, which, and a pattern of any length.
std::string message_of(const Life& from, std::uint32_t channel, std::uint64_t number, std::size_t size);

}  // namespace hawser::simulation
