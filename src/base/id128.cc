#include "base/id128.h"

#include <sys/random.h>

#include <cerrno>

#include "base/check.h"

namespace hawser::base {

namespace {

constexpr int kHexDigits = 32;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Id128 random_id128() {
  Id128 id;
  while (id.is_zero()) {
    // 16 bytes come whole or not at all; only a signal before the kernel's pool is ready interrupts.
    const ssize_t got = ::getrandom(&id, sizeof(id), 0);
    HAWSER_ASSERT(got == sizeof(id) || (got < 0 && errno == EINTR), "the kernel gives no random bytes");
  }
  return id;
}

std::string to_hex(const Id128& id) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(kHexDigits, '0');
  for (int i = 0; i < kHexDigits; ++i) {
    const std::uint64_t half = i < kHexDigits / 2 ? id.hi : id.lo;
    text[static_cast<std::size_t>(i)] = kDigits[(half >> (60 - 4 * (i % 16))) & 15];
  }
  return text;
}

std::optional<Id128> id128_from_hex(std::string_view text) {
  if (text.size() != kHexDigits) return std::nullopt;
  Id128 id;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int value = hex_value(text[i]);
    if (value < 0) return std::nullopt;
    std::uint64_t& half = i < kHexDigits / 2 ? id.hi : id.lo;
    half = half << 4 | static_cast<std::uint64_t>(value);
  }
  return id;
}

}  // namespace hawser::base
