#include "agent/status_answers.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/core.h"
#include "agent/counter_snapshot.h"
#include "agent/metrics_source.h"
#include "agent/status_rows.h"
#include "base/shown.h"
#include "metrics/exposition.h"

namespace hawser::agent {
namespace {

using Json = nlohmann::json;
using Step = StatusAnswer::Step;

constexpr std::size_t kPeersAtOnce = 16;     // Each with why backends do not lead there: some 50 us.
constexpr std::size_t kSessionsAtOnce = 32;  // Counted in.
constexpr std::size_t kRowsAtOnce = 256;
constexpr std::size_t kSamplesAtOnce = 4;  // Peers or paths, of 45 samples or fewer.
constexpr std::size_t kTextAtOnce = 32 * 1024;

/// The agents that an answer is about, one after the other, and tries for the current one's lane.
class Walk {
 public:
  Walk(const StatusRoster& roster, std::optional<base::Id128> only) : roster_(roster), only_(only) {}

  std::size_t size() const { return only_ ? (roster_.find(*only_) != nullptr ? 1 : 0) : roster_.size(); }
  /// The next agent. False: that was the last.
  bool advance() {
    taken_since_.reset();
    if (!only_) return roster_.after(&current_) != nullptr;
    if (current_ == *only_) return false;
    current_ = *only_;
    return roster_.find(current_) != nullptr;
  }
  /// Null: it has gone meanwhile.
  Core* current() const { return roster_.find(current_); }

  enum class Got : std::uint8_t { kIt, kNotYet, kNever };
  /// Calls `look` under the lane's lock, if nobody has that.
  template <typename Look>
  Got under_lane(Core& core, Instant now, const Look& look) {
    if (!core.lane.try_lock()) {
      if (!taken_since_) taken_since_ = now;
      return now - *taken_since_ < kLanePatience ? Got::kNotYet : Got::kNever;
    }
    taken_since_.reset();
    look();
    core.lane.unlock();
    return Got::kIt;
  }

 private:
  const StatusRoster& roster_;
  const std::optional<base::Id128> only_;
  base::Id128 current_;
  std::optional<Instant> taken_since_;
};

/// The peers of an agent's sessions, which may go between two slices.
class SessionList {
 public:
  void begin(const Core& core) HAWSER_REQUIRES(in_lane) {
    ids_.clear();
    at_ = 0;
    for (const Session* session : core.engine.sessions().all()) ids_.push_back(session->peer->incarnation);
  }
  bool is_done() const { return at_ == ids_.size(); }
  std::size_t size() const { return ids_.size(); }
  /// Calls `look` for those of the next `most` that are still there. Their handles go with `held`, after the lane.
  template <typename Look>
  void slice(const Core& core, std::size_t most, std::vector<std::shared_ptr<PeerCore>>* held, const Look& look) {
    for (const std::size_t end = std::min(at_ + most, ids_.size()); at_ < end; ++at_) {
      std::shared_ptr<PeerCore> peer = core.peer_book.known(ids_[at_]);
      if (peer == nullptr) continue;
      if (peer->session() != nullptr) look(*peer->session());
      held->push_back(std::move(peer));
    }
  }

 private:
  std::vector<base::Id128> ids_;
  std::size_t at_ = 0;
};

class Describe final : public StatusAnswer {
 public:
  Describe(const StatusRoster& roster, std::optional<base::Id128> only) : walk_(roster, only) {}

  Step next(std::string& out, Instant now) override {
    switch (stage_) {
      case Stage::kBegin:
        add(out, {{"schema", "hawser.describe/1"}, {"process", ::getpid()}, {"agents", walk_.size()}});
        return next_agent(out);
      case Stage::kAgent:
        return begin_agent(out, now);
      case Stage::kPeers:
        return add_peers(out, now);
      case Stage::kWaiting:
        return add_waiting(out);
    }
    return Step::kEnd;
  }

 private:
  enum class Stage : std::uint8_t { kBegin, kAgent, kPeers, kWaiting };

