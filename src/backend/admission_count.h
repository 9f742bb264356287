#pragma once

// AdmissionCount: who came to a port's listener, and what became of them. Lines of the log about strangers are
// rationed, counts are not.
//
// Thread rule: confined to its lane.

#include <array>
#include <cstddef>
#include <cstdint>

#include <hawser/counters.h>
#include <hawser/status.h>

namespace hawser::backend {

class AdmissionCount {
 public:
  void let_in() { ++let_in_; }
  void turned_away(const Status& why) {
    const auto code = static_cast<std::size_t>(why.code());
    ++by_code_[code < by_code_.size() ? code : static_cast<std::size_t>(Code::kFailed)];
  }
  void gave_way() { ++gave_way_; }

  /// Without the backend's name.
  AdmissionCounters counters() const {
    AdmissionCounters all{
        .backend = {}, .let_in = let_in_, .turned_away = 0, .gave_way = gave_way_, .unanswered = 0, .by_code = {}};
    for (std::size_t code = 0; code < by_code_.size(); ++code) {
      if (by_code_[code] == 0) continue;
      all.turned_away += by_code_[code];
      all.by_code.emplace_back(to_string(static_cast<Code>(code)), by_code_[code]);
    }
    return all;
  }

 private:
  static constexpr std::size_t kCodes = static_cast<std::size_t>(Code::kFailed) + 1;  // The last one.

  std::uint64_t let_in_ = 0;
  std::uint64_t gave_way_ = 0;
  std::array<std::uint64_t, kCodes> by_code_{};
};

}  // namespace hawser::backend
