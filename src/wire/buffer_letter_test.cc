#include "wire/buffer_letter.h"

#include <gtest/gtest.h>

#include <string>

#include "wire/test_bytes.h"

namespace hawser::wire {
namespace {

using LetterBytes = std::array<std::byte, kBufferLetterSize>;

LetterBytes bytes_of(const BufferLetter& letter) {
  LetterBytes bytes;
  encode(letter, bytes);
  return bytes;
}

BufferLetter full_letter() {
  return {.can_be_mapped = true,
          .known = 0x0102030405060708,
          .input = BufferPlace{.index = 1, .generation = 2, .key = {3, 4}, .region_size = 4096, .offset = 64},
          .output = BufferPlace{.index = 5, .generation = 6, .key = {7, 8}, .region_size = 8192, .offset = 8192}};
}

TEST(WireBufferLetter, GoldenVectors) {
  EXPECT_EQ(hex(std::string(base::as_text(bytes_of(full_letter())))),
            "07"
            "0807060504030201"
            "0100000002000000"
            "04000000000000000300000000000000"
            "00100000000000004000000000000000"
            "0500000006000000"
            "08000000000000000700000000000000"
            "00200000000000000020000000000000");
  EXPECT_EQ(hex(std::string(base::as_text(bytes_of({})))), std::string(2 * kBufferLetterSize, '0'));
}

TEST(WireBufferLetter, WhatIsDecodedIsWrittenTheSameAgain) {
  BufferLetter letter = full_letter();
  for (const bool has_input : {true, false}) {
    if (!has_input) letter.input.reset();
    const auto read = decode_buffer_letter(bytes_of(letter));
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, letter);
  }
}

TEST(WireBufferLetter, WhatIsSenselessIsCorrupt) {
  const LetterBytes good = bytes_of(full_letter());
  EXPECT_FALSE(decode_buffer_letter(std::span(good).first(kBufferLetterSize - 1)));
  LetterBytes bad = good;
  bad[0] = std::byte{8 | 7};
  EXPECT_FALSE(decode_buffer_letter(bad)) << "an unknown flag";
  bad[0] = std::byte{5};
  EXPECT_FALSE(decode_buffer_letter(bad)) << "an input that is said not to be there";
  BufferLetter letter = full_letter();
  letter.output->offset = letter.output->region_size + 1;
  EXPECT_FALSE(decode_buffer_letter(bytes_of(letter)));
  letter = full_letter();
  letter.input->generation = 0;
  EXPECT_FALSE(decode_buffer_letter(bytes_of(letter)));
}

}  // namespace
}  // namespace hawser::wire
