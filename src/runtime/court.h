#pragma once

// Court: decides which ranks of a full world have failed where live ranks lose sight of one another.
//
// A rank that loses another one by its silence tells all others whom it has lost, and asks them for the same. Of two
// ranks that lost each other the one that reaches fewer has failed, then the higher. The lowest rank that stays gives
// the verdicts, once it has heard every rank that it reaches. A rank that all others have lost fails at once. Where
// some still reach it the court waits until it is told to settle, for a broken network shows one link after the other.
// A rank that reaches nobody takes all others for failed.
//
// Verdicts are final, and told to all by the world. A court that heard too little decides no worse than each rank for
// itself would.
//
// It is about messages and losses only: no clock, no sockets.
//
// Thread rule: one thread at a time. Lifetime: a world's. Memory: a bitmap of each rank while something is undecided.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace hawser::runtime {

/// Two ranks of which one has lost the other.
using Loss = std::pair<std::uint32_t, std::uint32_t>;

/// Whom to leave out, so that no two are left that lost each other: again and again the one that lost most of those
/// that are left, the highest of several. In the order in which they are left out.
std::vector<std::uint32_t> ranks_to_leave_out(std::uint32_t size, std::vector<Loss> losses);

class Court {
 public:
  struct Hooks {
    /// Says whom this rank has lost. `asks`: the other one says the same of itself.
    std::function<void(std::uint32_t to, const std::vector<bool>& lost, bool asks)> tell;
    /// This rank gives the verdict that the other one has failed. May call note_gone.
    std::function<void(std::uint32_t rank)> convict;
  };
  Court(std::uint32_t rank, std::uint32_t size, Hooks hooks);

  /// This rank hears nothing of the other one any more. Final.
  void note_lost(std::uint32_t rank);
  /// It has failed, by whomever's verdict, or has left.
  void note_gone(std::uint32_t rank);
  void hear(std::uint32_t from, const std::vector<bool>& lost, bool asks);
  /// Time enough has passed since the case came up for all losses to show.
  void settle();
  /// It took too long: this rank takes all for failed that it has lost. As far as it knows it may be one that fails
  /// itself: then it leaves that to the others, once.
  void give_up();

  /// Whether ranks are left that lost each other, as far as this rank knows.
  bool is_open() const { return !losses().empty(); }
  /// Those of them that this rank has lost.
  std::vector<std::uint32_t> lost() const;

 private:
  std::vector<Loss> losses() const;
  std::vector<std::uint32_t> others() const;
  void tell_all(bool asks);
  void decide();
  bool is_lost_by_all(std::uint32_t rank, const std::vector<std::uint32_t>& out) const;
  void convict(const std::vector<std::uint32_t>& ranks);

  const std::uint32_t rank_;
  const std::uint32_t size_;
  const Hooks hooks_;
  std::vector<bool> lost_, gone_;
  std::map<std::uint32_t, std::vector<bool>> heard_;  ///< By rank: whom it has lost.
  bool has_asked_ = false, is_settled_ = false, has_waited_ = false, is_convicting_ = false;
};

}  // namespace hawser::runtime
