#pragma once

// Hearing: the court of one full world, with its deadlines. Its words go by the mailbox.
//
// Thread rule: under the lane's lock. Lifetime: its world's, or until the world holds this rank for failed.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/court.h"
#include "runtime/court_clock.h"
#include "runtime/mailbox.h"

namespace hawser::runtime {

class Hearing final {
 public:
  struct Site {
    std::uint64_t world = 0;
    std::uint32_t rank = 0;
    std::span<const Peer> ranks;
    Duration heartbeat{}, peer_timeout{};  ///< The agent's.
  };
  struct Hooks {
    /// This rank gives the verdict that the other one has failed. May call note_gone.
    std::function<void(std::uint32_t rank)> convict;
    /// Nothing is undecided. Called after whatever may have changed that, also where nothing was undecided before.
    std::function<void(Instant now)> decided;
  };

  /// `mailbox` outlives it.
  Hearing(const Site& site, Mailbox& mailbox, Hooks hooks);
  Hearing(const Hearing&) = delete;
  Hearing& operator=(const Hearing&) = delete;

  /// This rank hears nothing of the other one any more. Final.
  void note_lost(std::uint32_t rank);
  /// It has failed, by whomever's verdict, or has left.
  void note_gone(std::uint32_t rank);
  /// `lost`: the bitmap of a rank's word.
  void hear(std::uint32_t from, std::span<const std::byte> lost, bool asks);

  /// Ranks have lost each other, and it is not decided who failed.
  bool is_undecided() const { return court_.is_open(); }
  /// Those of them that this rank has lost.
  std::vector<std::uint32_t> lost() const { return court_.lost(); }

 private:
  void tell(std::uint32_t to, const std::vector<bool>& lost, bool asks);
  void watch();

  const std::uint64_t world_;
  const std::vector<Peer> ranks_;
  Mailbox& mailbox_;
  const Hooks hooks_;
  Court court_;
  CourtClock clock_;
};

}  // namespace hawser::runtime
