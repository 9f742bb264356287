#include "wire/session.h"

#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "base/format.h"
#include "wire/runtime.h"

namespace hawser::wire {
namespace {

using base::ByteReader;
using base::Id128;
using Bytes = std::span<const std::byte>;

constexpr std::uint8_t kFlagNotify = 1;
constexpr std::uint8_t kFlagCovers = 2;
constexpr std::uint8_t kFlagOldest = 4;
constexpr std::uint8_t kFlagSignal = 8;
constexpr std::uint8_t kFlagCancelled = 16;
constexpr std::uint8_t kFlagsKnown = 31;

// The link stands in the upper three bits of a message's first byte.
constexpr unsigned kLinkShift = 5;
constexpr std::uint8_t kKindMask = (1U << kLinkShift) - 1;
static_assert(kLinks == 1U << (8 - kLinkShift));
static_assert(static_cast<std::uint8_t>(SessionKind::kAcked) <= kKindMask);

// The longest head is an Arrive with everything: kind, seq, flags, transfer, chunks, oldest and a signal.
static_assert(1 + 10 + 1 + 8 + 5 + 8 + (5 + 5 + 16 + 10 + 10) <= kHeadMax);
// And a Welcome: kind, both sessions, revision, a number of each link, and the credit of notifications.
static_assert(1 + 8 + 8 + 10 + kLinks * 10 + 10 + 10 <= kHeadMax);

// Writes without checks, which are the greater part of the cost of a small message: the longest head fits (above).
class HeadWriter {
 public:
  HeadWriter(HeadBuffer out, SessionKind kind) : begin_(out.data()), at_(out.data()) {
    u8(static_cast<std::uint8_t>(kind));
  }
  HeadWriter(HeadBuffer out, SessionKind kind, Link link) : begin_(out.data()), at_(out.data()) {
    u8(static_cast<std::uint8_t>(static_cast<unsigned>(kind) | static_cast<unsigned>(link.index()) << kLinkShift));
  }
  HeadWriter(HeadBuffer out, SessionKind kind, Place place) : HeadWriter(out, kind, place.link) { varint(place.seq); }
  void u8(std::uint8_t value) { *at_++ = std::byte{value}; }
  void u64(std::uint64_t value) {
    base::store_little_endian(at_, value);
    at_ += sizeof(value);
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) u8(static_cast<std::uint8_t>(value | 0x80));
    u8(static_cast<std::uint8_t>(value));
  }
  void id(const Id128& value) {
    u64(value.lo);
    u64(value.hi);
  }
  Bytes written() const { return {begin_, static_cast<std::size_t>(at_ - begin_)}; }

 private:
  std::byte* begin_;
  std::byte* at_;
};

[[gnu::cold, gnu::noinline]] Status corrupt(SessionKind kind, std::string_view what) {
  return Status(Code::kCorrupt, base::format("session message '{}': {}", to_string(kind), what));
}

constexpr char kTruncated[] = "a field is malformed or cut off";

[[gnu::cold, gnu::noinline]] Status truncated(SessionKind kind) { return corrupt(kind, kTruncated); }

[[gnu::cold, gnu::noinline]] Status unknown_kind(Bytes bytes) {
  if (bytes.empty()) return Status(Code::kCorrupt, "an empty session message");
  return Status(Code::kCorrupt,
                base::format("session message of unknown kind {}", std::to_integer<unsigned>(bytes[0])));
}

// A message's first byte.
struct FirstByte {
  explicit FirstByte(std::uint8_t byte) : kind(static_cast<SessionKind>(byte & kKindMask)), bits(byte >> kLinkShift) {}
  bool is_known() const { return kind >= SessionKind::kArrive && kind <= SessionKind::kBye; }
  bool may_have_link() const { return is_reliable(kind) || kind == SessionKind::kAck || bits == 0; }
  Link link() const { return Link::at(bits); }

