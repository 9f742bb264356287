#pragma once

// Quantities as people write them in parameters, environment variables and files: sizes, durations, switches.
//
// Case does not matter, blanks around the text are ignored, and nothing is guessed: what is not exactly of the stated
// form, or does not fit, is no value. Callers put the k...Form text into their error, so a user learns what to write.
//
// Thread rule: pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/time.h>

namespace hawser::base {

inline constexpr std::string_view kCountForm = "a whole number, such as 16";
inline constexpr std::string_view kSizeForm =
    "a size in bytes, such as 65536, 64KiB, 1MiB or 2G (K, M, G, T count by 1024; KB, MB, GB, TB by 1000)";
inline constexpr std::string_view kDurationForm = "a duration with its unit, such as 250us, 500ms, 1.5s, 2min or 1h";
inline constexpr std::string_view kSwitchForm = "true or false (on, off, yes, no, 1 and 0 do too)";

std::optional<std::uint64_t> parse_count(std::string_view text);
std::optional<std::uint64_t> parse_size(std::string_view text);
/// Not negative. A bare 0 needs no unit; a fraction finer than a nanosecond is no value.
std::optional<Duration> parse_duration(std::string_view text);
std::optional<bool> parse_switch(std::string_view text);

/// The shortest exact form: parse_size(format_size(n)) == n, and so on.
std::string format_size(std::uint64_t size);
std::string format_duration(Duration duration);

/// ASCII only, so that it does not depend on the locale.
std::string to_lower(std::string_view text);
std::string_view trim(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace hawser::base
