#pragma once

// Messages between the ranks of a world, as bytes. Each is the body of a session message Send on one of three channels,
// one for each class. The channel tells the class; the bytes do not. An agent of no world grants no credit there.
//
// Grammar (little-endian; varint is LEB128):
//   message = kind:u8, ...
//   eager   (1) envelope, the bytes themselves
//   ask     (2) envelope, id:u64, address:varint a message of `bytes` waits at the sender until the receiver wants it,
//                                                at this address of its process; 0: it is not to be read there
//   grant   (3) id:u64, landing:u64              the receiver wants the asked message `id`
//   part    (4) landing:u64, offset:varint, the bytes themselves
//   freed   (5) class:u8, bytes:varint, messages:varint
//                                                of eager messages of that class (0 critical, 1 realtime, 2 bulk) that
//                                                the receiver has no more to keep
//   lend   (18) id:u64, landing:u64, index:varint, generation:varint, key:16
//                                                the receiver wants the asked message `id`, and lends the memory where
//                                                it goes
//   written (19) landing:u64                     all of the message is in the memory that was lent for it
//   unwritten (20) id:u64, landing:u64           it will not be written there: the receiver takes the memory back
//   fetched (11) id:u64, landing:u64             the receiver has read the asked message `id` where it lies
//   taken  (12) landing:u64                      it was there all the time: what was read is the message
//   gone    (6) id:u64                           the asked message `id` will never come
//   revoke  (7) world:u64, code:u8, text         nothing more can be done together in this world, and why
//   left    (8) world:u64                        the sender leaves: it has done all that it called. Said in each class
//                                                and counts once it came in all, so it overtakes nothing
//   failed  (9) world:u64, rank:varint, flag:u8  the sender found that this rank has failed; where it is the receiver's
//                                                own, the others have left it out. flag 1: its end is proven
//   agree  (10) world:u64, number:varint, phase:u8, ballot:varint, calls:u8, flag:u8, last_good:varint, bitmap, bitmap
//                                                a step of an agreement. The bitmaps, of the failed and of those proven
//                                                dead, have a bit for each rank; that of rank 0 is the lowest of the
//                                                first byte
//   topology (13) world:u64, text               the sender opens the world of this number, which is that of its name,
//                                                with these settings: the topology, and what is not usual
//   check   (14) world:u64, number:varint, digest:u64, flag:u8
//                                                the sender, who called this collective by that number, has waited
//                                                long. flag 1: for a message of the receiver's; 0: it only asks whether
//                                                the receiver has called it
//   checked (15) world:u64, number:varint, code:u8
//                                                answer to check. disconnected: nothing comes any more, the world is
//                                                closed at the sender; invalid: nor does it, the sender's call of that
//                                                number has ended; busy: the sender has called nothing by that number
//                                                Said in each class, as left
//   lost    (16) world:u64, flag:u8, bitmap      the sender has lost these ranks: it hears nothing of them any more.
//                                                flag 1: the receiver answers by those that it has lost
//   bell    (17) world:u64                       the sender has written on its board, and the receiver asks on its own
//                                                board to be told
//   envelope = world:u64, use:u8, tag:u64, digest:u64, extra:varint, bytes:varint
//
// Thread rule: values and pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <hawser/status.h>
#include <hawser/transfer.h>

#include "wire/lent.h"
#include "wire/link.h"

