#pragma once

// Messages of agents over Path::send. A message is a head, which encode() writes into the caller's buffer,
// and a body, which stays where it is: Path::send takes both, so payload is not copied here.
//
// Grammar (little-endian; varint is LEB128; the body is all that follows the head):
//   message     = kind:u8 | link << 5, [seq:varint, in those that are reliable], fields, body
//                 link (wire/link.h): 0 critical, 1 to 5 realtime, 6 and 7 bulk, of reliable messages, ack and acked;
//                 else 0
//   arrive      (1, reliable) = flags:u8, [covers: transfer:u64, chunks:varint], [oldest:u64],
//                 [signal: region:varint, generation:varint, key:16, offset:varint, add:varint], body: notification
//                 flags: 1 notifies, 2 covers a transfer, 4 oldest, 8 signal, 16 cancelled (2 and 4 may stand with it)
//   send        (2, reliable) = channel:varint, body: message
//   cardrequest (3, reliable) = since_revision:varint
//   cardpart    (4, reliable) = revision:varint, total:varint, offset:varint, body: part of the card
//   ack         (5) = up_to:varint
//   credit      (6) = channel:varint, class:u8, messages:varint, bytes:varint
//   welcome     (7) = session:u64, peer_session:u64, revision:varint, received:varint of each link, messages:varint,
//                 bytes:varint, body: count:varint, (channel:varint, class:u8, messages:varint, bytes:varint)*
//   bye         (8) = code:u8, body: text
//   acked       (9) = up_to:varint, body: a reliable message. An ack that rides along with it, perhaps of another link
// Each link is a sequence of its own: numbers, acknowledgements and what is sent again.
// There is nothing optional to skip: the hello agreed on a version, and whoever speaks a later one sends only what the
// agreed one knows.
//
// Thread rule: values and pure functions. Lifetime: a decoded message's views live as long as the bytes given.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/peer.h>
#include <hawser/status.h>
#include <hawser/transfer.h>

#include "base/id128.h"
#include "wire/card.h"
#include "wire/link.h"

