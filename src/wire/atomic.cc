#include "wire/atomic.h"

#include <string>

#include "base/bytes.h"

namespace hawser::wire {
namespace {

Status corrupt_atomic(const char* what) { return Status(Code::kCorrupt, std::string("atomic: ") + what); }

}  // namespace

// kind, id, region, generation, key, offset, operand, expected.
static_assert(1 + 8 + 5 + 5 + 16 + base::kVarintSizeMax + 8 + 8 <= kAtomicSizeMax);

std::span<const std::byte> encode(const AtomicAsk& ask, AtomicBuffer& buffer) {
  base::ByteWriter out{std::span<std::byte>(buffer)};
  out.u8(static_cast<std::uint8_t>(ask.kind));
  out.u64(ask.id);
  out.varint(ask.region);
  out.varint(ask.generation);
  out.id(ask.key);
  out.varint(ask.offset);
  out.u64(ask.operand);
  if (ask.kind == AtomicKind::kCompareSwap) out.u64(ask.expected);
  return out.written();
}

std::span<const std::byte> encode(const AtomicAnswer& answer, AtomicBuffer& buffer) {
  base::ByteWriter out{std::span<std::byte>(buffer)};
  out.u64(answer.id);
  out.u8(static_cast<std::uint8_t>(answer.code));
  if (answer.code == Code::kOk) out.u64(answer.found);
  return out.written();
}

Result<AtomicAsk> decode_atomic_ask(std::span<const std::byte> bytes) {
  base::ByteReader in(bytes);
  AtomicAsk ask{.kind = static_cast<AtomicKind>(in.u8())};
  if (ask.kind != AtomicKind::kFetchAdd && ask.kind != AtomicKind::kCompareSwap) {
    return corrupt_atomic("an unknown operation");
  }
  ask.id = in.u64();
  ask.region = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
  ask.generation = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
  ask.key = in.id();
  ask.offset = in.varint();
  ask.operand = in.u64();
  if (ask.kind == AtomicKind::kCompareSwap) ask.expected = in.u64();
  if (!in.finished()) return corrupt_atomic("an ask is malformed or cut off");
  return ask;
}

Result<AtomicAnswer> decode_atomic_answer(std::span<const std::byte> bytes) {
  base::ByteReader in(bytes);
  AtomicAnswer answer{.id = in.u64()};
  const std::uint8_t code = in.u8();
  if (code > static_cast<std::uint8_t>(Code::kFailed)) return corrupt_atomic("an unknown code");
  answer.code = static_cast<Code>(code);
  if (answer.code == Code::kOk) answer.found = in.u64();
  if (!in.finished()) return corrupt_atomic("an answer is malformed or cut off");
  return answer;
}

}  // namespace hawser::wire
