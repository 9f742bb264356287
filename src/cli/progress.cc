#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace hawser::cli {
namespace {
constexpr Duration kInterval = std::chrono::milliseconds(100);
constexpr std::uint64_t kBarWidth = 32;  // characters
}  // namespace

Progress::Progress(std::string title, std::uint64_t total, bool enabled)
    : title_(std::move(title)), total_(total), enabled_(enabled && isatty(STDERR_FILENO) == 1) {}

void Progress::update(std::uint64_t done) {
  if (!enabled_) return;
  const Instant now = Clock::steady().now();
  if (drawn_ && now < next_) return;
  next_ = now + kInterval;
  draw(done);
}

void Progress::draw(std::uint64_t done) {
  const std::uint64_t filled = total_ == 0 ? kBarWidth : std::min(done, total_) * kBarWidth / total_;
  fmt::print(stderr, "\r\033[K{} [{}{}] {}/{}", title_, std::string(filled, '#'), std::string(kBarWidth - filled, '.'),
             done, total_);
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::finish() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace hawser::cli
