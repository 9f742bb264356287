#include "agent/engine/card_exchange.h"

#include <string>
#include <utility>

#include "agent/engine/farewell.h"
#include "base/bytes.h"

namespace hawser::agent {

void CardExchange::want(Session& session, Instant now) {
  session.card_asker.want();
  uses_.connector.want(session, now);
  uses_.sessions.enlist(session);
}

void CardExchange::check(Session& session) {
  session.card_asker.check();
  uses_.sessions.enlist(session);
}

void CardExchange::follow(Session& session, std::uint64_t revision) {
  if (session.card_asker.follow(uses_.cards.known_revision(*session.peer), revision)) uses_.sessions.enlist(session);
}

void CardExchange::on_own_change() {
  for (Session* const session : uses_.sessions.all()) {
    if (session->control_serial != 0 && session->card_teller.change()) uses_.sessions.enlist(*session);
  }
}

void CardExchange::on_loaded(PeerCore& peer, const CardStore::Change& change, Instant now) {
  if (peer.is_self || peer.session() == nullptr || uses_.sessions.is_closing()) return;  // Its own is never loaded.
  uses_.bindings.on_card(peer, change, now);
  uses_.connector.set_unreached(*peer.session(), Status());             // Its addresses may be others now.
  if (peer.session()->control_serial != 0) follow(*peer.session(), 0);  // Else its Welcome does.
}

Status CardExchange::on_request(Session& session, const wire::CardRequest& request) {
  session.card_teller.request(request.since_revision, uses_.cards.own_revision());
  uses_.sessions.enlist(session);
  return {};
}

Status CardExchange::on_part(Session& session, const wire::CardPart& part, Instant now) {
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
  const Result<LoadedCard> loaded = uses_.cards.load(base::as_bytes(bytes), *session.peer);
  if (!loaded && loaded.error().code() == Code::kNotFound) {  // A delta on what is not here: ask for all of it.
    want(session, now);
    return {};
  }
  if (!loaded && loaded.error().code() == Code::kBusy) {
    uses_.peers.note_refusal(backend::Quota::kRegions, session.peer->name, loaded.error());
    say_refused(session, loaded.error());
  }
  if (!loaded) return loaded.error();
  if (loaded->peer != session.peer) return Status(Code::kCorrupt, "the peer sent a card that is not its own");
  const bool is_answer = session.card_asker.is_answer(loaded->base);
  if (is_answer) session.peer->use().card_checks.fetch_add(1, std::memory_order_release);
  if (is_answer && !loaded->change.any) {
    uses_.news.note();  // Waiters look at it; to others it is none.
    return {};
  }
  on_loaded(*session.peer, loaded->change, now);
  uses_.news.peer_event({.kind = PeerEvent::Kind::kCardChanged, .peer = Peer(session.peer), .cause = {}});
  return {};
}

bool CardExchange::pump(Session& session, std::size_t* work) {
  return pump_request(session, work) && pump_card(session, work);
}

bool CardExchange::pump_request(Session& session, std::size_t* work) {
  if (!session.card_asker.must_ask()) return true;
  HeadArray buffer;
  const wire::CardRequest request{
      .place = session.links.next(Priority::kRealtime),
      .since_revision = session.card_asker.since(uses_.cards.known_revision(*session.peer))};
  if (!uses_.link.push(session, Priority::kRealtime, wire::encode(request, buffer), {})) return false;
  session.card_asker.asked(request.since_revision);
  ++*work;
  return true;
}

/// All that the peer has to be told of the agent's card.
bool CardExchange::pump_card(Session& session, std::size_t* work) {
  proto::CardTeller& teller = session.card_teller;
  HeadArray buffer;
  for (;;) {
    if (teller.must_make()) make_card(session);
    if (!teller.is_sending()) return true;
    const auto body = teller.part(wire::kCardPartMax);
    const wire::CardPart part{.place = session.links.next(Priority::kBulk),
                              .revision = teller.told(),
                              .total = static_cast<std::uint32_t>(teller.total()),
                              .offset = static_cast<std::uint32_t>(teller.offset()),
                              .bytes = body};
    if (!uses_.link.push(session, Priority::kBulk, wire::encode(part, buffer), body)) return false;
    teller.sent(body.size(), uses_.cards.own_revision());
    ++*work;
  }
}

/// What changed until now.
void CardExchange::make_card(Session& session) {
  const std::uint64_t revision = uses_.cards.own_revision();
  Result<std::string> card = uses_.cards.own_since(session.card_teller.told());
  if (card) {
    session.card_teller.made(std::move(*card), revision);
  } else {
    session.card_teller.failed();
  }
}

void CardExchange::forget(Session& session) {
  session.card_in.reset();
  session.card_teller.cut();
}

}  // namespace hawser::agent
