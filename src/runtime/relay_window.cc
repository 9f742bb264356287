#include "runtime/relay_window.h"

#include <algorithm>

#include <hawser/peer.h>

#include "base/bytes.h"
#include "base/planted.h"
#include "wire/link.h"
#include "wire/relay.h"

namespace hawser::runtime {

using base::planted;
using base::Planted;

bool RelayWindow::has_room(std::size_t bytes) const {
  const std::size_t pieces = bytes / wire::kRelayPieceMax + 1;
  return kept_.empty() || (kept_bytes_ + bytes <= kWindowBytes && kept_.size() + pieces <= kWindowPieces);
}

std::size_t RelayWindow::push(std::span<const std::byte> head, std::span<const std::byte> body) {
  std::string all(base::as_text(head));
  all += base::as_text(body);
  std::size_t pieces = 0;
  for (std::size_t at = 0; at < all.size(); at += wire::kRelayPieceMax, ++pieces) {
    const bool has_more = at + wire::kRelayPieceMax < all.size();
    kept_.push_back({.sequence = ++sent_,
                     .has_more = has_more,
                     .bytes = std::make_shared<const std::string>(all.substr(at, wire::kRelayPieceMax))});
  }
  kept_bytes_ += all.size();
  return pieces;
}

bool RelayWindow::acknowledge(std::uint64_t sequence) {
  if (sequence > sent_) return false;
  while (!kept_.empty() && kept_.front().sequence <= sequence) {
    kept_bytes_ -= kept_.front().bytes->size();
    kept_.pop_front();
  }
  return true;
}

RelayWindow::Taken RelayWindow::take(std::uint64_t sequence, bool has_more, std::span<const std::byte> piece) {
  const bool is_again = sequence <= received_;
  if (is_again && !planted(Planted::kRelayedTwice)) return Taken::kAgain;
  if (sequence > received_ + 1) return Taken::kTooSoon;
  if (!is_again) ++received_;
  ++owed_pieces_;
  owed_bytes_ += piece.size();
  if (is_whole_) message_.clear();
  if (message_.size() + piece.size() > wire::kOwnMessageMax) return Taken::kBad;
  message_ += base::as_text(piece);
  is_whole_ = !has_more;
  return is_whole_ ? Taken::kWhole : Taken::kPart;
}

}  // namespace hawser::runtime
