#include "agent/engine/session_link.h"

#include <optional>

namespace hawser::agent {
namespace {

constexpr Duration kAckDelay = std::chrono::microseconds(50);  ///< So that an answer carries the acknowledgement along.

wire::Ack ack_of(const Session& session, Priority priority) {
  return {.priority = priority, .up_to = session.links.in(priority).received()};
}

}  // namespace

bool SessionLink::push(Session& session, Priority priority, std::span<const std::byte> head,
                       std::span<const std::byte> body) {
  PathEntry* const control = session.control();
  if (control != nullptr) ports_.expect_answer(control->backend);
  if (control != nullptr && session.links.can_pass(priority)) {
    if (control->path->send(priority, head, body)) {
      session.links.pass(priority);
      return true;
    }
  }
  if (!session.links.out(priority).push(head, body)) return false;
  while (control != nullptr && send_next(session, *control->path)) continue;
  sessions_.enlist(session);
  return true;
}

/// A path may have room for urgent messages where it has none for bulk.
bool SessionLink::send_next(Session& session, backend::Path& path) {
  const std::optional<Priority> first = session.links.first_pending();
  if (!first) return false;
  if (send_pending(session, *first, path)) return true;
  const Priority most_urgent = *session.links.most_urgent_pending();
  return most_urgent != *first && send_pending(session, most_urgent, path);
}

/// The oldest message of the class. An acknowledgement that is owed rides along.
bool SessionLink::send_pending(Session& session, Priority priority, backend::Path& path) {
  HeadArray buffer;
  const std::span<const std::byte> message = session.links.out(priority).pending();
  const std::optional<Priority> acks = session.links.ack_due(true);
  const bool sent = acks ? path.send(priority, wire::encode_acked(ack_of(session, *acks), buffer), message)
                         : path.send(priority, message, {});
  if (!sent) return false;
  session.links.sent(priority);
  if (acks) acknowledged(session, *acks);
  return true;
}

void SessionLink::acknowledged(Session& session, Priority priority) {
  session.links.in(priority).take_ack();
  if (!session.links.ack_due(true)) session.ack_since = Instant::max();
}

bool SessionLink::send_plain(Session& session, std::span<const std::byte> head, std::span<const std::byte> body,
                             Priority priority) {
  PathEntry* const control = session.control();
  return control != nullptr && control->path->send(priority, head, body);
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
  while (const std::optional<Priority> priority = session.links.ack_due(is_late)) {
    HeadArray buffer;
    // In its own class: what acknowledges bulk need not be quick, nor is it a small operation for whose sake bulk steps
    // aside.
    if (!send_plain(session, wire::encode(ack_of(session, *priority), buffer), {}, *priority)) return false;
    acknowledged(session, *priority);
    ++*work;
  }
  return true;
}

Result<bool> SessionLink::receive(Session& session, PathEntry* entry, const wire::Envelope& envelope,
                                  std::size_t size) {
  if (entry != nullptr) ++entry->carried;
  const bool is_lossless = entry != nullptr && ports_.traits(entry->backend).lossless;
  switch (session.links.in(envelope.place.priority).on_receive(envelope.place.seq, size, is_lossless)) {
    case proto::Received::kDeliver:
      return true;
    case proto::Received::kDuplicate:
      return false;
    case proto::Received::kGap:
      break;
  }
  return Status(Code::kCorrupt, "a message of the session is missing");
}

void SessionLink::note_read(Session& session, Priority priority, Instant now) {
  const proto::LinkReceiver& link = session.links.in(priority);
  if (session.ack_since == Instant::max() && !link.ack_due(false)) session.ack_since = now;
  if (link.ack_due(true)) sessions_.enlist(session);
}

}  // namespace hawser::agent
