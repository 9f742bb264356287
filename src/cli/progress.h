#pragma once

// A progress bar on stderr, drawn only when stderr is a terminal, at most ten times a second, and removed at its end.

#include <cstdint>
#include <string>

#include <hawser/time.h>

namespace hawser::cli {

class Progress {
 public:
  /// `enabled` false draws nothing (--json, --quiet).
  Progress(std::string title, std::uint64_t total, bool enabled);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { finish(); }

  void update(std::uint64_t done);
  void finish();

 private:
  void draw(std::uint64_t done);

  std::string title_;
  std::uint64_t total_;
  bool enabled_;
  bool drawn_ = false;
  Instant next_;
};

}  // namespace hawser::cli
