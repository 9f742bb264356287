#pragma once

// EngineHost: what the engine asks of the agent around it, answered by the core.
//
// Thread rule: called under the lane's lock. Lifetime: the core's.

#include "agent/engine/surroundings.h"

namespace hawser::agent {

class Core;

class EngineHost final : public PeerRegister, public Cards, public Keys, public Waiters {
 public:
  explicit EngineHost(Core& core) : core_(core) {}

  // PeerRegister
  Result<std::shared_ptr<PeerCore>> meet(const backend::Identity& who) override;
  void forget(const PeerCore& peer) override;
  void note_death(const PeerCore& peer, const Status& why) override;
  void note_life(const PeerCore& peer) override;
  bool speaks_for(PeerCore& peer, const backend::Identity& who) override;
  void note_state(const PeerCore& peer, PeerState state) override;
  void note_refusal(backend::Quota quota, std::string_view peer, const Status& why) override;
  Status down_status(PeerCore& peer) const override;
  Status gone_status(const PeerCore& peer, const Status& cause) const override;
  void keep_totals(const Session& session) override;

  // Cards
  std::uint64_t own_revision() const override;
  Result<std::string> own_since(std::uint64_t revision) const override;
  std::uint64_t known_revision(PeerCore& peer) const override;
  Result<LoadedCard> load(std::span<const std::byte> bytes, const PeerCore& owner) override;
  void renew(OpenBackend& backend) override;

  // Keys
  base::Id128 make_key() override;

  // Waiters
  void hint(CompletionKind kind, std::uint64_t cookie) override;
  void wake() override;

 private:
  Core& core_;
};

}  // namespace hawser::agent
