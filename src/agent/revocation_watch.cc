#include "agent/revocation_watch.h"

#include <algorithm>
#include <chrono>

#include "base/format.h"
#include "identity/revocation_key.h"

namespace hawser::agent {
namespace {

/// While an answer is awaited.
constexpr Duration kLookForAnswer = std::chrono::milliseconds(10);
constexpr Duration kRevocationJobMax = std::chrono::milliseconds(50);

}  // namespace

void RevocationWatch::open() {
  key_ = identity::revocation_key(its_.authenticator->own().id.domain());
  set_next(Instant::min());
}

void RevocationWatch::close() {
  if (asking_) its_.directory->cancel(*asking_);
  asking_.reset();
  key_.clear();
  set_jobs(false);
  set_next(Instant::max());
}

std::size_t RevocationWatch::turn(Instant now) {
  if (key_.empty()) return 0;
  const Duration period = its_.authenticator->period();
  if (!asking_) {
    asking_ = its_.directory->get(key_);
    give_up_at_ = now + period;
  }
  if (const std::optional<DirectoryEvent> answer = its_.directory->poll(*asking_)) {
    asking_.reset();
    take(*answer);
  } else if (now >= give_up_at_) {  // It is asked again at once.
    its_.directory->cancel(*asking_);
    asking_.reset();
  }
  set_jobs(asking_ && !its_.directory->runs_itself());
  set_next(now + (asking_ ? std::min(kLookForAnswer, period) : period));
  return 0;  // What it did, nobody waits for in a turn.
}

/// A directory that fails is told of by Presence.
void RevocationWatch::take(const DirectoryEvent& answer) {
  if (!answer.status.ok() || answer.entries.empty()) return;
  static_cast<void>(its_.authenticator->take_revoked(
      answer.entries.front().value, base::format("{}: the list of revoked certificates at {} in the {} directory",
                                                 its_.agent, key_, its_.directory->kind())));
}

void RevocationWatch::run_jobs(Instant now) {
  if (!take_jobs()) return;
  (void)its_.directory->run_job(now, now + kRevocationJobMax);
}

void RevocationWatch::describe(const Visitor& visitor) const {
  if (asking_) visitor({.who = "revocation", .what = "the directory to tell of revoked certificates", .count = 1});
}

}  // namespace hawser::agent
