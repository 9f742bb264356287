// Rows: memory of the same host, mapped or by cross-memory attach, against the best copy that this machine does.

#include <fmt/format.h>

#include "cli/bench/catalog.h"
#include "cli/bench/load.h"
#include "cli/bench/raw_cross.h"
#include "cli/bench/sampler.h"
#include "cli/quantiles.h"
#include "cli/raw_copy.h"
#include "cli/units.h"

namespace hawser::cli::bench {
namespace {

constexpr std::uint64_t kBatch = 16;  // blocks of 64 KiB in the rows "batch"
constexpr std::size_t kCrossBatches[] = {64, 1024};

// One plan after the other, each to its end. Median time of one, as GB/s.
Slice subject(Stage& stage, Load& load, std::vector<std::uint64_t>& singles) {
  return [&](Duration budget) {
    return stage.measure({{"mode", "serve"}}, [&]() -> Result<double> {
      HAWSER_TRY_ASSIGN(const double ns,
                        sample_ns(budget, 1, &singles, [&] { return run_plan(stage.agent(), load.next_plan()); }));
      return static_cast<double>(load.shape().bytes()) / ns;
    });
  };
}

// A raw way, while the child spins as it does for Hawser.
template <typename Op>
Slice raw(Stage& stage, std::uint64_t bytes, Op op) {
  return [&stage, bytes, op](Duration budget) {
    return stage.measure({{"mode", "serve"}}, [&]() -> Result<double> {
      HAWSER_TRY_ASSIGN(const double ns, sample_ns(budget, 1, nullptr, op));
      return static_cast<double>(bytes) / ns;
    });
  };
}

using Pieces = std::vector<std::vector<base::CopyPiece>>;

// The load's blocks, between its local memory and the board: a memory file that both processes map.
Pieces mapped_pieces(Stage& stage, const Load& load) {
  Pieces all;
  const bool write = load.shape().operation == Operation::kWrite;
  const std::uint64_t size = load.shape().block_bytes;
  for (std::size_t plan = 0; plan < load.plan_count(); ++plan) {
    const auto local = load.local_blocks(plan).indices(), remote = load.remote_blocks(plan).indices();
    auto& pieces = all.emplace_back();
    for (std::size_t i = 0; i < local.size(); ++i) {
      std::byte* here = load.local().data() + local[i] * size;
      std::byte* there = stage.board().arena().data() + remote[i] * size;
      pieces.push_back(write ? base::CopyPiece{there, here, size} : base::CopyPiece{here, there, size});
    }
  }
  return all;
}

void add_copy_ways(Contest& contest, Stage& stage, const Load& load) {
  const auto pieces = std::make_shared<const Pieces>(mapped_pieces(stage, load));
  const LoadShape& shape = load.shape();
  for (const CopyWay& way : copy_ways(shape.block_bytes, shape.bytes(), shape.scattered())) {
    contest.ceilings.push_back({way.name, raw(stage, shape.bytes(), [way, pieces, next = std::size_t{0}]() mutable {
                                  way.run((*pieces)[next++ % pieces->size()]);
                                  return Status();
                                })});
  }
}

CrossLoad cross_load(Stage& stage, const Load& load, std::size_t plan) {
  CrossLoad cross{stage.child_pid(), load.shape().operation, {}, {}};
  const std::uint64_t size = load.shape().block_bytes;
  for (const std::uint32_t index : load.local_blocks(plan).indices()) {
    cross.local.push_back({load.local().data() + index * size, size});
  }
  for (const std::uint32_t index : load.remote_blocks(plan).indices()) {
    cross.remote.push_back({reinterpret_cast<void*>(load.remote().address + index * size), size});
  }
  return cross;
}

void add_cross_ways(Contest& contest, Stage& stage, const Load& load) {
  const auto all = std::make_shared<std::vector<CrossLoad>>();
  for (std::size_t plan = 0; plan < load.plan_count(); ++plan) all->push_back(cross_load(stage, load, plan));
  for (const std::size_t batch : kCrossBatches) {
    contest.ceilings.push_back(
        {fmt::format("process_vm, {} pieces a call", std::min<std::size_t>(batch, load.shape().count)),
         raw(stage, load.shape().bytes(), [all, batch, next = std::size_t{0}]() mutable {
           return cross_copy((*all)[next++ % all->size()], batch);
         })});
    if (load.shape().count <= batch) break;
  }
}

Result<Figure> run_shm(Bench& bench, const LoadShape& shape) {
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(default_stage()));
  stage->board().touch();
  HAWSER_TRY_ASSIGN(const auto load, Load::prepare(*stage, shape));
  std::vector<std::uint64_t> singles;
  Contest contest{.better = Better::kHigher, .subject = {"hawser", subject(*stage, *load, singles)}};
  if (shape.memory == MemoryKind::kForeign) {
    add_cross_ways(contest, *stage, *load);
  } else {
    add_copy_ways(contest, *stage, *load);
  }
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest(*stage)));
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50;
  figure.p99_ns = times.p99;
  figure.cold = rate(shape.bytes(), load->cold_ns());
  HAWSER_TRY(load->verify(&figure.verified_bytes));
  if (const std::string by = load->carried_by(); by != "shm") figure.note = "went by " + by;
  return figure;
}

