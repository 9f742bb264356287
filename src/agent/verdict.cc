#include "agent/verdict.h"

#include <algorithm>
#include <string>

#include "base/fd.h"

namespace hawser::agent {
namespace {

using proto::SessionEvent;

/// What an attempt says of the peer, the weightiest last.
enum class Weight : std::uint8_t {
  kNowhere,     ///< This backend does not lead there.
  kTurnedAway,  ///< The peer answered, and wants nothing of us.
  kRefused,     ///< A host answered that nobody listens.
  kRetry,       ///< Another attempt may work.
  kShortage,    ///< This process or system lacks something: another attempt would find no more of it.
  kProof,       ///< The peer is dead.
};

Weight weight_of(const Attempt& attempt) {
  if (attempt.leads_nowhere) return Weight::kNowhere;
  if (base::is_shortage(attempt.why)) return Weight::kShortage;
  if (attempt.refused && attempt.why.scope() != Scope::kPeer) return Weight::kRefused;
  switch (attempt.why.code()) {
    case Code::kUnsupported:
    case Code::kDenied:
      return attempt.why.scope() == Scope::kPath ? Weight::kNowhere : Weight::kTurnedAway;
    case Code::kCorrupt:
      return Weight::kTurnedAway;
    default:
      return attempt.why.scope() == Scope::kPeer && attempt.why.code() == Code::kDisconnected ? Weight::kProof
                                                                                              : Weight::kRetry;
  }
}

SessionEvent event_of(Weight weight) {
  switch (weight) {
    case Weight::kProof:
      return SessionEvent::kPeerDead;
    case Weight::kRetry:
      return SessionEvent::kPathLost;
    case Weight::kRefused:
      return SessionEvent::kRefused;
    case Weight::kTurnedAway:
      return SessionEvent::kDenied;
    case Weight::kShortage:
    case Weight::kNowhere:
      break;
  }
  return SessionEvent::kUnreachable;
}

/// "shm: mount the folder in both; tcp: ...". What two backends advise alike stands once.
std::string advice_of(std::span<const Attempt> attempts) {
  std::string all;
  for (const Attempt& attempt : attempts) {
    const std::string_view advice = attempt.why.advice();
    if (advice.empty() || all.find(advice) != std::string::npos) continue;
    all.append(all.empty() ? "" : "; ").append(attempt.backend).append(": ").append(advice);
  }
  return all;
}

Status named(const Attempt& attempt) {
  return Status(attempt.why.code(), attempt.backend + ": " + std::string(attempt.why.message()))
      .because(attempt.why.cause());
}

}  // namespace

Status reason_of(const Attempt& attempt) { return named(attempt).with_advice(attempt.why.advice()); }

Status status_at_deadline(const Status& last_failure, bool was_up) {
  if (!was_up || last_failure.code() == Code::kDisconnected) return last_failure;
  return Status(Code::kTimedOut, "no path came up again within peer_timeout").because(last_failure);
}

Verdict judge_attempts(std::string_view peer, std::span<const Attempt> attempts) {
  const auto lighter = [](const Attempt& a, const Attempt& b) { return weight_of(a) < weight_of(b); };
  const auto heaviest = std::ranges::max_element(attempts, lighter);
  const Weight weight = heaviest == attempts.end() ? Weight::kNowhere : weight_of(*heaviest);
  Status cause;
  if (weight == Weight::kNowhere) {
    const std::string advice = advice_of(attempts);
    cause = Status(Code::kUnsupported, "no backend of this agent leads to '" + std::string(peer) + "' from here")
                .with_advice(advice.empty() ? "open a backend that both agents have, tcp works everywhere" : advice);
  } else {
    cause = heaviest->why;
  }
  for (const Attempt& attempt : attempts) {
    // The advice of all stands above where no single one matters most.
    if (weight == Weight::kNowhere) {
      cause = cause.because(named(attempt));
    } else if (&attempt != &*heaviest) {
      cause = cause.because(reason_of(attempt));
    }
  }
  return {.event = event_of(weight), .cause = cause.with_peer(peer)};
}

}  // namespace hawser::agent
