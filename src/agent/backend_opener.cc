#include "agent/backend_opener.h"

#include <algorithm>
#include <cctype>

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

bool is_open_region(const LocalRegion& region) {
  return region.state.load(std::memory_order_relaxed) == RegionState::kOpen;
}

Status with(Status failures, const std::string& backend, const Status& cause) {
  if (failures.ok()) return Status(cause.code(), "backend '" + backend + "' did not open").because(cause);
  return Status(failures.code(), std::string(failures.message()) + "; backend '" + backend + "' did not open (" +
                                     cause.to_string() + ")")
      .because(failures.cause());
}

}  // namespace

Status BackendOpener::announce(Arriving& arriving) {
  const Instant deadline = its_.clock.now() + its_.options.default_deadline;
  for (;;) {
    const auto is_its = [&](const auto& name) { return name == arriving.open.name; };
    its_.lane.lock();
    const bool is_open = std::ranges::any_of(its_.backends, is_its, &OpenBackend::name);
    const bool is_coming = std::ranges::any_of(arriving_, is_its, [](const Arriving* each) { return each->open.name; });
    const std::uint32_t seen = arrivals_ended_.load(std::memory_order_acquire);
    if (!is_open && !is_coming) {
      arriving.open.number = ++tried_;
      arriving.rng = base::Rng(its_.host.draw());
      arriving_.push_back(&arriving);
    }
    its_.lane.unlock();
    if (is_open) {
      return Status(Code::kInvalid,
                    "backend '" + arriving.open.name + "' is open already, with the parameters of its first opening")
          .with_advice("name each backend once; for other parameters open another agent");
    }
    if (!is_coming) return {};
    const auto has_ended = [&] { return arrivals_ended_.load(std::memory_order_acquire) != seen; };
    if (!its_.lane.wait_until(has_ended, deadline)) {
      return Status(Code::kTimedOut, "add_backend: another thread is still opening '" + arriving.open.name +
                                         "' after " +
                                         std::to_string(its_.options.default_deadline.count() / 1'000'000) + " ms")
          .with_advice("wait for that call; default_deadline bounds this one");
    }
  }
}

RegionBook::Regions BackendOpener::untold(const Arriving& arriving) const {
  RegionBook::Regions all = its_.book.open();
  std::erase_if(all, [&](const auto& region) HAWSER_REQUIRES(in_lane) {
    return arriving.extras.contains(id_of(*region->entry)) ||
           !may_serve(arriving.open.backend->traits(), *region->entry);
  });
  return all;
}

/// Without the lane's lock: a NIC takes seconds to register much memory. A region stays as long as it is being
/// registered; closing it waits for that.
Status BackendOpener::tell_of_all(Arriving& arriving, const RegionBook::Regions& all) {
  for (const auto& region : all) {
    its_.lane.lock();
    const bool is_open = is_open_region(*region);
    region->newcomers += is_open ? 1 : 0;
    its_.lane.unlock();
    if (!is_open) continue;
    Result<std::string> extra = arriving.open.backend->add_region(*region->entry);
    its_.lane.lock();
    if (extra) arriving.extras[id_of(*region->entry)] = *std::move(extra);
    --region->newcomers;
    its_.lane.unlock();
    if (!extra) {
      return Status(Code::kFailed,
                    "backend '" + arriving.open.name + "' cannot serve region '" + region->entry->name + "'")
          .because(extra.error());
    }
  }
  return {};
}

/// Its port is opened last, once it has been told of all regions; those that are added from now on it hears of by
/// themselves. What it has not been told of, because it came meanwhile, is the `rest`.
Status BackendOpener::seat(Arriving& arriving, RegionBook::Regions* rest) {
  *rest = untold(arriving);
  if (!rest->empty()) return {};
  HAWSER_TRY(its_.life.usable("add_backend"));  // The agent may have been closed meanwhile.
  OpenBackend& open = arriving.open;
  HAWSER_TRY_ASSIGN(open.port, open.backend->open_port());
  open.traits = &open.backend->traits();
  HAWSER_TRY(its_.host.watch_port(open.port->wait_fd()));
  std::vector<OwnCard::Extra> extras;
  for (auto& [id, extra] : arriving.extras) {
    extras.emplace_back(backend::RegionId{id.first, id.second}, std::move(extra));
  }
  arriving.extras.clear();  // The lane's own ports tell it of what is closed from here on.
  its_.card.add_backend(open.number, open.name, open.backend->address(), extras);
  its_.host.take_in(std::move(open));
  opened_.fetch_add(1, std::memory_order_acq_rel);
  return {};
}

Status BackendOpener::let_in(Arriving& arriving) {
  RegionBook::Regions rest;
  for (int round = 1;; ++round) {
    its_.lane.lock();
    Status seated = seat(arriving, &rest);
    its_.lane.unlock();
    if (!seated.ok() || rest.empty()) return seated;
    if (round == kRoundsMax) {
      return Status(Code::kBusy, "add_backend: regions are registered faster than '" + arriving.open.name +
                                     "' is told of them; " + std::to_string(kRoundsMax) + " times some were left")
          .with_advice("add the backend while fewer regions are registered");
    }
    HAWSER_TRY(tell_of_all(arriving, rest));
  }
}

