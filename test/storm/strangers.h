#pragma once

// Strangers: connections that reach the workers over tcp, prove nothing and stay: silent ones, halves of hellos, noise,
// whole hellos without a word after them. A worker keeps few of them, whatever else it goes through.
//
// Thread rule: one thread. Memory: kOpenMax sockets for each worker.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/rng.h"
#include "board.h"
#include "options.h"

namespace hawser::storm {

class Strangers {
 public:
  Strangers(Board& board, const StormOptions& options, std::uint64_t seed);

  /// One more comes to a worker at random, and each looks whether it was sent away.
  void act();
  /// Closes all, in a child that inherited them.
  void leave();
  /// No worker keeps more of them than it has places.
  bool are_few();
  bool are_out();
  /// Those that `worker` keeps, and that came in all.
  std::size_t at(std::size_t worker) const { return open_[worker].size(); }
  std::size_t came() const { return came_; }

 private:
  struct Stranger {
    base::Fd socket;
    bool is_proven = false;  ///< It said a whole hello of this user, and has no place among the unproven any more.
  };
  std::string words(bool* is_proven);
  void come(std::size_t worker);
  void look();

  Board& board_;
  const std::size_t workers_;
  base::Rng rng_;
  std::array<std::vector<Stranger>, kWorkersMax> open_;
  std::size_t came_ = 0;
};

}  // namespace hawser::storm
