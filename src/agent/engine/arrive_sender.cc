#include "agent/engine/arrive_sender.h"

#include <span>

namespace hawser::agent {
namespace {

constexpr Priority kClass = Priority::kRealtime;  ///< All of them share it, because each tells of transfers before it.

}  // namespace

bool ArriveSender::announce(Slot& slot, Session& session, std::uint32_t chunks) {
  if (!session.unsent.has_none(kClass)) return false;  // Notifications of before.
  wire::Arrive arrive{.place = session.links.next(kClass), .transfer = slot.id, .chunks = chunks};
  const Slot* oldest = session.covered.front();
  arrive.oldest = oldest != nullptr ? oldest->id : session.next_covered;
  std::span<const std::byte> body;
  if (slot.notify_size) {
    body = std::as_bytes(std::span(slot.notify.data(), *slot.notify_size));
    arrive.notify = body;
  }
  if (slot.signal.region) {
    arrive.signal = wire::SignalBump{.region = slot.signal.region->index,
                                     .generation = slot.signal.region->generation,
                                     .key = slot.signal.region->key,
                                     .offset = slot.signal.offset,
                                     .add = slot.signal.add};
  }
  HeadArray buffer;
  if (!link_.push(session, kClass, wire::encode(arrive, buffer), body)) return false;
  slot.arrive_sent = true;
  if (slot.notify_size) ++session.flow.notifications_sent;
  return true;
}

bool ArriveSender::tell_all_visible(Slot& slot, Session& session) {
  HeadArray buffer;
  const wire::Arrive visible{.place = session.links.next(kClass), .transfer = slot.id, .chunks = 0};
  if (!link_.push(session, kClass, wire::encode(visible, buffer), {})) return false;
  slot.uncounted = false;
  return true;
}

void ArriveSender::cancel(Session& session, std::uint64_t transfer) {
  session.cancelled.push_back(transfer);
  sessions_.enlist(session);
}

void ArriveSender::on_uncounted(Session& session, std::uint64_t transfer) {
  if (transfer >= session.next_covered) return;
  for (Slot& slot : session.covered) {
    if (slot.id != transfer) continue;
    slot.uncounted = true;
    return;
  }
  session.visible.push_back(transfer);
  sessions_.enlist(session);
}

bool ArriveSender::pump(Session& session, std::size_t* work) {
  HeadArray buffer;
  while (!session.cancelled.empty()) {
    const wire::Arrive gone{
        .place = session.links.next(kClass), .transfer = session.cancelled.back(), .cancelled = true};
    if (!link_.push(session, kClass, wire::encode(gone, buffer), {})) return false;
    session.cancelled.pop_back();
    ++*work;
  }
  // After those: of what failed the peer expects nothing any more, and ignores this.
  while (!session.visible.empty()) {
    const wire::Arrive visible{.place = session.links.next(kClass), .transfer = session.visible.back(), .chunks = 0};
    if (!link_.push(session, kClass, wire::encode(visible, buffer), {})) return false;
    session.visible.pop_back();
    ++*work;
  }
  return true;
}

}  // namespace hawser::agent
