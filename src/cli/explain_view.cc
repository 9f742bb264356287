#include "cli/explain_view.h"

#include <fmt/format.h>

#include "cli/page_fields.h"
#include "cli/table.h"
#include "cli/units.h"

namespace hawser::cli {
namespace {

bool is_wanted(const Fields& row, const std::string& peer) { return peer.empty() || text(row, "peer") == peer; }

std::string times_of(const Fields& peer) {
  const std::uint64_t p50 = number(peer, "p50_ns"), p99 = number(peer, "p99_ns");
  if (p50 == 0) return {};
  return fmt::format(", transfers take {} (p99 {})", short_duration(Duration(static_cast<std::int64_t>(p50))),
                     short_duration(Duration(static_cast<std::int64_t>(p99))));
}

/// The text for a path, or for the reason that there is none.
std::string reason_of(const Fields& way, const Fields* path) {
  if (path != nullptr) return text(*path, "about");
  const std::string why = text(way, "why");
  return why.empty() ? "it would lead there; it is opened when the paths before it fail" : why;
}

void add_ways(const Fields& peer, const AgentLook& agent, Table& table) {
  for (const Fields& way : rows(peer, "ways")) {
    const std::string backend = text(way, "backend");
    const Fields* const path = find_row(rows(peer, "paths"), "backend", backend);
    const std::string state = path != nullptr ? text(*path, "state") : text(way, "why").empty() ? "not opened" : "no";
    const std::string moved =
        path == nullptr ? "" : short_size(number(*path, "bytes_out")) + " / " + short_size(number(*path, "bytes_in"));
    table.add({backend, state, moved, reason_of(way, path)});
  }
  for (const Fields& closed : rows(agent.status, "closed_backends")) {
    table.add({text(closed, "backend"), "not here", "", text(closed, "why")});
  }
}

std::string peer_text(const Fields& peer, const AgentLook& agent, Instant at) {
  const std::string name = text(peer, "peer");
  std::string all = fmt::format("{} (process {}, {}) to {}: {}{}\n", text(agent.status, "agent"), agent.reading.process,
                                state_of(agent, at), name, text(peer, "state"), times_of(peer));
  if (peer.find("ways") == peer.end()) {
    return all + "  the page has no room for reasons: of many peers it explains those that moved most\n";
  }
  Table table({{"path"}, {"state"}, {"out / in"}, {"about"}});
  add_ways(peer, agent, table);
  return all + table.to_string(2) + waiting_rows(agent, at, name);
}

}  // namespace

std::string explain_text(const AgentLook& agent, const std::string& peer, Instant at, bool* is_found) {
  std::string all;
  *is_found = false;
  for (const Fields& row : rows(agent.status, "peers")) {
    if (!is_wanted(row, peer)) continue;
    all += (all.empty() ? "" : "\n") + peer_text(row, agent, at);
    *is_found = true;
  }
  return all;
}

Json explain_rows(const AgentLook& agent, const std::string& peer) {
  Json all = Json::array();
  for (const Fields& row : rows(agent.status, "peers")) {
    if (!is_wanted(row, peer)) continue;
    Json one = {{"agent", text(agent.status, "agent")}, {"process", agent.reading.process}};
    for (const auto& [key, value] : row.items()) one[key] = Json::parse(value.dump());
    if (agent.is_live || !agent.not_live.empty()) one["live"] = agent.is_live;
    if (!agent.not_live.empty()) one["not_live"] = agent.not_live;
    one["closed_backends"] = Json::parse(rows(agent.status, "closed_backends").dump());
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace hawser::cli
