#include "agent/engine/session_link.h"

namespace hawser::agent {
namespace {

constexpr Duration kAckDelay = std::chrono::microseconds(50);  ///< So that an answer carries the acknowledgement along.

}  // namespace

bool SessionLink::push(Session& session, std::span<const std::byte> head, std::span<const std::byte> body) {
  PathEntry* const control = session.control();
  if (control != nullptr) ports_.expect_answer(control->backend);
  if (control != nullptr && session.link_out.can_pass()) {
    if (control->path->send(Priority::kRealtime, head, body)) {
      session.link_out.pass();
      return true;
    }
  }
  if (!session.link_out.push(head, body)) return false;
  if (control != nullptr) {
    while (!session.link_out.pending().empty() && send_pending(session, *control->path)) continue;
  }
  sessions_.enlist(session);
  return true;
}

/// The oldest message that waits. An acknowledgement that is owed rides along.
bool SessionLink::send_pending(Session& session, backend::Path& path) {
  HeadArray buffer;
  const bool acks = session.link_in.ack_due(true);
  const wire::Ack ack{.up_to = session.link_in.received()};
  const bool sent = acks ? path.send(Priority::kRealtime, wire::encode_acked(ack, buffer), session.link_out.pending())
                         : path.send(Priority::kRealtime, session.link_out.pending(), {});
  if (!sent) return false;
  session.link_out.sent();
  if (acks) acknowledged(session);
  return true;
}

void SessionLink::acknowledged(Session& session) {
  session.link_in.take_ack();
  session.ack_since = Instant::max();
}

bool SessionLink::send_plain(Session& session, std::span<const std::byte> head, std::span<const std::byte> body) {
  PathEntry* const control = session.control();
  return control != nullptr && control->path->send(Priority::kRealtime, head, body);
}

bool SessionLink::pump(Session& session, std::size_t* work) {
  PathEntry* const control = session.control();
  if (control == nullptr) return true;  // Its coming up is waited for.
  while (!session.link_out.pending().empty()) {
    if (!send_pending(session, *control->path)) return false;
    ++*work;
  }
  return true;
}

bool SessionLink::pump_ack(Session& session, Instant now, std::size_t* work) {
  if (!session.link_in.ack_due(now - kAckDelay >= session.ack_since)) return true;
  HeadArray buffer;
  const wire::Ack ack{.up_to = session.link_in.received()};
  if (!send_plain(session, wire::encode(ack, buffer), {})) return false;
  acknowledged(session);
  ++*work;
  return true;
}

Result<bool> SessionLink::receive(Session& session, PathEntry* entry, const wire::Envelope& envelope,
                                  std::size_t size) {
  if (entry != nullptr) ++entry->carried;
  const bool is_lossless = entry != nullptr && ports_.traits(entry->backend).lossless;
  switch (session.link_in.on_receive(envelope.seq, size, is_lossless)) {
    case proto::Received::kDeliver:
      return true;
    case proto::Received::kDuplicate:
      return false;
    case proto::Received::kGap:
      break;
  }
  return Status(Code::kCorrupt, "a message of the session is missing");
}

void SessionLink::note_read(Session& session, Instant now) {
  if (session.ack_since == Instant::max() && !session.link_in.ack_due(false)) session.ack_since = now;
  if (session.link_in.ack_due(true)) sessions_.enlist(session);
}

}  // namespace hawser::agent
