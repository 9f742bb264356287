#pragma once

// Bench: what rows run in. It keeps the stage of the row before when the next one wants the same.
//
// Thread rule: one thread.

#include <memory>
#include <string>

#include "cli/bench/contest.h"
#include "cli/bench/stage.h"

namespace hawser::cli::bench {

struct BenchOptions {
  std::string config;  ///< A TOML file, or empty.
  std::size_t rounds = 5;
  Duration slice = std::chrono::milliseconds(30);  ///< That one contender gets in one round.
  std::uint64_t arena_bytes = 512u << 20;          ///< That scattered blocks are taken from, on each side.
  bool quick = false;
};

class Bench {
 public:
  explicit Bench(BenchOptions options) : options_(std::move(options)) {}

  const BenchOptions& options() const { return options_; }
  /// A stage as specified: the one there is, or a new one in its place.
  Result<Stage*> stage(const StageSpec& spec);
  void drop_stage() { stage_.reset(); }
  /// Rounds on `stage`; `weight` multiplies a slice's time, for slow things.
  ContestOptions contest(Stage& stage, double weight = 1) const;
  /// Rounds without a second process.
  ContestOptions contest_alone(double weight = 1) const;

 private:
  BenchOptions options_;
  std::unique_ptr<Stage> stage_;
};

/// The default configuration: all backends that work here.
StageSpec default_stage();
/// tcp alone, with its default parameters overlaid.
StageSpec tcp_stage(Params params = {});
/// The default configuration, run by drivers.
StageSpec driven_stage(std::vector<BackendSpec> backends = {});

}  // namespace hawser::cli::bench
