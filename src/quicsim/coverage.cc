#include "quicsim/coverage.h"

#include <array>

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

namespace {

bool is_possible(std::size_t fault, std::size_t moment) {
  return possible(static_cast<Fault>(fault), static_cast<Moment>(moment));
}

}  // namespace

std::size_t Coverage::empty_cells(sim::Mode) const { return grid_.empty_cells(is_possible); }

std::string Coverage::table(sim::Mode) const {
  return grid_.table({.corner = "quic",
                      .row = [](std::size_t at) { return to_string(static_cast<Fault>(at)); },
                      .column = [](std::size_t at) { return to_string(static_cast<Moment>(at)); }},
                     is_possible);
}

}  // namespace hawser::quicsim
