#pragma once

// LineGate: lets one line of a kind through in each second, and counts those that it held back. A client that fails in
// a loop, or a stranger who makes us fail, must not fill a disk.
//
// A kind is a number that the caller chooses, for lines whose text a stranger can vary, or a text without its
// digits: "descriptor 5 is not registered" and "descriptor 6 ..." are one kind.
//
// Thread rule: thread-safe. Bound: kKinds lines in a second, whatever their kinds; its memory is fixed.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
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

  /// Nothing: this line is not written. Else it is, and the number says how many of its kind were not since the last.
  std::optional<std::uint64_t> pass(std::string_view text, Instant now) { return pass_kind(kind_of(text), now); }
  std::optional<std::uint64_t> pass_kind(std::uint64_t kind, Instant now) {
    const MutexLock lock(mutex_);
    if (seen_ == nullptr) seen_ = std::make_unique<std::array<Seen, kKinds>>();
    Seen* oldest = &(*seen_)[0];
    for (Seen& one : *seen_) {
      if (one.is_used && one.kind == kind) return look(one, now);
      if (one.at < oldest->at) oldest = &one;
    }
    if (oldest->is_used && now - oldest->at < kEvery) return std::nullopt;  // All kinds are of this second.
    *oldest = {.is_used = true, .kind = kind, .at = now};
    return 0;
  }
  /// To be written behind such a line.
  static std::string more(std::uint64_t held_back) {
    return held_back == 0 ? std::string() : " (and " + std::to_string(held_back) + " more like it before)";
  }

 private:
  static constexpr Duration kEvery = std::chrono::seconds(1);

  struct Seen {
    bool is_used = false;
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
    return hash;
  }

  Mutex mutex_;
  std::unique_ptr<std::array<Seen, kKinds>> seen_ HAWSER_GUARDED_BY(mutex_);  ///< Most agents never log one.
};

}  // namespace hawser::base
