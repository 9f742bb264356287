#include "base/log.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "base/format.h"
#include "base/shown.h"

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
constexpr std::size_t kLineMax = std::size_t{64} << 10;

void write_stderr(LogFormat format, LogLevel level, std::string_view text) {
  // One call, so that lines of several threads do not mix.
  const std::string line = log_line(format, level, text, std::chrono::system_clock::now());
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::string utc(std::chrono::system_clock::time_point at) {
  const auto since_1970 = std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch());
  const auto seconds = static_cast<std::time_t>(std::chrono::floor<std::chrono::seconds>(since_1970).count());
  const auto milliseconds = static_cast<int>(since_1970.count() - std::int64_t{seconds} * 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text;
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return base::format("{}.{:03}Z", std::string_view(text.data(), size), milliseconds);
}

}  // namespace

std::string log_line(LogFormat format, LogLevel level, std::string_view text,
                     std::chrono::system_clock::time_point at) {
  if (format == LogFormat::kText) return base::format("{} hawser {}: {}\n", utc(at), to_string(level), text);
  const nlohmann::ordered_json line = {
      {"time", utc(at)}, {"level", to_string(level)}, {"process", ::getpid()}, {"text", text}};
  // Names come from peers and may not be UTF-8.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Logger::Logger(const LogOptions& options) : level_(options.level), format_(options.format) {
  if (options.sink) sink_ = std::make_shared<const LogSink>(options.sink);
}

void Logger::vwrite(LogLevel level, fmt::string_view text, fmt::format_args values) const {
  try {
    // Names in it come from peers, files and users: none of them may begin a line of its own or move a cursor.
    const std::string line = shown(base::vformat(text, values), kLineMax);
    if (sink_ != nullptr) {
      (*sink_)(level, line);
    } else {
      write_stderr(format_, level, line);
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