  static void add(std::string& out, const Json& line) {
    out += one_line(line);
    out += '\n';
  }

  Step next_agent(std::string& out) {
    stage_ = Stage::kAgent;
    if (walk_.advance()) return Step::kMore;
    add(out, {{"end", true}});
    return Step::kEnd;
  }

  /// What an answer says of an agent whose lane is not to be had.
  Step without_lane(Walk::Got got, const Core& core, std::string& out) {
    if (got == Walk::Got::kNotYet) return Step::kLater;
    add(out, {{"busy", {{"agent", core.options.name}, {"incarnation", base::to_hex(core.identity.incarnation)}}}});
    return next_agent(out);
  }

  Step begin_agent(std::string& out, Instant now) {
    Core* const core = walk_.current();
    if (core == nullptr) return next_agent(out);
    Json head;
    const Walk::Got got = walk_.under_lane(*core, now, [&] {
      assume_in_lane();
      head = status_head(*core, core->status_teller.opened_at_ns(), now);
      sessions_.begin(*core);
      waiting_.clear();
      told_ = 0;
      describe_all(*core, [&](const Waiting& each) { waiting_.emplace_back(each); });
    });
    if (got != Walk::Got::kIt) return without_lane(got, *core, out);
    head["waiting_in_all"] = waiting_.size();
    add(out, {{"agent", std::move(head)}});
    stage_ = Stage::kPeers;
    return Step::kMore;
  }

  Step add_peers(std::string& out, Instant now) {
    Core* const core = walk_.current();
    if (core == nullptr) return next_agent(out);
    std::vector<Json> rows;
    std::vector<std::shared_ptr<PeerCore>> held;
    const Walk::Got got = walk_.under_lane(*core, now, [&] {
      sessions_.slice(*core, kPeersAtOnce, &held, [&](Session& session) {
        assume_in_lane();
        rows.push_back(status_row(*core, session, true));
      });
    });
    if (got != Walk::Got::kIt) return without_lane(got, *core, out);
    for (Json& row : rows) add(out, {{"peer", std::move(row)}});
    if (sessions_.is_done()) stage_ = Stage::kWaiting;
    return Step::kMore;
  }

  Step add_waiting(std::string& out) {
    for (const std::size_t end = std::min(told_ + kRowsAtOnce, waiting_.size()); told_ < end; ++told_) {
      add(out, {{"waiting", json_of(waiting_[told_])}});
    }
    return told_ == waiting_.size() ? next_agent(out) : Step::kMore;
  }

  Walk walk_;
  Stage stage_ = Stage::kBegin;
  SessionList sessions_;
  std::vector<WaitingRow> waiting_;
  std::size_t told_ = 0;
};

class Metrics final : public StatusAnswer {
 public:
  Metrics(const StatusRoster& roster, std::optional<base::Id128> only) : walk_(roster, only) {}

  Step next(std::string& out, Instant now) override {
    switch (stage_) {
      case Stage::kBegin:
        return next_agent();
      case Stage::kAgent:
        return begin_agent(out, now);
      case Stage::kSessions:
        return add_sessions(out, now);
      case Stage::kPeers:
        return add_peers();
      case Stage::kPaths:
        return add_paths();
      case Stage::kText:
        break;
    }
    if (exposition_.drain(out, kTextAtOnce)) return Step::kMore;
    out += "# EOF\n";
    return Step::kEnd;
  }

 private:
  enum class Stage : std::uint8_t { kBegin, kAgent, kSessions, kPeers, kPaths, kText };

  Step next_agent() {
    stage_ = Stage::kAgent;
    const std::size_t all = walk_.size();
    if (agents_ < kMetricAgentsMax && walk_.advance()) {
      ++agents_;
      return Step::kMore;
    }
    if (all > agents_) {
      exposition_.gauge("hawser_agents_omitted", "Agents of this process without samples, for there are too many", {},
                        static_cast<double>(all - agents_));
    }
    stage_ = Stage::kText;
    return Step::kMore;
  }

