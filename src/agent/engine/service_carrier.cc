#include "agent/engine/service_carrier.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/inside.h"
#include "base/try.h"

namespace hawser::agent {

Sent ServiceCarrier::carry(Session& session, std::uint32_t channel, std::span<const std::byte> head,
                           std::span<const std::byte> body) {
  ChannelCredits& credits = session.peer->use().channels;
  const std::size_t size = head.size() + body.size();
  ChannelCredits::Ticket ticket;
  if (credits.try_take(channel, size, &ticket) != ChannelCredits::Taken::kYes) return Sent::kNoCredit;
  const wire::Link link(ticket.priority, channel);
  const wire::Send message{.place = session.links.next(link), .channel = channel, .bytes = {}};
  HeadArray buffer;
  const std::size_t envelope = wire::encode(message, buffer).size();
  std::span<const std::byte> first(buffer.data(), envelope);
  if (!body.empty()) {  // The service's head goes behind the envelope, so that the body is not copied.
    HAWSER_ASSERT(envelope + head.size() <= buffer.size(), "a service's head fits behind the envelope");
    std::ranges::copy(head, buffer.begin() + static_cast<std::ptrdiff_t>(envelope));
    first = {buffer.data(), envelope + head.size()};
  }
  if (uses_.link.push(session, link, first, body.empty() ? head : body)) return Sent::kYes;
  credits.give_back(channel, size, ticket);
  return Sent::kNoRoom;
}

void ServiceCarrier::release_message(Session& session, std::uint32_t channel, std::size_t bytes) {
  uses_.messages.release(session, channel, 1, bytes);
}

void ServiceCarrier::serve(Session& session, Instant now) {
  note_deadline();
  uses_.connector.want(session, now);
  uses_.sessions.enlist(session);
}

Session* ServiceCarrier::session_with(const Peer& peer, Status* why) {
  if (uses_.sessions.is_closing()) {
    *why = Status(Code::kInvalid, "agent '" + std::string(uses_.agent) + "' is closing");
    return nullptr;
  }
  if (core_of(peer)->state.load(std::memory_order_relaxed) == PeerState::kDown) {
    *why = uses_.peers.down_status(*core_of(peer));
    return nullptr;
  }
  return &uses_.sessions.of(core_of(peer));
}

bool ServiceCarrier::has_path(Session& session) const { return session.control() != nullptr; }

bool ServiceCarrier::can_fetch(Session& session) const {
  const PathEntry* const control = session.control();
  return control != nullptr && control->path->can_fetch();
}

bool ServiceCarrier::fetch(Session& session, std::uint64_t address, std::span<std::byte> into) {
  PathEntry* const control = session.control();
  return control != nullptr && control->path->fetch(address, into);
}

Result<std::unique_ptr<backend::View>> ServiceCarrier::view(Session& session,
                                                            const std::shared_ptr<const RemoteRegion>& region) {
  PathEntry* const control = session.control();
  if (control == nullptr) return Status(Code::kBusy, "no path to the peer is up").with_peer(session.peer->name);
  HAWSER_TRY_ASSIGN(backend::Binding* const binding, control->path->bind({.index = region->index,
                                                                          .generation = region->generation,
                                                                          .key = region->key,
                                                                          .size = region->size,
                                                                          .rights = region->rights,
                                                                          .device = region->device,
                                                                          .extra = {}}));
  uses_.bindings.add(session, region, now());
  return control->path->view(*binding);
}

}  // namespace hawser::agent
