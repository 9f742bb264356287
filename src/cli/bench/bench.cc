#include "cli/bench/bench.h"

#include <fmt/format.h>

#include "base/try.h"

namespace hawser::cli::bench {

StageSpec default_stage() { return {.key = "default", .backends = {}, .driven = false}; }

StageSpec tcp_stage(Params params) {
  std::string key = "tcp";
  for (const auto& [name, value] : params) key += fmt::format(" {}={}", name, value);
  return {.key = std::move(key), .backends = {tcp(std::move(params))}, .driven = false};
}

StageSpec driven_stage(std::vector<BackendSpec> backends) {
  std::string key = "driven";
  for (const BackendSpec& spec : backends) key += " " + spec.name;
  return {.key = std::move(key), .backends = std::move(backends), .driven = true};
}

Result<Stage*> Bench::stage(const StageSpec& spec) {
  if (stage_ && stage_->spec().key == spec.key && stage_->alive().ok()) return stage_.get();
  stage_.reset();
  HAWSER_TRY_ASSIGN(stage_, Stage::open(spec, {.config = options_.config, .arena_bytes = options_.arena_bytes}));
  return stage_.get();
}

ContestOptions Bench::contest(Stage& stage, double weight) const {
  ContestOptions options = contest_alone(weight);
  options.probe = [&stage] { return stage.core_round_trip_ns(); };
  return options;
}

ContestOptions Bench::contest_alone(double weight) const {
  const auto slice = Duration(static_cast<std::int64_t>(static_cast<double>(options_.slice.count()) * weight));
  return {.rounds = options_.rounds, .slice = slice, .probe = [] { return std::int64_t{-1}; }};
}

}  // namespace hawser::cli::bench
