#pragma once

// Watcher: a world, told of what concerns all of its ranks. Calls come under the lane, and may begin and end
// operations.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <hawser/peer.h>
#include <hawser/status.h>

#include "runtime/question.h"
#include "runtime/world_memory.h"
#include "wire/runtime.h"

namespace hawser::runtime {

class Watcher {
 public:
  /// The rank closes, and all of its worlds.
  virtual void on_close(Instant now) = 0;
  /// The agent closes for this reason, which its worlds had no part in.
  virtual void on_agent_closing(const Status& /*why*/, Instant now) { on_close(now); }
  /// Worlds of one opened world have the same number: itself, its groups, and those that were made by shrinking.
  virtual std::uint64_t family() const { return 0; }
  /// The opened world ends here, and the agent goes on. The other ranks are told that this one left, or closed.
  virtual void say_gone(bool /*left*/, Instant /*now*/) {}
  /// Adds what this world alone holds.
  virtual void add_memory(WorldMemory& /*sum*/) {}
  virtual void on_down(const Peer& peer, const Status& cause) = 0;
  /// `by` found that it has failed; or has proof that it is dead.
  virtual void on_failed(const Peer& by, std::uint32_t rank, bool is_dead) = 0;
  virtual void on_left(const Peer& peer) = 0;
  virtual void on_revoke(const Peer& by, const Status& why) = 0;
  virtual void on_agreement(const Peer& by, const wire::RuntimeMessage& message) = 0;
  /// Whether a message of a collective, which nobody wants, is of another one than this rank called by its number.
  virtual bool is_misfit(const wire::MessageEnvelope& envelope) = 0;
  virtual void on_misfit(const Peer& by, const wire::MessageEnvelope& envelope, Instant now) = 0;
  virtual void on_check(const Peer& /*by*/, const Question& /*question*/, Instant /*now*/) {}
  /// `by` sends nothing more for this number: kInvalid, it is past it; kDisconnected, it has closed the world. Or it
  /// has called nothing by this number yet: kBusy.
  virtual void on_checked(const Peer& /*by*/, std::uint64_t /*number*/, Code /*code*/, Instant /*now*/) {}
  /// `by` has lost these ranks (see court.h), and asks whom this one has.
  virtual void on_lost(const Peer& /*by*/, std::span<const std::byte> /*lost*/, bool /*asks*/) {}
  /// It was undecided who of ranks that lost each other has failed (see link_court.h), and is decided now.
  virtual void on_decided(Instant /*now*/) {}
  /// `by` has written on its board, and this rank had asked to be told.
  virtual void on_bell(const Peer& /*by*/, Instant /*now*/) {}
  /// `by` opens the world with this topology.
  virtual void on_topology(const Peer& /*by*/, std::string_view /*topology*/) {}

 protected:
  ~Watcher() = default;
};

}  // namespace hawser::runtime
