#pragma once

// Remotes: what one agent knows of others, by their names. Of one name there may be two incarnations for a while: the
// one that is talked to, and a rival.
//
// Thread rule: the owner's lock. Lifetime: the agent that the peers are of outlives it.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/peer.h>

#include "base/id128.h"
#include "compat/remote.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class Remotes {
 public:
  /// Ends what the agent has with a peer.
  using Invalidate = std::function<Status(const Peer&)>;
  explicit Remotes(Invalidate invalidate) : invalidate_(std::move(invalidate)) {}

  bool knows(std::string_view name) const { return all_.contains(name); }
  std::vector<std::string> names() const;
  /// The one that lives; null when none is known. One that died or was restarted is forgotten: whoever asks again is
  /// told to load its new metadata.
  Remote* find(std::string_view name);
  /// The incarnation that was talked to when somebody last looked.
  std::optional<Peer> last_peer(std::string_view name) const;
  /// Good while a prepared list's peer is the one known by its name. Else kRemoteDisconnect, once, when it died, and
  /// kNotFound from then on or when it was invalidated or loaded anew.
  Status current(std::string_view call, const Peer& peer);

  /// Takes what a copy of that peer's metadata says, as Remote::enter. kNotAllowed: another incarnation of the name is
  /// the one that is talked to; what was said of this one is kept until that one is gone.
  Status enter(std::string_view call, std::string_view name, Peer peer, const RemoteCopy& copy, std::string_view label);

  /// All of the name.
  Status forget(std::string_view call, std::string_view name);
  /// Only that incarnation: what is known of another one stays, and that is no error.
  Status forget_one(std::string_view call, std::string_view name, const base::Id128& incarnation);
  /// What came by that label alone goes; the whole agent if nothing else of it came, or if the label is empty and
  /// something came without one.
  Status drop(std::string_view call, std::string_view name, std::string_view label);

 private:
  using All = std::map<std::string, Remote, std::less<>>;

  bool settle(Remote& remote);
  void forget_rival(Remote& remote);
  Result<Remote*> place_of(std::string_view call, std::string_view name, Peer peer);
  Status let_go(std::string_view call, const Peer& peer) const;

  const Invalidate invalidate_;
  All all_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
