#include "plan/planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/format.h"

namespace hawser::plan {
namespace {

/// Predictions closer than this share are a tie, which the user's order decides: the estimates are no better.
constexpr double kTieShare = 0.05;
/// What opening a path is taken to cost, so that one transfer does not wait for a path that would be a little faster.
constexpr double kOpenNs = 500'000;

std::string device_text(Device device) {
  constexpr std::array<std::string_view, 6> kKinds{"", "host", "cuda", "file", "object", "block"};
  const auto kind = static_cast<std::size_t>(device.kind);
  const std::string name =
      kind != 0 && kind < kKinds.size() ? std::string(kKinds[kind]) : base::format("device-{}", kind);
  return device.kind == DeviceKind::kCuda || kind >= kKinds.size() ? base::format("{}:{}", name, device.ordinal) : name;
}

Status refuse_device(std::string_view side, Device device) {
  return Status(Code::kUnsupported, base::format("does not reach {} memory ({})", side, device_text(device)));
}

Status refuse(const Request& request, const Candidate& candidate) {
  if (!candidate.refusal.ok()) return candidate.refusal;
  if (candidate.traits == nullptr) return Status(Code::kUnsupported, "the backend is not open");
  if (candidate.readiness == Readiness::kDown) return Status(Code::kDisconnected, "the path is down");
  if (candidate.traits->self_only && !request.self) {
    return Status(Code::kUnsupported, "reaches its own agent only");
  }
  if (candidate.traits->same_host_only && !request.same_host && !request.self) {
    return Status(Code::kUnsupported, "reaches processes of this host only, and the peer is on another");
  }
  const backend::DeviceKinds reaches = candidate.traits->reaches;
  // A path takes bytes of this process from host memory, whatever it reaches at the other end.
  if (request.local.kind != DeviceKind::kHost && !reaches.has(request.local.kind)) {
    return refuse_device("local", request.local);
  }
  return reaches.has(request.remote.kind) ? Status() : refuse_device("remote", request.remote);
}

}  // namespace

std::string_view to_string(Readiness readiness) {
  switch (readiness) {
    case Readiness::kUp:
      return "up";
    case Readiness::kConnecting:
      return "connecting";
    case Readiness::kUnopened:
      return "unopened";
    case Readiness::kDown:
      return "down";
  }
  return "unknown";
}

std::optional<std::size_t> Route::chosen() const { return order.empty() ? std::nullopt : std::optional(order.front()); }

double Route::predicted_ns() const { return order.empty() ? 0 : rows[order.front()].predicted_ns; }

Status Route::status() const {
  if (!order.empty()) return {};
  std::string text = base::format("no backend can move {} to {} memory of peer \"{}\"", device_text(request.local),
                                  device_text(request.remote), peer);
  // A lost path may come back; only when all refuse for good is there no way.
  bool lost = false;
  std::string advice;
  for (const RouteRow& row : rows) {
    if (!row.refusal.advice().empty()) {
      advice += base::format("{}{}: {}", advice.empty() ? "" : "; ", row.backend, row.refusal.advice());
    }
    text += base::format("; {}: {}", row.backend, row.refusal.message());
    lost = lost || row.refusal.code() == Code::kDisconnected || row.refusal.code() == Code::kTimedOut;
  }
  if (rows.empty()) text += "; no backend is open";
  return Status(lost ? Code::kDisconnected : Code::kUnsupported, std::move(text))
      .with_scope(Scope::kPeer)
      .with_peer(peer)
      .with_advice(advice.empty() ? "open a backend that both agents have, tcp works everywhere" : advice);
}

Route plan_route(const Request& request, std::span<const Candidate> candidates) {
  Route route;
  route.request = request;
  route.peer = std::string(request.peer);
  route.request.peer = {};
  filter(request, candidates, route);
  score(request, candidates, route);
  choose(request, route);
  return route;
}

void filter(const Request& request, std::span<const Candidate> candidates, Route& route) {
  route.rows.clear();
  for (const Candidate& candidate : candidates) {
    RouteRow row;
    row.backend = std::string(candidate.backend);
    row.readiness = candidate.readiness;
    row.refusal = refuse(request, candidate);
    row.usable = row.refusal.ok();
    route.rows.push_back(std::move(row));
  }
}

void score(const Request& request, std::span<const Candidate> candidates, Route& route) {
  HAWSER_ASSERT(candidates.size() == route.rows.size(), "score needs the rows that filter made");
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    RouteRow& row = route.rows[i];
    if (!row.usable) continue;
    const Candidate& candidate = candidates[i];
    row.predicted_ns = Cost::of(*candidate.traits, candidate.health).predict_ns(request.bytes, request.pieces);
    row.measured = candidate.health.samples != 0;
    if (row.readiness != Readiness::kUp) row.predicted_ns += kOpenNs;
  }
}

void choose(const Request& request, Route& route) {
  route.order.clear();
  double best = INFINITY;
  for (std::size_t i = 0; i < route.rows.size(); ++i) {
    if (!route.rows[i].usable) continue;
    route.order.push_back(i);
    best = std::min(best, route.rows[i].predicted_ns);
  }
  if (!request.strict_order) {
    std::stable_sort(route.order.begin(), route.order.end(), [&](std::size_t a, std::size_t b) {
      return route.rows[a].predicted_ns < route.rows[b].predicted_ns;
    });
    // Only those that tie with the best are put in the user's order: a chain of ties must not carry a slow one up.
    const auto beyond = std::find_if(route.order.begin(), route.order.end(), [&](std::size_t i) {
      return route.rows[i].predicted_ns > best * (1 + kTieShare);
    });
    std::sort(route.order.begin(), beyond);
  }
  if (!route.order.empty()) route.rows[route.order.front()].chosen = true;
}

}  // namespace hawser::plan