/// What the caller named for this backend goes before what is set for all of its name.
Params BackendOpener::params_of(const BackendSpec& spec, const std::string& name) const {
  Params params = spec.params;
  const auto set = its_.options.backend_params.find(name);
  if (set != its_.options.backend_params.end()) params.insert(set->second.begin(), set->second.end());
  return params;
}

Status BackendOpener::open_announced(const backend::Factory& factory, const BackendSpec& spec, Arriving& arriving,
                                     BackendReport* report) {
  const backend::Context context{.identity = its_.identity,
                                 .regions = its_.table,
                                 .log = its_.log,
                                 .rng = arriving.rng,
                                 .security = its_.options.security,
                                 .heartbeat = its_.options.heartbeat,
                                 .peer_timeout = its_.options.peer_timeout,
                                 .clock = its_.clock,
                                 .segments = its_.options.segments,
                                 .keys = its_.keys ? &*its_.keys : nullptr,
                                 .authenticator = its_.authenticator.get(),
                                 .guard = its_.guard};
  HAWSER_TRY_ASSIGN(std::shared_ptr<backend::Backend> made, factory.open(context, params_of(spec, report->name)));
  its_.lane.lock();
  arriving.open.backend = made;
  its_.lane.unlock();
  HAWSER_TRY(let_in(arriving));
  report->open = true;
  report->params = made->take_params();
  report->warnings = made->warnings();
  report->address = made->readable_address();
  for (const std::string& warning : report->warnings) {
    HAWSER_LOG(its_.log, kWarn, "{}: backend {}: {}", its_.options.name, report->name, warning);
  }
  return {};
}

Status BackendOpener::open_one(const BackendSpec& spec, BackendReport* report) {
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
  its_.lane.news();
  return opened;
}

bool BackendOpener::end_arriving(Arriving& arriving) {
  const InLaneGuard guard(its_.lane);
  if (arriving.extras.empty()) {
    std::erase(arriving_, &arriving);
    arrivals_ended_.fetch_add(1, std::memory_order_acq_rel);
    return true;
  }
  const auto first = arriving.extras.begin();
  // It is there: closing one ends with taking it from here.
  if (const auto entry = its_.table.at(first->first.first)) arriving.open.backend->remove_region(*entry);
  arriving.extras.erase(first);
  return false;
}

std::vector<BackendSpec> BackendOpener::wanted() const {
  if (!its_.options.backends.empty()) return its_.options.backends;
  std::vector<const backend::Factory*> order;
  for (const backend::Factory& factory : factories_) {
    if (factory.default_rank > 0) order.push_back(&factory);
  }
  std::ranges::stable_sort(order, std::ranges::greater(), &backend::Factory::default_rank);
  std::vector<BackendSpec> wanted;
  for (const backend::Factory* factory : order) wanted.push_back({.name = std::string(factory->name), .params = {}});
  return wanted;
}

Status BackendOpener::open_all() {
  const OpenMode mode = its_.options.mode;
  const bool is_strict = mode == OpenMode::kStrict || (mode == OpenMode::kAuto && !its_.options.backends.empty());
  Status failures;
  std::size_t open = 0;
  for (const BackendSpec& spec : wanted()) {
    BackendReport report;
    report.cause = open_one(spec, &report);
    open += report.open ? 1 : 0;
    if (!report.cause.ok()) failures = with(std::move(failures), spec.name, report.cause);
    its_.reports.add(std::move(report));
  }
  return is_strict || open == 0 ? failures : Status();
}

Status BackendOpener::add(const BackendSpec& spec) {
  HAWSER_TRY(its_.life.usable("add_backend"));
  BackendReport report;
  Status status = open_one(spec, &report);
  if (status.ok()) {
    const InLaneGuard guard(its_.lane);
    its_.host.has_more_ways();
  }
  report.cause = status;
  its_.lane.wake();  // The new port was not armed for this sleep.
  its_.reports.add(std::move(report));
  return status;
}

void BackendOpener::renew_extras(OpenBackend& open) {
  ++open.renewals;  // For regions that are being added: they are in no book yet.
  std::vector<OwnCard::Extra> extras;
  for (const auto& entry : its_.book.open_entries()) {
    extras.emplace_back(backend::RegionId{entry->index, entry->generation}, open.backend->told(*entry));
  }
  its_.card.renew_extras(open.number, extras);
}

void BackendOpener::forget(const backend::RegionEntry& region) {
  for (Arriving* each : arriving_) {
    const bool was_told = each->extras.erase(id_of(region)) > 0;
    if (was_told) each->open.backend->remove_region(region);
  }
}

void BackendOpener::disown_after_fork() {
  assume_in_lane();  // The child has one thread.
  for (Arriving* each : arriving_) {
    if (each->open.backend) each->open.backend->disown_after_fork();
  }
}

}  // namespace hawser::agent
