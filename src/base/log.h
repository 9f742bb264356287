#pragma once

// Logger: where a part writes its few lines. Handed down by options, never global, so that a thousand agents in one
// process log to a thousand places.
//
//   HAWSER_LOG(logger, kWarn, "peer {} closed its socket after {} bytes", name, bytes);
//
// Thread rule: copies are cheap and may be used by any thread; the sink is called by several at once.
// Lifetime: copies share the sink.

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include <hawser/log.h>
#include <hawser/status.h>

namespace hawser::base {

/// A line for stderr, with its newline.
std::string log_line(LogFormat format, LogLevel level, std::string_view text, std::chrono::system_clock::time_point at);

class Logger {
 public:
  /// Says nothing.
  Logger() = default;
  explicit Logger(const LogOptions& options);

  bool enabled(LogLevel level) const { return level >= level_ && level < LogLevel::kOff; }
  LogLevel level() const { return level_; }

  /// Formats and writes whatever the level; use HAWSER_LOG, which looks first.
  template <typename... Values>
  void write(LogLevel level, fmt::format_string<Values...> text, Values&&... values) const {
    vwrite(level, text, fmt::make_format_args(values...));
  }

 private:
  void vwrite(LogLevel level, fmt::string_view text, fmt::format_args values) const;

  LogLevel level_ = LogLevel::kOff;
  LogFormat format_ = LogFormat::kText;
  std::shared_ptr<const LogSink> sink_;  // null: stderr
};

/// "trace debug info warn error off" in any case, "warning" too.
Result<LogLevel> parse_log_level(std::string_view text);

}  // namespace hawser::base

/// A disabled line costs one compare and evaluates none of its values.
#define HAWSER_LOG(logger, level, ...)                                                                              \
  do {                                                                                                              \
    if (const ::hawser::base::Logger& hawser_logger = (logger); hawser_logger.enabled(::hawser::LogLevel::level)) { \
      hawser_logger.write(::hawser::LogLevel::level, __VA_ARGS__);                                                  \
    }                                                                                                               \
  } while (false)
