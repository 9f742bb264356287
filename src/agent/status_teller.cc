#include "agent/status_teller.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "agent/core.h"
#include "agent/status_rows.h"
#include "base/home.h"
#include "base/log.h"
#include "base/shown.h"

namespace hawser::agent {
namespace {

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
  if (core_.options.status_socket) open_socket(*folder);
  const InLaneGuard guard(core_.lane);
  (void)turn(core_.now());  // So that it has its name from the beginning.
}

void StatusTeller::open_socket(const std::string& folder) {
  const Status status = seat_.open(folder);
  if (status.ok()) return;
  HAWSER_LOG(core_.log, kWarn, "agent '{}' answers at no status socket, so `hawser top --live` cannot ask it: {}",
             base::shown(core_.options.name), status.to_string());
}

void StatusTeller::close() {
  set_next(Instant::max());
  seat_.close();
  if (page_) page_->withdraw();
}

std::size_t StatusTeller::turn(Instant now) {
  set_next(next_beat(now));
  seat_.beat(now);
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
  describe_all(core_, [&](const Waiting& one) { waiting += one.count; });
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
  const std::size_t rows = std::min(most.size(), kRowsMax);
  std::ranges::partial_sort(most, most.begin() + static_cast<std::ptrdiff_t>(rows),
                            [](const Session* a, const Session* b) { return bytes_of(*a) > bytes_of(*b); });
  nlohmann::json json = status_head(core_, opened_at_ns_, now);
  if (std::string socket = seat_.socket_name(); !socket.empty()) json["socket"] = std::move(socket);
  json["peers"] = nlohmann::json::array();
  json["waiting"] = nlohmann::json::array();
  for (std::size_t i = 0; i < rows; ++i) json["peers"].push_back(status_row(core_, *most[i], i < explained));
  std::size_t waiting = 0;
  describe_all(core_, [&](const Waiting& one) {
    if (++waiting <= kRowsMax) json["waiting"].push_back(json_of(WaitingRow(one)));
  });
  json["waiting_in_all"] = waiting;
  return one_line(json);
}

}  // namespace hawser::agent
