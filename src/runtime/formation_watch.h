#pragma once

// FormationWatch: finds out while a world forms whether all ranks open it with the same topology. A rank of a sparse
// world says its topology to its neighbours; a rank that hears another one answers with its own, and passes on what it
// heard to all that it reaches. Where ranks differ some neighbours do, so all ranks hear of it.
//
// Thread rule: under the lane's lock, but for what says otherwise. Lifetime: that of the formation; it is made and
// destroyed under the lane's lock.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/topology.h>

#include "runtime/mailbox.h"

namespace hawser::runtime {

class FormationWatch final : public Watcher {
 public:
  /// `differs` is told the reason, once.
  FormationWatch(Mailbox& mailbox, std::string_view world, const Topology& topology,
                 std::function<void(const Status& why)> differs);
  ~FormationWatch();
  FormationWatch(const FormationWatch&) = delete;
  FormationWatch& operator=(const FormationWatch&) = delete;

  /// Says this rank's topology to a neighbour in a sparse world.
  void tell(const Peer& neighbour) { say(neighbour, own_); }
  /// The peer is a rank that is reached: it is told of what differs, now or later.
  void know(const Peer& rank);
  /// Any thread.
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  /// Constant once it has failed.
  const Status& status() const { return status_; }

  void on_close(Instant) override { mailbox_.remove_watcher(key_); }
  void on_down(const Peer&, const Status&) override {}
  void on_failed(const Peer&, std::uint32_t) override {}
  void on_left(const Peer&) override {}
  void on_revoke(const Peer&, const Status&) override {}
  void on_agreement(const Peer&, const wire::RuntimeMessage&) override {}
  bool is_misfit(const wire::MessageEnvelope&) override { return false; }
  void on_misfit(const Peer&, const wire::MessageEnvelope&, Instant) override {}
  void on_topology(const Peer& by, std::string_view topology) override;

 private:
  void say(const Peer& to, std::string_view topology);

  Mailbox& mailbox_;
  const std::uint64_t key_;
  const std::string own_;
  const std::function<void(const Status& why)> differs_;
  std::vector<Peer> known_;
  std::string other_;  ///< The topology that differs.
  Status status_;
  std::atomic<bool> has_failed_{false};
};

}  // namespace hawser::runtime
