#pragma once

// WaitingRing: texts of peers in the order in which they came, until the user takes them. Grows as more wait.
//
// Places keep the buffer and the sender of what was taken from them: where one peer sends all, nothing is counted or
// allocated while the ring turns. Large buffers do not stay.
//
// Thread rule: confined, or under its owner's lock.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/peer.h>

namespace hawser::agent {

class WaitingRing {
 public:
  std::size_t size() const { return count_; }

  void push(const std::shared_ptr<PeerCore>& from, std::string_view bytes) {
    if (count_ == places_.size()) grow();
    Place& place = at(count_);
    if (place.from != from) place.from = from;
    place.bytes.assign(bytes);
    ++count_;
  }

  /// The oldest; there must be one. `bytes` leaves its buffer behind.
  void take(Peer* from, std::string* bytes) {
    Place& place = at(0);
    if (from->core() != place.from) *from = Peer(place.from);
    std::swap(*bytes, place.bytes);
    if (place.bytes.capacity() > kBufferKept) std::string().swap(place.bytes);  // Assigning would keep the buffer.
    head_ = (head_ + 1) & (places_.size() - 1);
    --count_;
  }

  /// The peer is forgotten: places that it had filled do not keep it. What waits of it stays.
  void let_go_of(const PeerCore& peer) {
    for (std::size_t i = count_; i < places_.size(); ++i) {
      if (at(i).from.get() == &peer) at(i).from.reset();
    }
  }

  /// For a planted bug: the newest goes before the oldest.
  void put_newest_first() {
    if (count_ > 1) std::swap(at(0), at(count_ - 1));
  }

 private:
  static constexpr std::size_t kFirst = 16;
  static constexpr std::size_t kBufferKept = 16 * 1024;

  struct Place {
    std::shared_ptr<PeerCore> from;
    std::string bytes;
  };
  Place& at(std::size_t i) { return places_[(head_ + i) & (places_.size() - 1)]; }
  void grow() {
    std::vector<Place> larger(places_.empty() ? kFirst : places_.size() * 2);
    for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move(at(i));
    places_ = std::move(larger);
    head_ = 0;
  }

  std::vector<Place> places_;  ///< Its size is a power of two.
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace hawser::agent
