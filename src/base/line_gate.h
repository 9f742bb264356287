#pragma once

// LineGate: lets one line of a kind through in each second, and counts those that it held back. A client that fails in
// a loop, or a peer that makes us fail, must not fill a disk.
//
// A kind is a text without its digits: "descriptor 5 is not registered" and "descriptor 6 ..." are one.
//
// Thread rule: thread-safe. Bound: kKinds kinds are told from each other; with more, the oldest is forgotten.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <hawser/time.h>

#include "base/mutex.h"

namespace hawser::base {

class LineGate {
 public:
  static constexpr std::size_t kKinds = 64;

  /// Whether this line may be written: how many of its kind were not since the last one that was. Nothing: it may not.
  std::optional<std::uint64_t> pass(std::string_view text, Instant now) {
    const std::uint64_t kind = kind_of(text);
    const MutexLock lock(mutex_);
    Seen* oldest = &seen_[0];
    for (Seen& one : seen_) {
      if (one.kind == kind) return look(one, now);
      if (one.at < oldest->at) oldest = &one;
    }
    *oldest = {.kind = kind, .at = now};
    return 0;
  }
  /// To be written behind such a line.
  static std::string more(std::uint64_t held_back) {
    return held_back == 0 ? std::string() : " (and " + std::to_string(held_back) + " more like it)";
  }

 private:
  static constexpr Duration kEvery = std::chrono::seconds(1);

  struct Seen {
    std::uint64_t kind = 0;
    Instant at = Instant::min();
    std::uint64_t held_back = 0;
  };

  static std::optional<std::uint64_t> look(Seen& one, Instant now) {
    if (now - one.at < kEvery) {
      ++one.held_back;
      return std::nullopt;
    }
    one.at = now;
    return std::exchange(one.held_back, 0);
  }
  static std::uint64_t kind_of(std::string_view text) {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a.
    for (const char c : text) {
      if (c >= '0' && c <= '9') continue;
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
    return hash | 1;
  }

  Mutex mutex_;
  std::array<Seen, kKinds> seen_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace hawser::base
