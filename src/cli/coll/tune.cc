#include "cli/coll/tune.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/host_id.h"
#include "base/try.h"
#include "cli/coll/call.h"

namespace hawser::cli::coll {
namespace {

using What = schedule::Operation;

constexpr std::size_t kRepetitionsMax = 100, kRepetitionsMin = 8;

struct Planned {
  Item item;
  bool is_fitted = true;
};

/// Each algorithm at sizes where it is used, and checks between them.
std::vector<Planned> plan_within_host() {
  std::vector<Planned> plan;
  const auto add = [&](What operation, std::string_view algorithm, std::vector<std::uint64_t> sizes, bool is_fitted) {
    const bool mapped = algorithm == "mapped";
    for (const std::uint64_t bytes : sizes) {
      plan.push_back({{.operation = operation, .bytes = bytes, .algorithm = algorithm, .mapped = mapped}, is_fitted});
    }
  };
  constexpr std::uint64_t kKilo = 1024, kMega = 1024 * kKilo;
  add(What::kBarrier, "dissemination", {0}, true);
  add(What::kBarrier, "boards", {0}, true);
  // A small broadcast goes one way. Ranks of other operations exchange messages, which takes longer; the model has one
  // value for both, and most operations exchange.
  add(What::kBroadcast, "tree", {64 * kKilo, kMega}, true);
  add(What::kBroadcast, "tree", {8, 512, 4 * kKilo, 256 * kKilo}, false);
  add(What::kBroadcast, "scatter and gather", {64 * kKilo, kMega}, true);
  add(What::kAllReduce, "doubling", {8, 4 * kKilo, 64 * kKilo, kMega}, true);
  add(What::kAllReduce, "circulant", {64 * kKilo, kMega}, true);
  add(What::kAllGather, "circulant", {8, 4 * kKilo, 64 * kKilo, kMega}, true);
  add(What::kReduceScatter, "circulant", {4 * kKilo, 64 * kKilo, kMega}, true);
  for (const What operation : {What::kBroadcast, What::kAllReduce, What::kAllGather, What::kReduceScatter}) {
    add(operation, "mapped", {64 * kKilo, kMega, 4 * kMega}, true);
    add(operation, "mapped", {256 * kKilo, 2 * kMega}, false);
    add(operation, "staged", {64 * kKilo, kMega}, true);
    add(operation, "staged", {4 * kKilo, 16 * kKilo, 256 * kKilo, 4 * kMega}, false);
  }
  for (const What operation : {What::kBroadcast, What::kAllReduce, What::kAllGather}) {
    add(operation, "boards", {8, 4 * kKilo}, true);
    add(operation, "boards", {512, 16 * kKilo, 64 * kKilo}, false);
  }
  add(What::kAllReduce, "doubling", {512, 16 * kKilo}, false);
  add(What::kAllReduce, "circulant", {256 * kKilo}, false);
  add(What::kAllGather, "circulant", {16 * kKilo, 256 * kKilo}, false);
  return plan;
}

std::vector<Planned> plan_between_hosts() {
  std::vector<Planned> plan = plan_within_host();
  std::erase_if(plan, [](const Planned& each) {
    return schedule::is_by_memory(schedule::algorithm_named(each.item.algorithm).value());
  });
  return plan;
}

/// Measures the whole plan in each round, one call after another: what disturbs the machine for a while disturbs one
/// round of each.
class Rounds {
 public:
  Rounds(World& world, std::vector<Planned> plan, bool far) : world_(world), plan_(std::move(plan)), far_(far) {}

  Status measure(std::size_t rounds) {
    std::vector<std::uint32_t> hosts;
    for (std::uint32_t rank = 0; rank < world_.size(); ++rank) hosts.push_back(world_.host(rank));
    Meter meter(world_);
    times_.resize(plan_.size());
    for (std::size_t round = 0; round < rounds; ++round) {
      samples_.emplace_back();
      for (std::size_t i = 0; i < plan_.size(); ++i) {
        const Item& item = plan_[i].item;
        HAWSER_TRY_ASSIGN(const Measured got,
                          meter.measure(item, Meter::repetitions_of(item.bytes, kRepetitionsMin, kRepetitionsMax)));
        wrong_ += got.wrong;
        // A way that the ranks do not have, as boards where they do not see each other's, is another one's time.
        if (schedule::to_string(got.algorithm) != item.algorithm) continue;
        const Parts parts = parts_of(call_of(item.operation, world_.size(), hosts, item.bytes), got.algorithm);
        const double ns = lower_quartile_of(got.ns);
        times_[i].push_back(ns);
        if (plan_[i].is_fitted) samples_.back().push_back({.parts = parts, .ns = ns});
        if (times_[i].size() > 1) continue;
        rows_.push_back(
            {.item = item, .algorithm = got.algorithm, .far = far_, .is_fitted = plan_[i].is_fitted, .parts = parts});
        planned_.push_back(i);
      }
    }
    for (std::size_t row = 0; row < rows_.size(); ++row) rows_[row].ns = lower_quartile_of(times_[planned_[row]]);
    return {};
  }

