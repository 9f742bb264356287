#pragma once

// Atomic operations as bytes: what is asked of a word's owner, and its answer. Each is the body of a session message
// Send, asks on kAtomicChannel and answers on kAtomicAnswerChannel; who does not know them grants no credit there.
//
// Grammar (little-endian; varint is LEB128):
//   ask    = op:u8 (1 fetch-add, 2 compare-swap), id:u64, region:varint, generation:varint, key:16, offset:varint,
//            operand:u64, [expected:u64, for compare-swap]
//   answer = id:u64, code:u8 (of hawser::Code, 0 good), [found:u64, when good]
//
// Thread rule: values and pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <hawser/status.h>

#include "base/id128.h"

namespace hawser::wire {

inline constexpr std::uint32_t kAtomicChannel = 2;
inline constexpr std::uint32_t kAtomicAnswerChannel = 3;
inline constexpr std::size_t kAtomicSizeMax = 72;

enum class AtomicKind : std::uint8_t { kFetchAdd = 1, kCompareSwap = 2 };

struct AtomicAsk {
  AtomicKind kind = AtomicKind::kFetchAdd;
  std::uint64_t id = 0;  ///< In the asker's session.
  std::uint32_t region = 0;
  std::uint32_t generation = 0;
  base::Id128 key;
  std::uint64_t offset = 0;    ///< Bytes.
  std::uint64_t operand = 0;   ///< To add, or to store.
  std::uint64_t expected = 0;  ///< Compare-swap only.
};

struct AtomicAnswer {
  std::uint64_t id = 0;
  Code code = Code::kOk;
  std::uint64_t found = 0;  ///< When good.
};

using AtomicBuffer = std::array<std::byte, kAtomicSizeMax>;
std::span<const std::byte> encode(const AtomicAsk& ask, AtomicBuffer& out);
std::span<const std::byte> encode(const AtomicAnswer& answer, AtomicBuffer& out);
/// kCorrupt for all that encode does not write.
Result<AtomicAsk> decode_atomic_ask(std::span<const std::byte> bytes);
Result<AtomicAnswer> decode_atomic_answer(std::span<const std::byte> bytes);

}  // namespace hawser::wire
