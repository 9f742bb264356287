#pragma once

// Where an agent's log lines go. No line is logged for a transfer: its error is its answer, and `explain()` tells why.
//
// Thread rule: a sink is called from any thread that runs the library, several at once; it must not call back into the
// agent. What it throws is swallowed.

#include <cstdint>
#include <functional>
#include <string_view>

#include <hawser/export.h>

HAWSER_NAMESPACE_BEGIN

enum class LogLevel : std::uint8_t {
  kTrace = 0,
  kDebug = 1,
  kInfo = 2,
  kWarn = 3,
  kError = 4,
  kOff = 5,  ///< As a threshold: nothing is logged.
};

HAWSER_API std::string_view to_string(LogLevel level);

/// Gets one line without its newline; the text is valid during the call only.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// The form of lines on stderr. A sink gets the text alone.
enum class LogFormat : std::uint8_t {
  kText = 0,  ///< "2026-11-27T09:47:20.123Z hawser warn: TEXT": the time is UTC.
  kJson = 1,  ///< An object on one line: "time", "level", "process", "text".
};

struct LogOptions {
  LogLevel level = LogLevel::kWarn;  ///< Lines below it are not even formatted.
  LogSink sink = {};                 ///< Empty: stderr.
  LogFormat format = LogFormat::kText;
};

HAWSER_NAMESPACE_END