  /// Into the file, and what was measured beside it.
  Status fit(const Wanted& wanted, Tuned& tuned) {
    std::vector<CostSample> all;
    for (const TuneRow& row : rows_) {
      if (row.is_fitted) all.push_back({.parts = row.parts, .ns = row.ns});
    }
    HAWSER_TRY_ASSIGN(const auto costs, fit_rounds(all, samples_, wanted));
    for (std::size_t i = 0; i < costs.size(); ++i) {
      if (wanted[i] && schedule::kCostFields[i].is_far == far_) tuned.file.costs[i] = costs[i];
    }
    tuned.rows.insert(tuned.rows.end(), rows_.begin(), rows_.end());
    tuned.wrong += wrong_;
    return {};
  }

 private:
  World& world_;
  const std::vector<Planned> plan_;
  const bool far_;
  std::vector<std::vector<CostSample>> samples_;  ///< By round.
  std::vector<std::vector<double>> times_;        ///< By place in the plan.
  std::vector<std::size_t> planned_;              ///< By row, its place in the plan.
  std::vector<TuneRow> rows_;
  std::uint64_t wrong_ = 0;
};

/// The members of a group measure; the others of the world wait for them.
Status measure_among(World& world, bool is_member, bool far, std::size_t rounds, Tuned& tuned) {
  HAWSER_TRY_ASSIGN(World group, world.split(is_member ? std::optional<std::uint32_t>(0) : std::nullopt, 0));
  Status status;
  if (is_member) {
    Rounds measuring(group, far ? plan_between_hosts() : plan_within_host(), far);
    status = measuring.measure(rounds);
    const bool is_first = world.rank() == 0;
    if (status.ok() && is_first) status = measuring.fit(far ? wanted_between_hosts() : wanted_within_host(), tuned);
  }
  HAWSER_TRY(world.barrier());
  return status;
}

}  // namespace

Result<Tuned> tune(World& world, std::size_t rounds) {
  std::set<std::uint32_t> hosts;
  std::uint32_t mates = 0;  // On the host of rank 0.
  for (std::uint32_t rank = 0; rank < world.size(); ++rank) {
    hosts.insert(world.host(rank));
    mates += world.host(rank) == world.host(0) ? 1 : 0;
  }
  if (world.size() < 2) {
    return Status(Code::kUnsupported, "there is nothing to measure in a world of one rank")
        .with_advice("give -n 2 or more");
  }
  Tuned tuned;
  tuned.file.ranks = world.size();
  tuned.file.rounds = static_cast<std::uint32_t>(rounds);
  if (mates > 1) HAWSER_TRY(measure_among(world, world.host(world.rank()) == world.host(0), false, rounds, tuned));
  if (hosts.size() > 1) HAWSER_TRY(measure_among(world, world.local_rank() == 0, true, rounds, tuned));
  if (world.rank() != 0) return Tuned();
  tuned.file.host = base::host_name();
  tuned.file.cpu = cpu_name();
  tuned.file.measured = date_now();
  return tuned;
}

double misfit_of(const Tuned& tuned, const schedule::CostModel& model, bool fitted) {
  std::vector<CostSample> samples;
  for (const TuneRow& row : tuned.rows) {
    if (row.is_fitted == fitted) samples.push_back({.parts = row.parts, .ns = row.ns});
  }
  return misfit_of(samples, model);
}

double price_of_choices(const Tuned& tuned, const schedule::CostModel& model) {
  std::map<std::tuple<bool, What, std::uint64_t>, std::vector<const TuneRow*>> calls;
  for (const TuneRow& row : tuned.rows) calls[{row.far, row.item.operation, row.item.bytes}].push_back(&row);
  double sum = 0;
  std::size_t count = 0;
  for (const auto& [call, rows] : calls) {
    if (rows.size() < 2) continue;
    const auto cost = [&](const TuneRow* row) { return cost_of(row->parts, model); };
    const TuneRow* const chosen = *std::ranges::min_element(rows, {}, cost);
    const TuneRow* const fastest = *std::ranges::min_element(rows, {}, &TuneRow::ns);
    sum += std::log(chosen->ns / fastest->ns);
    ++count;
  }
  return count == 0 ? 1 : std::exp(sum / static_cast<double>(count));
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string date_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  std::array<char, 32> text = {};
  gmtime_r(&now, &parts);
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

}  // namespace hawser::cli::coll
