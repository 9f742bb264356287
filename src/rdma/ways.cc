#include "rdma/ways.h"

#include <algorithm>
#include <string_view>

#include "base/inside.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

/// Backends that never lead from one process to another are no ways.
bool is_way(std::string_view backend) { return backend != "loopback" && backend != "file" && backend != "self"; }

std::string first_line(const Status& why) {
  std::string text(why.message());
  if (const Status cause = why.cause(); !cause.ok()) text += " (" + std::string(cause.message()) + ")";
  return text;
}

}  // namespace

std::vector<std::string> way_lines(std::span<const BackendReport> here, std::span<const std::string> told,
                                   std::span<const agent::inner::Way> tried) {
  const auto is_told = [&](const std::string& name) { return std::ranges::find(told, name) != told.end(); };
  std::vector<std::string> lines;
  std::vector<std::string> known;
  for (const BackendReport& report : here) {
    if (!is_way(report.name)) continue;
    known.push_back(report.name);
    std::string line = report.name + ": ";
    const auto way = std::ranges::find(tried, report.name, &agent::inner::Way::backend);
    if (!report.open) {
      line += "not open here: " + first_line(report.cause);
    } else if (!is_told(report.name)) {
      line += "the owner had not opened it when it made the handle";
    } else if (way != tried.end() && !way->why.ok()) {
      line += first_line(way->why);
    } else {
      line += "open at both ends";
    }
    lines.push_back(std::move(line));
  }
  for (const std::string& name : told) {
    const bool is_new = is_way(name) && std::ranges::find(known, name) == known.end();
    if (is_new) lines.push_back(name + ": the owner has it, this agent was opened without it");
  }
  return lines;
}

std::vector<std::string> Ways::lines_of(const RemoteBuffer& buffer) const {
  std::vector<agent::inner::Way> tried;
  for (const Peer& peer : agent_.peers()) {
    if (peer.incarnation() == buffer.owner_incarnation()) tried = agent::inner::ways_to(agent_, peer);
  }
  return way_lines(agent_.backends(), buffer.contexts(), tried);
}

// The agent speaks of its own backends only; what keeps the others away is mostly what mends it.
Status Ways::with_ways(const Status& why, const RemoteBuffer& buffer) const {
  const Code code = why.code();
  const bool is_of_way = code == Code::kDisconnected || code == Code::kUnsupported || code == Code::kTimedOut;
  if (!is_of_way || !buffer.valid() || self_.owns(*core_of(buffer))) return why;
  std::string text = "ways to " + std::string(buffer.owner());
  std::string_view mark = ": ";
  for (const std::string& line : lines_of(buffer)) {
    text += std::string(mark) + line;
    mark = "; ";
  }
  return why.because(Status(code, std::move(text)));
}

Status Ways::of_transfer(const Status& why, const RemoteBuffer& buffer) const {
  if (why.code() != Code::kDenied) return with_ways(why, buffer);
  return Status(Code::kDenied, "buffer " + std::to_string(buffer.id()) + " of " + std::string(buffer.owner()) +
                                   " is not lent any more: somebody released it")
      .with_peer(buffer.owner())
      .with_buffer(why.buffer())
      .with_scope(why.scope())
      .with_advice("ask its owner for a new handle")
      .because(why);
}

}  // namespace rdma
HAWSER_NAMESPACE_END
