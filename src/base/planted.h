#pragma once

// Planted: bugs put in on purpose, so that the simulator can be asked whether it finds them. A place that could go
// wrong asks `planted(Planted::kX)`, which is constant false, and so no code at all, but in the test build that defines
// HAWSER_PLANTED_BUGS. Ask in .cc files only: headers are shared by both builds.
//
// Thread rule: the bug planted is a thread's own, so runs on several threads do not meet. Lifetime: a PlantedScope's.

#include <cstdint>

namespace hawser::base {

enum class Planted : std::uint8_t {
  kNone = 0,
  // The streams' machine and its target side.
  kVoidCounted,       ///< A void write counts as arrived, though its end is filler.
  kAckBeforeLanding,  ///< A write is acknowledged when its head came, not when its bytes did.
  kKeyUnchecked,
  kRightsUnchecked,
  kBoundsUnchecked,
  kGenerationUnchecked,  ///< A closed region is still found.
  kHolderUnchecked,      ///< A grant for one peer serves another one.
  kSecondUseServed,      ///< A grant for one transfer serves two.
  kLandingNotStopped,    ///< Bytes on their way in go on into a region that closes.
  kCancelledReadLands,   ///< A read's buffer is written after its end.
  kReleasedEarly,        ///< Memory is given back when sent, not when released.
  kStaleIncarnation,     ///< A hello for, or of, another incarnation is taken, and its proof with it.
  kStrangerKept,         ///< The port sets no time limit for a connection that says no hello.
  kTimerForgotten,       ///< A path says that it has no deadline.
  kWakeupLost,           ///< A path that was given a message, or is awaited, is not looked at.
  kFenceForgotten,       ///< Chunks that were lost with a path go by another one at once.
  kSupersededLands,      ///< Bytes of a session still land when another has come up in its place.
  // Mapped memory.
  kPinSkipped,
  kMessageLost,  ///< A ring that is not empty drops what comes.
  kDeadPinKept,  ///< A holder that died stays inside for ever.
  // Sessions.
  kChunkCountedTwice,   ///< A chunk sent again is counted again.
  kClassForgotten,      ///< Of bulk messages a fresh path sends nothing again.
  kBulkOvertakes,       ///< Bulk messages on a stream of their own do not wait for urgent ones before them.
  kGreetingOvertaken,   ///< Messages on streams that are apart tell of none that they come after.
  kGroupsMixed,         ///< A fresh path sends one link's messages again as another's.
  kSilenceEnds,         ///< A peer that misses three heartbeats is given up.
  kReplayForgotten,     ///< A fresh path does not begin with what the last one lost.
  kReplayBeginsLate,    ///< What a path without loss held when it was lost is sent again, but for its first message.
  kReplayComesLast,     ///< It is sent again behind what had found no room on that path.
  kReplayTakenTwice,    ///< A message that was taken from such a path is taken again from the next one.
  kDuplicateDelivered,  ///< A message that was taken before is taken again.
  kNotifyBeforeBytes,
  kMessageReordered,
  kWelcomeAnswered,   ///< Each Welcome is answered by another one.
  kRestartUnnoticed,  ///< A peer that began anew is taken for the one before.
  kOldCardRevives,    ///< An old card's list is taken for what is there now.
  kDeadOutranks,      ///< Any of two incarnations of a name is taken for the living one.
  kCreditLost,        ///< A message that will never arrive keeps its place.
  kSignalCreditLost,  ///< A signal keeps its place.
  kPlaceKept,         ///< A place taken for what was never announced is not given back.
  kCancelUntold,      ///< The peer waits for a transfer that ended badly.
  // Transfers.
  kUsersForgotten,  ///< A region closes under the agent's own transfers.
  kDropsForgotten,  ///< A region that is dropped while it is used is never closed.
  kCompletionLost,  ///< Nothing is reported when a path dies.
  kCompletionTwice,
  kDeadlineIgnored,
  kRetryForgotten,    ///< A chunk whose path was lost is not sent again, and counted as done.
  kUntouchedClaimed,  ///< A write that ended badly says that it touched nothing.
  kBufferGuessed,     ///< A write whose bytes were under way says that it is partly written.
  kBlockedForgotten,  ///< A session that found no room is never tried again.
  kBetterForgotten,   ///< An agent that lost a better path never tries it again.
  kFollowerRuns,      ///< A transfer begins before the one that it follows has ended.
  kFollowerLeft,      ///< A transfer's end calls none of those that follow it.
  kLeaderTrusted,     ///< A transfer begins though the one that it follows ended badly.
  kExpiryForgotten,   ///< A grant outlives its time.
  kReportTrusted,     ///< Any holder's word ends a grant for one transfer, though somebody else is inside.
  kKeptForgotten,     ///< Messages that the peer has not acknowledged are told as acknowledged,
  kUntakenForgotten,  ///< or those that it has not read from shared memory.
  // Atomic operations.
  kAtomicAskedTwice,       ///< An operation without an answer is asked once more on the next path.
  kAtomicAnswerMistaken,   ///< An answer is taken for that of the oldest operation.
  kAtomicRightsUnchecked,  ///< By the owner.
  kAtomicBoundsUnchecked,
  kAtomicOutcomeClaimed,  ///< An operation that ended without an answer says that the word is untouched.
  kAtomicNotCompared,     ///< A compare-swap stores whatever it finds.
  kAtomicsNotEnded,       ///< A peer goes, and what it was asked stays in flight.
  kAtomicAnswerCreditLost,
  // Agreement of a world's ranks.
  kForgetsAccepted,  ///< A rank does not tell the next leader what it has accepted.
  kIgnoresBallot,    ///< The next leader takes no notice of it.
  kProposesEarly,    ///< The leader does not wait for all votes,
  kDecidesEarly,     ///< or not until all have accepted.
  kDecidesAlone,     ///< A leader that all others have given up decides what they once accepted.
  kKeepsDecision,    ///< A rank does not tell the next leader what was decided.
  kHearsTheDead,     ///< A verdict of failure is not final.
  // Worlds: messages.
  kMessagesOvertake,    ///< A message goes before those that wait in line.
  kClassOrderLost,      ///< A message goes by the channel of another class than those before it.
  kWorldsMixed,         ///< A receive with a wildcard gets a message of another world.
  kNewestTaken,         ///< A receive gets the newest of the messages that fit.
  kOlderReceivePassed,  ///< A receive with a wildcard goes before an older one without.
  kPartEndsReceive,     ///< A receive ends with the first part of its message.
  kLentKept,            ///< A receive ends, and its memory stays lent.
  kWrittenEarly,        ///< A message is said to be written when all of it is on its way.
  kFetchedIsTaken,      ///< A receive ends before the sender has confirmed that the memory was the message's.
  kGoneUntold,          ///< A sender stops a message, and the receiver is not told.
  kAskedKept,           ///< A message that waits at its sender outlives the receiver.
  kEarlyWordsLost,      ///< A rank drops what peers say of a world that it has not entered yet.
  kClosedForgotten,     ///< A rank keeps what still comes for a closed world.
  kUnwantedKept,        ///< A closed world keeps the messages that nobody wanted.
  // Worlds: failure and agreement.
  kPendingKept,        ///< A rank fails, and collectives that do not wait for it go on.
  kAnySourceKept,      ///< A rank fails, and receives from any source go on.
  kRevokeUntold,       ///< A rank's collective ends badly, and the others are not told.
  kMisfitUnseen,       ///< A receive takes a message of another collective with the same number.
  kLedgerForgets,      ///< A rank does not remember what it called, and looks at no message that is left over.
  kNeverChecks,        ///< A rank that waits long does not ask whether the others called the same.
  kMappedUnconfirmed,  ///< What a rank read where it lay counts before its owner has said that it had it all the time.
  kMappedUnknowing,    ///< Ranks read each other's memory though not all of them have mapped it.
  kMeetingMissed,      ///< A rank passes a meeting on boards, and neither writes nor waits there.
  kBoardSlotTaken,     ///< A rank writes into a slot of its board before all others have read what stands there.
  kTurnMiscounted,     ///< A collective in pieces takes one turn of the boards less than it uses.
  kExchangeOwnWay,     ///< A rank whose own blocks came with its counts takes an all_to_all for over.
  kBoardAsksOnce,      ///< A rank that was woken for its boards, and has to sleep again, does not ask for a bell again.
  kBoardDigestUnread,  ///< What a rank wrote on its board is taken for the same collective without a look.
  kScanShort,          ///< A scan takes in what the rank before this one had, and nobody else's.
  kScanTakesOwn,       ///< An exclusive scan on boards takes in the rank's own elements.
  kHostsBeforeMissed,  ///< A scan on two levels takes in this host alone.
  kAggregateMixed,     ///< A rank that sends for its host puts blocks in the order of targets, not of sources.
  kHostAlone,          ///< A leader tells its host what comes out there, and asks no other host.
  kHostsOwnWay,        ///< A host without boards sends between hosts what is cheapest, not what hosts with boards send.
  kOwnCosts,           ///< A rank chooses algorithms by the cost model that it was given, not by that of all.
  kLastGoodClaimed,    ///< A collective counts as good though one before it did not end well.
  kShrinksAsSeen,      ///< A shrunk world's ranks are those that this rank holds for alive.
  kQuorumIgnored,      ///< Ranks without a quorum go on.
  kCourtSkipped,       ///< A rank that loses another one takes it for failed at once.
  kCourtKeepsHigher,   ///< Of two ranks that lost each other the lower one fails.
  kAccordDeaf,         ///< An agreement waits for a rank that failed.
  kPastForgotten,      ///< A rank does not tell what was agreed in a world that it has closed.
  kAgreesAnew,         ///< A call after one that timed out begins another agreement.
  // Worlds on agents of their programs.
  kGuestsEndTogether,  ///< A world that ends takes the other worlds of its agent with it.
  // Worlds: calls.
  kTakenBackRuns,   ///< A call runs though its caller has taken it back.
  kAnswerMistaken,  ///< A call takes the answer of another one.
  // Sparse worlds.
  kRelayedTwice,        ///< A piece that is sent again, because the ways changed, is taken again.
  kRelayForgets,        ///< What was not acknowledged is not sent again when the ways change.
  kRelayNewsUntold,     ///< A rank that finds another one gone does not tell its neighbours.
  kRelayClassLost,      ///< A relay passes frames on in another class.
  kRelayLeavesEarly,    ///< A rank leaves while others still need it as a relay.
  kLossIsDeath,         ///< A rank that loses a neighbour by its silence tells the others that it is gone.
  kLossUntold,          ///< It tells nobody that it has lost it.
  kAnswerUnawaited,     ///< A court does not ask whether those that were lost have said that they live.
  kCourtParts,          ///< The court does not look at how many ranks stay joined without one.
  kUnreachableAwaited,  ///< A rank that no way leads to any more is not taken for failed.
  // QUIC: connections.
  kTagUnchecked,      ///< Datagrams that were changed on their way are taken. (In the simulator's handshake.)
  kRoomUntold,        ///< A stream that waits for room is not told that there is some.
  kCreditKept,        ///< What was read of a stream is not given back to the connection's window,
  kStreamCreditKept,  ///< or not to the stream's own.
  kEndEarly,          ///< A stream's end goes with bytes that are not its last.
  kUnreadUnbounded,   ///< What nobody reads always counts as taken.
  kResetUntold,       ///< A stream that the peer aborted says nothing.
  kIdsKept,           ///< A connection that ended keeps its ids.
  kLeftUnread,        ///< What a user leaves unread stays in the connection's window.
  kPastUnread,        ///< What comes for a stream whose user is gone is kept from the window.
  kUnansweredKept,    ///< An opener that hears nothing does not look for another address.
  kMovesUnproven,     ///< An acceptor goes by an address that has not answered.
  kChunkMistaken,     ///< A queue gives the bytes of another chunk.
  kDueForgotten,      ///< A connection that was settled keeps its old timer.
  kStallKept,         ///< A connection that ngtcp2 sends nothing for any more goes on.
  kHoleKept,          ///< Datagrams of a size that arrives no more are sent for ever.
  kLateCounted,       ///< What a peer sends into a window that ngtcp2 counts late ends the connection.
  kBlockedKept,       ///< A batch that the kernel did not take once counts as waiting for ever.
  // What a network puts straight into its place.
  kPushOvertakes,  ///< Bytes that come are put into their place though some that came before wait to be read.
  kPushUnpaid,     ///< What was put into its place is not given back to the windows.
  kPushedTwice,    ///< The last byte that a place took stays with the network, too, and comes once more.
  kCount
};

#ifdef HAWSER_PLANTED_BUGS
inline namespace planted_build {
bool planted(Planted bug);
void plant(Planted bug);
}  // namespace planted_build
inline constexpr bool kCanPlant = true;
#else
constexpr bool planted(Planted) { return false; }
constexpr void plant(Planted) {}
inline constexpr bool kCanPlant = false;
#endif

/// Plants a bug for as long as it lives.
class PlantedScope {
 public:
  explicit PlantedScope(Planted bug) { plant(bug); }
  ~PlantedScope() { plant(Planted::kNone); }
  PlantedScope(const PlantedScope&) = delete;
  PlantedScope& operator=(const PlantedScope&) = delete;
};

}  // namespace hawser::base
