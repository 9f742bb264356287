#include "cli/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/page_fields.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/world_view.h"

namespace hawser::cli {
namespace {

/// A lane that works turns all the time, and its page is written once a second.
constexpr Duration kStuckAfter = std::chrono::seconds(3);

const AgentLook* find(const Look& look, const std::string& page) {
  const auto at = std::ranges::find(look, page, &AgentLook::page);
  return at == look.end() ? nullptr : &*at;
}
/// Bytes or anything else per second, between two texts of one page.
struct Since {
  Duration time{};

  std::optional<double> per_second(const Fields& now, const Fields* before, const char* key) const {
    if (before == nullptr || time <= Duration::zero()) return std::nullopt;
    const std::uint64_t from = number(*before, key), to = number(now, key);
    if (to < from) return std::nullopt;
    return static_cast<double>(to - from) / std::chrono::duration<double>(time).count();
  }
};

Since since(const AgentLook& now, const AgentLook* before) {
  if (before == nullptr) return {};
  const auto from = instant(before->status, "at_ns"), to = instant(now.status, "at_ns");
  if (!from || !to) return {};
  // An agent that is at work and has no new text had nothing to tell: all its rates are 0.
  constexpr Duration kSecond = std::chrono::seconds(1);
  if (*from == *to && now.reading.worked_at > *to + kSecond / 2) return {kSecond};
  return {*to - *from};
}

std::string rate_text(std::optional<double> per_second) {
  if (!per_second) return "-";
  return short_size(static_cast<std::uint64_t>(*per_second)) + "/s";
}

std::string ago(Instant now, std::optional<Instant> then) {
  if (!then || then->ns() == 0) return "-";
  return short_duration(std::max(now - *then, Duration::zero()));
}

void add_peers(const AgentLook& agent, const AgentLook* before, Table& table) {
  const Since time = since(agent, before);
  for (const Fields& peer : rows(agent.status, "peers")) {
    const std::string name = text(peer, "peer");
    const Fields* const peer_before =
        before == nullptr ? nullptr : find_row(rows(before->status, "peers"), "peer", name);
    for (const Fields& path : rows(peer, "paths")) {
      const std::string backend = text(path, "backend");
      const Fields* const path_before =
          peer_before == nullptr ? nullptr : find_row(rows(*peer_before, "paths"), "backend", backend);
      const auto latency = [&](const char* key) {
        const std::uint64_t ns = number(peer, key);
        return ns == 0 ? std::string("-") : short_duration(Duration(static_cast<std::int64_t>(ns)));
      };
      table.add({name, text(peer, "state"), backend, text(path, "state"),
                 rate_text(time.per_second(path, path_before, "bytes_out")),
                 rate_text(time.per_second(path, path_before, "bytes_in")), latency("p50_ns"), latency("p99_ns"),
                 std::to_string(number(path, "errors"))});
    }
    if (rows(peer, "paths").empty()) table.add({name, text(peer, "state"), "no path"});
  }
}

std::string details(const AgentLook& agent, const AgentLook* before, Instant at) {
  Table peers({{"peer"},
               {"state"},
               {"path"},
               {"state"},
               {"out", Align::kRight},
               {"in", Align::kRight},
               {"p50", Align::kRight},
               {"p99", Align::kRight},
               {"errors", Align::kRight}});
  add_peers(agent, before, peers);
  std::string all = fmt::format("\n{} (process {}):\n", text(agent.status, "agent"), agent.reading.process);
  if (!peers.empty()) all += peers.to_string(2);
  const std::uint64_t sessions = number(agent.status, "sessions");
  if (const std::size_t told = rows(agent.status, "peers").size(); sessions > told) {
    all += fmt::format("  and {} peers more, which moved less\n", sessions - told);
  }
  all += agent_worlds_text(agent.worlds, at);
  all += waiting_rows(agent, at, {});
  const std::uint64_t waiting = number(agent.status, "waiting_in_all");
  if (const std::size_t told = rows(agent.status, "waiting").size(); waiting > told) {
    all += fmt::format("  waiting: {} more\n", waiting - told);
  }
  return all;
}

}  // namespace

std::string waiting_rows(const AgentLook& agent, Instant at, const std::string& of_peer) {
  std::string all;
  for (const Fields& row : rows(agent.status, "waiting")) {
    const std::string peer = text(row, "peer");
    if (!of_peer.empty() && peer != of_peer) continue;
    const std::uint64_t count = number(row, "count");
    all += fmt::format("  waiting: {}: {}{}{}", text(row, "who"), text(row, "what"),
                       count > 1 ? fmt::format(" ({})", count) : "", peer.empty() ? "" : " of " + peer);
    if (const auto from = instant(row, "since_ns")) all += fmt::format(", for {}", ago(at, from));
    if (const auto until = instant(row, "until_ns")) {
      all += *until > at ? fmt::format(", at most {} more", short_duration(*until - at)) : ", its time is up";
    }
    all += "\n";
  }
  return all;
}

AgentLook agent_look(std::string page, base::StatusReading reading) {
  AgentLook look{.page = std::move(page), .reading = std::move(reading), .status = nullptr, .not_live = {}};
  Fields status = Fields::parse(look.reading.text, nullptr, false);
  if (status.is_object() && text(status, "schema") == "hawser.status/1") look.status = std::move(status);
  return look;
}

std::string state_of(const AgentLook& agent, Instant now) {
  if (!agent.reading.is_alive) return "dead";
  if (agent.reading.is_stopped) return "stopped";
  if (agent.reading.is_asleep) return "asleep";
  if (now - agent.reading.worked_at <= kStuckAfter) return "up";
  const auto driven = agent.status.is_object() ? agent.status.find("is_driven") : agent.status.end();
  const bool has_driver = driven != agent.status.end() && *driven == true;
  return has_driver ? "stuck" : "unpolled";
}

std::string top_text(const Look& now, const Look& before, Instant at) {
  Table table({{"agent"},
               {"process", Align::kRight},
               {"state"},
               {"peers", Align::kRight},
               {"out", Align::kRight},
               {"in", Align::kRight},
               {"in flight", Align::kRight},
               {"transfers", Align::kRight},
               {"errors", Align::kRight},
               {"last turn", Align::kRight}});
  std::string all;
  for (const AgentLook& agent : now) {
    const AgentLook* const earlier = find(before, agent.page);
    const Since time = since(agent, earlier);
    const Fields* const then = earlier == nullptr ? nullptr : &earlier->status;
    const std::string name = agent.status.is_null() ? "?" : text(agent.status, "agent");
    const std::string last = ago(at, agent.reading.worked_at);
    table.add({name, std::to_string(agent.reading.process), state_of(agent, at),
               std::to_string(number(agent.status, "sessions")),
               rate_text(time.per_second(agent.status, then, "bytes_written")),
               rate_text(time.per_second(agent.status, then, "bytes_read")),
               std::to_string(number(agent.status, "in_flight")), std::to_string(number(agent.status, "transfers")),
               std::to_string(number(agent.status, "errors")), last == "-" ? last : last + " ago"});
    if (!rows(agent.status, "peers").empty() || !rows(agent.status, "waiting").empty() || !agent.worlds.empty()) {
      all += details(agent, earlier, at);
    }
  }
  return table.to_string() + all;
}

Json top_rows(const Look& now, const Look& before, Instant at) {
  auto all = Json::array();
  for (const AgentLook& agent : now) {
    const AgentLook* const earlier = find(before, agent.page);
    const Since time = since(agent, earlier);
    const Fields* const then = earlier == nullptr ? nullptr : &earlier->status;
    Json row = {{"page", agent.page},
                {"process", agent.reading.process},
                {"state", state_of(agent, at)},
                {"last_turn_ns_ago", std::max(at - agent.reading.worked_at, Duration()).count()},
                {"status", agent.status}};
    const auto rate = [&](const char* key) {
      const auto value = time.per_second(agent.status, then, key);
      return value ? Json(*value) : Json(nullptr);
    };
    row["bytes_written_per_s"] = rate("bytes_written");
    row["bytes_read_per_s"] = rate("bytes_read");
    if (agent.is_live || !agent.not_live.empty()) row["live"] = agent.is_live;
    if (!agent.not_live.empty()) row["not_live"] = agent.not_live;
    if (!agent.worlds.empty()) row["worlds"] = agent_worlds_json(agent.worlds);
    all.push_back(std::move(row));
  }
  return all;
}

}  // namespace hawser::cli
