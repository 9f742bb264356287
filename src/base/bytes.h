#pragma once

// ByteWriter and ByteReader: values to bytes and back. Little-endian, unaligned, LEB128 for varints.
//
// A reader's input is hostile: it never reads outside its span, every length is checked against what is left and
// against the caller's maximum, and the first failure sticks: later reads give zeros and empty views, so a decoder
// checks ok() once at its end. The views it gives out live as long as the bytes it reads.
//
// Thread rule: one thread at a time. Lifetime: both borrow the caller's storage.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/check.h"
#include "base/id128.h"

namespace hawser::base {

/// A 64-bit varint never takes more.
inline constexpr std::size_t kVarintSizeMax = 10;

template <typename T>
T to_little_endian(T value) {
  static_assert(std::is_unsigned_v<T>);
  if constexpr (std::endian::native == std::endian::little || sizeof(T) == 1) {
    return value;
  } else {
    T swapped = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) swapped = static_cast<T>(swapped << 8 | ((value >> (8 * i)) & 0xff));
    return swapped;
  }
}

template <typename T>
void store_little_endian(void* to, T value) {
  value = to_little_endian(value);
  std::memcpy(to, &value, sizeof(T));
}

template <typename T>
T load_little_endian(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return to_little_endian(value);
}

std::size_t varint_size(std::uint64_t value);

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Appends to a string, which grows, or fills a fixed span, whose overflow sticks: nothing more is written and ok()
/// is false. Offsets count from where this writer began.
class ByteWriter {
 public:
  explicit ByteWriter(std::string* out) : out_(out), start_(out->size()) {}
  explicit ByteWriter(std::span<std::byte> out) : fixed_(out.data()), capacity_(out.size()) {}

  void u8(std::uint8_t value) { put_integer(value); }
  void u16(std::uint16_t value) { put_integer(value); }
  void u32(std::uint32_t value) { put_integer(value); }
  void u64(std::uint64_t value) { put_integer(value); }
  void varint(std::uint64_t value) {
    if (value < 0x80) return u8(static_cast<std::uint8_t>(value));
    long_varint(value);
  }
  void id(const Id128& value) {
    u64(value.lo);
    u64(value.hi);
  }
  void bytes(std::span<const std::byte> value) { put(value.data(), value.size()); }
  /// Varint length, then the bytes.
  void string(std::string_view value) {
    varint(value.size());
    put(value.data(), value.size());
  }
  void blob(std::span<const std::byte> value) { string(as_text(value)); }

  /// Overwrites four bytes written before.
  void patch_u32(std::size_t at, std::uint32_t value);
  /// A nested part with a u32 length before it, for ByteReader::block(). Give open_block()'s answer to close_block().
  std::size_t open_block() {
    const std::size_t at = size();
    u32(0);
    return at;
  }
  void close_block(std::size_t at);

  bool ok() const { return !overflowed_; }
  std::size_t size() const { return out_ != nullptr ? out_->size() - start_ : size_; }
  std::span<const std::byte> written() const;

 private:
  void long_varint(std::uint64_t value);
  template <typename T>
  void put_integer(T value) {
    value = to_little_endian(value);
    put(&value, sizeof(T));
  }
  void put(const void* data, std::size_t size) {
    if (out_ != nullptr) {
      out_->append(static_cast<const char*>(data), size);
      return;
    }
    if (overflowed_ || size > capacity_ - size_) {
      overflowed_ = true;
      return;
    }
    if (size != 0) std::memcpy(fixed_ + size_, data, size);
    size_ += size;
  }

  std::string* out_ = nullptr;
  std::size_t start_ = 0;
  std::byte* fixed_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  bool overflowed_ = false;
};

class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::byte> in) : at_(in.data()), end_(in.data() + in.size()) {}
  explicit ByteReader(std::string_view in) : ByteReader(as_bytes(in)) {}

  std::uint8_t u8() { return take_integer<std::uint8_t>(); }
  std::uint16_t u16() { return take_integer<std::uint16_t>(); }
  std::uint32_t u32() { return take_integer<std::uint32_t>(); }
  std::uint64_t u64() { return take_integer<std::uint64_t>(); }
  /// Fails on a value above `max`, and on one written longer than needed: equal values have equal bytes.
  std::uint64_t varint(std::uint64_t max = UINT64_MAX) {
    if (at_ != end_ && static_cast<std::uint8_t>(*at_) < 0x80) [[likely]] {
      return checked(static_cast<std::uint8_t>(*at_++), max);
    }
    return checked(long_varint(), max);
  }
  Id128 id() {
    const std::uint64_t lo = u64();
    const std::uint64_t hi = u64();
    return failed_ ? Id128{} : Id128{hi, lo};
  }
  /// Exactly `size` bytes.
  std::span<const std::byte> bytes(std::size_t size) {
    if (size > remaining()) [[unlikely]] {
      fail();
      return {};
    }
    const std::byte* from = at_;
    at_ += size;
    return {from, size};
  }
  /// Varint length of at most `size_max`, then the bytes.
  std::string_view string(std::size_t size_max) { return as_text(blob(size_max)); }
  std::span<const std::byte> blob(std::size_t size_max) { return bytes(static_cast<std::size_t>(varint(size_max))); }
  /// A count of items that follow, each of at least `item_size_min` (> 0) bytes: no more than can be there, so a
  /// decoder may reserve that many.
  std::size_t count(std::size_t count_max, std::size_t item_size_min) {
    const auto value = static_cast<std::size_t>(varint(count_max));
    if (value > remaining() / item_size_min) [[unlikely]] {
      fail();
      return 0;
    }
    return value;
  }

  /// A reader of the next `size` bytes, which this one skips. Its failure is its own: check both.
  ByteReader sub(std::size_t size) {
    ByteReader nested(bytes(size));
    nested.failed_ = failed_;
    return nested;
  }
  /// A part that was written between open_block() and close_block().
  ByteReader block(std::size_t size_max) {
    const std::uint32_t size = u32();
    if (size > size_max) fail();
    return sub(failed_ ? 0 : size);
  }
  void skip(std::size_t size) { bytes(size); }

  std::size_t remaining() const { return static_cast<std::size_t>(end_ - at_); }
  std::span<const std::byte> rest() const { return {at_, remaining()}; }
  bool at_end() const { return at_ == end_; }
  bool ok() const { return !failed_; }
  /// All read, nothing left, nothing failed.
  bool finished() const { return !failed_ && at_ == end_; }
  /// For a decoder that finds a value senseless.
  void fail() {
    failed_ = true;
    at_ = end_;
  }

 private:
  template <typename T>
  T take_integer() {
    if (sizeof(T) > remaining()) [[unlikely]] {
      fail();
      return 0;
    }
    const T value = load_little_endian<T>(at_);
    at_ += sizeof(T);
    return value;
  }
  std::uint64_t checked(std::uint64_t value, std::uint64_t max) {
    if (value > max) [[unlikely]] {
      fail();
      return 0;
    }
    return value;
  }
  std::uint64_t long_varint();

  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
  bool failed_ = false;
};

}  // namespace hawser::base
