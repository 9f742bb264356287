#include "agent/name_claim.h"

namespace hawser::agent {

void NameClaim::on_value(std::uint64_t version, const std::optional<Holder>& holder) {
  State state = State::kReplaceable;
  if (holder && holder->incarnation == self_.incarnation) {
    state = State::kHeld;
  } else if (holder && *holder > self_) {
    state = State::kDisplaced;
  }
  *this = NameClaim(self_, state, version);
  if (holder) holder_ = *holder;
}

PutOptions NameClaim::condition() const {
  if (state_ == State::kFree) return {.create_only = true};
  return {.if_version = version_};
}

}  // namespace hawser::agent
