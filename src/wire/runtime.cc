#include "wire/runtime.h"

#include <string>

#include "base/bytes.h"
#include "base/check.h"

namespace hawser::wire {
namespace {

Status corrupt_runtime(const char* what) { return Status(Code::kCorrupt, std::string("world: ") + what); }

// kind; world, use, tag, digest, extra, bytes; id; address.
static_assert(1 + (8 + 1 + 8 + 8 + 2 * base::kVarintSizeMax) + 8 + base::kVarintSizeMax <= kRuntimeHeadMax);

void write(base::ByteWriter& out, const MessageEnvelope& envelope) {
  out.u64(envelope.world);
  out.u8(static_cast<std::uint8_t>(envelope.use));
  out.u64(envelope.tag);
  out.u64(envelope.digest);
  out.varint(envelope.extra);
  out.varint(envelope.bytes);
}

MessageEnvelope read_envelope(base::ByteReader& in) {
  MessageEnvelope envelope;
  envelope.world = in.u64();
  envelope.use = static_cast<MessageUse>(in.u8());
  envelope.tag = in.u64();
  envelope.digest = in.u64();
  envelope.extra = in.varint();
  envelope.bytes = in.varint();
  return envelope;
}

bool read_flag(base::ByteReader& in) {
  const std::uint8_t flag = in.u8();
  if (flag > 1) in.fail();
  return flag == 1;
}

Priority read_class(base::ByteReader& in) {
  const std::uint8_t value = in.u8();
  if (value > static_cast<std::uint8_t>(Priority::kBulk)) in.fail();
  return static_cast<Priority>(value);
}

/// The rest of the message, by its kind. False: there is no such kind.
bool read_rest(base::ByteReader& in, RuntimeMessage& message) {
  switch (message.kind) {
    case RuntimeKind::kEager:
      message.envelope = read_envelope(in);
      message.body = in.rest();
      return true;
    case RuntimeKind::kAsk:
      message.envelope = read_envelope(in);
      message.id = in.u64();
      message.address = in.varint();
      return true;
    case RuntimeKind::kTaken:
    case RuntimeKind::kWritten:
      message.landing = in.u64();
      return true;
    case RuntimeKind::kFetched:
    case RuntimeKind::kGrant:
    case RuntimeKind::kUnwritten:
      message.id = in.u64();
      message.landing = in.u64();
      return true;
    case RuntimeKind::kLend:
      message.id = in.u64();
      message.landing = in.u64();
      message.lent.index = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
      message.lent.generation = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
      message.lent.key = in.id();
      return true;
    case RuntimeKind::kPart:
      message.landing = in.u64();
      message.offset = in.varint();
      message.body = in.rest();
      return true;
    case RuntimeKind::kFreed:
      message.priority = read_class(in);
      message.bytes = in.varint();
      message.messages = in.varint();
      return true;
    case RuntimeKind::kGone:
      message.id = in.u64();
      return true;
    case RuntimeKind::kLeft:
    case RuntimeKind::kBell:
      message.world = in.u64();
      return true;
    case RuntimeKind::kTopology:
      message.world = in.u64();
      message.body = in.rest();
      return true;
    case RuntimeKind::kCheck:
      message.world = in.u64();
      message.number = in.varint();
      message.digest = in.u64();
      message.flag = read_flag(in);
      return true;
    case RuntimeKind::kChecked:
      message.world = in.u64();
      message.number = in.varint();
      message.code = static_cast<Code>(in.u8());
      return true;
    case RuntimeKind::kLost:
      message.world = in.u64();
      message.flag = read_flag(in);
      message.body = in.rest();
      return true;
    case RuntimeKind::kFailed:
      message.world = in.u64();
      message.rank = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
      message.flag = read_flag(in);
      return true;
    case RuntimeKind::kRevoke:
      message.world = in.u64();
      message.code = static_cast<Code>(in.u8());
      message.body = in.rest();
      return true;
    case RuntimeKind::kAgree:
      message.world = in.u64();
      message.number = in.varint();
      message.phase = static_cast<AgreementPhase>(in.u8());
      message.ballot = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
      message.calls = in.u8();
      message.flag = read_flag(in);
      message.last_good = in.varint();
      message.body = in.rest();
      return true;
  }
  return false;
}

bool is_sane(const RuntimeMessage& message) {
  const bool has_envelope = message.kind == RuntimeKind::kEager || message.kind == RuntimeKind::kAsk;
  const MessageUse use = message.envelope.use;
  if (has_envelope && (use < MessageUse::kUser || use > MessageUse::kAnswer)) return false;
  if (has_envelope && use == MessageUse::kAnswer && message.envelope.digest > static_cast<std::uint64_t>(Code::kFailed))
    return false;
  if (message.kind == RuntimeKind::kEager && message.envelope.bytes != message.body.size()) return false;
  if (message.kind == RuntimeKind::kPart && message.body.empty()) return false;
  if (message.kind == RuntimeKind::kLend && message.lent.key.is_zero()) return false;
  if (message.kind == RuntimeKind::kAgree) {
    const bool is_phase = message.phase >= AgreementPhase::kVote && message.phase <= AgreementPhase::kAbsent;
    return is_phase && !message.body.empty() && message.body.size() % 2 == 0 && message.body.size() <= kRankBitmapsMax;
  }
  if (message.kind == RuntimeKind::kLost) return !message.body.empty() && message.body.size() <= kRankBitmapsMax / 2;
  if (message.kind == RuntimeKind::kChecked) {
    return message.code == Code::kInvalid || message.code == Code::kDisconnected || message.code == Code::kBusy;
  }
  if (message.kind == RuntimeKind::kTopology) return !message.body.empty() && message.body.size() <= kTopologyTextMax;
  if (message.kind != RuntimeKind::kRevoke) return message.body.size() <= kRuntimeBodyMax;
  const bool is_code = message.code != Code::kOk && message.code <= Code::kFailed;
  return is_code && message.body.size() <= kRevokeTextMax;
}

}  // namespace

std::span<const std::byte> encode(const RuntimeMessage& message, RuntimeBuffer& buffer) {
  base::ByteWriter out{std::span<std::byte>(buffer)};
  out.u8(static_cast<std::uint8_t>(message.kind));
  switch (message.kind) {
    case RuntimeKind::kEager:
      write(out, message.envelope);
      break;
    case RuntimeKind::kAsk:
      write(out, message.envelope);
      out.u64(message.id);
      out.varint(message.address);
      break;
    case RuntimeKind::kTaken:
    case RuntimeKind::kWritten:
      out.u64(message.landing);
      break;
    case RuntimeKind::kFetched:
    case RuntimeKind::kGrant:
    case RuntimeKind::kUnwritten:
      out.u64(message.id);
      out.u64(message.landing);
      break;
    case RuntimeKind::kLend:
      out.u64(message.id);
      out.u64(message.landing);
      out.varint(message.lent.index);
      out.varint(message.lent.generation);
      out.id(message.lent.key);
      break;
    case RuntimeKind::kPart:
      out.u64(message.landing);
      out.varint(message.offset);
      break;
    case RuntimeKind::kFreed:
      out.u8(static_cast<std::uint8_t>(message.priority));
      out.varint(message.bytes);
      out.varint(message.messages);
      break;
    case RuntimeKind::kGone:
      out.u64(message.id);
      break;
    case RuntimeKind::kLeft:
    case RuntimeKind::kBell:
    case RuntimeKind::kTopology:
      out.u64(message.world);
      break;
    case RuntimeKind::kLost:
      out.u64(message.world);
      out.u8(message.flag ? 1 : 0);
      break;
    case RuntimeKind::kFailed:
      out.u64(message.world);
      out.varint(message.rank);
      out.u8(message.flag ? 1 : 0);
      break;
    case RuntimeKind::kCheck:
      out.u64(message.world);
      out.varint(message.number);
      out.u64(message.digest);
      out.u8(message.flag ? 1 : 0);
      break;
    case RuntimeKind::kChecked:
      out.u64(message.world);
      out.varint(message.number);
      out.u8(static_cast<std::uint8_t>(message.code));
      break;
    case RuntimeKind::kRevoke:
      out.u64(message.world);
      out.u8(static_cast<std::uint8_t>(message.code));
      break;
    case RuntimeKind::kAgree:
      out.u64(message.world);
      out.varint(message.number);
      out.u8(static_cast<std::uint8_t>(message.phase));
      out.varint(message.ballot);
      out.u8(message.calls);
      out.u8(message.flag ? 1 : 0);
      out.varint(message.last_good);
      break;
  }
  return out.written();
}

Result<RuntimeMessage> decode_runtime(std::span<const std::byte> bytes) {
  base::ByteReader in(bytes);
  RuntimeMessage message{.kind = static_cast<RuntimeKind>(in.u8())};
  if (!read_rest(in, message)) return corrupt_runtime("a message of an unknown kind");
  const bool has_body = message.kind == RuntimeKind::kEager || message.kind == RuntimeKind::kPart ||
                        message.kind == RuntimeKind::kRevoke || message.kind == RuntimeKind::kAgree ||
                        message.kind == RuntimeKind::kTopology || message.kind == RuntimeKind::kLost;
  if (has_body ? !in.ok() : !in.finished()) return corrupt_runtime("a message is malformed or cut off");
  if (!is_sane(message)) return corrupt_runtime("a message's fields contradict each other");
  return message;
}

}  // namespace hawser::wire
