#include "base/bytes.h"

namespace hawser::base {

std::size_t varint_size(std::uint64_t value) { return (static_cast<std::size_t>(std::bit_width(value | 1)) + 6) / 7; }

void ByteWriter::long_varint(std::uint64_t value) {
  if (out_ == nullptr && !overflowed_ && capacity_ - size_ >= kVarintSizeMax) {  // Cards have many of them.
    std::byte* to = fixed_ + size_;
    for (; value >= 0x80; value >>= 7) *to++ = static_cast<std::byte>(value | 0x80);
    *to++ = static_cast<std::byte>(value);
    size_ = static_cast<std::size_t>(to - fixed_);
    return;
  }
  std::uint8_t encoded[kVarintSizeMax];
  std::size_t size = 0;
  while (value >= 0x80) {
    encoded[size++] = static_cast<std::uint8_t>(value | 0x80);
    value >>= 7;
  }
  encoded[size++] = static_cast<std::uint8_t>(value);
  put(encoded, size);
}

void ByteWriter::patch_u32(std::size_t at, std::uint32_t value) {
  if (overflowed_) return;  // what should be patched may never have been written
  HAWSER_ASSERT(at <= size() && size() - at >= sizeof(value), "patch outside of what was written");
  char* from = out_ != nullptr ? out_->data() + start_ : reinterpret_cast<char*>(fixed_);
  store_little_endian(from + at, value);
}

void ByteWriter::close_block(std::size_t at) {
  if (overflowed_) return;
  const std::size_t size = this->size() - at - sizeof(std::uint32_t);
  HAWSER_ASSERT(size <= UINT32_MAX, "a block of 4 GiB or more");
  patch_u32(at, static_cast<std::uint32_t>(size));
}

std::span<const std::byte> ByteWriter::written() const {
  if (out_ == nullptr) return {fixed_, size_};
  return as_bytes(std::string_view(*out_).substr(start_));
}

std::uint64_t ByteReader::long_varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; at_ != end_ && shift < 7 * kVarintSizeMax; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(*at_++);
    if (shift == 63 && byte > 1) break;  // more than 64 bits
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      if (byte == 0 && shift != 0) break;  // longer than needed
      return value;
    }
  }
  fail();
  return 0;
}

}  // namespace hawser::base
