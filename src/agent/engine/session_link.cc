#include "agent/engine/session_link.h"

#include <optional>

namespace hawser::agent {
namespace {

constexpr Duration kAckDelay = std::chrono::microseconds(50);  ///< So that an answer carries the acknowledgement along.

wire::Ack ack_of(const Session& session, wire::Link link) {
  return {.link = link, .up_to = session.links.in(link).received()};
}

}  // namespace

bool SessionLink::push(Session& session, wire::Link link, std::span<const std::byte> head,
                       std::span<const std::byte> body) {
  PathEntry* const control = session.control();
  if (control != nullptr) ports_.expect_answer(control->backend);
  if (control != nullptr && session.links.can_pass(link)) {
    if (control->path->send(link, head, body)) {
      session.links.pass(link);
      return true;
    }
  }
  if (!session.links.push(link, head, body)) return false;
  while (control != nullptr && send_next(session, *control->path)) continue;
  sessions_.enlist(session);
  return true;
}

/// A path may have room for messages of one link where it has none for those of another.
bool SessionLink::send_next(Session& session, backend::Path& path) {
  proto::LinkMask full = 0;
  std::uint32_t full_queues = 0;
  while (const std::optional<wire::Link> link = session.links.first_pending(full)) {
    const bool is_full = full_queues != 0 && (full_queues >> path.queue_of(*link) & 1) != 0;
    if (!is_full) {
      if (send_pending(session, *link, path)) return true;
      full_queues |= std::uint32_t{1} << path.queue_of(*link);
    }
    full |= proto::mask_of(*link);
  }
  return false;
}

/// The oldest message of the link. An acknowledgement that is owed rides along.
bool SessionLink::send_pending(Session& session, wire::Link link, backend::Path& path) {
  HeadArray buffer;
  const std::span<const std::byte> message = session.links.pending(link);
  const std::optional<wire::Link> acks = session.links.ack_due(true);
  const std::span<const std::byte> head = acks ? wire::encode_acked(ack_of(session, *acks), buffer) : message;
  const std::span<const std::byte> body = acks ? message : std::span<const std::byte>();
  const bool sent = wire::goes_aside(message) ? path.send_aside(link, head, body) : path.send(link, head, body);
  if (!sent) return false;
  session.links.sent(link);
  if (acks) acknowledged(session, *acks);
  return true;
}

void SessionLink::acknowledged(Session& session, wire::Link link) {
  session.links.take_ack(link);
  if (!session.links.ack_due(true)) session.ack_since = Instant::max();
}

bool SessionLink::send_plain(Session& session, wire::Link link, std::span<const std::byte> head,
                             std::span<const std::byte> body) {
  PathEntry* const control = session.control();
  return control != nullptr && control->path->send_aside(link, head, body);
}

bool SessionLink::pump(Session& session, std::size_t* work) {
  PathEntry* const control = session.control();
  if (control == nullptr) return true;  // Its coming up is waited for.
  while (session.links.first_pending()) {
    if (!send_next(session, *control->path)) return false;
    ++*work;
  }
  return true;
}

bool SessionLink::pump_ack(Session& session, Instant now, std::size_t* work) {
  const bool is_late = now - kAckDelay >= session.ack_since;
  while (const std::optional<wire::Link> link = session.links.ack_due(is_late)) {
    HeadArray buffer;
    // As a message of that link: what acknowledges bulk need not be quick, nor is it a small operation for whose sake
    // bulk steps aside.
    if (!send_plain(session, *link, wire::encode(ack_of(session, *link), buffer), {})) return false;
    acknowledged(session, *link);
    ++*work;
  }
  return true;
}

Result<bool> SessionLink::receive(Session& session, PathEntry* entry, const wire::Envelope& envelope,
                                  std::size_t size) {
  if (entry != nullptr) ++entry->carried;
  const bool is_lossless = entry != nullptr && ports_.traits(entry->backend).lossless;
  switch (session.links.on_receive(envelope.place, size, is_lossless)) {
    case proto::Received::kDeliver:
      return true;
    case proto::Received::kDuplicate:
      return false;
    case proto::Received::kGap:
      break;
  }
  return Status(Code::kCorrupt, "a message of the session is missing");
}

void SessionLink::note_read(Session& session, wire::Link link, Instant now) {
  const proto::LinkReceiver& receiver = session.links.in(link);
  if (session.ack_since == Instant::max() && !receiver.ack_due(false)) session.ack_since = now;
  if (receiver.ack_due(true)) sessions_.enlist(session);
}

}  // namespace hawser::agent
