#pragma once

// ServiceCarrier: what sessions do for services (agent/service.h).
//
// Thread rule: confined to the lane.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "agent/engine/connector.h"
#include "agent/engine/lent_memory.h"
#include "agent/engine/lent_writes.h"
#include "agent/engine/message_desk.h"
#include "agent/engine/news.h"
#include "agent/engine/region_bindings.h"
#include "agent/engine/service_table.h"
#include "agent/engine/session_link.h"
#include "agent/engine/session_table.h"
#include "agent/engine/surroundings.h"
#include "agent/service.h"

namespace hawser::agent {

class ServiceCarrier final : public Carrier {
 public:
  /// What it works with; all of it outlives it.
  struct Uses {
    SessionTable& sessions;
    ServiceTable& services;
    SessionLink& link;
    Connector& connector;
    MessageDesk& messages;
    RegionBindings& bindings;
    LentMemory& lent;
    LentWrites& writes;
    const PeerRegister& peers;
    News& news;
    const Clock& clock;
    std::string_view agent;  ///< Its name, for errors.
  };
  explicit ServiceCarrier(const Uses& uses) : uses_(uses) {}

  Sent carry(Session& session, std::uint32_t channel, std::span<const std::byte> head,
             std::span<const std::byte> body) override;
  void release_message(Session& session, std::uint32_t channel, std::size_t bytes) override;
  void serve(Session& session, Instant now) override;
  Session* session_with(const Peer& peer, Status* why) override;
  bool has_path(Session& session) const override;
  bool can_fetch(Session& session) const override;
  bool fetch(Session& session, std::uint64_t address, std::span<std::byte> into) override;
  Result<std::unique_ptr<backend::View>> view(Session& session,
                                              const std::shared_ptr<const RemoteRegion>& region) override;
  bool lends(Session& session) const override { return uses_.lent.lends(session); }
  Result<wire::Lent> lend(Session& session, std::span<std::byte> bytes) override {
    return uses_.lent.lend(session, bytes);
  }
  void take_back(const wire::Lent& lent) override { uses_.lent.take_back(lent); }
  std::uint64_t begin_write(Service& service, Session& session, const wire::Lent& lent, std::uint64_t size,
                            Priority priority, std::uint64_t cookie) override {
    return uses_.writes.begin(service, session, lent, size, priority, cookie);
  }
  LentWrite write(std::uint64_t number, std::uint64_t offset, std::span<const std::byte> bytes) override {
    return uses_.writes.write(number, offset, bytes, now());
  }
  void end_write(std::uint64_t number) override { uses_.writes.end(number); }
  Instant now() const override { return uses_.clock.now(); }
  void note_deadline() override { uses_.services.note_deadline(); }
  void note_end() override { uses_.news.note(); }

 private:
  const Uses uses_;
};

}  // namespace hawser::agent
