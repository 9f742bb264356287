#pragma once

// Which path a plan takes, what that should cost, and why each other one was refused.
//
// Three steps, each a function of values: `filter` finds who can do it at all, `score` predicts times, `choose` orders.
//
// Thread rule: pure functions. Lifetime: a Route holds no reference to what it was made from.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/memory.h>
#include <hawser/status.h>
#include <hawser/transfer.h>

#include "backend/backend.h"
#include "plan/cost.h"

namespace hawser::plan {

/// What is to be moved.
struct Request {
  Operation op = Operation::kWrite;
  std::uint64_t bytes = 0;
  std::uint64_t pieces = 1;
  Device local, remote;
  std::string_view peer;      ///< For the text.
  bool same_host = false;     ///< The peer was proven to be on this host, or nothing speaks against it.
  bool self = false;          ///< The peer is this agent.
  bool strict_order = false;  ///< The first usable backend in the user's order, whatever the times.
};

enum class Readiness : std::uint8_t {
  kUp = 1,          ///< Can take chunks now.
  kConnecting = 2,  ///< Will be able to, or fail.
  kUnopened = 3,    ///< Opened at first use.
  kDown = 4,        ///< Lost; see `refusal`.
};
std::string_view to_string(Readiness readiness);

/// One way to the peer. Order among candidates is the user's order of preference.
struct Candidate {
  std::string_view backend;
  const backend::Traits* traits = nullptr;  ///< Null when the backend is not open; then `refusal` says why.
  Readiness readiness = Readiness::kUnopened;
  Health health;
  Status refusal;  ///< Not good: cannot be used, for this reason.
};

/// What became of a candidate.
struct RouteRow {
  std::string backend;
  Readiness readiness = Readiness::kUnopened;
  bool usable = false;
  bool chosen = false;
  double predicted_ns = 0;  ///< 0 when not usable.
  bool measured = false;    ///< The prediction rests on measurements.
  Status refusal;           ///< Not good when it is not usable.
};

struct Route {
  Request request;  ///< `peer` is empty here: see `peer`.
  std::string peer;
  std::vector<RouteRow> rows;  ///< One per candidate, in the candidates' order.
  std::vector<std::size_t>
      order;  ///< Usable ones, best first: the first is taken, the others stand in when it is lost.

  std::optional<std::size_t> chosen() const;
  double predicted_ns() const;
  /// Good when there is a usable path, else kUnsupported or kDisconnected with each refusal.
  Status status() const;
};

Route plan_route(const Request& request, std::span<const Candidate> candidates);

/// The three steps. `filter` fills usable and refusal; `score` the times; `choose` the order.
void filter(const Request& request, std::span<const Candidate> candidates, Route& route);
void score(const Request& request, std::span<const Candidate> candidates, Route& route);
void choose(const Request& request, Route& route);

/// A table for people, with a heading line about the request.
std::string explain(const Route& route);

}  // namespace hawser::plan
