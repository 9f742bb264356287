#include "agent/engine/session_reader.h"

#include <string>

#include "base/shown.h"

namespace hawser::agent {

void SessionReader::on_message(const backend::PortEvent& event, Instant now) {
  Session* const session = uses_.paths.find(event.path);
  if (session == nullptr) return;
  if (const Status bad = read(*session, event, now); !bad.ok()) {
    return uses_.connector.drop(*session, bad.with_peer(session->peer->name), now);
  }
  if (session->is_told_in_vain()) Greeter::tell_awaited(*session, now);
}

Status SessionReader::read(Session& session, const backend::PortEvent& event, Instant now) {
  const Result<wire::Envelope> envelope = wire::open_envelope(event.bytes);
  if (!envelope) return envelope.error();
  if (envelope->acked.up_to != 0) {
    if (Status bad = session.links.on_ack(envelope->acked); !bad.ok()) return bad;
  }
  if (!wire::is_reliable(envelope->kind)) return read_plain(session, event.path, *envelope, now);
  const Result<bool> is_next = uses_.link.receive(session, session.find(event.path), *envelope, event.bytes.size());
  Status status = is_next.error();
  if (is_next && *is_next) status = read_reliable(session, *envelope, now);
  uses_.link.note_read(session, envelope->place.link, now);
  return status;
}

Status SessionReader::read_plain(Session& session, const backend::Path* path, const wire::Envelope& envelope,
                                 Instant now) {
  switch (envelope.kind) {
    case wire::SessionKind::kAck: {
      const Result<wire::Ack> ack = wire::decode_ack(envelope);
      return ack ? session.links.on_ack(*ack) : ack.error();
    }
    case wire::SessionKind::kCredit: {
      const Result<wire::Credit> credit = wire::decode_credit(envelope);
      return credit ? uses_.messages.on_credit(session, *credit) : credit.error();
    }
    case wire::SessionKind::kWelcome: {
      const Result<wire::Welcome> welcome = wire::decode_welcome(envelope);
      PathEntry* const entry = session.find(path);
      if (!welcome || entry == nullptr) return welcome.error();
      return uses_.greeter.on_welcome(session, *entry, *welcome, now);
    }
    case wire::SessionKind::kBye: {
      const Result<wire::Bye> bye = wire::decode_bye(envelope);
      return bye ? on_bye(session, *bye, now) : bye.error();
    }
    default:
      return Status(Code::kCorrupt, "a message of an unknown kind");
  }
}

Status SessionReader::on_bye(Session& session, const wire::Bye& bye, Instant now) {
  const bool is_refusal = bye.code == Code::kBusy;
  const std::string text = base::shown(bye.text, is_refusal ? wire::kByeTextMax : base::kShownMax);
  const Status cause = (is_refusal ? Status(Code::kBusy, "the peer refuses this agent: " + text)
                                   : Status(Code::kDisconnected, "the peer said goodbye: " + text))
                           .with_scope(Scope::kPeer)
                           .with_peer(session.peer->name);
  uses_.connector.feed(session, proto::SessionEvent::kBye, cause, now);
  return {};
}

Status SessionReader::read_reliable(Session& session, const wire::Envelope& envelope, Instant now) {
  switch (envelope.kind) {
    case wire::SessionKind::kArrive: {
      const Result<wire::Arrive> arrive = wire::decode_arrive(envelope);
      return arrive ? uses_.arrivals.on_arrive(session, *arrive) : arrive.error();
    }
    case wire::SessionKind::kSend: {
      const Result<wire::Send> message = wire::decode_send(envelope);
      return message ? uses_.messages.on_send(session, *message, now) : message.error();
    }
    case wire::SessionKind::kCardRequest: {
      const Result<wire::CardRequest> request = wire::decode_card_request(envelope);
      return request ? uses_.exchange.on_request(session, *request) : request.error();
    }
    case wire::SessionKind::kCardPart: {
      const Result<wire::CardPart> part = wire::decode_card_part(envelope);
      return part ? uses_.exchange.on_part(session, *part, now) : part.error();
    }
    default:
      return Status(Code::kCorrupt, "a message of an unknown kind");
  }
}

}  // namespace hawser::agent