  SessionKind kind;
  std::uint8_t bits;
};

// For messages without a body.
bool all_read(const ByteReader& in) { return in.finished(); }

void require_kind(const Envelope& envelope, SessionKind kind) {
  HAWSER_ASSERT(envelope.kind == kind, "an envelope of another kind");  // we chose the decoder by the kind
}

Priority take_class(ByteReader& in) {
  const std::uint8_t value = in.u8();
  if (value >= kClasses) in.fail();
  return static_cast<Priority>(value);
}

CreditLimits take_limits(ByteReader& in) {
  CreditLimits limits;
  limits.messages = in.varint();
  limits.bytes = in.varint();
  return limits;
}

void take_signal(ByteReader& in, SignalBump& signal) {
  signal.region = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
  signal.generation = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
  signal.key = in.id();
  signal.offset = in.varint();
  signal.add = in.varint();
}

std::uint8_t flags_of(const Arrive& message) {
  return static_cast<std::uint8_t>((message.notify ? kFlagNotify : 0) | (message.transfer != 0 ? kFlagCovers : 0) |
                                   (message.oldest != 0 ? kFlagOldest : 0) | (message.signal ? kFlagSignal : 0) |
                                   (message.cancelled ? kFlagCancelled : 0));
}

// A cancelled transfer has a number, and brings nothing.
constexpr bool are_flags_sensible(std::uint8_t flags) {
  if (flags > kFlagsKnown) return false;
  return (flags & kFlagCancelled) == 0 || (flags & (kFlagCovers | kFlagNotify | kFlagSignal)) == kFlagCovers;
}

// Null, or what is wrong.
const char* read_arrive(ByteReader& in, Arrive& message) {
  const std::uint8_t flags = in.u8();
  if (!are_flags_sensible(flags)) return "unknown or contradicting flags";
  message.cancelled = (flags & kFlagCancelled) != 0;
  if ((flags & kFlagCovers) != 0) {
    message.transfer = in.u64();
    message.chunks = static_cast<std::uint32_t>(in.varint(kChunksMax));
    if (message.transfer == 0) in.fail();
  }
  if ((flags & kFlagOldest) != 0) {
    message.oldest = in.u64();
    if (message.oldest == 0) in.fail();  // equal messages have equal bytes
  }
  if ((flags & kFlagSignal) != 0) take_signal(in, message.signal.emplace());
  if (!in.ok()) return kTruncated;
  if ((flags & kFlagNotify) == 0) return in.at_end() ? nullptr : "bytes follow it";
  message.notify.emplace(in.rest());
  return message.notify->size() <= kMessageMax ? nullptr : "the notification is too long";
}

void put_signal(HeadWriter& out, const SignalBump& signal) {
  out.varint(signal.region);
  out.varint(signal.generation);
  out.id(signal.key);
  out.varint(signal.offset);
  out.varint(signal.add);
}

}  // namespace

std::string_view to_string(SessionKind kind) {
  switch (kind) {
    case SessionKind::kArrive:
      return "arrive";
    case SessionKind::kSend:
      return "send";
    case SessionKind::kCardRequest:
      return "card request";
    case SessionKind::kCardPart:
      return "card part";
    case SessionKind::kAck:
      return "ack";
    case SessionKind::kCredit:
      return "credit";
    case SessionKind::kWelcome:
      return "welcome";
    case SessionKind::kBye:
      return "bye";
    case SessionKind::kAcked:
      return "acked";
  }
  return "unknown";
}

Bytes encode(const Arrive& message, HeadBuffer buffer) {
  HeadWriter out(buffer, SessionKind::kArrive, message.place);
  out.u8(flags_of(message));
  if (message.transfer != 0) {
    out.u64(message.transfer);
    out.varint(message.chunks);
  }
  if (message.oldest != 0) out.u64(message.oldest);
  if (message.signal) put_signal(out, *message.signal);
  return out.written();
}

Bytes encode(const Send& message, HeadBuffer buffer) {
  HeadWriter out(buffer, SessionKind::kSend, message.place);
  out.varint(message.channel);
  return out.written();
}

Bytes encode(const CardRequest& message, HeadBuffer buffer) {
  HeadWriter out(buffer, SessionKind::kCardRequest, message.place);
  out.varint(message.since_revision);
  return out.written();
}

Bytes encode(const CardPart& message, HeadBuffer buffer) {
  HeadWriter out(buffer, SessionKind::kCardPart, message.place);
  out.varint(message.revision);
  out.varint(message.total);
  out.varint(message.offset);
  return out.written();
}

Bytes encode(const Ack& message, HeadBuffer buffer) {
  HeadWriter out(buffer, SessionKind::kAck, message.link);
  out.varint(message.up_to);
  return out.written();
}

