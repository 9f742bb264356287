#pragma once

// FormationWatch: finds out while a world forms whether all ranks open it with the same settings: topology, recovery
// policy and quorum. A rank whose settings are not the common ones says them to the ranks that it meets; a rank that
// hears others answers with its own, and passes on what it heard to all that it reaches. Where ranks differ some that
// meet do, so all ranks hear of it.
//
// Thread rule: under the lane's lock, but for what says otherwise. Lifetime: that of the formation; it is made and
// destroyed under the lane's lock.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/world.h>

#include "runtime/mailbox.h"

namespace hawser::runtime {

/// A text for people, by which settings are also told from others: "full", or "hypercube, recovery automatic, quorum
/// majority". What is common is left out.
std::string settings_of(const WorldOptions& options);

class FormationWatch final : public Watcher {
 public:
  /// `differs` is told the reason, once.
  FormationWatch(Mailbox& mailbox, std::string_view world, std::string settings,
                 std::function<void(const Status& why)> differs);
  ~FormationWatch();
  /// The number under which a world of that name forms.
  static std::uint64_t key_of(std::string_view world);
  FormationWatch(const FormationWatch&) = delete;
  FormationWatch& operator=(const FormationWatch&) = delete;

  /// Says this rank's settings to one that it met.
  void tell(const Peer& rank) { say(rank, own_); }
  /// Settings that every rank takes for granted: they need not be said.
  bool is_common() const;
  /// The peer is a rank that is reached: it is told of what differs, now or later.
  void know(const Peer& rank);
  /// Any thread.
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }
  /// Constant once it has failed.
  const Status& status() const { return status_; }

  void on_close(Instant) override { mailbox_.remove_watcher(key_); }
  void on_down(const Peer&, const Status&) override {}
  void on_failed(const Peer&, std::uint32_t, bool) override {}
  void on_left(const Peer&) override {}
  void on_revoke(const Peer&, const Status&) override {}
  void on_agreement(const Peer&, const wire::RuntimeMessage&) override {}
  bool is_misfit(const wire::MessageEnvelope&) override { return false; }
  void on_misfit(const Peer&, const wire::MessageEnvelope&, Instant) override {}
  void on_topology(const Peer& by, std::string_view settings) override;

 private:
  void say(const Peer& to, std::string_view settings);

  Mailbox& mailbox_;
  const std::uint64_t key_;
  const std::string own_;
  const std::function<void(const Status& why)> differs_;
  std::vector<Peer> known_;
  std::string other_;  ///< The settings that differ.
  Status status_;
  std::atomic<bool> has_failed_{false};
};

}  // namespace hawser::runtime
