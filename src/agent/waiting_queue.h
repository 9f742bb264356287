#pragma once

// WaitingQueue: texts of peers in the order in which they came, until the user takes them.
//
// It grows and shrinks by blocks, so that a push costs alike however many wait. Places keep the buffer and the sender
// of what was taken from them, and one empty block stays: where one peer sends all, nothing is counted or allocated
// while few wait. Large buffers do not stay.
//
// Thread rule: confined, or under its owner's lock.

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <hawser/peer.h>

#include "base/inside.h"

namespace hawser::agent {

class WaitingQueue {
 public:
  WaitingQueue() = default;
  WaitingQueue(const WaitingQueue&) = delete;
  WaitingQueue& operator=(const WaitingQueue&) = delete;
  ~WaitingQueue() {
    while (head_ != nullptr) head_ = std::move(head_->next);  // One after the other: there may be very many.
  }

  std::size_t size() const { return count_; }

  void push(const std::shared_ptr<PeerCore>& from, std::string_view bytes) {
    if (tail_ == nullptr || end_ == kPlaces) append();
    Place& place = tail_->places[end_++];
    if (place.from != from) place.from = from;
    place.bytes.assign(bytes);
    ++count_;
  }

  /// The oldest; there must be one. `bytes` leaves its buffer behind.
  void take(Peer* from, std::string* bytes) {
    Place& place = head_->places[begin_++];
    if (core_of(*from) != place.from) *from = Peer(place.from);
    std::swap(*bytes, place.bytes);
    if (place.bytes.capacity() > kBufferKept) std::string().swap(place.bytes);  // Assigning would keep the buffer.
    --count_;
    if (begin_ == kPlaces) drop_head();
  }

  /// Calls `see(peer, bytes)` with each that waits, the oldest first.
  template <typename See>
  void each(See see) const {
    std::size_t first = begin_;
    for (const Block* block = head_.get(); block != nullptr; block = block->next.get(), first = 0) {
      const std::size_t last = block == tail_ ? end_ : kPlaces;
      for (std::size_t i = first; i < last; ++i) see(block->places[i].from, std::string_view(block->places[i].bytes));
    }
  }

  /// The peer is forgotten: places that it had filled do not keep it. What waits of it stays.
  void let_go_of(const PeerCore& peer) {
    if (spare_ != nullptr) let_go(*spare_, 0, kPlaces, peer);
    if (head_ == nullptr) return;
    let_go(*head_, 0, begin_, peer);
    let_go(*tail_, end_, kPlaces, peer);
  }

  /// For a planted bug: the newest goes before the oldest.
  void put_newest_first() {
    if (count_ > 1) std::swap(head_->places[begin_], tail_->places[end_ - 1]);
  }

 private:
  static constexpr std::size_t kPlaces = 32;
  static constexpr std::size_t kBufferKept = 16 * 1024;

  struct Place {
    std::shared_ptr<PeerCore> from;
    std::string bytes;
  };
  struct Block {
    std::array<Place, kPlaces> places;
    std::unique_ptr<Block> next;
  };

  void append() {
    std::unique_ptr<Block> block = spare_ != nullptr ? std::move(spare_) : std::make_unique<Block>();
    Block* const added = block.get();
    (tail_ == nullptr ? head_ : tail_->next) = std::move(block);
    tail_ = added;
    end_ = 0;
  }
  void drop_head() {
    std::unique_ptr<Block> empty = std::move(head_);
    head_ = std::move(empty->next);
    if (head_ == nullptr) tail_ = nullptr;
    begin_ = 0;
    if (spare_ == nullptr) spare_ = std::move(empty);
  }
  static void let_go(Block& block, std::size_t first, std::size_t last, const PeerCore& peer) {
    for (std::size_t i = first; i < last; ++i) {
      if (block.places[i].from.get() == &peer) block.places[i].from.reset();
    }
  }

  std::unique_ptr<Block> head_;   ///< The oldest; null when there is none.
  Block* tail_ = nullptr;         ///< The newest.
  std::unique_ptr<Block> spare_;  ///< Empty; kept for the next append.
  std::size_t begin_ = 0;         ///< Of what waits, in head_.
  std::size_t end_ = 0;           ///< Behind what waits, in tail_.
  std::size_t count_ = 0;
};

}  // namespace hawser::agent
