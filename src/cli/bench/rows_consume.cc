// Rows: a consumer reads all of what was written, after its notification, against a writer and a reader in two raw
// processes. Two slots are in flight in both.

#include <fmt/format.h>

#include <array>

#include "cli/bench/catalog.h"
#include "cli/bench/load.h"
#include "cli/bench/pace.h"
#include "cli/bench/raw_consume.h"
#include "cli/quantiles.h"
#include "cli/units.h"

namespace hawser::cli::bench {
namespace {

constexpr std::array<const char*, kConsumeSlots> kSlotNames = {"0", "1"};

// The parent's part of the row: one source, two slots at the child, a plan for each.
struct Slots {
  Region source;
  RemoteMemory memory;
  std::vector<Plan> plans;
};

Result<Slots> make_slots(Stage& stage, std::uint64_t size) {
  Slots slots;
  HAWSER_TRY_ASSIGN(slots.source, stage.agent().allocate({.name = "slots", .size = size}));
  fill(slots.source.bytes(), 7);
  HAWSER_TRY_ASSIGN(slots.memory, stage.remote_memory("slots", size * kConsumeSlots, MemoryKind::kAllocated));
  for (std::uint64_t slot = 0; slot < kConsumeSlots; ++slot) {
    const LocalRange from = slots.source.range(0, size);
    const RemoteRange to = stage.peer().range("slots", slot * size, size);
    HAWSER_TRY_ASSIGN(Plan plan, stage.agent().plan_write(stage.peer(), {&from, 1}, {&to, 1}));
    slots.plans.push_back(std::move(plan));
  }
  return slots;
}

Result<double> write_slots(Stage& stage, Slots& slots, Duration budget, std::vector<std::uint64_t>& singles) {
  Agent& agent = stage.agent();
  Pace pace(slots.source.size(), budget);
  Notification notification;
  std::array<std::int64_t, kConsumeSlots> begun = {};
  const auto take_one = [&]() -> Status {
    HAWSER_TRY(await_notification(agent, notification));
    const std::size_t slot = notification.text == kSlotNames[1] ? 1 : 0;
    singles.push_back(static_cast<std::uint64_t>(now_ns() - begun[slot]));
    pace.count();
    return Status();
  };
  std::uint64_t slot = 0;
  for (; pace.goes_on(); ++slot) {
    if (slot >= kConsumeSlots) HAWSER_TRY(take_one());
    const std::size_t place = slot % kConsumeSlots;
    begun[place] = now_ns();
    HAWSER_TRY(run_plan(agent, slots.plans[place], {.notify = kSlotNames[place]}));
  }
  for (std::uint64_t left = 0; left < kConsumeSlots; ++left) HAWSER_TRY(take_one());
  return pace.gb_per_s();
}

Status verify(Stage& stage, Slots& slots, std::uint64_t* bytes) {
  fill(slots.source.bytes(), 8);
  const auto fill_slots = [&]() -> Status {
    for (const Plan& plan : slots.plans) HAWSER_TRY(run_plan(stage.agent(), plan));
    return Status();
  };
  HAWSER_TRY(stage.during({{"mode", "serve"}}, fill_slots).status());
  const std::uint64_t size = slots.source.size();
  const std::uint64_t own = sum_of(slots.source.bytes(), {size, 1, 1});
  for (std::uint64_t slot = 0; slot < kConsumeSlots; ++slot) {
    Json command = control_message("sum");
    command["name"] = "slots";
    command["blocks"] = bench::to_json(BlockList{size, kConsumeSlots, 1, slot, 0});
    HAWSER_TRY_ASSIGN(const Json answer, stage.ask(command));
    if (answer.value("sum", std::uint64_t{0}) != own) return Status(Code::kCorrupt, "a slot differs from its source");
    *bytes += size;
  }
  return Status();
}

Result<Figure> run_consume(Bench& bench, std::uint64_t size) {
  HAWSER_TRY_ASSIGN(Stage* const stage, bench.stage(default_stage()));
  if (size * kConsumeSlots > bench.options().arena_bytes) return Status(Code::kUnsupported, "needs a larger arena");
  stage->board().touch();
  HAWSER_TRY_ASSIGN(Slots slots, make_slots(*stage, size));
  std::vector<std::uint64_t> singles;
  Contest contest{.better = Better::kHigher, .placed = true};
  contest.subject = {"hawser", [&](Duration budget) {
                       return stage->measure({{"mode", "consume"}, {"name", "slots"}, {"slot_bytes", size}},
                                             [&] { return write_slots(*stage, slots, budget, singles); });
                     }};
  for (const CopyWay& way : copy_ways(size, size, false)) {
    contest.ceilings.push_back({way.name, [stage, &slots, way, size](Duration budget) {
                                  stage->board().page().filled.store(0);
                                  stage->board().page().emptied.store(0);
                                  return stage->measure({{"mode", "raw_consume"}, {"slot_bytes", size}}, [&] {
                                    return fill_slots(stage->board(), slots.source.bytes(), way, budget);
                                  });
                                }});
  }
  HAWSER_TRY_ASSIGN(Figure figure, run_contest(contest, bench.contest(*stage)));
  const auto times = quantiles_of(singles);
  figure.p50_ns = times.p50;
  figure.p99_ns = times.p99;
  HAWSER_TRY(verify(*stage, slots, &figure.verified_bytes));
  slots.plans.clear();
  HAWSER_TRY(stage->forget_memory("slots"));
  return figure;
}

}  // namespace

void add_consume_rows(std::vector<Row>& rows) {
  for (const std::uint64_t size : {64u << 10, 1u << 20, 64u << 20}) {
    rows.push_back({fmt::format("shm.consume.{}", size_id(size)),
                    fmt::format("write of {} and the reader's reading, ÷ two raw processes", short_size(size)), "GB/s",
                    Better::kHigher, ratio_at_least(0.95), [size](Bench& bench) { return run_consume(bench, size); }});
  }
}

}  // namespace hawser::cli::bench
