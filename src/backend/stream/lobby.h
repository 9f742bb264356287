#pragma once

// Lobby: the connections that proved nothing yet, and who of them gives way to a newcomer. It knows them by a pointer
// and closes nothing itself.
//
// A connection is unproven until its hello, its proof, and with admission `none` its first message came. Guests of this
// host's same user are exempt from the bound per source, and give way last.
//
// Thread rule: confined to the port's lane. Memory: kPlaces guests.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hawser/time.h>

namespace hawser::backend::stream {

class Lobby {
 public:
  static constexpr std::size_t kPlaces = 64;
  static constexpr std::size_t kPlacesPerSource = 16;
  /// Nobody gives way before that: an honest opener needs a round trip for each stage, and a crowd of them waits in the
  /// listener's queue meanwhile.
  static constexpr Duration kHeldAtLeast = std::chrono::milliseconds(25);

  using Guest = const void*;

  std::size_t size() const { return guests_.size(); }
  /// When the oldest guest came in. There is one.
  Instant oldest() const { return guests_.front().since; }
  /// False: nobody can be taken in before `next_room`.
  bool has_room(Instant now) const { return guests_.size() < kPlaces || now >= next_room(); }
  Instant next_room() const;

  /// Takes a guest in, who came last. There is room. Returns who has to go for it; null: nobody.
  Guest enter(Guest guest, std::uint64_t source, bool is_kin, Instant now);
  /// One of a source that came in a burst and holds more than its places, as soon as it may be sent off; null: nobody.
  Guest take_surplus(Instant now);
  /// When to ask for such; Instant::max(): there are none.
  Instant surplus_at() const { return surplus_at_; }
  /// It is proven, or it is gone; nothing happens when it was not here.
  void leave(Guest guest);
  /// It goes on under another name.
  void rename(Guest from, Guest to);

 private:
  struct Entry {
    Guest guest = nullptr;
    std::uint64_t source = 0;
    bool is_kin = false;
    Instant since;
  };

  std::size_t count_of(std::uint64_t source) const;
  Guest take_oldest(bool is_kin, const std::uint64_t* source, Instant now);

  std::vector<Entry> guests_;  ///< Oldest first.
  Instant surplus_at_ = Instant::max();
};

}  // namespace hawser::backend::stream