  Step without_lane(Walk::Got got, const Core& core, std::string& out) {
    if (got == Walk::Got::kNotYet) return Step::kLater;
    out += "# busy " + base::shown(core.options.name) + "\n";
    return next_agent();
  }

  Step begin_agent(std::string& out, Instant now) {
    Core* const core = walk_.current();
    if (core == nullptr) return next_agent();
    const Walk::Got got = walk_.under_lane(*core, now, [&] {
      assume_in_lane();
      core->begin_counters(snapshot_);
      sessions_.begin(*core);
      choose(*core);
    });
    if (got != Walk::Got::kIt) return without_lane(got, *core, out);
    stage_ = Stage::kSessions;
    return Step::kMore;
  }

  /// The sessions that get samples of their own: those that moved most.
  void choose(const Core& core) HAWSER_REQUIRES(in_lane) {
    std::vector<const Session*> most(core.engine.sessions().all().begin(), core.engine.sessions().all().end());
    const std::size_t count = std::min(most.size(), kMetricPeersMax - listed_in_all_);
    const auto moved = [](const Session* session) { return session->flow.bytes_written + session->flow.bytes_read; };
    std::ranges::nth_element(most, most.begin() + static_cast<std::ptrdiff_t>(count),
                             [&](const Session* a, const Session* b) { return moved(a) > moved(b); });
    listed_.clear();
    for (std::size_t i = 0; i < count; ++i) listed_.insert(most[i]->peer->incarnation);
    listed_in_all_ += count;
  }

  Step add_sessions(std::string& out, Instant now) {
    Core* const core = walk_.current();
    if (core == nullptr) return next_agent();
    std::vector<std::shared_ptr<PeerCore>> held;
    const Walk::Got got = walk_.under_lane(*core, now, [&] {
      sessions_.slice(*core, kSessionsAtOnce, &held, [&](Session& session) {
        assume_in_lane();
        snapshot_.add(session, listed_.contains(session.peer->incarnation));
      });
    });
    if (got != Walk::Got::kIt) return without_lane(got, *core, out);
    if (!sessions_.is_done()) return Step::kMore;
    counters_ = core->finish_counters(snapshot_);
    add_agent_metrics(counters_, sessions_.size(), exposition_);
    told_ = 0;
    stage_ = Stage::kPeers;
    return Step::kMore;
  }

  template <typename Row>
  std::span<const Row> next_rows(const std::vector<Row>& all) {
    const std::size_t count = std::min(kSamplesAtOnce, all.size() - told_);
    const std::size_t from = std::exchange(told_, told_ + count);
    return std::span(all).subspan(from, count);
  }
  Step add_peers() {
    add_peer_metrics(counters_.agent, next_rows(counters_.peers), exposition_);
    if (told_ < counters_.peers.size()) return Step::kMore;
    told_ = 0;
    stage_ = Stage::kPaths;
    return Step::kMore;
  }
  Step add_paths() {
    add_path_metrics(counters_.agent, next_rows(counters_.paths), exposition_);
    return told_ < counters_.paths.size() ? Step::kMore : next_agent();
  }

  Walk walk_;
  Stage stage_ = Stage::kBegin;
  std::size_t agents_ = 0;         ///< That the answer tells of.
  std::size_t listed_in_all_ = 0;  ///< Of all agents.
  SessionList sessions_;
  std::set<base::Id128> listed_;
  CounterSnapshot snapshot_;
  AgentCounters counters_;
  std::size_t told_ = 0;
  metrics::Exposition exposition_;
};

}  // namespace

std::unique_ptr<StatusAnswer> answer_to(std::string_view request, const StatusRoster& roster) {
  const std::size_t blank = request.find(' ');
  std::optional<base::Id128> only;
  if (blank != std::string_view::npos) {
    only = base::id128_from_hex(request.substr(blank + 1));
    if (!only) return nullptr;
  }
  const std::string_view what = request.substr(0, blank);
  if (what == "describe") return std::make_unique<Describe>(roster, only);
  if (what == "metrics") return std::make_unique<Metrics>(roster, only);
  return nullptr;
}

}  // namespace hawser::agent
