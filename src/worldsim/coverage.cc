#include "worldsim/coverage.h"

#include <array>

namespace hawser::worldsim {

std::string_view to_string(Fault fault) {
  constexpr std::array<std::string_view, kFaults> kNames{"crash", "power loss", "stop",  "slow", "cut",
                                                         "reset", "half close", "delay", "loss", "full"};
  return kNames[static_cast<std::size_t>(fault)];
}

std::string_view to_string(Moment moment) {
  constexpr std::array<std::string_view, kMoments> kNames{"collective", "letter", "call",  "agree",
                                                          "shrink",     "decide", "leave", "relay"};
  return kNames[static_cast<std::size_t>(moment)];
}

bool possible(sim::Mode mode, Fault fault) {
  if (mode == sim::Mode::kStream) return true;
  return fault == Fault::kCrash || fault == Fault::kStop || fault == Fault::kSlow || fault == Fault::kDelay ||
         fault == Fault::kFull;
}

namespace {

simulation::CoverageGrid::Possible possible_in(sim::Mode mode) {
  return [mode](std::size_t fault, std::size_t) { return possible(mode, static_cast<Fault>(fault)); };
}

}  // namespace

std::size_t Coverage::empty_cells(sim::Mode mode) const { return grid_.empty_cells(possible_in(mode)); }

std::string Coverage::table(sim::Mode mode) const {
  return grid_.table({.corner = "world",
                      .row = [](std::size_t at) { return to_string(static_cast<Fault>(at)); },
                      .column = [](std::size_t at) { return to_string(static_cast<Moment>(at)); }},
                     possible_in(mode));
}

}  // namespace hawser::worldsim
