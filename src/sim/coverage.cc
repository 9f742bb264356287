#include "sim/coverage.h"

#include <array>

namespace hawser::simulation {

std::string_view to_string(Fault fault) {
  constexpr std::array<std::string_view, kFaults> kNames{"loss",       "delay",      "partition",  "one way", "reset",
                                                         "half close", "crash",      "power loss", "restart", "slow",
                                                         "stop",       "full queue", "device"};
  return kNames[static_cast<std::size_t>(fault)];
}

std::string_view to_string(Step step) {
  constexpr std::array<std::string_view, kSteps> kNames{"connect",      "hello", "prepare", "in flight", "ack",
                                                        "notification", "close", "ask",     "answer"};
  return kNames[static_cast<std::size_t>(step)];
}

bool possible(sim::Mode mode, Fault fault, Step step) {
  if (mode == sim::Mode::kStream) return true;
  if (step == Step::kAck) return false;
  switch (fault) {
    case Fault::kLoss:
    case Fault::kPartition:
    case Fault::kOneWay:
    case Fault::kHalfClose:
    case Fault::kPowerLoss:
      return false;
    default:
      return true;
  }
}

namespace {

CoverageGrid::Possible possible_in(sim::Mode mode) {
  return [mode](std::size_t fault, std::size_t step) {
    return possible(mode, static_cast<Fault>(fault), static_cast<Step>(step));
  };
}

}  // namespace

void Coverage::add(const Coverage& other) {
  for (std::size_t mode = 0; mode < grids_.size(); ++mode) grids_[mode].add(other.grids_[mode]);
}

std::size_t Coverage::empty_cells(sim::Mode mode) const { return grids_[index(mode)].empty_cells(possible_in(mode)); }

std::string Coverage::table(sim::Mode mode) const {
  return grids_[index(mode)].table({.corner = mode == sim::Mode::kStream ? "stream" : "mapped",
                                    .row = [](std::size_t at) { return to_string(static_cast<Fault>(at)); },
                                    .column = [](std::size_t at) { return to_string(static_cast<Step>(at)); }},
                                   possible_in(mode));
}

}  // namespace hawser::simulation