Bytes encode(const Credit& message, HeadBuffer buffer) {
  HeadWriter out(buffer, SessionKind::kCredit);
  out.varint(message.channel);
  out.u8(static_cast<std::uint8_t>(message.priority));
  out.varint(message.limits.messages);
  out.varint(message.limits.bytes);
  return out.written();
}

Bytes encode(const Welcome& message, HeadBuffer buffer) {
  HeadWriter out(buffer, SessionKind::kWelcome);
  out.u64(message.session);
  out.u64(message.peer_session);
  out.varint(message.revision);
  for (const std::uint64_t number : message.received) out.varint(number);
  out.varint(message.notify.messages);
  out.varint(message.notify.bytes);
  return out.written();
}

std::string encode_credits(std::span<const Credit> credits) {
  HAWSER_ASSERT(credits.size() <= kWelcomeCreditsMax, "more channels than a Welcome tells");
  std::string bytes;
  base::ByteWriter out(&bytes);
  out.varint(credits.size());
  for (const Credit& credit : credits) {
    out.varint(credit.channel);
    out.u8(static_cast<std::uint8_t>(credit.priority));
    out.varint(credit.limits.messages);
    out.varint(credit.limits.bytes);
  }
  return bytes;
}

Bytes encode(const Bye& message, HeadBuffer buffer) {
  HeadWriter out(buffer, SessionKind::kBye);
  out.u8(static_cast<std::uint8_t>(message.code));
  return out.written();
}

Bytes encode_acked(const Ack& ack, HeadBuffer buffer) {
  HeadWriter out(buffer, SessionKind::kAcked, ack.link);
  out.varint(ack.up_to);
  return out.written();
}

// The three decoders of the hot path fill their Result in place: moving a message that was just written costs more than
// decoding it.

Result<Envelope> open_envelope(Bytes bytes) {
  Result<Envelope> result{Envelope{}};
  Envelope& envelope = *result;
  ByteReader in(bytes);
  FirstByte first(in.u8());
  if (first.kind == SessionKind::kAcked) {
    envelope.acked = {.link = first.link(), .up_to = in.varint()};
    first = FirstByte(in.u8());
    if (envelope.acked.up_to == 0 || !first.is_known() || !is_reliable(first.kind)) {
      result = corrupt(SessionKind::kAcked, "no number, or no reliable message behind it");
      return result;
    }
  }
  envelope.kind = first.kind;
  if (!first.is_known()) {
    result = unknown_kind(bytes);
    return result;
  }
  if (!first.may_have_link()) {
    result = corrupt(envelope.kind, "it has a link, and its kind has none");
    return result;
  }
  envelope.place.link = first.link();
  if (is_reliable(envelope.kind)) {
    envelope.place.seq = in.varint();
    if (envelope.place.seq == 0) {
      result = corrupt(envelope.kind, "it has no sequence number");
      return result;
    }
  }
  envelope.rest = in.rest();
  return result;
}

Bytes without_ack(Bytes bytes) {
  ByteReader in(bytes);
  if (FirstByte(in.u8()).kind != SessionKind::kAcked) return bytes;
  in.varint();
  return bytes.subspan(bytes.size() - in.rest().size());
}

bool goes_aside(Bytes message) {
  if (message.empty()) return false;
  const SessionKind kind = FirstByte(std::to_integer<std::uint8_t>(message[0])).kind;
  if (kind == SessionKind::kAck || kind == SessionKind::kCredit) return true;
  if (kind != SessionKind::kArrive && kind != SessionKind::kAcked && kind != SessionKind::kSend) return false;
  const Result<Envelope> envelope = open_envelope(message);
  if (!envelope) return false;
  if (envelope->kind == SessionKind::kSend) {
    const Result<Send> send = decode_send(*envelope);
    return send && runtime_goes_aside(send->channel, send->bytes);
  }
  if (envelope->kind != SessionKind::kArrive) return false;
  const Result<Arrive> arrive = decode_arrive(*envelope);
  return arrive && arrive->chunks != 0;
}