void add(std::vector<Row>& rows, std::string id, std::string what, double target, const LoadShape& shape) {
  rows.push_back({std::move(id), std::move(what), "GB/s", Better::kHigher, ratio_at_least(target),
                  [shape](Bench& bench) { return run_shm(bench, shape); }});
}

constexpr struct {
  Operation operation;
  const char* name;
} kOperations[] = {{Operation::kWrite, "write"}, {Operation::kRead, "read"}};

void add_contiguous(std::vector<Row>& rows) {
  for (const auto& [operation, name] : kOperations) {
    for (const std::uint64_t size : {64u << 10, 1u << 20, 64u << 20}) {
      add(rows, fmt::format("shm.{}.{}", name, size_id(size)),
          fmt::format("{} of {}, allocated, ÷ best copy", name, short_size(size)), size == 64 << 10 ? 0.9 : 0.95,
          {.operation = operation, .block_bytes = size});
    }
    // Blocks apart, so that they are not merged into one.
    add(rows, fmt::format("shm.{}.64k.batch", name), fmt::format("{} of {} × 64 KiB in one plan", name, kBatch), 0.95,
        {.operation = operation, .block_bytes = 64 << 10, .count = kBatch, .arena_bytes = 2 * kBatch * (64 << 10)});
  }
}

void add_foreign(std::vector<Row>& rows, std::uint64_t arena_bytes) {
  for (const auto& [operation, name] : kOperations) {
    for (const std::uint64_t size : {1u << 20, 64u << 20}) {
      add(rows, fmt::format("shm.foreign.{}.{}", name, size_id(size)),
          fmt::format("{} of {}, foreign memory, ÷ process_vm", name, short_size(size)), 0.95,
          {.operation = operation, .block_bytes = size, .memory = MemoryKind::kForeign});
    }
    for (const std::uint64_t size : {4u << 10, 16u << 10, 64u << 10}) {
      add(rows, fmt::format("shm.foreign.{}.1000x{}", name, size_id(size)),
          fmt::format("{} of 1000 × {} scattered, foreign, ÷ process_vm", name, short_size(size)), 0.95,
          {.operation = operation,
           .block_bytes = size,
           .count = 1000,
           .arena_bytes = arena_bytes,
           .memory = MemoryKind::kForeign});
    }
  }
}

void add_scattered(std::vector<Row>& rows, std::uint64_t arena_bytes) {
  for (const auto& [operation, name] : kOperations) {
    for (const std::uint64_t count : {1000u, 8000u}) {
      for (const std::uint64_t size : {4u << 10, 16u << 10, 64u << 10}) {
        add(rows, fmt::format("shm.scatter.{}.{}x{}", name, count, size_id(size)),
            fmt::format("{} of {} × {} scattered, ÷ best scattered copy", name, count, short_size(size)), 0.9,
            {.operation = operation, .block_bytes = size, .count = count, .arena_bytes = arena_bytes});
      }
    }
  }
}

}  // namespace

void add_shm_rows(std::vector<Row>& rows, const BenchOptions& options) {
  add_contiguous(rows);
  add_scattered(rows, options.arena_bytes);
  add_foreign(rows, options.arena_bytes);
}

}  // namespace hawser::cli::bench
