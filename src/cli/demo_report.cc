#include "cli/demo_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/quantiles.h"
#include "cli/table.h"
#include "cli/units.h"

namespace hawser::cli {
namespace {

constexpr std::int64_t kNearNs = 260;  // between two cores that share a last-level cache
constexpr double kSteadyShare = 1.25;  // two measurements of one ceiling that differ more are of a busy machine

// The figures of one row: the cold pass, or the middle one of the warm passes with the latencies of all of them.
struct Figures {
  std::string pass;
  PassTimes times;
  Quantiles latency;
};

Figures cold_figures(const RunReport& run) {
  return {"cold", run.passes[0].times, quantiles_of(run.passes[0].times.latency_ns)};
}

Figures warm_figures(const RunReport& run) {
  std::vector<const PassTimes*> warm;
  std::vector<std::uint64_t> latency;
  for (std::size_t i = 1; i < run.passes.size(); ++i) {
    const PassTimes& times = run.passes[i].times;
    warm.push_back(&times);
    latency.insert(latency.end(), times.latency_ns.begin(), times.latency_ns.end());
  }
  std::sort(warm.begin(), warm.end(), [](const PassTimes* a, const PassTimes* b) { return a->wall_ns < b->wall_ns; });
  return {fmt::format("warm, {}", warm.size()), *warm[warm.size() / 2], quantiles_of(std::move(latency))};
}

std::vector<Figures> figures_of(const RunReport& run) {
  std::vector<Figures> rows;
  if (!run.passes.empty()) rows.push_back(cold_figures(run));
  if (run.passes.size() > 1) rows.push_back(warm_figures(run));
  return rows;
}

double wall_rate(const Figures& f) { return rate(f.times.bytes, f.times.wall_ns); }

double ratio(const Figures& f, const Ceiling& ceiling) {
  return ceiling.gb_per_s > 0 ? wall_rate(f) / ceiling.gb_per_s : 0;
}

std::uint64_t pieces_of(const Geometry& geometry, const PassTimes& times) {
  return times.bytes / geometry.block_bytes();
}

double us_per_block(const Geometry& geometry, const PassTimes& times) {
  const std::uint64_t pieces = pieces_of(geometry, times);
  return pieces == 0 ? 0 : static_cast<double>(times.wall_ns) / 1e3 / static_cast<double>(pieces);
}

std::string ns_text(std::uint64_t ns) { return short_duration(Duration(static_cast<std::int64_t>(ns))); }

std::string verified_text(const DemoOptions& options, const RunReport& run) {
  if (!options.verify) return "not asked";
  const char* word = run.verified == run.to_verify && run.to_verify > 0 ? "yes" : "NO";
  return fmt::format("{}, {} of {}", word, run.verified, run.to_verify);
}

void add_rows(Table& table, const DemoOptions& options, const RunReport& run) {
  for (const Figures& f : figures_of(run)) {
    const PassTimes& times = f.times;
    const double share = ratio(f, run.ceiling);
    table.add({run.backend, f.pass, std::to_string(times.latency_ns.size()),
               std::to_string(pieces_of(options.geometry, times)), short_size(times.bytes), short_rate(wall_rate(f)),
               short_rate(rate(times.bytes, times.moving_ns)), ns_text(f.latency.p50), ns_text(f.latency.p99),
               fmt::format("{:.2f}", us_per_block(options.geometry, times)), verified_text(options, run),
               short_rate(run.ceiling.gb_per_s), share > 0 ? fmt::format("{:.2f}", share) : "-"});
  }
}

std::string placement_text(std::int64_t ns) {
  if (ns == 0) return "one core";
  return fmt::format("{} ({} ns)", ns < kNearNs ? "near" : "far", ns);
}

// Other work on the machine, or cores that moved apart: figures of one run are then not of one machine.
bool is_steady(const RunReport& run) {
  const auto [low, high] = std::minmax(run.ceiling_before.gb_per_s, run.ceiling_after.gb_per_s);
  return high <= kSteadyShare * low && (run.core_ns_before < kNearNs) == (run.core_ns_after < kNearNs);
}

std::string ceiling_notes(const RunReport& run) {
  std::string text = fmt::format("{}: ceiling: {}, {} GB/s before and {} after\n", run.backend, run.ceiling.how,
                                 short_rate(run.ceiling_before.gb_per_s), short_rate(run.ceiling_after.gb_per_s));
  text += fmt::format("{}: cores {} before, {} after; {} pages\n", run.backend, placement_text(run.core_ns_before),
                      placement_text(run.core_ns_after), run.huge_pages ? "huge" : "4 KiB");
  if (!is_steady(run)) {
    text += fmt::format("{}: the machine changed during this run; repeat it when nothing else runs\n", run.backend);
  }
  return text;
}

std::string notes(const DemoOptions& options, const RunReport& run) {
  std::string text;
  if (run.ceiling.gb_per_s > 0) text += ceiling_notes(run);
  if (options.verify && run.verify_ns > 0) {
    text += fmt::format("{}: connected in {}; checksums took {} outside of the timed passes\n", run.backend,
                        short_duration(Duration(run.connect_ns)), short_duration(Duration(run.verify_ns)));
  }
  for (const std::string& fault : run.faults) text += fmt::format("{}: {}\n", run.backend, fault);
  if (!run.status.ok()) text += fmt::format("{}: {}\n", run.backend, run.status.to_string());
  return text;
}

Json ceiling_json(const RunReport& run) {
  if (run.ceiling.gb_per_s <= 0) return nullptr;
  return {{"gb_per_s", run.ceiling.gb_per_s},
          {"how", run.ceiling.how},
          {"before_gb_per_s", run.ceiling_before.gb_per_s},
          {"after_gb_per_s", run.ceiling_after.gb_per_s},
          {"steady", is_steady(run)}};
}

Json pass_json(const Geometry& geometry, const PassReport& pass) {
  const Quantiles latency = quantiles_of(pass.times.latency_ns);
  return {{"pass", pass.pass},
          {"cold", pass.pass == 0},
          {"requests", pass.times.latency_ns.size()},
          {"pieces", pieces_of(geometry, pass.times)},
          {"bytes", pass.times.bytes},
          {"wall_ns", pass.times.wall_ns},
          {"moving_ns", pass.times.moving_ns},
          {"gb_per_s_wall", rate(pass.times.bytes, pass.times.wall_ns)},
          {"gb_per_s_moving", rate(pass.times.bytes, pass.times.moving_ns)},
          {"us_per_piece", us_per_block(geometry, pass.times)},
          {"latency_ns", {{"min", latency.min}, {"p50", latency.p50}, {"p99", latency.p99}, {"max", latency.max}}}};
}

Json run_json(const DemoOptions& options, const RunReport& run) {
  Json json;
  json["backend"] = run.backend;
  json["ok"] = run.status.ok();
  json["error"] = to_json(run.status);
  json["passes"] = Json::array();
  for (const PassReport& pass : run.passes) json["passes"].push_back(pass_json(options.geometry, pass));
  json["warm"] = nullptr;
  if (run.passes.size() > 1) {
    const Figures warm = warm_figures(run);
    json["warm"] = {{"gb_per_s_wall", wall_rate(warm)},
                    {"gb_per_s_moving", rate(warm.times.bytes, warm.times.moving_ns)},
                    {"us_per_piece", us_per_block(options.geometry, warm.times)},
                    {"latency_ns", {{"p50", warm.latency.p50}, {"p99", warm.latency.p99}}},
                    {"ratio", ratio(warm, run.ceiling)}};
  }
  json["verified"] = {{"asked", options.verify}, {"good", run.verified}, {"of", run.to_verify}, {"ns", run.verify_ns}};
  json["faults"] = run.faults;
  json["ceiling"] = ceiling_json(run);
  json["connect_ns"] = run.connect_ns;
  json["huge_pages"] = run.huge_pages;
  json["core_round_trip_ns"] = {{"before", run.core_ns_before}, {"after", run.core_ns_after}};
  json["explain"] = run.explain;
  return json;
}

}  // namespace

std::string describe_work(const DemoOptions& options, const Workload& work) {
  const Geometry& g = options.geometry;
  const std::uint64_t bytes = work.total_blocks() * g.block_bytes_all();
  return fmt::format(
      "{}: {} layers of {} ({} tokens a block: {} a layer and plane, {} in all)\n"
      "{} requests of {}-{} tokens, {} blocks, {}; {} at a time, in {} wave{} of KV memory of {} a side; seed {}\n",
      g.model, g.layers, g.planes == 1 ? "one latent plane" : "K and V planes", g.block_tokens,
      short_size(g.block_bytes()), short_size(g.block_bytes_all()), options.requests, options.tokens.min,
      options.tokens.max, work.total_blocks(), short_size(bytes), options.concurrency, work.waves.size(),
      work.waves.size() == 1 ? "" : "s", short_size(work.blocks * g.block_bytes_all()), options.seed);
}

std::string report_text(const DemoOptions& options, const Workload& work, const std::vector<RunReport>& runs) {
  Table table({{"backend"},
               {"pass"},
               {"requests", Align::kRight},
               {"blocks", Align::kRight},
               {"bytes", Align::kRight},
               {"GB/s wall", Align::kRight},
               {"moving", Align::kRight},
               {"p50", Align::kRight},
               {"p99", Align::kRight},
               {"µs/block", Align::kRight},
               {"verified"},
               {"ceiling", Align::kRight},
               {"ratio", Align::kRight}});
  std::string after;
  for (const RunReport& run : runs) {
    add_rows(table, options, run);
    after += notes(options, run);
  }
  return describe_work(options, work) + "\n" + table.to_string() + "\n" + after;
}

Json report_json(const DemoOptions& options, const Workload& work, const std::vector<RunReport>& runs) {
  const Geometry& g = options.geometry;
  Json json = document("demo");
  json["ok"] = std::all_of(runs.begin(), runs.end(), [](const RunReport& run) { return run.status.ok(); });
  json["geometry"] = {{"model", g.model},
                      {"layers", g.layers},
                      {"planes", g.planes},
                      {"token_bytes", g.token_bytes},
                      {"block_tokens", g.block_tokens},
                      {"block_bytes", g.block_bytes()}};
  json["workload"] = {{"requests", options.requests},
                      {"tokens_min", options.tokens.min},
                      {"tokens_max", options.tokens.max},
                      {"blocks", work.total_blocks()},
                      {"bytes", work.total_blocks() * g.block_bytes_all()},
                      {"waves", work.waves.size()},
                      {"memory_per_side", work.blocks * g.block_bytes_all()},
                      {"concurrency", options.concurrency},
                      {"seed", options.seed}};
  json["runs"] = Json::array();
  for (const RunReport& run : runs) json["runs"].push_back(run_json(options, run));
  return json;
}

}  // namespace hawser::cli