namespace hawser::wire {

inline constexpr std::size_t kHeadMax = 128;            ///< No head is longer.
inline constexpr std::size_t kCardPartMax = 48 * 1024;  ///< Bytes of the card in one message.
inline constexpr std::uint32_t kChunksMax = 1u << 20;   ///< Covered chunks of one transfer.
inline constexpr std::size_t kByeTextMax = 512;
inline constexpr std::uint32_t kNotifyChannel = 1;      ///< Whose credit notifications take.
inline constexpr std::uint64_t kNotificationCost = 64;  ///< Bytes of that credit, beside those of the notification.
inline constexpr std::uint64_t kNoMessageLimit = std::uint64_t{1} << 62;  ///< As the message limit of that credit.
/// Channels that one Welcome tells: 1024 of the user's, and the library's.
inline constexpr std::size_t kWelcomeCreditsMax = 1024 + kUserChannelMin;

enum class SessionKind : std::uint8_t {
  kArrive = 1,
  kSend = 2,
  kCardRequest = 3,
  kCardPart = 4,
  kAck = 5,
  kCredit = 6,
  kWelcome = 7,
  kBye = 8,
  kAcked = 9,  ///< Never in an envelope: what rides in it is.
};
std::string_view to_string(SessionKind kind);
/// True where messages of this kind carry a sequence number and pass through proto/link.h.
constexpr bool is_reliable(SessionKind kind) { return kind <= SessionKind::kCardPart; }

/// Which reliable message it is: `seq` counts those of its link from 1.
struct Place {
  Link link = Priority::kRealtime;
  std::uint64_t seq = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// Adds `add` to a word of the target.
struct SignalBump {
  std::uint32_t region = 0;
  std::uint32_t generation = 0;
  base::Id128 key;
  std::uint64_t offset = 0;
  std::uint64_t add = 0;
};

/// A transfer ended, or (transfer 0) a notification stands alone.
struct Arrive {
  Place place;
  std::uint64_t transfer = 0;
  std::uint32_t chunks = 0;  ///< How many kArrival events must have been seen first. 0: the bytes are visible already.
  bool cancelled = false;    ///< The transfer ended badly after an Arrive had announced it: forget that one.
  std::uint64_t oldest = 0;  ///< Every covered transfer below is finished at the initiator. 0: nothing said.
  std::optional<SignalBump> signal;
  std::optional<std::span<const std::byte>> notify;  ///< The body. Empty but present is delivered too.
};

struct Send {
  Place place;
  std::uint32_t channel = 0;
  std::span<const std::byte> bytes;  ///< The body.
};

/// Asks for the peer's card: a delta since a revision, 0 for all of it.
struct CardRequest {
  Place place;
  std::uint64_t since_revision = 0;
};

struct CardPart {
  Place place;
  std::uint64_t revision = 0;  ///< Parts of one card share it.
  std::uint32_t total = 0;     ///< Bytes of the whole card, at least 1.
  std::uint32_t offset = 0;
  std::span<const std::byte> bytes;  ///< The body, not empty, within the card.
};

/// All messages of the link up to this number were taken.
struct Ack {
  Link link = Priority::kRealtime;
  std::uint64_t up_to = 0;
};

/// A channel's credit, counted since the session began. They are totals, so a repeated one does no harm.
struct CreditLimits {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const CreditLimits&, const CreditLimits&) = default;
};

struct Credit {
  std::uint32_t channel = 0;
  Priority priority = Priority::kRealtime;  ///< The channel's class, for as long as the session lasts.
  CreditLimits limits;
};

/// First on every fresh path, from both sides.
struct Welcome {
  std::uint64_t session = 0;       ///< The sender's number for what it keeps of us; another one: it began anew.
  std::uint64_t peer_session = 0;  ///< The number that it last heard from us. 0: none yet.
  std::uint64_t revision = 0;      ///< The sender's own card's.
  /// Of each link the number of the last message taken: what follows it is to be sent again.
  std::array<std::uint64_t, kLinks> received = {};
  CreditLimits notify;  ///< Credit of kNotifyChannel.
  /// The body: encode_credits of the channels that the sender has opened. decode_welcome has looked through it.
  std::span<const std::byte> credits;
};

/// The session ends. `code` is never kOk.
struct Bye {
  Code code = Code::kDisconnected;
  std::string_view text;  ///< The body. encode does not cut it: at most kByeTextMax.
};

using HeadBuffer = std::span<std::byte, kHeadMax>;

/// Writes the head and returns the part of `out` that it takes. The body follows it in Path::send.
std::span<const std::byte> encode(const Arrive& message, HeadBuffer out);
std::span<const std::byte> encode(const Send& message, HeadBuffer out);
std::span<const std::byte> encode(const CardRequest& message, HeadBuffer out);
std::span<const std::byte> encode(const CardPart& message, HeadBuffer out);
std::span<const std::byte> encode(const Ack& message, HeadBuffer out);
std::span<const std::byte> encode(const Credit& message, HeadBuffer out);
std::span<const std::byte> encode(const Welcome& message, HeadBuffer out);
std::span<const std::byte> encode(const Bye& message, HeadBuffer out);
/// The body of a Welcome. At most kWelcomeCreditsMax.
std::string encode_credits(std::span<const Credit> credits);
/// In front of a whole message that is reliable: an Ack that costs no message of its own.
std::span<const std::byte> encode_acked(const Ack& ack, HeadBuffer out);

/// The part that the link needs before the message itself is looked at: a duplicate is dropped without decoding.
struct Envelope {
  SessionKind kind = SessionKind::kArrive;
  Place place;  ///< An Ack's has its link and no number; others that are not reliable have none.
  Ack acked;    ///< One that rode along; up_to 0: none did.
  std::span<const std::byte> rest;
};

Result<Envelope> open_envelope(std::span<const std::byte> bytes);
/// A reliable message without the Ack that may ride along with it. `bytes` has passed open_envelope.
std::span<const std::byte> without_ack(std::span<const std::byte> bytes);
/// Whether nobody waits for this message by itself: it acknowledges, gives credit back, or announces or agrees on bytes
/// that are still to come. `message` is all of it, or the head where its body is no Send's.
bool goes_aside(std::span<const std::byte> message);
// Each takes an envelope of its kind.
Result<Arrive> decode_arrive(const Envelope& envelope);
Result<Send> decode_send(const Envelope& envelope);
Result<CardRequest> decode_card_request(const Envelope& envelope);
Result<CardPart> decode_card_part(const Envelope& envelope);
Result<Ack> decode_ack(const Envelope& envelope);
Result<Credit> decode_credit(const Envelope& envelope);
Result<Welcome> decode_welcome(const Envelope& envelope);
/// The body of a Welcome that was decoded.
Result<std::vector<Credit>> decode_credits(std::span<const std::byte> bytes);
Result<Bye> decode_bye(const Envelope& envelope);

}  // namespace hawser::wire
