#include "wire/buffer_letter.h"

#include <algorithm>

#include "base/bytes.h"

namespace hawser::wire {
namespace {

enum LetterFlag : std::uint8_t { kCanBeMapped = 1, kHasInput = 2, kHasOutput = 4 };
constexpr std::uint8_t kLetterFlags = 7;

void put_place(base::ByteWriter& out, const std::optional<BufferPlace>& place) {
  const BufferPlace its = place.value_or(BufferPlace());
  out.u32(its.index);
  out.u32(its.generation);
  out.id(its.key);
  out.u64(its.region_size);
  out.u64(its.offset);
}

BufferPlace get_place(base::ByteReader& in) {
  BufferPlace place;
  place.index = in.u32();
  place.generation = in.u32();
  place.key = in.id();
  place.region_size = in.u64();
  place.offset = in.u64();
  return place;
}

/// A place that is there names a region; one that is not there is zero.
bool is_right(const BufferPlace& place, bool is_there) {
  if (!is_there) return place == BufferPlace();
  return place.generation != 0 && place.region_size != 0 && place.offset <= place.region_size;
}

}  // namespace

void encode(const BufferLetter& letter, std::span<std::byte, kBufferLetterSize> out) {
  base::ByteWriter writer{std::span<std::byte>(out)};
  writer.u8(static_cast<std::uint8_t>((letter.can_be_mapped ? kCanBeMapped : 0) | (letter.input ? kHasInput : 0) |
                                      (letter.output ? kHasOutput : 0)));
  writer.u64(letter.known);
  put_place(writer, letter.input);
  put_place(writer, letter.output);
}

Result<BufferLetter> decode_buffer_letter(std::span<const std::byte> bytes) {
  const auto corrupt = [](const char* text) { return Status(Code::kCorrupt, std::string("buffer letter: ") + text); };
  if (bytes.size() != kBufferLetterSize) return corrupt("it has another size");
  base::ByteReader in(bytes);
  const std::uint8_t flags = in.u8();
  BufferLetter letter;
  letter.can_be_mapped = (flags & kCanBeMapped) != 0;
  letter.known = in.u64();
  const BufferPlace input = get_place(in), output = get_place(in);
  const bool has_input = (flags & kHasInput) != 0, has_output = (flags & kHasOutput) != 0;
  if (flags > kLetterFlags || !is_right(input, has_input) || !is_right(output, has_output)) {
    return corrupt("flags and places do not fit");
  }
  if (has_input) letter.input = input;
  if (has_output) letter.output = output;
  return letter;
}

}  // namespace hawser::wire
