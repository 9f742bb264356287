// Opening an agent's backends: strict or lenient, each failure kept with its cause; and how one that is added later
// is told of the regions that are there, while the agent goes on.

#include <algorithm>
#include <cctype>

#include "agent/core.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

/// Regions may be added faster than a new backend is told of them: so often it is told of those that came meanwhile.
constexpr int kRoundsMax = 1000;

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

/// Takes its name and number. One of this name that another thread is opening is waited for.
Status Core::announce(Arriving& arriving) {
  const Instant deadline = now() + options.default_deadline;
  for (;;) {
    const auto is_its = [&](const auto& name) { return name == arriving.open.name; };
    lane.lock();
    const bool is_open = std::ranges::any_of(engine.ports().all(), is_its, &OpenBackend::name);
    const bool is_coming = std::ranges::any_of(arriving_, is_its, [](const Arriving* each) { return each->open.name; });
    const std::uint32_t seen = arrivals_ended_.load(std::memory_order_acquire);
    if (!is_open && !is_coming) {
      arriving.open.number = ++backends_tried_;
      arriving.rng = base::Rng(engine.rng().u64());
      arriving_.push_back(&arriving);
    }
    lane.unlock();
    if (is_open) {
      return Status(Code::kInvalid,
                    "backend '" + arriving.open.name + "' is open already, with the parameters of its first opening")
          .with_advice("name each backend once; for other parameters open another agent");
    }
    if (!is_coming) return {};
    const auto has_ended = [&] { return arrivals_ended_.load(std::memory_order_acquire) != seen; };
    if (!lane.wait_until(has_ended, deadline)) {
      return Status(Code::kTimedOut, "add_backend: another thread is still opening '" + arriving.open.name +
                                         "' after " + std::to_string(options.default_deadline.count() / 1'000'000) +
                                         " ms")
          .with_advice("wait for that call; default_deadline bounds this one");
    }
  }
}

Status Core::tell_of(Arriving& arriving, const LocalRegion& region) {
  Result<std::string> extra = arriving.open.backend->add_region(*region.entry);
  if (!extra) {
    return Status(Code::kFailed,
                  "backend '" + arriving.open.name + "' cannot serve region '" + region.entry->name + "'")
        .because(extra.error());
  }
  arriving.fresh = *std::move(extra);
  return {};
}

void Core::note_told(Arriving& arriving, const LocalRegion& region) {
  arriving.extras[{region.entry->index, region.entry->generation}] = std::move(arriving.fresh);
}

std::vector<std::shared_ptr<LocalRegion>> Core::untold(const Arriving& arriving) const {
  std::vector<std::shared_ptr<LocalRegion>> all;
  const base::MutexLock lock(mutex_);
  for (const BookedRegion& each : booked_) {
    std::shared_ptr<LocalRegion> region = each.region.lock();
    if (!each.is_there || region == nullptr || region->state.load(std::memory_order_relaxed) != RegionState::kOpen)
      continue;
    if (!arriving.extras.contains({region->entry->index, region->entry->generation})) all.push_back(std::move(region));
  }
  return all;
}

/// Without the lane's lock: a NIC takes seconds to register much memory. A region stays as long as it is being
/// registered; closing it waits for that.
Status Core::tell_of_all(Arriving& arriving, std::span<const std::shared_ptr<LocalRegion>> all) {
  for (const auto& region : all) {
    lane.lock();
    const bool is_open = region->state.load(std::memory_order_relaxed) == RegionState::kOpen;
    region->newcomers += is_open ? 1 : 0;
    lane.unlock();
    if (!is_open) continue;
    Status told = tell_of(arriving, *region);
    lane.lock();
    if (told.ok()) note_told(arriving, *region);
    --region->newcomers;
    lane.unlock();
    if (!told.ok()) return told;
  }
  return {};
}

/// Its port is opened last, once it has been told of all regions; those that are added from now on it hears of by
/// themselves. What it has not been told of, because it came meanwhile, is the `rest`.
Status Core::seat(Arriving& arriving, std::vector<std::shared_ptr<LocalRegion>>* rest) {
  *rest = untold(arriving);
  if (!rest->empty()) return {};
  HAWSER_TRY(usable("add_backend"));  // It may have been closed meanwhile.
  OpenBackend& open = arriving.open;
  HAWSER_TRY_ASSIGN(open.port, open.backend->open_port());
  open.traits = &open.backend->traits();
  HAWSER_TRY(lane.watch_port(open.port->wait_fd()));
  {
    const base::MutexLock lock(mutex_);
    card_backends_.push_back({open.number, open.name, open.backend->address()});
    for (const auto& [id, extra] : arriving.extras) {
      const std::shared_ptr<LocalRegion> region = booked(id.first).region.lock();
      const bool is_it = region != nullptr && region->entry->generation == id.second &&
                         region->state.load(std::memory_order_relaxed) == RegionState::kOpen;
      if (is_it && !extra.empty()) booked(id.first).extras.add(open.number, extra);
    }
    arriving.extras.clear();  // The lane's own ports tell it of what is closed from here on.
    changes_.clear();  // Deltas tell of changed regions only, and all may have extras of the new one: full cards do.
  }
  engine.ports().add(std::move(open));
  opened_backends_.fetch_add(1, std::memory_order_acq_rel);
  revision_.fetch_add(1, std::memory_order_acq_rel);
  return {};
}