namespace hawser::wire {

/// In class realtime: all that ranks do together, calls, most words, and the user's messages of the class.
inline constexpr std::uint32_t kRuntimeChannel = 4;
/// In class bulk: the user's messages of the class, and part.
inline constexpr std::uint32_t kRuntimeBulkChannel = 7;
/// In class critical: the user's messages of the class, with their parts.
inline constexpr std::uint32_t kRuntimeCriticalChannel = 8;
inline constexpr std::size_t kRuntimeHeadMax = kOwnHeadMax;  ///< All but the bytes themselves.
inline constexpr std::size_t kRuntimeBodyMax = kMessageMax;
inline constexpr std::size_t kRevokeTextMax = 1024;
inline constexpr std::size_t kTopologyTextMax = 256;
inline constexpr std::size_t kRankBitmapsMax = 2 * 8 * 1024;  ///< Bytes: worlds of 65,536 ranks.

enum class RuntimeKind : std::uint8_t {
  kEager = 1,
  kAsk = 2,
  kGrant = 3,
  kPart = 4,
  kFreed = 5,
  kGone = 6,
  kRevoke = 7,
  kLeft = 8,
  kFailed = 9,
  kAgree = 10,
  kFetched = 11,
  kTaken = 12,
  kTopology = 13,
  kCheck = 14,
  kChecked = 15,
  kLost = 16,
  kBell = 17,
  kLend = 18,
  kWritten = 19,
  kUnwritten = 20,
};

/// The subject of an agreement's message: see runtime/agreement.h.
enum class AgreementPhase : std::uint8_t {
  kVote = 1,
  kProposal = 2,
  kAccept = 3,
  kDecision = 4,
  kAsk = 5,     ///< For whom does the leader wait?
  kAbsent = 6,  ///< The answer.
};

/// Whose messages these are: they never match others.
enum class MessageUse : std::uint8_t {
  kUser = 1,
  kCollective = 2,
  kCall = 3,
  kAnswer = 4,  ///< A code that is not kOk comes with a text.
};

inline constexpr std::uint64_t kCallOff = 0;  ///< The digest of a call that takes one back: the caller waits no more.

struct MessageEnvelope {
  std::uint64_t world = 0;  ///< The nonce of its formation.
  MessageUse use = MessageUse::kUser;
  std::uint64_t tag = 0;     ///< A collective's number; in a call and its answer the caller's number of it.
  std::uint64_t digest = 0;  ///< What was called, in a collective or a call; an answer's code; others: 0.
  std::uint64_t extra = 0;   ///< In a call the caller's patience, microseconds, 0: without end; others: 0.
  std::uint64_t bytes = 0;
};

/// Fields that the kind does not have are 0.
struct RuntimeMessage {
  RuntimeKind kind = RuntimeKind::kEager;
  MessageEnvelope envelope;
  std::uint64_t id = 0, landing = 0, offset = 0, address = 0;
  std::uint64_t bytes = 0, messages = 0;
  Priority priority = Priority::kRealtime;  ///< Of kFreed.
  std::uint64_t world = 0;
  std::uint32_t rank = 0;
  Code code = Code::kOk;
  std::uint64_t number = 0, last_good = 0, digest = 0;
  AgreementPhase phase = AgreementPhase::kVote;
  std::uint32_t ballot = 0;
  std::uint8_t calls = 0;
  bool flag = false;
  Lent lent = {};                   ///< Of kLend.
  std::span<const std::byte> body;  ///< Bytes, a text, or bitmaps.
};

/// By class.
constexpr std::uint32_t runtime_channel_of(Priority priority) {
  if (priority == Priority::kCritical) return kRuntimeCriticalChannel;
  return priority == Priority::kBulk ? kRuntimeBulkChannel : kRuntimeChannel;
}
constexpr Priority class_of_runtime(std::uint32_t channel) {
  if (channel == kRuntimeCriticalChannel) return Priority::kCritical;
  return channel == kRuntimeBulkChannel ? Priority::kBulk : Priority::kRealtime;
}

/// Whether a Send on this channel that begins with `bytes` is one of those by which ranks agree on how bytes travel:
/// what they wait for are those bytes, so bulk need not step aside. See goes_aside.
constexpr bool runtime_goes_aside(std::uint32_t channel, std::span<const std::byte> bytes) {
  if ((channel != kRuntimeChannel && channel != kRuntimeBulkChannel) || bytes.empty()) return false;
  const auto kind = static_cast<RuntimeKind>(bytes[0]);
  return kind == RuntimeKind::kAsk || kind == RuntimeKind::kGrant || kind == RuntimeKind::kLend ||
         kind == RuntimeKind::kWritten || kind == RuntimeKind::kFreed;
}

using RuntimeBuffer = std::array<std::byte, kRuntimeHeadMax>;
/// All but the body, which follows it.
std::span<const std::byte> encode(const RuntimeMessage& message, RuntimeBuffer& buffer);
/// The body is a view of `bytes`. kCorrupt for all that encode does not write.
Result<RuntimeMessage> decode_runtime(std::span<const std::byte> bytes);

}  // namespace hawser::wire
