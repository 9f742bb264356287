#pragma once

// What the simulation knows of worlds (realms), of their ranks (actors) and of what these do (deeds). Plain records:
// Player does things, WorldJudge checks them.
//
// Thread rule: one thread. Lifetime: all records live until the end of the run; the handles in them go when their rank
// ends.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <hawser/world.h>

#include "agent/inner_simulator.h"
#include "backend/sim/factory.h"
#include "runtime/rank_seat.h"
#include "worldsim/letter_book.h"
#include "worldsim/script.h"
#include "worldsim/vault.h"

namespace hawser::worldsim {

/// What one rank did in one realm.
struct Part {
  std::uint64_t begun = 0;       ///< So many numbers, from the realm's first one on.
  std::set<std::uint64_t> good;  ///< Numbers that ended well.
  bool is_left = false;          ///< The rank gave up its view of the world.
  std::optional<Instant> knows;  ///< Since when the rank knows of a failure there.
  LetterBook book;
  /// Letters, by target, tag and class.
  std::map<std::tuple<std::uint32_t, std::uint64_t, Priority>, std::uint64_t> sent;
  std::vector<std::optional<bool>> votes, decisions;  ///< By agreement.
};

/// What a shrink gave one rank: the new world's ranks, and which of them it held for failed then.
struct Shrunk {
  std::vector<std::size_t> actors, failed;
};

/// A world, the same for all its ranks.
struct Realm {
  std::uint64_t uid = 0;
  std::uint64_t seed = 0;  ///< Of its script,
  std::uint64_t acts = 0;  ///< whose numbers go up to this one.
  std::uint64_t first_number = 1;
  Realm* parent = nullptr;
  bool is_group = false;
  std::uint32_t epoch = 0;
  std::vector<std::size_t> actors;            ///< By rank.
  std::vector<Part> parts;                    ///< By rank.
  std::vector<std::optional<Shrunk>> shrunk;  ///< By rank.
  std::set<Code> disturbances;                ///< How its collectives may end though nobody failed.
  std::optional<Instant> doomed;              ///< When a collective first ended badly, or a rank died.
  std::optional<Instant> bereft;              ///< When a rank died first.
  std::uint32_t size() const { return static_cast<std::uint32_t>(actors.size()); }
};

enum class DeedKind : std::uint8_t { kCollective, kSend, kReceive, kCall, kAgree, kShrink };

/// A remote call, and what its handler did.
struct Remote {
  std::uint64_t uid = 0;
  Realm* realm = nullptr;
  std::uint32_t from = 0, to = 0;
  Instant due;
  std::optional<Instant> taken_back;
  unsigned runs = 0;
};

/// One operation of one rank.
struct Deed {
  std::uint64_t uid = 0;
  DeedKind kind = DeedKind::kCollective;
  Realm* realm = nullptr;
  std::uint32_t rank = 0;
  Request request;
  Instant begun, due;
  bool is_cancelled = false;  ///< By us.
  bool is_over = false, is_good = false;
  Instant ended;
  Loan* input = nullptr;
  Loan* output = nullptr;

  // A collective.
  std::uint64_t number = 0;
  Act act;
  bool is_misfit = false;
  // A message.
  Letter letter;
  std::size_t posted = 0;
  std::optional<std::uint32_t> source;
  std::optional<std::uint64_t> tag;
  std::uint64_t capacity = 0;
  // A call.
  Remote* remote = nullptr;
  std::string handler;
};

/// One rank's handle of a realm.
struct Membership {
  Realm* realm = nullptr;
  std::uint32_t rank = 0;
  World world;
  bool is_bad = false;  ///< A collective of it ended badly here.
};

enum class Phase : std::uint8_t { kEntering, kActing, kAgreeing, kShrinking, kRecovering, kLeaving, kClosing, kOut };
std::string_view to_string(Phase phase);
std::string_view to_string(Priority priority);

struct Actor;

/// A process: a rank's own, or that of an agent which the ranks of several worlds live in.
struct Process {
  std::size_t number = 0;
  std::optional<Agent> agent;  ///< Where the ranks are guests.
  std::vector<Actor*> ranks;   ///< Of different worlds.
  std::uint32_t turns_without_rest = 0;
};

/// A rank of a world that was opened.
struct Actor {
  std::size_t number = 0;
  std::size_t world = 0;  ///< Which of the opened ones.
  std::string name;       ///< Its agent's.
  std::shared_ptr<Process> process;
  std::shared_ptr<sim::Host> host;
  agent::inner::Turner turner;  ///< Empty once the process has ended.
  std::weak_ptr<runtime::RankSeat> seat;
  std::unique_ptr<Lender> lender;  ///< Null: what it lends lies on the heap.
  bool is_alive = false;
  bool is_blocking = false;                 ///< In the midst of a call that waits.
  std::function<Request(Duration)> enters;  ///< The collective by which its first world is entered.
  Phase phase = Phase::kEntering;
  Deed* shrunk = nullptr;    ///< A shrink that ended well, whose world was not taken yet,
  Instant takes_at;          ///< and will not be before.
  Deed* recovers = nullptr;  ///< A recovery that it waits for, as if it shrank.
  Membership main;
  std::vector<Membership> groups;
  bool has_grouped = false;
  bool has_said_left = false;
  std::deque<std::unique_ptr<Deed>> deeds;  ///< All that it ever began.
  std::vector<Deed*> pending;
  std::deque<std::function<void()>> jobs;  ///< Handlers that have not run.
  Duration excused{};                      ///< How long it was stopped or slow.
  std::uint32_t idle_acts = 0;             ///< In a row, since something of it ended.
};

Part& part_of(const Deed& deed);
std::string describe(const Deed& deed);
/// Who waits for whom: all that an actor has under way.
std::string describe(const Actor& actor);

}  // namespace hawser::worldsim
