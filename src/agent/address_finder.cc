#include "agent/address_finder.h"

#include <algorithm>
#include <chrono>

#include "agent/card_intake.h"
#include "agent/peer_status.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

/// Between two looks at what the lane's turns did.
constexpr Duration kLookAtStrangerAgain = std::chrono::microseconds(200);
/// Nobody waits longer for a path that is only better than the one there is; it may still come up later.
constexpr Duration kBetterPathMax = std::chrono::milliseconds(250);

bool is_down(const PeerCore& peer) { return peer.state.load(std::memory_order_acquire) == PeerState::kDown; }

Status not_reached(std::string_view name, const std::string& where, const Status& why) {
  if (why.code() == Code::kUnsupported) {
    return Status(Code::kUnsupported, "find_peer: '" + where + "' cannot be talked to: " + std::string(why.message()))
        .with_peer(name)
        .with_advice(why.advice())
        .because(why.cause());
  }
  return Status(why.code(), "find_peer: '" + where + "' cannot be reached")
      .with_advice("check the address, and that an agent of that name listens there")
      .because(why);
}

}  // namespace

AddressFinder::Found AddressFinder::greet(std::uint64_t number, Instant deadline) {
  Found found = std::shared_ptr<PeerCore>();
  while (clock_.now() < deadline) {
    lane_.lock();
    found = strangers_.take(number);
    lane_.unlock();
    if (!found || *found != nullptr) break;
    lane_.pause(std::min(deadline, clock_.now() + kLookAtStrangerAgain));
  }
  lane_.lock();
  strangers_.drop(number);
  if (found && *found != nullptr) strangers_.want_card(*found);
  lane_.unlock();
  lane_.wake();
  return found;
}

AddressFinder::Found AddressFinder::find(std::string_view name, std::string_view address, Instant deadline) {
  HAWSER_TRY_ASSIGN(const TicketedAddress typed, split_ticket(address));
  Result<std::string> resolved = strangers_.resolve(typed.address, deadline);
  if (!resolved) return resolved.error().with_peer(name);
  lane_.lock();
  const Result<std::uint64_t> number = strangers_.open(*resolved, name, typed.ticket, deadline);
  lane_.unlock();
  lane_.wake();
  if (!number) return number.error();
  Found found = greet(*number, deadline);
  const std::string where = (name.empty() ? "" : std::string(name) + "@") + std::string(typed.address);
  if (!found) return not_reached(name, where, found.error());
  if (*found == nullptr) {
    return Status(Code::kTimedOut, "find_peer: '" + where + "' did not answer in time").with_peer(name);
  }
  HAWSER_TRY(wait_for_card(*found, deadline));
  seek_better_path(*found, std::min(deadline, clock_.now() + kBetterPathMax));
  return found;
}

// Waited for, so that what is planned next takes it: on the same host it is many times as fast as the socket.
void AddressFinder::seek_better_path(const std::shared_ptr<PeerCore>& peer, Instant deadline) {
  lane_.lock();
  const std::uint64_t serial = is_down(*peer) ? 0 : strangers_.open_better_path(peer, deadline);
  lane_.unlock();
  lane_.wake();
  for (bool is_opening = serial != 0; is_opening && clock_.now() < deadline;) {
    lane_.pause(std::min(deadline, clock_.now() + kLookAtStrangerAgain));
    lane_.lock();
    is_opening = !is_down(*peer) && strangers_.is_opening(peer, serial);
    lane_.unlock();
  }
}

Status AddressFinder::wait_for_card(const std::shared_ptr<PeerCore>& peer, Instant deadline) {
  lane_.wake();
  lane_.wait_until([&] { return known_revision(*peer) > 0 || is_down(*peer); }, deadline);
  if (known_revision(*peer) > 0) return {};
  if (is_down(*peer)) return down_status(*peer);
  return Status(Code::kTimedOut, "find_peer: " + peer->name + " did not send its card in time").with_peer(peer->name);
}

}  // namespace hawser::agent
