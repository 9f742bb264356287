#include "base/log.h"

#include <cstdio>
#include <iterator>
#include <string>

#include "base/format.h"

HAWSER_NAMESPACE_BEGIN

namespace {

constexpr std::string_view kLevelNames[] = {"trace", "debug", "info", "warn", "error", "off"};

}  // namespace

std::string_view to_string(LogLevel level) {
  const auto index = static_cast<std::size_t>(level);
  return index < std::size(kLevelNames) ? kLevelNames[index] : std::string_view("unknown");
}

HAWSER_NAMESPACE_END

namespace hawser::base {

namespace {

constexpr std::size_t kLevelShownMax = 100;  // of a wrong text in an error

void write_stderr(LogLevel level, std::string_view text) {
  // One call, so that lines of several threads do not mix.
  const std::string line = base::format("hawser {}: {}\n", to_string(level), text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

}  // namespace

Logger::Logger(const LogOptions& options) : level_(options.level) {
  if (options.sink) sink_ = std::make_shared<const LogSink>(options.sink);
}

void Logger::vwrite(LogLevel level, fmt::string_view text, fmt::format_args values) const {
  try {
    const std::string line = base::vformat(text, values);
    if (sink_ != nullptr) {
      (*sink_)(level, line);
    } else {
      write_stderr(level, line);
    }
  } catch (...) {  // a line that cannot be written must not end what it tells about
  }
}

Result<LogLevel> parse_log_level(std::string_view text) {
  const std::string lower = lower_case(text.substr(0, kLevelShownMax));
  if (lower == "warning") return LogLevel::kWarn;
  for (std::size_t i = 0; i < std::size(kLevelNames); ++i) {
    if (lower == kLevelNames[i]) return static_cast<LogLevel>(i);
  }
  return Status(Code::kInvalid, base::format("'{}' is no log level", text.substr(0, kLevelShownMax)))
      .with_advice("use one of trace, debug, info, warn, error, off");
}

}  // namespace hawser::base
