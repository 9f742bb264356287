#include "worldsim/coverage.h"

#include <fmt/format.h>

namespace hawser::worldsim {

std::string_view to_string(Fault fault) {
  constexpr std::array<std::string_view, kFaults> kNames{"crash", "power loss", "stop",  "slow", "cut",
                                                         "reset", "half close", "delay", "loss", "full"};
  return kNames[static_cast<std::size_t>(fault)];
}

std::string_view to_string(Moment moment) {
  constexpr std::array<std::string_view, kMoments> kNames{"collective", "letter", "call", "agree",
                                                          "shrink",     "decide", "leave"};
  return kNames[static_cast<std::size_t>(moment)];
}

bool possible(sim::Mode mode, Fault fault) {
  if (mode == sim::Mode::kStream) return true;
  return fault == Fault::kCrash || fault == Fault::kStop || fault == Fault::kSlow || fault == Fault::kDelay ||
         fault == Fault::kFull;
}

void Coverage::add(const Coverage& other) {
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    for (std::size_t moment = 0; moment < kMoments; ++moment) cells_[fault][moment] += other.cells_[fault][moment];
  }
}

std::size_t Coverage::empty_cells(sim::Mode mode) const {
  std::size_t empty = 0;
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    for (const std::uint64_t count : cells_[fault]) {
      if (possible(mode, static_cast<Fault>(fault)) && count == 0) ++empty;
    }
  }
  return empty;
}

std::string Coverage::table(sim::Mode mode) const {
  std::string text = fmt::format("{:<12}", "world");
  for (std::size_t moment = 0; moment < kMoments; ++moment) {
    text += fmt::format("{:>12}", to_string(static_cast<Moment>(moment)));
  }
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    text += fmt::format("\n{:<12}", to_string(static_cast<Fault>(fault)));
    for (const std::uint64_t count : cells_[fault]) {
      const bool is_possible = possible(mode, static_cast<Fault>(fault));
      text += fmt::format("{:>12}", is_possible ? std::to_string(count) : "-");
    }
  }
  return text + "\n";
}

}  // namespace hawser::worldsim
