#pragma once

// User: what applications do, at random: submit, cancel, send, read, close, open, forget. It throws the dice for what
// is next; a member of its own does each kind.
//
// Thread rule: one thread. Lifetime: the run's.

#include "sim/atomic_user.h"
#include "sim/message_user.h"
#include "sim/peer_choice.h"
#include "sim/region_user.h"
#include "sim/transfer_user.h"

namespace hawser::simulation {

class User {
 public:
  explicit User(Theater& theater) : theater_(theater), rng_(theater.rng().fork()) {}
  User(const User&) = delete;
  User& operator=(const User&) = delete;

  /// One thing that the user of `life` may do.
  void act(Life& life);
  /// Takes all that came.
  void read(Life& life) { messages_.read(life); }
  /// See TransferUser.
  void write_again(Life& life, Life& to, Instant since) { transfers_.write_again(life, to, since); }
  void try_stale_plans() { transfers_.try_stale_plans(); }

 private:
  void forget(Life& life);

  Theater& theater_;
  base::Rng rng_;
  PeerChoice peers_{theater_, rng_};
  TransferUser transfers_{theater_, rng_};
  AtomicUser atomics_{theater_, rng_};
  MessageUser messages_{theater_, rng_};
  RegionUser regions_{theater_, rng_};
};

}  // namespace hawser::simulation
