#include "agent/status_teller.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "agent/core.h"
#include "agent/flow_sums.h"
#include "agent/peer_names.h"
#include "agent/plan.h"
#include "base/format.h"
#include "base/home.h"
#include "base/log.h"
#include "base/shown.h"

namespace hawser::agent {
namespace {

using Json = nlohmann::json;

/// Where shm's sockets are: of its parameters one names the user's folder for such things.
Result<std::string> folder_of(const AgentOptions& options) {
  if (options.status_page != "auto") {
    const Status status = base::prepare_folder(options.status_page);
    if (!status.ok()) return status;
    return options.status_page;
  }
  std::string runtime_dir;
  if (const auto shm = options.backend_params.find("shm"); shm != options.backend_params.end()) {
    if (const auto given = shm->second.find("runtime_dir"); given != shm->second.end()) runtime_dir = given->second;
  }
  Result<base::Home> home = base::choose_home(base::usual_homes(runtime_dir));
  if (!home) return home.error();
  return home->folder;
}

std::uint64_t bytes_of(const Session& session) { return session.flow.bytes_written + session.flow.bytes_read; }

/// Each backend that opened, and why it does not lead to the peer; an empty reason: it does, or was not tried yet.
Json ways_json(Core& core, PeerCore& peer) {
  Json ways = Json::array();
  for (const Way& way : ways_of(core, peer)) {
    Json row = {{"backend", way.backend}};
    if (!way.why.ok()) row["why"] = base::shown(way.why.to_string());
    ways.push_back(std::move(row));
  }
  return ways;
}

Json json_of(const Session& session) {
  const LatencySummary latency = summary_of(session.latency);
  Json json = {{"peer", session.peer->name},
               {"state", name_of(session.machine.public_state())},
               {"wire_version", session.wire_version},
               {"bytes_written", session.flow.bytes_written},
               {"bytes_read", session.flow.bytes_read},
               {"errors", session.flow.errors},
               {"p50_ns", latency.p50_ns},
               {"p99_ns", latency.p99_ns},
               {"paths", Json::array()}};
  for (const PathEntry& entry : session.paths) {
    const PathCounters path = entry.path->counters();
    json["paths"].push_back({{"backend", path.backend},
                             {"state", path.state},
                             {"bytes_out", path.bytes_out},
                             {"bytes_in", path.bytes_in},
                             {"errors", entry.errors},
                             {"about", base::shown(entry.path->describe())}});
  }
  return json;
}

/// Makes one number of many (FNV-1a, by 64-bit words).
class Mixer {
 public:
  void add(std::uint64_t word) { value_ = (value_ ^ word) * 0x100000001b3; }
  void add_flow(const FlowCounters& flow) {
    for (const std::uint64_t word : {flow.bytes_written, flow.bytes_read, flow.writes, flow.reads, flow.errors,
                                     flow.messages_sent, flow.messages_received}) {
      add(word);
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace

void StatusTeller::open() {
  if (core_.options.status_page == "off" || core_.options.clock != nullptr) return;
  const Result<std::string> folder = folder_of(core_.options);
  Result<base::StatusPage> page =
      folder ? base::StatusPage::create(*folder, base::to_hex(core_.identity.incarnation)) : folder.error();
  if (!page) {
    HAWSER_LOG(core_.log, kWarn, "agent '{}' has no status page, so `hawser top` does not show it: {}",
               base::shown(core_.options.name), page.error().to_string());
    return;
  }
  page_.emplace(std::move(*page));
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  opened_at_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count();
  core_.lane.show_on(*page_);
  page_->worked(core_.now());
  (void)turn(core_.now());  // So that it has its name from the beginning.
}

void StatusTeller::close() {
  set_next(Instant::max());
  if (page_) page_->withdraw();
}

std::size_t StatusTeller::turn(Instant now) {
  set_next(now + kPeriod);
  const std::optional<std::uint64_t> stamp_now = stamp();
  if (stamp_now && stamp_now == stamp_ && now < told_at_ + kQuietPeriod) return 0;
  const Status status = page_->publish(text(now));
  stamp_ = status.ok() ? stamp_now : std::nullopt;  // What could not be published is tried again in a second.
  told_at_ = now;
  if (!status.ok() && !std::exchange(has_failed_, true)) {
    HAWSER_LOG(core_.log, kWarn, "{}: its status page is old from now on: {}", core_.options.name, status.to_string());
  } else if (status.ok()) {
    has_failed_ = false;
  }
  return 0;
}

std::optional<std::uint64_t> StatusTeller::stamp() const {
  const Engine& engine = core_.engine;
  std::size_t waiting = engine.transfers().in_flight();
  const Visitor count = [&](const Waiting& one) { waiting += one.count; };
  engine.describe(count);
  core_.presence.describe(count);
  core_.region_closer.describe(count);
  if (waiting > 0) return std::nullopt;
  Mixer mixer;
  mixer.add_flow(core_.past.flow());
  for (const Session* session : engine.sessions().all()) {
    mixer.add_flow(session->flow);
    mixer.add(static_cast<std::uint64_t>(session->machine.public_state()));
    for (const PathEntry& entry : session->paths) {
      mixer.add(entry.serial << 1 | (entry.up ? 1 : 0));
      mixer.add(entry.errors);
    }
  }
  return mixer.value();
}

std::string StatusTeller::text(Instant now) const {
  std::size_t explained = kRowsMax;
  std::string all = text(now, explained);
  while (all.size() > base::StatusPage::kTextMax && explained > 0) all = text(now, explained /= 2);
  return all;
}

std::string StatusTeller::text(Instant now, std::size_t explained) const {
  const Engine& engine = core_.engine;
  std::vector<const Session*> most(engine.sessions().all().begin(), engine.sessions().all().end());
  FlowCounters total = core_.past.flow();
  for (const Session* session : most) add_flow(total, session->flow);
  const std::size_t rows = std::min(most.size(), kRowsMax);
  std::ranges::partial_sort(most, most.begin() + static_cast<std::ptrdiff_t>(rows),
                            [](const Session* a, const Session* b) { return bytes_of(*a) > bytes_of(*b); });
  Json json = {{"schema", "hawser.status/1"},
               {"agent", core_.options.name},
               {"incarnation", base::to_hex(core_.identity.incarnation)},
               {"is_driven", core_.identity.driven},
               {"opened_at_ns", opened_at_ns_},
               {"at_ns", now.ns()},
               {"sessions", engine.sessions().all().size()},
               {"in_flight", engine.transfers().in_flight()},
               {"bytes_written", total.bytes_written},
               {"bytes_read", total.bytes_read},
               {"transfers", total.writes + total.reads},
               {"errors", total.errors},
               {"messages_sent", total.messages_sent},
               {"messages_received", total.messages_received},
               {"peers", Json::array()},
               {"waiting", Json::array()}};
  for (std::size_t i = 0; i < rows; ++i) {
    json["peers"].push_back(json_of(*most[i]));
    if (i < explained) json["peers"].back()["ways"] = ways_json(core_, *most[i]->peer);
  }
  json["closed_backends"] = Json::array();
  for (const BackendReport& report : core_.reports()) {
    if (report.open) continue;
    json["closed_backends"].push_back({{"backend", report.name}, {"why", base::shown(report.cause.to_string())}});
  }
  std::size_t waiting = 0;
  const Visitor add = [&](const Waiting& one) {
    if (++waiting > kRowsMax) return;
    Json row = {{"who", one.who}, {"what", one.what}, {"peer", one.peer}, {"count", one.count}};
    if (one.since != Instant::min()) row["since_ns"] = one.since.ns();
    if (one.until != Instant::max()) row["until_ns"] = one.until.ns();
    json["waiting"].push_back(std::move(row));
  };
  engine.describe(add);
  core_.presence.describe(add);
  core_.region_closer.describe(add);
  json["waiting_in_all"] = waiting;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hawser::agent
