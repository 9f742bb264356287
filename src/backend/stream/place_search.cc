#include "backend/stream/place_search.h"

#include <utility>

#include "base/format.h"

namespace hawser::backend::stream {
namespace {

/// Once another incarnation of the peer answered somewhere, the other places have so long to lead to the right one.
constexpr Duration kOthersPatience = std::chrono::milliseconds(500);

}  // namespace

PlaceSearch::PlaceSearch(Network& network, void* owner, Target target, Instant now, Instant deadline)
    : race_(network, owner, std::move(target.places), target.known, now, deadline),
      is_here_(target.is_here),
      left_out_(std::move(target.left_out)) {}

std::unique_ptr<Stream> PlaceSearch::turn(Instant now) {
  race_.turn(now);
  return race_.take(now);
}

void PlaceSearch::reject(const Status& why, Found found, Instant now) {
  if (found == Found::kYounger) restarted_ = why;
  if (found == Found::kMisfit) misfit_ = why;
  race_.reject(why);
  if (!restarted_.ok()) race_.hurry(now + kOthersPatience);
}

PlaceSearch::Verdict PlaceSearch::verdict(std::string_view peer) const {
  const Status why = verdict_of(race_, peer);
  if (!restarted_.ok()) return {.why = restarted_.because(why)};
  if (!misfit_.ok() && !may_change(race_)) return {.why = misfit_.because(why)};
  // Refused wherever it was tried: here its process is gone. Elsewhere it may be so, too; the agent asks again.
  const bool is_refused_elsewhere = why.scope() == Scope::kPeer && !is_here_;
  return {.why = is_refused_elsewhere ? why.with_scope(Scope::kPath) : why,
          .is_refused_elsewhere = is_refused_elsewhere};
}

std::string PlaceSearch::others(Instant now) const {
  std::string text = left_out_;
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (const std::string losers = race_.losers(now); !losers.empty()) add(losers);
  for (const ConnectRace::Failure& failure : race_.failures()) {
    add(base::format("{}: {}", failure.place, failure.why.message()));
  }
  return text;
}

}  // namespace hawser::backend::stream
