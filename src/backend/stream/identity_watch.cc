#include "backend/stream/identity_watch.h"

#include <utility>

#include "base/format.h"
#include "base/try.h"
#include "identity/unix_time.h"

namespace hawser::backend::stream {
namespace {

using identity::Occasion;
using identity::Speaker;

constexpr Speaker other(Speaker speaker) { return speaker == Speaker::kOpener ? Speaker::kAcceptor : Speaker::kOpener; }

}  // namespace

IdentityWatch::IdentityWatch(identity::Authenticator& authenticator, ShownIdentity shown, Speaker self, Instant now)
    : authenticator_(&authenticator), shown_(std::move(shown)), self_(self), told_(authenticator.renewals()) {
  if (is_on()) next_ = now + authenticator.period();
}

Status IdentityWatch::turn(Instant now, std::string_view peer_name) {
  if (now < next_) return {};
  next_ = now + authenticator_->period();
  authenticator_->look(now);
  return authenticator_->check_again(*shown_.peer, peer_name);
}

void IdentityWatch::note_told() { told_ = authenticator_->renewals(); }

std::optional<std::string> IdentityWatch::renewal() const {
  if (!is_on() || told_ == authenticator_->renewals()) return std::nullopt;
  Result<std::string> proof = authenticator_->prove(self_, Occasion::kRenewal, shown_.transcript);
  return proof ? std::optional(*std::move(proof)) : std::nullopt;
}

Status IdentityWatch::renewed(std::span<const std::byte> proof, std::string_view peer_name) {
  if (!is_on()) return Status(Code::kCorrupt, "an identity was renewed that was never shown");
  HAWSER_TRY_ASSIGN(identity::PeerIdentity peer,
                    authenticator_->check(proof, other(self_), Occasion::kRenewal, shown_.transcript, peer_name));
  if (peer.holder.id != shown_.peer->holder.id) {
    return Status(Code::kDenied,
                  base::format("{} became {} within a session", shown_.peer->holder.id.text(), peer.holder.id.text()));
  }
  shown_.peer = std::make_shared<identity::PeerIdentity>(std::move(peer));
  return {};
}

std::string IdentityWatch::describe() const {
  if (!is_on()) return {};
  const identity::Holder& holder = shown_.peer->holder;
  return base::format("{} until {}", holder.id.text(), identity::time_text(holder.ends));
}

}  // namespace hawser::backend::stream
