#pragma once

// Prefill::Pass: one pass over a wave, as a loop over requests under way. See demo_prefill.h.

#include <functional>
#include <map>
#include <vector>

#include "cli/demo_prefill.h"

namespace hawser::cli {

class Prefill::Pass {
 public:
  Pass(Prefill& side, std::uint32_t number, std::uint32_t concurrency)
      : side_(side), number_(number), concurrency_(concurrency) {}

  Result<PassTimes> run(const std::function<Status(std::uint32_t)>& alive);

 private:
  /// A request under way.
  struct Flight {
    const Job* job = nullptr;
    std::uint32_t submitted = 0;  ///< Layers.
    std::uint32_t done = 0;       ///< Layers.
    bool acknowledged = false;
    Instant started;
    std::vector<Transfer> transfers;
  };

  Status turn();
  Status submit_more(std::uint32_t id, Flight& flight);
  /// False: a bound was reached, try again later.
  Result<bool> submit_layer(std::uint32_t id, Flight& flight);
  Status take_completions();
  Status take_acks();
  void finish(std::map<std::uint32_t, Flight>::iterator flight);
  void count_submit(Instant now);
  void count_done(Instant now);

  Prefill& side_;
  const std::uint32_t number_;
  const std::uint32_t concurrency_;
  std::map<std::uint32_t, Flight> flights_;  ///< By request.
  std::size_t next_job_ = 0;
  std::uint32_t acknowledged_ = 0;
  std::uint64_t under_way_ = 0;  ///< Transfers.
  Instant moving_since_;
  Instant first_, last_;
  PassTimes times_;
};

}  // namespace hawser::cli
