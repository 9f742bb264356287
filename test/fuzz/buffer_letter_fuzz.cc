// Where a rank's buffers lie: the decoder answers, and what it accepts encodes to the same bytes again.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"
#include "wire/buffer_letter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser;
  const auto bytes = std::as_bytes(std::span(data, size));
  const Result<wire::BufferLetter> letter = wire::decode_buffer_letter(bytes);
  if (!letter) {
    HAWSER_ASSERT(letter.error().code() == Code::kCorrupt, "another error than kCorrupt");
    return 0;
  }
  std::array<std::byte, wire::kBufferLetterSize> again{};
  wire::encode(*letter, again);
  HAWSER_ASSERT(std::ranges::equal(again, bytes), "the letter changed");
  return 0;
}
