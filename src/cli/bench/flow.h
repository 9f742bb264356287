#pragma once

// Flow: several submissions of a load in flight at a time, each replaced when it ended.

#include <cstdint>
#include <deque>
#include <vector>

#include "cli/bench/cpu.h"
#include "cli/bench/load.h"
#include "cli/bench/sampler.h"

namespace hawser::cli::bench {

class Flow {
 public:
  Flow(Agent& agent, Load& load, std::size_t window, SubmitOptions options = {})
      : agent_(agent), load_(load), window_(window), options_(options) {}

  /// Fills the window and takes what ended. Returns how many ended.
  Result<std::size_t> step(std::vector<std::uint64_t>* singles);
  /// Waits for all that is in flight.
  Status drain();

 private:
  struct InFlight {
    Transfer transfer;
    std::int64_t begun;
  };
  Agent& agent_;
  Load& load_;
  std::size_t window_;
  SubmitOptions options_;
  std::deque<InFlight> in_flight_;
};

/// A flow for about `budget`, as GB/s.
Result<double> measure_flow(Agent& agent, Load& load, std::size_t window, Duration budget,
                            std::vector<std::uint64_t>& singles, std::uint64_t* bytes);

}  // namespace hawser::cli::bench
