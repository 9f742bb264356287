#pragma once

// PastAccord: answers for a world that this rank has closed, after it took part in an agreement there. The leader may
// die before all have heard of its decision; whoever leads next asks those that know it, and must not wait for ever for
// one that has gone on.
//
// Thread rule: under the lane's lock. Lifetime: within the mailbox's.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/accord.h"
#include "runtime/mailbox.h"

namespace hawser::runtime {

class PastAccord final : public Watcher {
 public:
  PastAccord(std::uint64_t world, std::uint32_t rank, std::vector<Peer> ranks, std::shared_ptr<Accord> accord,
             Mailbox& mailbox);
  ~PastAccord();
  PastAccord(const PastAccord&) = delete;
  PastAccord& operator=(const PastAccord&) = delete;

  void on_close(Instant) override {}
  void on_down(const Peer& peer, const Status& cause) override;
  void on_failed(const Peer& by, std::uint32_t rank, bool is_dead) override;
  void on_left(const Peer& peer) override;
  void on_revoke(const Peer&, const Status&) override {}
  void on_agreement(const Peer& by, const wire::RuntimeMessage& message) override;
  bool is_misfit(const wire::MessageEnvelope&) override { return false; }
  void on_misfit(const Peer&, const wire::MessageEnvelope&, Instant) override {}

 private:
  std::optional<std::uint32_t> rank_of(const Peer& peer) const;
  void note_failed(std::optional<std::uint32_t> rank);

  const std::uint64_t world_;
  const std::uint32_t rank_;
  const std::vector<Peer> ranks_;
  const std::shared_ptr<Accord> accord_;
  Mailbox& mailbox_;
};

}  // namespace hawser::runtime
