// Cards between agents in session: asked for, sent in parts, taken in.

#include <array>

#include "agent/core.h"
#include "agent/engine.h"
#include "base/bytes.h"

namespace hawser::agent {

void Engine::want_card(Session& session, Instant now) {
  session.card_asker.want();
  want(session, now);
  enlist(session);
}

void Engine::follow_card(Session& session, std::uint64_t revision) {
  if (session.card_asker.follow(core_.known_revision(*session.peer), revision)) enlist(session);
}

Status Engine::on_card_request(Session& session, const wire::CardRequest& request) {
  session.card_teller.request(request.since_revision, core_.card_revision());
  enlist(session);
  return {};
}

/// All that the peer has to be told of our card. False: there is no room for the rest now.
bool Engine::pump_card(Session& session, std::size_t* work) {
  proto::CardTeller& teller = session.card_teller;
  std::array<std::byte, wire::kHeadMax> buffer;
  for (;;) {
    if (teller.must_make()) make_card(session);
    if (!teller.is_sending()) return true;
    const auto body = teller.part(wire::kCardPartMax);
    const wire::CardPart part{.seq = session.link_out.next_seq(),
                              .revision = teller.told(),
                              .total = static_cast<std::uint32_t>(teller.total()),
                              .offset = static_cast<std::uint32_t>(teller.offset()),
                              .bytes = body};
    if (!push_reliable(session, wire::encode(part, buffer), body)) return false;
    teller.sent(body.size(), core_.card_revision());
    ++*work;
  }
}

/// What changed until now.
void Engine::make_card(Session& session) {
  const std::uint64_t revision = core_.card_revision();
  Result<std::string> card = core_.card_since(session.card_teller.told());
  if (card) {
    session.card_teller.made(std::move(*card), revision);
  } else {
    session.card_teller.failed();
  }
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
  session.card_asker.came();
  Result<wire::Card> card = wire::decode_card(base::as_bytes(bytes));
  if (!card) return card.error();
  // Before anything is taken from it: nobody changes what is known of another.
  if (card->incarnation != session.peer->incarnation) {
    return Status(Code::kCorrupt, "the peer sent a card that is not its own");
  }
  const Result<Core::Loaded> loaded = core_.load_card(*std::move(card));
  if (!loaded && loaded.error().code() == Code::kNotFound) {  // A delta on what we do not have: ask for all of it.
    want_card(session, now);
    return {};
  }
  if (!loaded) return loaded.error().code() == Code::kBusy ? over_quota(session, loaded.error(), now) : loaded.error();
  if (loaded->peer != session.peer) return Status(Code::kCorrupt, "the peer's session is over");
  on_card_loaded(*session.peer, loaded->change, now);
  ++finalized_;
  core_.inbox.push_event({.kind = PeerEvent::Kind::kCardChanged, .peer = Peer(session.peer), .cause = {}});
  core_.hint(CompletionKind::kPeer, 0);
  return {};
}

void Engine::card_changed() {
  for (Session* session : sessions_) {
    if (session->control_serial != 0 && session->card_teller.change()) enlist(*session);
  }
}

}  // namespace hawser::agent
