// Services in the engine: their channels, when they are pumped, told and ended.

#include <algorithm>
#include <array>

#include "agent/core.h"
#include "agent/engine.h"
#include "base/check.h"

namespace hawser::agent {

void Engine::add_service(Service& service) {
  HAWSER_ASSERT(services_.size() < kServicesMax && sessions_.empty(), "services come before the first session");
  for (const OwnChannel& channel : service.channels()) {
    HAWSER_ASSERT(channel.id < wire::kUserChannelMin && service_of(channel.id) == nullptr, "a channel has one owner");
    service_by_channel_[channel.id] = &service;
    open_channels_.emplace(channel.id, channel.window);
    ++own_channels_;
  }
  service.take_place(services_.size());
  services_.push_back(&service);
}

Sent Engine::carry(Session& session, std::uint32_t channel, std::span<const std::byte> head,
                   std::span<const std::byte> body) {
  ChannelCredits& credits = session.peer->channels;
  const std::size_t size = head.size() + body.size();
  if (credits.try_take(channel, size) != ChannelCredits::Taken::kYes) return Sent::kNoCredit;
  const wire::Send message{.seq = session.link_out.next_seq(), .channel = channel, .bytes = {}};
  std::array<std::byte, wire::kHeadMax> buffer;
  const std::size_t envelope = wire::encode(message, buffer).size();
  std::span<const std::byte> first(buffer.data(), envelope);
  if (!body.empty()) {  // The service's head goes behind the envelope, so that the body is not copied.
    HAWSER_ASSERT(envelope + head.size() <= buffer.size(), "a service's head fits behind the envelope");
    std::ranges::copy(head, buffer.begin() + static_cast<std::ptrdiff_t>(envelope));
    first = {buffer.data(), envelope + head.size()};
  }
  if (push_reliable(session, first, body.empty() ? head : body)) return Sent::kYes;
  credits.give_back(channel, size);
  return Sent::kNoRoom;
}

Session* Engine::session_with(const Peer& peer, Status* why) {
  if (closing_) {
    *why = Status(Code::kInvalid, "agent '" + core_.identity.name + "' is closing");
    return nullptr;
  }
  if (peer.core()->state.load(std::memory_order_relaxed) == PeerState::kDown) {
    *why = core_.down_status(*peer.core());
    return nullptr;
  }
  return &session(peer.core());
}

bool Engine::can_fetch(Session& session) const {
  const PathEntry* const control = session.control();
  return control != nullptr && control->path->can_fetch();
}

bool Engine::fetch(Session& session, std::uint64_t address, std::span<std::byte> into) {
  PathEntry* const control = session.control();
  return control != nullptr && control->path->fetch(address, into);
}

Instant Engine::now() const { return core_.now(); }

void Engine::note_deadline() {
  for (const Service* const service : services_) {
    earliest_deadline_ = std::min(earliest_deadline_, service->next_deadline());
  }
}

void Engine::serve(Session& session, Instant now) {
  note_deadline();
  want(session, now);
  enlist(session);
}

/// False when one found no room: to be tried again after a pause. What lacks credit waits for the peer's word.
bool Engine::pump_services(Session& session, std::size_t* work) {
  return !session.has_tenancies ||
         std::ranges::all_of(services_, [&](Service* const service) { return service->pump(session, work); });
}

void Engine::end_services(Session& session, const Status& status) {
  for (Service* const service : services_) service->end(session, status);
}

std::size_t Engine::expire_services(Instant now, Instant* earliest) {
  std::size_t ended = 0;
  for (Service* const service : services_) {
    if (now >= service->next_deadline()) ended += service->expire(now);
    *earliest = std::min(*earliest, service->next_deadline());
  }
  return ended;
}

void Engine::describe(const Visitor& visitor) const {
  for (Session* const session : sessions_) {
    if (session->slots == 0) continue;
    Waiting transfers{.who = "transfers",
                      .what = session->control_serial == 0 ? "a path" : "their chunks",
                      .peer = session->peer->name,
                      .count = session->slots,
                      .since = Instant::max()};
    for (const Slot& slot : session->in_flight) {
      transfers.since = std::min(transfers.since, slot.submitted);
      transfers.until = std::min(transfers.until, slot.deadline);
    }
    visitor(transfers);
  }
  for (const Service* const service : services_) service->describe(visitor);
}

}  // namespace hawser::agent
