#pragma once

// MessageUser: a user's messages and notifications: sends them at random, and takes what came.
//
// Thread rule: one thread. Lifetime: the run's.

#include "sim/peer_choice.h"

namespace hawser::simulation {

class MessageUser {
 public:
  /// Draws from `rng`, the user's.
  MessageUser(Theater& theater, base::Rng& rng) : theater_(theater), rng_(rng), peers_(theater, rng) {}

  /// Some messages to one peer, on one channel.
  void send(Life& life);
  /// A notification without a transfer.
  void note(Life& life);
  /// Takes all that came, events too.
  void read(Life& life);

 private:
  Theater& theater_;
  base::Rng& rng_;
  PeerChoice peers_;
};

}  // namespace hawser::simulation
