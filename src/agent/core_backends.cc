// Opening an agent's backends: strict or lenient, each failure kept with its cause.

#include <algorithm>
#include <cctype>

#include "agent/core.h"

namespace hawser::agent {
namespace {

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

Status Core::open_one(const BackendSpec& spec, BackendReport* report) {
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
  OpenBackend open{.name = report->name,
                   .number = ++backends_tried_,
                   .backend = std::move(*made),
                   .port = nullptr,
                   .traits = nullptr};
  for (const auto& entry : regions.all()) {
    Result<std::string> extra = open.backend->add_region(*entry);
    if (!extra)
      return Status(Code::kFailed, "backend '" + open.name + "' cannot serve region '" + entry->name + "'")
          .because(extra.error());
    const base::MutexLock lock(mutex_);
    if (!extra->empty()) booked(entry->index).extras.add(open.number, *extra);
  }
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
  }
  engine.add_backend(std::move(open));
  opened_backends_.fetch_add(1, std::memory_order_acq_rel);
  revision_.fetch_add(1, std::memory_order_acq_rel);
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
  Status failures;
  std::size_t open = 0;
  for (const BackendSpec& spec : wanted) {
    BackendReport report;
    lane.lock();
    report.cause = open_one(spec, &report);
    lane.unlock();
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
  BackendReport report;
  lane.lock();
  Status status = open_one(spec, &report);
  if (status.ok()) {
    {
      const base::MutexLock lock(mutex_);
      changes_.clear();  // Deltas tell of changed regions only, and all may have extras of the new one: full cards do.
    }
    engine.bury(now());  // What no backend led to may be reached by this one.
    engine.card_changed();
    presence.ask();
  }
  lane.unlock();
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
