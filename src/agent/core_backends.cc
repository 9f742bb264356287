// Opening an agent's backends: strict or lenient, each failure kept with its cause.

#include <algorithm>
#include <cctype>

#include "agent/core.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

/// How often a backend that is added is told of regions that came meanwhile.
constexpr int kRoundsMax = 64;

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

std::string names_of(const std::vector<backend::Factory>& factories) {
  std::string names;
  for (const backend::Factory& factory : factories) names += (names.empty() ? "" : ", ") + std::string(factory.name);
  return names;
}

}  // namespace

Result<OpenBackend> Core::make_backend(const BackendSpec& spec, BackendReport* report) {
  report->name = lower(spec.name);
  for (const OpenBackend& open : engine.backends()) {
    if (open.name == report->name) {
      return Status(Code::kInvalid,
                    "backend '" + report->name + "' is open already, with the parameters of its first opening")
          .with_advice("name each backend once; for other parameters open another agent");
    }
  }
  const auto factory = std::find_if(factories_.begin(), factories_.end(),
                                    [&](const backend::Factory& each) { return each.name == report->name; });
  if (factory == factories_.end()) {
    return Status(Code::kNotFound, "there is no backend '" + spec.name + "'")
        .with_advice("known here: " + names_of(factories_));
  }
  const backend::Context context{.identity = identity,
                                 .regions = regions,
                                 .log = log,
                                 .rng = base::Rng(engine.rng_.u64()),
                                 .security = options.security,
                                 .heartbeat = options.heartbeat,
                                 .clock = *clock,
                                 .segments = options.segments};
  Params params = spec.params;  // What the caller named for this backend goes before what is set for all of its name.
  if (const auto set = options.backend_params.find(report->name); set != options.backend_params.end()) {
    params.insert(set->second.begin(), set->second.end());
  }
  Result<std::unique_ptr<backend::Backend>> made = factory->open(context, params);
  if (!made) return made.error();
  return OpenBackend{.name = report->name,
                     .number = ++backends_tried_,
                     .backend = std::move(*made),
                     .port = nullptr,
                     .traits = nullptr};
}

Status Core::open_one(const BackendSpec& spec, bool is_late, BackendReport* report) {
  lane.lock();
  Result<OpenBackend> made = make_backend(spec, report);
  if (made) opening_ = made->backend;
  lane.unlock();
  if (!made) return made.error();
  const Status status = join(std::move(*made), is_late, report);
  lane.lock();
  const std::shared_ptr<backend::Backend> over = std::exchange(opening_, nullptr);
  lane.unlock();
  return status;
}

Status Core::tell_of_regions(const OpenBackend& open, ToldRegions* told) {
  for (const auto& region : booked_regions()) {
    const backend::RegionEntry& entry = *region->entry;
    const std::pair key{entry.index, entry.generation};
    if (told->contains(key)) continue;
    lane.lock();
    const bool is_open = region->state.load(std::memory_order_relaxed) == RegionState::kOpen;
    region->is_told = is_open;  // Until then its close waits: the memory is not its owner's yet.
    lane.unlock();
    if (!is_open) continue;
    Result<std::string> extra = open.backend->add_region(entry);
    lane.lock();
    region->is_told = false;
    lane.unlock();
    if (!extra) {
      return Status(Code::kFailed, "backend '" + open.name + "' cannot serve region '" + entry.name + "'")
          .because(extra.error());
    }
    told->emplace(key, Told{region, *std::move(extra)});
  }
  return {};
}

bool Core::knows_all_regions(const ToldRegions& told) {
  const std::vector<std::shared_ptr<LocalRegion>> there = booked_regions();
  return std::ranges::all_of(there, [&](const auto& region) {
    return region->state.load(std::memory_order_relaxed) != RegionState::kOpen ||
           told.contains({region->entry->index, region->entry->generation});
  });
}

