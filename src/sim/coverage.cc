#include "sim/coverage.h"

#include <algorithm>

#include <fmt/format.h>

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
    case Fault::kReset:
    case Fault::kHalfClose:
    case Fault::kPowerLoss:
      return false;
    default:
      return true;
  }
}

void Coverage::add(const Coverage& other) {
  for (std::size_t mode = 0; mode < cells_.size(); ++mode) {
    for (std::size_t fault = 0; fault < kFaults; ++fault) {
      for (std::size_t step = 0; step < kSteps; ++step) cells_[mode][fault][step] += other.cells_[mode][fault][step];
    }
  }
}

std::size_t Coverage::empty_cells(sim::Mode mode) const {
  std::size_t empty = 0;
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    for (std::size_t step = 0; step < kSteps; ++step) {
      const bool counts = possible(mode, static_cast<Fault>(fault), static_cast<Step>(step));
      if (counts && cells_[index(mode)][fault][step] == 0) ++empty;
    }
  }
  return empty;
}

std::string Coverage::table(sim::Mode mode) const {
  std::string text = fmt::format("{:<12}", mode == sim::Mode::kStream ? "stream" : "mapped");
  for (std::size_t step = 0; step < kSteps; ++step) text += fmt::format("{:>14}", to_string(static_cast<Step>(step)));
  text += '\n';
  for (std::size_t fault = 0; fault < kFaults; ++fault) {
    text += fmt::format("{:<12}", to_string(static_cast<Fault>(fault)));
    for (std::size_t step = 0; step < kSteps; ++step) {
      if (possible(mode, static_cast<Fault>(fault), static_cast<Step>(step))) {
        text += fmt::format("{:>14}", cells_[index(mode)][fault][step]);
      } else {
        text += fmt::format("{:>14}", "-");
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace hawser::simulation
