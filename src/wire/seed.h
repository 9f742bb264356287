#pragma once

// Messages between ranks and their seed, as bytes: bodies of messages on kSeedChannel of the seed's agent.
//
// Grammar (little-endian; varint is LEB128):
//   set    (1) id:u64, key:string, value:string    string = length:varint, bytes
//   get    (2) id:u64, key:string                  answered once somebody has set the key
//   prove  (4) id:u64, key:string, mac:string      that it has the world's token (identity/world_token.h); the
//                                               key is "token". Answered by the seed's own proof
//   answer (3) id:u64, code:u8, text:string        of set: empty; of get: the value; of an error: why
//
// Thread rule: values and pure functions. Lifetime: what is decoded views the bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <hawser/status.h>

namespace hawser::wire {

inline constexpr std::uint32_t kSeedChannel = 16;
inline constexpr std::size_t kSeedKeyMax = 512;
inline constexpr std::size_t kSeedValueMax = 60 * 1024;

enum class SeedKind : std::uint8_t { kSet = 1, kGet = 2, kAnswer = 3, kProve = 4 };

struct SeedMessage {
  SeedKind kind = SeedKind::kGet;
  std::uint64_t id = 0;
  std::string_view key;    ///< In set, get and prove: 1 to kSeedKeyMax bytes.
  std::string_view value;  ///< In set: the value. In prove: the proof. In an answer: the value, or why there is none.
  Code code = Code::kOk;   ///< In an answer.
};

std::string encode(const SeedMessage& message);
/// kCorrupt where it is none, or longer than the bounds above.
Result<SeedMessage> decode_seed(std::span<const std::byte> bytes);

}  // namespace hawser::wire
