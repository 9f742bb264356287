// Cards between agents in session: asked for, sent in parts, taken in.

#include <array>

#include "agent/core.h"
#include "agent/engine.h"
#include "base/bytes.h"

namespace hawser::agent {

void Engine::want_card(Session& session, Instant now) {
  session.card_wanted = true;
  session.card_asked = false;
  want(session, now);
  enlist(session);
}

void Engine::follow_card(Session& session, std::uint64_t revision) {
  const std::uint64_t known = core_.known_revision(*session.peer);
  if (known == 0 || (session.card_followed && revision <= known)) return;
  session.card_wanted = true;
  session.card_asked = false;
  enlist(session);
}

Status Engine::on_card_request(Session& session, const wire::CardRequest& request) {
  session.wants_our_cards = true;
  session.card_told = request.since_revision;
  // Who has the newest one waits for the next.
  if (request.since_revision != core_.card_revision()) tell_card(session);
  return {};
}

/// All that is left of the card that goes out. False: there is no room for the rest now.
bool Engine::pump_card(Session& session) {
  CardOut& card = *session.card_out;
  std::array<std::byte, wire::kHeadMax> buffer;
  while (card.offset < card.bytes.size()) {
    const std::size_t size = std::min(wire::kCardPartMax, card.bytes.size() - card.offset);
    const auto body = base::as_bytes(std::string_view(card.bytes).substr(card.offset, size));
    const wire::CardPart part{.seq = session.link_out.next_seq(),
                              .revision = card.revision,
                              .total = static_cast<std::uint32_t>(card.bytes.size()),
                              .offset = static_cast<std::uint32_t>(card.offset),
                              .bytes = body};
    if (!push_reliable(session, wire::encode(part, buffer), body)) return false;
    card.offset += size;
  }
  session.card_out.reset();
  if (session.card_told < core_.card_revision()) tell_card(session);
  return true;
}

void Engine::tell_card(Session& session) {
  session.card_due = false;
  Result<std::string> card = core_.card_since(session.card_told);
  if (!card) return;
  session.card_told = core_.card_revision();
  session.card_out = CardOut{.bytes = std::move(*card), .revision = session.card_told, .offset = 0};
  enlist(session);
}

Status Engine::on_card_part(Session& session, const wire::CardPart& part, Instant now) {
  if (part.offset == 0) session.card_in = CardIn{.bytes = {}, .revision = part.revision, .total = part.total};
  if (!session.card_in || session.card_in->revision != part.revision || session.card_in->total != part.total ||
      session.card_in->bytes.size() != part.offset || part.total > wire::kCardSizeMax) {
    return Status(Code::kCorrupt, "parts of a card do not follow each other");
  }
  session.card_in->bytes.append(base::as_text(part.bytes));
  if (session.card_in->bytes.size() < part.total) return {};
  const std::string bytes = std::move(session.card_in->bytes);
  session.card_in.reset();
  session.card_wanted = session.card_asked = false;
  const Result<Core::Loaded> loaded = core_.load_card(base::as_bytes(bytes));
  if (!loaded && loaded.error().code() == Code::kNotFound) {  // A delta on what we do not have: ask for all of it.
    want_card(session, now);
    return {};
  }
  if (!loaded) return loaded.error();
  if (loaded->peer != session.peer) return Status(Code::kCorrupt, "the peer sent a card that is not its own");
  on_card_loaded(*session.peer, loaded->change, now);
  ++finalized_;
  core_.inbox.push_event({.kind = PeerEvent::Kind::kCardChanged, .peer = Peer(session.peer), .cause = {}});
  core_.hint(CompletionKind::kPeer, 0);
  return {};
}

void Engine::card_changed() {
  for (Session* session : sessions_) {
    if (!session->wants_our_cards || session->control_serial == 0 || session->card_out) continue;
    session->card_due = true;  // Made when it goes out, so that one tells of all that changed until then.
    enlist(*session);
  }
}

}  // namespace hawser::agent
