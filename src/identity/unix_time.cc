#include "identity/unix_time.h"

#include <array>
#include <chrono>
#include <ctime>

namespace hawser::identity {

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts = {};
  std::array<char, 40> text;
  if (::gmtime_r(&time, &parts) == nullptr) return "an unknown time";
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

}  // namespace hawser::identity