Status Core::join(OpenBackend open, bool is_late, BackendReport* report) {
  // Without the lane's lock: a NIC takes seconds to register much memory, its user may be asked for segments, and
  // heartbeats must go on.
  ToldRegions told;
  for (int round = 0; round < kRoundsMax; ++round) {
    HAWSER_TRY(tell_of_regions(open, &told));
    lane.lock();
    Status status = usable("add_backend");  // It may have been closed meanwhile.
    const bool knows_all = status.ok() && knows_all_regions(told);
    if (knows_all) status = join_now(std::move(open), told, is_late, report);
    lane.unlock();
    if (knows_all || !status.ok()) return status;
  }
  return Status(Code::kBusy, "backend '" + open.name + "' was told of regions " + std::to_string(kRoundsMax) +
                                 " times, and there were new ones each time")
      .with_advice("add backends before regions");
}

Status Core::join_now(OpenBackend open, const ToldRegions& told, bool is_late, BackendReport* report) {
  Result<std::unique_ptr<backend::Port>> port = open.backend->open_port();
  if (!port) return port.error();
  open.port = std::move(*port);
  open.traits = &open.backend->traits();
  if (Status watched = lane.watch_port(open.port->wait_fd()); !watched.ok()) return watched;
  report->open = true;
  report->params = open.backend->params();
  report->warnings = open.backend->warnings();
  report->address = open.backend->readable_address();
  for (const std::string& warning : report->warnings) {
    HAWSER_LOG(log, kWarn, "{}: backend {}: {}", options.name, report->name, warning);
  }
  {
    const base::MutexLock lock(mutex_);
    card_backends_.push_back({open.number, open.name, open.backend->address()});
    for (const auto& [key, each] : told) {
      const bool is_open = each.region->state.load(std::memory_order_relaxed) == RegionState::kOpen;
      if (is_open && !each.extra.empty()) booked(key.first).extras.add(open.number, each.extra);
      if (!is_open) open.backend->remove_region(*each.region->entry);
    }
    if (is_late)
      changes_.clear();  // Deltas tell of changed regions only, and all may have extras of it: full cards do.
  }
  engine.add_backend(std::move(open));
  opened_backends_.fetch_add(1, std::memory_order_acq_rel);
  revision_.fetch_add(1, std::memory_order_acq_rel);
  if (!is_late) return {};
  engine.bury(now());  // What no backend led to may be reached by this one.
  engine.card_changed();
  presence.ask();
  return {};
}

Status Core::open_backends() {
  std::vector<BackendSpec> wanted = options.backends;
  const bool strict = options.mode == OpenMode::kStrict || (options.mode == OpenMode::kAuto && !wanted.empty());
  if (wanted.empty()) {
    std::vector<const backend::Factory*> order;
    for (const backend::Factory& factory : factories_) order.push_back(&factory);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->default_rank > b->default_rank; });
    for (const backend::Factory* factory : order) {
      if (factory->default_rank > 0) wanted.push_back({.name = std::string(factory->name), .params = {}});
    }
  }
  const base::MutexLock adding(adding_);
  Status failures;
  std::size_t open = 0;
  for (const BackendSpec& spec : wanted) {
    BackendReport report;
    report.cause = open_one(spec, false, &report);
    open += report.open ? 1 : 0;
    if (!report.cause.ok()) {
      const Status failure =
          Status(report.cause.code(), "backend '" + spec.name + "' did not open").because(report.cause);
      failures = failures.ok() ? failure
                               : Status(failures.code(), std::string(failures.message()) + "; backend '" + spec.name +
                                                             "' did not open (" + report.cause.to_string() + ")")
                                     .because(failures.cause());
    }
    const base::MutexLock lock(mutex_);
    reports_.push_back(std::move(report));
  }
  if (strict && !failures.ok()) return failures;
  if (open == 0 && !failures.ok()) return failures;
  return {};
}

Status Core::add_backend(const BackendSpec& spec) {
  if (Status status = usable("add_backend"); !status.ok()) return status;
  const base::MutexLock adding(adding_);
  BackendReport report;
  Status status = open_one(spec, true, &report);
  report.cause = status;
  lane.wake();  // The new port was not armed for this sleep.
  const base::MutexLock lock(mutex_);
  std::erase_if(reports_, [&](const BackendReport& each) { return each.name == report.name && !each.open; });
  const bool known =
      std::any_of(reports_.begin(), reports_.end(), [&](const auto& each) { return each.name == report.name; });
  if (!known) reports_.push_back(std::move(report));
  return status;
}

std::vector<BackendReport> Core::reports() const {
  const base::MutexLock lock(mutex_);
  return reports_;
}

}  // namespace hawser::agent
