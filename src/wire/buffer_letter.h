#pragma once

// BufferLetter: where the buffers of one rank's collective lie, as the ranks of one host tell each other before they
// decide whether they read them there (runtime/mapped_call.h).
//
// Grammar (little-endian, kBufferLetterSize bytes; what is not there is zero):
//   letter = flags:u8, known:u64, input, output
//   flags  = 1: the others can map what they read of this rank; 2: it has an input; 4: it has an output
//   input, output = index:u32, generation:u32, key:16, region_size:u64, offset:u64
//
// Thread rule: values and pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <hawser/status.h>

#include "base/id128.h"

namespace hawser::wire {

inline constexpr std::size_t kBufferPlaceSize = 40;
inline constexpr std::size_t kBufferLetterSize = 1 + 8 + 2 * kBufferPlaceSize;

struct BufferPlace {
  std::uint32_t index = 0;  ///< Of the region,
  std::uint32_t generation = 0;
  base::Id128 key;
  std::uint64_t region_size = 0;  ///< and its bytes.
  std::uint64_t offset = 0;       ///< Of the buffer in it.
  friend bool operator==(const BufferPlace&, const BufferPlace&) = default;
};

struct BufferLetter {
  bool can_be_mapped = false;
  /// Which regions of all ranks this rank has mapped for such a call, as a number: see MappedCall. 0: it does not know.
  std::uint64_t known = 0;
  std::optional<BufferPlace> input, output;
  friend bool operator==(const BufferLetter&, const BufferLetter&) = default;
};

void encode(const BufferLetter& letter, std::span<std::byte, kBufferLetterSize> out);
/// kCorrupt for all that encode does not write, and for offsets outside of their regions.
Result<BufferLetter> decode_buffer_letter(std::span<const std::byte> bytes);

}  // namespace hawser::wire
