#include "agent/peer_use.h"

#include <utility>

#include "agent/session.h"
#include "base/bytes.h"
#include "base/check.h"

namespace hawser::agent {
namespace {

std::unique_ptr<CardStore> decoded(const SharedCard& known) {
  if (!known.has_card()) return nullptr;
  auto store = std::make_unique<CardStore>();
  Result<wire::Card> card = wire::decode_card(base::as_bytes(known.bytes));
  HAWSER_ASSERT(card.has_value(), "a card was checked when it came");
  static_cast<void>(store->take(*std::move(card)));  // A full card builds on nothing.
  return store;
}

}  // namespace

PeerUse::PeerUse(const SharedCard& known) : born(known.born), card(decoded(known)), ticket(known.ticket) {}

PeerUse::~PeerUse() = default;

}  // namespace hawser::agent
