#pragma once

// The bugs planted in worlds, the mode in which each is looked for, and what the judge must say of it (one of these
// parts).

#include <array>
#include <cstdint>
#include <string_view>

#include "base/planted.h"
#include "worldsim/run.h"

namespace hawser::worldsim {

inline constexpr std::uint64_t kPlantedSeedsMax = 2000;

struct PlantedBug {
  base::Planted bug;
  std::string_view name;
  sim::Mode mode;
  std::array<std::string_view, 4> complaints;
  std::uint64_t first = 1;  ///< The first seed: a rare one begins not far from where it is found.
};

using base::Planted;
inline constexpr PlantedBug kPlantedBugs[] = {
    {Planted::kMessagesOvertake,
     "messages_overtake",
     sim::Mode::kStream,
     {"overtaken", "nothing about it is invalid", "gave other bytes"}},
    {Planted::kWorldsMixed, "worlds_mixed", sim::Mode::kStream, {"got a letter of realm"}, 2000},
    {Planted::kNewestTaken,
     "newest_taken",
     sim::Mode::kStream,
     {"overtaken", "other bytes", "nothing about it is invalid"}},
    {Planted::kOlderReceivePassed, "older_receive_passed", sim::Mode::kStream, {"overtaken"}},
    {Planted::kPartEndsReceive, "part_ends_receive", sim::Mode::kStream, {"torn", "other bytes"}},
    {Planted::kMappedUnconfirmed, "mapped_unconfirmed", sim::Mode::kMapped, {"other bytes"}, 7700},
    {Planted::kMappedUnknowing, "mapped_unknowing", sim::Mode::kMapped, {"the path has ended by which"}},
    {Planted::kBoardSlotTaken, "board_slot_taken", sim::Mode::kMapped, {"is of no collective of this world"}},
    {Planted::kBoardAsksOnce, "board_asks_once", sim::Mode::kMapped, {"though nothing held it up"}},
    {Planted::kBoardDigestUnread,
     "board_digest_unread",
     sim::Mode::kMapped,
     {"is of no collective of this world", "other bytes", "nobody noticed"}},
    {Planted::kFetchedIsTaken, "fetched_is_taken", sim::Mode::kMapped, {"torn", "other bytes"}},
    {Planted::kGoneUntold, "gone_untold", sim::Mode::kStream, {"though a letter waits"}, 7000},
    {Planted::kAskedKept, "asked_kept", sim::Mode::kStream, {"has not ended", "it was answered before"}},
    {Planted::kEarlyWordsLost, "early_words_lost", sim::Mode::kStream, {"do not come to an end", "has not ended"}},
    {Planted::kClosedForgotten, "closed_forgotten", sim::Mode::kStream, {"keeps messages"}},
    {Planted::kUnwantedKept, "unwanted_kept", sim::Mode::kStream, {"keeps messages"}},
    {Planted::kPendingKept, "pending_kept", sim::Mode::kStream, {"goes on, though"}},
    {Planted::kAnySourceKept, "any_source_kept", sim::Mode::kStream, {"goes on, though"}},
    {Planted::kRevokeUntold, "revoke_untold", sim::Mode::kStream, {"goes on, though"}},
    {Planted::kMisfitUnseen, "misfit_unseen", sim::Mode::kStream, {"other bytes", "nobody noticed"}},
    {Planted::kLedgerForgets, "ledger_forgets", sim::Mode::kStream, {"nobody noticed"}},
    {Planted::kNeverChecks,
     "never_checks",
     sim::Mode::kStream,
     {"though nothing held it up", "goes on, though", "before its deadline"}},
    {Planted::kOwnCosts, "own_costs", sim::Mode::kStream, {"nothing about it is invalid"}},
    {Planted::kLastGoodClaimed, "last_good_claimed", sim::Mode::kStream, {"did not here"}},
    {Planted::kShrinksAsSeen, "shrinks_as_seen", sim::Mode::kStream, {"other ranks"}},
    {Planted::kQuorumIgnored,
     "quorum_ignored",
     sim::Mode::kStream,
     {"which is no majority", "made a second world"},
     2500},
    {Planted::kCourtSkipped,
     "court_skipped",
     sim::Mode::kStream,
     {"names none that failed", "nobody may hold this rank"}},
    {Planted::kCourtKeepsHigher,
     "court_keeps_higher",
     sim::Mode::kStream,
     {"names none that failed", "which lives", "nobody may hold this rank"}},
    {Planted::kAccordDeaf, "accord_deaf", sim::Mode::kStream, {"do not come to an end"}},
    {Planted::kPastForgotten, "past_forgotten", sim::Mode::kStream, {"do not come to an end"}},
    {Planted::kAgreesAnew,
     "agrees_anew",
     sim::Mode::kStream,
     {"but rank", "though nothing held it up", "do not come to an end"}},
    {Planted::kTakenBackRuns, "taken_back_runs", sim::Mode::kStream, {"taken it back"}},
    {Planted::kAnswerMistaken,
     "answer_mistaken",
     sim::Mode::kStream,
     {"not its own", "nobody denied it", "ran 0 times", "but it is there"}},
    {Planted::kProposesEarly,
     "proposes_early",
     sim::Mode::kStream,
     {"do not come to an end", "voted false", "but rank"}},
};

}  // namespace hawser::worldsim
