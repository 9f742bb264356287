#pragma once

// AdmissionCount: who came to a port's listener, and what became of them. Lines of the log about strangers are
// rationed, counts are not.
//
// Thread rule: confined to its lane.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <hawser/counters.h>
#include <hawser/status.h>

namespace hawser::backend {

class AdmissionCount {
 public:
  void let_in() { ++let_in_; }
  void turned_away(const Status& why) {
    if (by_code_ == nullptr) by_code_ = std::make_unique<ByCode>();
    const auto code = static_cast<std::size_t>(why.code());
    ++(*by_code_)[code < kCodes ? code : static_cast<std::size_t>(Code::kFailed)];
  }
  void gave_way() { ++gave_way_; }

  /// Without the backend's name.
  AdmissionCounters counters() const {
    AdmissionCounters all{
        .backend = {}, .let_in = let_in_, .turned_away = 0, .gave_way = gave_way_, .unanswered = 0, .by_code = {}};
    for (std::size_t code = 0; by_code_ != nullptr && code < kCodes; ++code) {
      const std::uint64_t count = (*by_code_)[code];
      if (count == 0) continue;
      all.turned_away += count;
      all.by_code.emplace_back(to_string(static_cast<Code>(code)), count);
    }
    return all;
  }

 private:
  static constexpr std::size_t kCodes = static_cast<std::size_t>(Code::kFailed) + 1;  // The last one.
  using ByCode = std::array<std::uint64_t, kCodes>;

  std::uint64_t let_in_ = 0;
  std::uint64_t gave_way_ = 0;
  std::unique_ptr<ByCode> by_code_;  ///< Null until somebody is turned away: an idle agent is small.
};

}  // namespace hawser::backend