void Core::renew_extras(OpenBackend& open) {
  ++open.renewals;  // For regions that are being added: they are in no book yet.
  {
    const base::MutexLock lock(mutex_);
    for (BookedRegion& each : booked_) {
      const std::shared_ptr<LocalRegion> region = each.region.lock();
      if (!each.is_there || region == nullptr || region->state.load(std::memory_order_relaxed) != RegionState::kOpen)
        continue;
      each.extras.replace(open.number, open.backend->told(*region->entry));
    }
    changes_.clear();  // As when a backend is added.
  }
  revision_.fetch_add(1, std::memory_order_acq_rel);
  presence.ask();
}

Status Core::let_in(Arriving& arriving) {
  std::vector<std::shared_ptr<LocalRegion>> rest;
  for (int round = 1;; ++round) {
    lane.lock();
    Status seated = seat(arriving, &rest);
    lane.unlock();
    if (!seated.ok() || rest.empty()) return seated;
    if (round == kRoundsMax) {
      return Status(Code::kBusy, "add_backend: regions are registered faster than '" + arriving.open.name +
                                     "' is told of them; " + std::to_string(kRoundsMax) + " times some were left")
          .with_advice("add the backend while fewer regions are registered");
    }
    HAWSER_TRY(tell_of_all(arriving, rest));
  }
}

Status Core::open_announced(const backend::Factory& factory, const BackendSpec& spec, Arriving& arriving,
                            BackendReport* report) {
  const backend::Context context{.identity = identity,
                                 .regions = regions,
                                 .log = log,
                                 .rng = arriving.rng,
                                 .security = options.security,
                                 .heartbeat = options.heartbeat,
                                 .clock = *clock,
                                 .segments = options.segments,
                                 .keys = keys ? &*keys : nullptr,
                                 .authenticator = authenticator.get()};
  Params params = spec.params;  // What the caller named for this backend goes before what is set for all of its name.
  if (const auto set = options.backend_params.find(report->name); set != options.backend_params.end()) {
    params.insert(set->second.begin(), set->second.end());
  }
  HAWSER_TRY_ASSIGN(std::shared_ptr<backend::Backend> made, factory.open(context, params));
  lane.lock();
  arriving.open.backend = made;
  lane.unlock();
  HAWSER_TRY(let_in(arriving));
  report->open = true;
  report->params = made->params();
  report->warnings = made->warnings();
  report->address = made->readable_address();
  for (const std::string& warning : report->warnings) {
    HAWSER_LOG(log, kWarn, "{}: backend {}: {}", options.name, report->name, warning);
  }
  return {};
}

Status Core::open_one(const BackendSpec& spec, BackendReport* report) {
  report->name = lower(spec.name);
  Arriving arriving;
  arriving.open.name = report->name;
  const auto factory = std::ranges::find(factories_, report->name, &backend::Factory::name);
  if (factory == factories_.end()) {
    return Status(Code::kNotFound, "there is no backend '" + spec.name + "'")
        .with_advice("known here: " + names_of(factories_));
  }
  HAWSER_TRY(announce(arriving));
  Status opened = open_announced(*factory, spec, arriving, report);
  while (!end_arriving(arriving)) {
  }
  lane.news();
  return opened;
}

/// One that did not open gives back the regions that it was told of, one by one. False: there are more.
bool Core::end_arriving(Arriving& arriving) {
  lane.lock();
  const bool has_more = !arriving.extras.empty();
  if (has_more) {
    const auto [id, extra] = *arriving.extras.begin();
    arriving.extras.erase(arriving.extras.begin());
    // It is there: closing one ends with taking it from here.
    if (const auto entry = regions.at(id.first)) arriving.open.backend->remove_region(*entry);
  } else {
    std::erase(arriving_, &arriving);
    arrivals_ended_.fetch_add(1, std::memory_order_acq_rel);
  }
  lane.unlock();
  return !has_more;
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
    report.cause = open_one(spec, &report);
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
  Status status = open_one(spec, &report);
  if (status.ok()) {
    lane.lock();
    engine.graveyard().bury();  // What no backend led to may be reached by this one.
    engine.exchange().on_own_change();
    presence.ask();
    lane.unlock();
  }
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
  if (disowned()) return {};
  const base::MutexLock lock(mutex_);
  return reports_;
}

}  // namespace hawser::agent
