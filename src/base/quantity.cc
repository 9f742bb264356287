#include "base/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace hawser::base {
namespace {

struct Unit {
  std::string_view name;  ///< In lower case.
  std::uint64_t factor;
};

constexpr std::array kSizeUnits{
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"k", 1ULL << 10},
    Unit{"ki", 1ULL << 10},
    Unit{"kib", 1ULL << 10},
    Unit{"m", 1ULL << 20},
    Unit{"mi", 1ULL << 20},
    Unit{"mib", 1ULL << 20},
    Unit{"g", 1ULL << 30},
    Unit{"gi", 1ULL << 30},
    Unit{"gib", 1ULL << 30},
    Unit{"t", 1ULL << 40},
    Unit{"ti", 1ULL << 40},
    Unit{"tib", 1ULL << 40},
    Unit{"kb", 1'000},
    Unit{"mb", 1'000'000},
    Unit{"gb", 1'000'000'000},
    Unit{"tb", 1'000'000'000'000},
};

constexpr std::array kDurationUnits{
    Unit{"ns", 1},
    Unit{"us", 1'000},
    Unit{"\xc2\xb5s", 1'000},  // U+00B5, micro sign
    Unit{"ms", 1'000'000},
    Unit{"s", 1'000'000'000},
    Unit{"m", 60'000'000'000},
    Unit{"min", 60'000'000'000},
    Unit{"h", 3'600'000'000'000},
};

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Takes the digits at the front of `text`; nothing when there are none or they do not fit.
std::optional<std::uint64_t> take_digits(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

template <std::size_t kCount>
std::optional<std::uint64_t> find_factor(const std::array<Unit, kCount>& units, std::string_view name) {
  name = trim(name);
  for (const Unit& unit : units) {
    if (equal_ignoring_case(unit.name, name)) return unit.factor;
  }
  return std::nullopt;
}

/// `digits` after the decimal point, in units of 1 / factor; nothing when that is not whole.
std::optional<std::uint64_t> fraction(std::string_view digits, std::uint64_t factor) {
  std::uint64_t total = 0;
  for (const char digit : digits) {
    if (factor % 10 != 0) {
      if (digit != '0') return std::nullopt;
      continue;
    }
    factor /= 10;
    total += factor * static_cast<std::uint64_t>(digit - '0');
  }
  return total;
}

std::string_view take_fraction_digits(std::string_view& text) {
  if (text.empty() || text.front() != '.') return {};
  const auto* end = std::find_if_not(text.begin() + 1, text.end(), is_digit);
  const std::string_view digits = text.substr(1, static_cast<std::size_t>(end - text.begin()) - 1);
  if (!digits.empty()) text.remove_prefix(digits.size() + 1);
  return digits;
}

}  // namespace

std::optional<std::uint64_t> parse_count(std::string_view text) {
  text = trim(text);
  const auto value = take_digits(text);
  return text.empty() ? value : std::nullopt;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  text = trim(text);
  const auto value = take_digits(text);
  if (!value) return std::nullopt;
  const auto factor = find_factor(kSizeUnits, text);
  std::uint64_t size = 0;
  if (!factor || __builtin_mul_overflow(*value, *factor, &size)) return std::nullopt;
  return size;
}

std::optional<Duration> parse_duration(std::string_view text) {
  text = trim(text);
  const auto whole = take_digits(text);
  if (!whole) return std::nullopt;
  if (*whole == 0 && text.empty()) return Duration::zero();
  const std::string_view digits = take_fraction_digits(text);
  const auto factor = find_factor(kDurationUnits, text);
  if (!factor) return std::nullopt;
  const auto rest = fraction(digits, *factor);
  std::int64_t ns = 0;
  if (!rest || __builtin_mul_overflow(*whole, *factor, &ns) || __builtin_add_overflow(ns, *rest, &ns)) {
    return std::nullopt;
  }
  return Duration(ns);
}

std::optional<bool> parse_switch(std::string_view text) {
  text = trim(text);
  for (const std::string_view yes : {"true", "on", "yes", "1"}) {
    if (equal_ignoring_case(text, yes)) return true;
  }
  for (const std::string_view no : {"false", "off", "no", "0"}) {
    if (equal_ignoring_case(text, no)) return false;
  }
  return std::nullopt;
}

std::string format_size(std::uint64_t size) {
  constexpr std::array kUnits{Unit{"TiB", 1ULL << 40}, Unit{"GiB", 1ULL << 30}, Unit{"MiB", 1ULL << 20},
                              Unit{"KiB", 1ULL << 10}};
  for (const Unit& unit : kUnits) {
    if (size != 0 && size % unit.factor == 0) return std::to_string(size / unit.factor).append(unit.name);
  }
  return std::to_string(size);
}

std::string format_duration(Duration duration) {
  // Seconds are the largest unit written: "90s" reads better than "1.5min", and "120s" is as clear as "2min".
  constexpr std::array kUnits{Unit{"s", 1'000'000'000}, Unit{"ms", 1'000'000}, Unit{"us", 1'000}};
  const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 0));
  for (const Unit& unit : kUnits) {
    if (ns != 0 && ns % unit.factor == 0) return std::to_string(ns / unit.factor).append(unit.name);
  }
  return ns == 0 ? "0" : std::to_string(ns) + "ns";
}

std::string to_lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace hawser::base
