#include "quicsim/coverage.h"

#include <fmt/format.h>

namespace hawser::quicsim {

std::string_view to_string(Fault fault) {
  constexpr std::array<std::string_view, kFaults> kNames{"loss",   "cut",   "half cut", "delay", "shrink",
                                                         "rebind", "move",  "full",     "stop",  "power loss",
                                                         "forget", "close", "keys",     "replay"};
  return kNames[static_cast<std::size_t>(fault)];
}

std::string_view to_string(Moment moment) {
  constexpr std::array<std::string_view, kMoments> kNames{"shaking", "flowing", "held up", "parting", "quiet"};
  return kNames[static_cast<std::size_t>(moment)];
}

bool possible(Fault fault, Moment moment) { return fault != Fault::kKeys || moment != Moment::kShaking; }

void Coverage::add(const Coverage& other) {
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    for (std::size_t moment = 0; moment < kMoments; ++moment) cells_[fault][moment] += other.cells_[fault][moment];
  }
}

std::size_t Coverage::empty_cells(sim::Mode) const {
  std::size_t empty = 0;
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    for (std::size_t moment = 0; moment < kMoments; ++moment) {
      if (possible(static_cast<Fault>(fault), static_cast<Moment>(moment)) && cells_[fault][moment] == 0) ++empty;
    }
  }
  return empty;
}

std::string Coverage::table(sim::Mode) const {
  std::string text = fmt::format("{:<12}", "quic");
  for (std::size_t moment = 0; moment < kMoments; ++moment) {
    text += fmt::format("{:>12}", to_string(static_cast<Moment>(moment)));
  }
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    text += fmt::format("\n{:<12}", to_string(static_cast<Fault>(fault)));
    for (std::size_t moment = 0; moment < kMoments; ++moment) {
      const bool is_possible = possible(static_cast<Fault>(fault), static_cast<Moment>(moment));
      text += fmt::format("{:>12}", is_possible ? std::to_string(cells_[fault][moment]) : "-");
    }
  }
  return text + "\n";
}

}  // namespace hawser::quicsim
