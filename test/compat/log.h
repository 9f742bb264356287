#pragma once

// For tests: a log that can be read.
//
// Thread rule: thread-safe. Lifetime: its sink may outlive it.

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <hawser/log.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

class Log {
 public:
  LogSink sink() {
    return [lines = lines_](LogLevel, std::string_view line) {
      const std::lock_guard lock(lines->mutex);
      lines->text.append(line).append("\n");
    };
  }
  std::string text() const {
    const std::lock_guard lock(lines_->mutex);
    return lines_->text;
  }
  bool has(std::string_view part) const { return text().find(part) != std::string::npos; }
  std::size_t count(std::string_view part) const {
    const std::string all = text();
    std::size_t found = 0;
    for (std::size_t at = 0; (at = all.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  }

 private:
  struct Lines {
    std::mutex mutex;
    std::string text;
  };
  std::shared_ptr<Lines> lines_ = std::make_shared<Lines>();
};

}  // namespace compat
HAWSER_NAMESPACE_END
