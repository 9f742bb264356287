#pragma once

// Flow: several submissions of a load in flight at a time, each replaced when it ended.

#include <cstdint>
#include <deque>
#include <vector>

#include "cli/bench/cpu.h"
#include "cli/bench/load.h"
#include "cli/bench/sampler.h"

namespace hawser::cli::bench {

/// How who waits for transfers lets time pass. Software devices need the processors: beside them one must sleep.
enum class Turns { kSpinning, kSleeping };

class Flow {
 public:
  Flow(Agent& agent, Load& load, std::size_t window, SubmitOptions options = {}, Turns turns = Turns::kSpinning)
      : agent_(agent), load_(load), window_(window), options_(options), turns_(turns) {}

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
  Turns turns_;
  std::deque<InFlight> in_flight_;
};

/// A flow for about `budget`, as GB/s.
Result<double> measure_flow(Agent& agent, Load& load, std::size_t window, Duration budget,
                            std::vector<std::uint64_t>& singles, std::uint64_t* bytes, Turns turns = Turns::kSpinning);

}  // namespace hawser::cli::bench
