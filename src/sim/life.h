#pragma once

// What the simulation knows of agents and of what they were asked to do: lives, courses (plans with the memory leased
// to them), moves (transfers). Plain records; those who act on them are User (does things) and Judge (checks them).
//
// Thread rule: one thread. Lifetime: all records live until the end of the run, so that what comes late finds them; the
// handles in them go when their agent dies.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <hawser/agent.h>
#include <hawser/atomic.h>

#include "backend/sim/factory.h"
#include "backend/test_removable.h"
#include "sim/memory.h"

namespace hawser::simulation {

struct Life;
struct Move;

/// Words of 64 bits that signals are added to. Each transfer has a digit of its own, two bits wide, in one of them, so
/// that an addition that comes twice shows.
inline constexpr std::size_t kWords = 64;
inline constexpr unsigned kDigitsPerWord = 32;
inline constexpr std::uint32_t kChannels[] = {16, 17};
/// Words for atomic operations that are in use at a time, of one region: few, so that users meet there.
inline constexpr std::size_t kSharedWords = 3;

struct AtomicCall;

/// A word that peers do atomic operations on. Each operation has a digit of its own in it, two bits wide, and adds one
/// there; a compare-swap does so only where it finds what it expects. So the word's value is the set of the operations
/// that were done, a digit above one tells of one that was done twice, and what an operation found is the set of those
/// before it.
struct AtomicWord {
  std::vector<AtomicCall*> calls;  ///< By digit.
  std::uint64_t seen = 0;          ///< What it held when the judge last looked.
  std::vector<std::uint64_t> states = {
      0};  ///< All that it held, as was seen or found. Growing sets: each within the next.
};

struct Area {
  std::unique_ptr<Plot> plot;
  Region region;                                      ///< Empty once closed.
  std::shared_ptr<const backend::RegionEntry> truth;  ///< What is registered.
  std::uint64_t writer = 0;                           ///< Whose pattern it was made with.
  bool closing = false;
  bool closed = false;   ///< Close said kOk: nobody touches it.
  bool dropped = false;  ///< Its handle is gone: no call tells when it is closed.
  /// What its card says is a lie of ours: no access may succeed.
  bool bait = false;
  bool for_atomics = false;  ///< No transfer goes there.
  std::vector<AtomicWord> atomic_words;
  std::size_t first_atomic_word = 0;  ///< Those before it have no digit left.
};

struct Pair {
  Area* local = nullptr;
  Area* remote = nullptr;
  Lease local_lease, remote_lease;
  std::uint64_t position = 0;  ///< In the transfer's bytes.
};

/// A plan, and the memory that only it may touch.
struct Course {
  bool write = true;
  Life* from = nullptr;
  Life* to = nullptr;
  Plan plan;
  std::vector<Pair> pairs;
  std::uint64_t bytes = 0;
  Move* current = nullptr;  ///< In flight.
  Move* latest = nullptr;
  std::uint64_t last_writer = 0;  ///< Of the remote bytes, by the last move that ended well; 0: none.
  bool tainted = false;           ///< A move ended badly: the target's bytes are old or new, for ever.
  bool bait = false;
};

struct Digit {
  std::size_t word = 0;
  unsigned place = 0;
  std::uint64_t one() const { return std::uint64_t{1} << (2 * place); }
};

struct Move {
  std::uint64_t uid = 0;
  Course* course = nullptr;
  Transfer transfer;
  bool held = true;  ///< The handle was not dropped.
  Instant submitted, due;
  bool notify = false;
  bool queued = false;
  std::optional<Digit> signal;
  std::optional<std::size_t> after, done;  ///< Local words.
  Move* leader = nullptr;                  ///< The one that it follows (after_transfer).
  bool ended_by_us = false;                ///< Cancelled, dropped, or its region or agent closed.

