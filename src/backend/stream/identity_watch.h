#pragma once

// IdentityWatch: what one path knows of its peer's identity, and when to look at it again. A path ends once the peer's
// certificate has expired or was revoked; a renewed one is told on the path that stands.
//
// Thread rule: confined to the port's lane. Lifetime: the authenticator outlives it.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <hawser/status.h>
#include <hawser/time.h>

#include "identity/authenticator.h"

namespace hawser::backend::stream {

/// What a handshake found out.
struct ShownIdentity {
  std::shared_ptr<identity::PeerIdentity> peer;  ///< Null: identities did not count.
  identity::Transcript transcript{};             ///< Of stream 0.
};

class IdentityWatch {
 public:
  /// Nothing is watched.
  IdentityWatch() = default;
  IdentityWatch(identity::Authenticator& authenticator, ShownIdentity shown, identity::Speaker self, Instant now);

  bool is_on() const { return shown_.peer != nullptr; }
  /// When `turn` has something to do.
  Instant next() const { return next_; }
  /// kDenied: the peer's identity does not hold any more.
  Status turn(Instant now, std::string_view peer_name);
  /// What proves a certificate of this agent that the peer has not been told of. None: there is none.
  std::optional<std::string> renewal() const;
  /// It was told.
  void note_told();
  /// The peer was given a new certificate. Errors: kCorrupt; kDenied: it is not as good as the old one.
  Status renewed(std::span<const std::byte> proof, std::string_view peer_name);
  /// The peer's SPIFFE ID; empty: nothing is watched.
  std::string_view peer_id() const {
    return is_on() ? std::string_view(shown_.peer->holder.id.text()) : std::string_view();
  }
  /// For people; empty: nothing is watched.
  std::string describe() const;

 private:
  identity::Authenticator* authenticator_ = nullptr;
  ShownIdentity shown_;
  identity::Speaker self_ = identity::Speaker::kOpener;
  std::uint64_t told_ = 0;  ///< The renewal of this agent that the peer knows of.
  Instant next_ = Instant::max();
};

}  // namespace hawser::backend::stream