Result<Arrive> decode_arrive(const Envelope& envelope) {
  require_kind(envelope, SessionKind::kArrive);
  Result<Arrive> result{Arrive{}};
  ByteReader in(envelope.rest);
  const char* fault = read_arrive(in, *result);
  result->place = envelope.place;
  if (fault != nullptr) result = corrupt(envelope.kind, fault);
  return result;
}

Result<Send> decode_send(const Envelope& envelope) {
  require_kind(envelope, SessionKind::kSend);
  Result<Send> result{Send{}};
  Send& message = *result;
  ByteReader in(envelope.rest);
  message.place = envelope.place;
  message.channel = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
  message.bytes = in.rest();
  if (!in.ok()) {
    result = truncated(envelope.kind);
  } else if (message.bytes.size() > message_max(message.channel)) {
    result = corrupt(envelope.kind, "the message is too long");
  }
  return result;
}

Result<CardRequest> decode_card_request(const Envelope& envelope) {
  require_kind(envelope, SessionKind::kCardRequest);
  ByteReader in(envelope.rest);
  CardRequest message;
  message.place = envelope.place;
  message.since_revision = in.varint();
  if (!all_read(in)) return truncated(envelope.kind);
  return message;
}

Result<CardPart> decode_card_part(const Envelope& envelope) {
  require_kind(envelope, SessionKind::kCardPart);
  ByteReader in(envelope.rest);
  CardPart message;
  message.place = envelope.place;
  message.revision = in.varint();
  message.total = static_cast<std::uint32_t>(in.varint(kCardSizeMax));
  message.offset = static_cast<std::uint32_t>(in.varint(kCardSizeMax));
  if (!in.ok()) return truncated(envelope.kind);
  message.bytes = in.rest();
  if (message.bytes.empty() || message.bytes.size() > kCardPartMax)
    return corrupt(envelope.kind, "its size is senseless");
  if (message.offset > message.total || message.bytes.size() > message.total - message.offset) {
    return corrupt(envelope.kind, "it lies outside of the card");
  }
  return message;
}

Result<Ack> decode_ack(const Envelope& envelope) {
  require_kind(envelope, SessionKind::kAck);
  ByteReader in(envelope.rest);
  const Ack message{.link = envelope.place.link, .up_to = in.varint()};
  if (!all_read(in)) return truncated(envelope.kind);
  return message;
}

Result<Credit> decode_credit(const Envelope& envelope) {
  require_kind(envelope, SessionKind::kCredit);
  ByteReader in(envelope.rest);
  Credit message;
  message.channel = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
  message.priority = take_class(in);
  message.limits = take_limits(in);
  if (!all_read(in)) return truncated(envelope.kind);
  return message;
}

Result<Welcome> decode_welcome(const Envelope& envelope) {
  require_kind(envelope, SessionKind::kWelcome);
  ByteReader in(envelope.rest);
  Welcome message;
  message.session = in.u64();
  message.peer_session = in.u64();
  message.revision = in.varint();
  for (std::uint64_t& number : message.received) number = in.varint();
  message.notify = take_limits(in);
  message.credits = in.rest();
  if (!in.ok()) return truncated(envelope.kind);
  const Result<std::vector<Credit>> credits = decode_credits(message.credits);
  if (!credits) return credits.error();
  return message;
}

Result<std::vector<Credit>> decode_credits(Bytes bytes) {
  ByteReader in(bytes);
  const std::uint64_t count = in.varint(kWelcomeCreditsMax);
  std::vector<Credit> credits;
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    Credit& credit = credits.emplace_back();
    credit.channel = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
    credit.priority = take_class(in);
    credit.limits = take_limits(in);
  }
  if (!all_read(in)) return truncated(SessionKind::kWelcome);
  return credits;
}

Result<Bye> decode_bye(const Envelope& envelope) {
  require_kind(envelope, SessionKind::kBye);
  ByteReader in(envelope.rest);
  Bye message;
  const std::uint8_t code = in.u8();
  if (!in.ok()) return truncated(envelope.kind);
  if (code == 0 || code > static_cast<std::uint8_t>(Code::kFailed)) return corrupt(envelope.kind, "unknown reason");
  message.code = static_cast<Code>(code);
  message.text = base::as_text(in.rest());
  if (message.text.size() > kByeTextMax) return corrupt(envelope.kind, "the text is too long");
  return message;
}

}  // namespace hawser::wire
