#pragma once

// Link: the memory that the two ends of a path share: what each side tells, and a ring for each direction.
//
//   0      RingSide of the opener: pin, tail, asleep, room_wanted
//   1024   pins of the opener's views
//   2048   RingSide of the acceptor
//   3072   pins of the acceptor's views
//   4096   ring of the opener's messages: ring_bytes
//   then   ring of the acceptor's messages: ring_bytes
//
// The opener makes it, takes all its pages and passes it over; it is zeroed memory, which is what both rings begin as.
//
// Thread rule: its words are for both ends at once, each by its rule. Lifetime: unmaps when it dies.

#include <cstdint>
#include <span>

#include <hawser/status.h>

#include "backend/backend.h"

#include "backend/shm/mapping.h"
#include "backend/shm/ring.h"

namespace hawser::backend::shm {

inline constexpr std::size_t kLinkHeader = 4096;
inline constexpr std::size_t kViewPinsAt = 1024;  ///< Where they begin behind the side's first word.
constexpr std::size_t link_bytes(std::uint32_t ring_bytes) { return kLinkHeader + 2 * std::size_t{ring_bytes}; }

class Link {
 public:
  enum class End : std::uint8_t { kOpener, kAcceptor };
  using Producer = RingProducer<Atomics>;
  using Consumer = RingConsumer<Atomics>;

  Link() = default;
  /// For the opener. `*fd` gets the file for the acceptor.
  static Result<Link> make(std::uint32_t ring_bytes, base::Fd* fd);
  /// For the acceptor: the file that the opener sent, which said `ring_bytes`.
  static Result<Link> adopt(int fd, std::uint32_t ring_bytes);

  explicit operator bool() const { return static_cast<bool>(mapping_); }
  Producer producer() const { return Producer(lines(end_), side(end_), side(other(end_))); }
  Consumer consumer() const { return Consumer(lines(other(end_)), side(end_), side(other(end_))); }
  std::uint64_t line_count() const { return ring_bytes_ / kLineSize; }
  /// What this end holds in the peer's memory.
  Atomics::Word& my_pin() const { return side(end_)->pin; }
  /// Heartbeats: what each side asks for, and what it answers.
  Atomics::Word& my_ping() const { return side(end_)->ping; }
  Atomics::Word& my_pong() const { return side(end_)->pong; }
  const Atomics::Word& their_ping() const { return side(other(end_))->ping; }
  const Atomics::Word& their_pong() const { return side(other(end_))->pong; }
  /// What the peer holds in ours.
  const Atomics::Word& their_pin() const { return side(other(end_))->pin; }
  /// Each side has kViewsMax more pins, one for each of its views.
  std::span<Atomics::Word> my_view_pins() const { return view_pins(end_); }
  std::span<const Atomics::Word> their_view_pins() const { return view_pins(other(end_)); }

 private:
  static End other(End end) { return end == End::kOpener ? End::kAcceptor : End::kOpener; }
  RingSide<Atomics>* side(End end) const {
    return reinterpret_cast<RingSide<Atomics>*>(mapping_.base() + (end == End::kOpener ? 0 : kLinkHeader / 2));
  }
  std::span<Atomics::Word> view_pins(End end) const {
    return {reinterpret_cast<Atomics::Word*>(reinterpret_cast<std::byte*>(side(end)) + kViewPinsAt), kViewsMax};
  }
  /// The ring that `end` writes.
  RingLines<Atomics> lines(End end) const {
    std::byte* base = mapping_.base() + kLinkHeader + (end == End::kOpener ? 0 : ring_bytes_);
    return {reinterpret_cast<RingLine<Atomics>*>(base), ring_bytes_ / kLineSize};
  }

  Mapping mapping_;
  std::uint32_t ring_bytes_ = 0;
  End end_ = End::kOpener;
};

}  // namespace hawser::backend::shm
