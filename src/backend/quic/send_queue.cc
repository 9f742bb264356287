#include "backend/quic/send_queue.h"

#include <algorithm>

#include "base/check.h"
#include "base/planted.h"

namespace hawser::backend::quic {

using base::Planted;
using base::planted;

void SendQueue::append(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  copies_.append(bytes);
  if (pieces_.empty() || pieces_.back().lent != nullptr) pieces_.push_back({});
  pieces_.back().size += bytes.size();
  size_ += bytes.size();
}

void SendQueue::lend(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  pieces_.push_back({.lent = bytes.data(), .size = bytes.size()});
  size_ += bytes.size();
  lent_ += bytes.size();
}

void SendQueue::abort() {
  is_aborted_ = is_ending_ = is_end_sent_ = true;
  note_sent(unsent(), false);
}

SendParts SendQueue::unsent(std::size_t pieces_max) const {
  SendParts found;
  std::size_t offset = at_byte_, copied = at_copied_;
  for (std::size_t i = at_piece_; i < pieces_.size() && found.bytes < kDatagramMost; ++i, offset = 0) {
    for (std::size_t left = pieces_[i].size - offset; left > 0 && found.bytes < kDatagramMost;) {
      if (found.count == found.parts.size() || found.count == pieces_max) return found;
      const std::byte* const lent = pieces_[i].lent;
      std::span<const std::byte> next = lent != nullptr ? std::span(lent + offset, left) : copies_.from(copied);
      next = next.first(std::min(next.size(), left));
      auto* const base = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(next.data()));
      found.parts[found.count++] = {.base = base, .len = next.size()};
      found.bytes += next.size();
      left -= next.size();
      if (lent == nullptr) copied += next.size();
    }
  }
  return found;
}

void SendQueue::note_sent(std::size_t bytes, bool is_last) {
  sent_ += bytes;
  while (bytes > 0) {
    const Piece& piece = pieces_[at_piece_];
    const std::size_t step = std::min(bytes, piece.size - at_byte_);
    at_byte_ += step;
    bytes -= step;
    if (piece.lent == nullptr) at_copied_ += step;
    // Behind the last one stays where it is: what is appended may lengthen it.
    if (at_byte_ < piece.size || at_piece_ + 1 == pieces_.size()) break;
    ++at_piece_;
    at_byte_ = 0;
  }
  HAWSER_ASSERT(bytes == 0, "QUIC took more than it was given");
  if (is_last && unsent() == 0) is_end_sent_ = true;
}

void SendQueue::note_acknowledged(std::size_t bytes) {
  HAWSER_ASSERT(bytes <= sent_, "more is acknowledged than was sent");
  size_ -= bytes;
  sent_ -= bytes;
  acknowledged_ += bytes;
  while (bytes > 0) {
    Piece& first = pieces_.front();
    const std::size_t step = std::min(bytes, first.size);
    if (first.lent != nullptr) {
      first.lent += step;
      lent_ -= step;
    } else {
      copies_.drop(step);
      at_copied_ -= step;
    }
    first.size -= step;
    bytes -= step;
    if (at_piece_ == 0) at_byte_ -= step;
    if (first.size > 0) break;
    pieces_.pop_front();
    if (at_piece_ > 0) --at_piece_;
  }
}

std::uint64_t SendQueue::released() const {
  if (lent_ == 0 || planted(Planted::kReleasedEarly)) return acknowledged_ + size_;
  return acknowledged_ + (pieces_.front().lent == nullptr ? pieces_.front().size : 0);
}

}  // namespace hawser::backend::quic