  bool final = false;
  Status status;
  Instant final_at;
  unsigned completions = 0;
  bool notified = false;
  bool bumped = false;
  bool landed = false;  ///< Seen whole at the target (a cache for the faults' aim).
};

/// An atomic operation on a word of a peer, or (from == to) the owner's own, by its processor.
struct AtomicCall {
  std::uint64_t uid = 0;
  Life* from = nullptr;
  Life* to = nullptr;
  Area* area = nullptr;
  std::size_t word = 0;
  std::uint64_t digit = 0;                ///< One, at its place; 0 for a bait's word.
  std::optional<std::uint64_t> expected;  ///< A compare-swap's.
  RemoteRange range;
  AtomicOp op;
  bool held = true;  ///< The handle was not dropped.
  bool queued = false;
  bool bait = false;
  bool ended_by_us = false;
  std::uint64_t before = 0;  ///< What the word held when it was asked.
  Instant submitted, due;

  bool final = false;
  Status status;
  std::optional<std::uint64_t> found;
  unsigned completions = 0;

  /// What it found says that it was done.
  bool took_place() const { return found && (!expected || *found == *expected); }
};

/// What one life sent another in one session, which has numbers of its own.
struct SentInSession {
  Peer peer;
  struct OnChannel {
    std::uint64_t before = 0;  ///< Messages of earlier sessions.
    std::uint64_t last = 0;    ///< The last number.
  };
  std::map<std::uint32_t, OnChannel> channels;
};

/// What one life thinks of another.
struct Bond {
  Peer peer;
  bool known = false;
  bool broken = false;  ///< Reported down, or invalidated by us: messages may be lost.
  Instant broken_at;
  std::map<std::uint32_t, std::uint64_t> sent, received;  ///< Messages, by channel.
  std::vector<SentInSession> sessions;
  std::map<std::uint32_t, std::set<std::uint64_t>> came;     ///< Messages of the other that its agent took.
  std::map<std::uint32_t, std::set<std::uint64_t>> claimed;  ///< Own ones of which was told that the other took them.
  std::set<std::uint64_t> notes_sent, notes_received;        ///< Notifications without a transfer.
};

/// Not by address: a run must be the same wherever its memory lies.
struct EarlierLife {
  bool operator()(const Life* a, const Life* b) const;
};

/// One incarnation of one agent.
struct Life {
  std::size_t node = 0;
  std::size_t number = 0;  ///< Among all lives.
  std::string name;
  Incarnation incarnation;
  std::shared_ptr<sim::Host> host;
  std::shared_ptr<backend::Removable> device;  ///< Null in runs without.
  Agent agent;
  CompletionQueue queue;
  bool alive = false;  ///< The agent exists.
  bool closing = false;
  bool lost_power = false;  ///< So it ended: nobody was told.
  Instant born, ended;
  std::vector<std::unique_ptr<Area>> areas;
  Area* scratch = nullptr;    ///< Local ends of transfers.
  Area* words = nullptr;      ///< Signals of others.
  Area* own_words = nullptr;  ///< `after` and `done`.
  std::size_t next_digit = 0;
  std::size_t next_own_word = 0;
  std::vector<Move*> digits;  ///< By number of digit.
  std::vector<std::unique_ptr<Course>> courses;
  std::vector<Move*> in_flight;
  std::vector<AtomicCall*> atomics;        ///< In flight.
  std::vector<AtomicCall*> ended_atomics;  ///< The last few, to be asked again of the same word.
  std::map<Life*, Bond, EarlierLife> bonds;
  std::uint32_t turns_without_rest = 0;
  std::uint64_t greedy_until = 0;  ///< Reads nothing until then (ns).
  std::uint64_t good_writes = 0, good_reads = 0, bytes_written = 0, bytes_read = 0, bad_ends = 0;
  std::uint64_t notes_taken = 0, messages_taken = 0;
  std::uint64_t refusals = 0, maybe_refusals = 0;  ///< Of peers' atomic operations, by this one.
};

inline bool EarlierLife::operator()(const Life* a, const Life* b) const { return a->number < b->number; }

}  // namespace hawser::simulation
