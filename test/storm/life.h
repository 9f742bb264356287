#pragma once

// Life: one agent of a worker, from its opening to its close, with a region that all write to and threads that play.
//
// It closes that region now and then and opens another, and looks that nobody touches the old memory; it takes
// notifications, of which each comes once and after its bytes.
//
// Thread rule: the worker's main thread.

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <hawser/driver.h>
#include <hawser/hawser.h>

#include "base/rng.h"
#include "board.h"
#include "options.h"
#include "player.h"

namespace hawser::storm {

class Life {
 public:
  Life(Board& board, const StormOptions& options, std::size_t worker, std::uint64_t seed);
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  /// Until it has had enough, or the storm is over.
  void run();
  bool is_over() const { return board_.phase.load() == Phase::kEnd; }

 private:
  /// Memory of a region that was closed: nobody touches it.
  struct Grave {
    std::vector<std::byte> memory;
    std::uint64_t scribble = 0;
  };

  [[noreturn]] void fail(const std::string& what);
  static AgentOptions options_of(const StormOptions& options, std::size_t worker, bool driven);
  void open_region();
  void close_region();
  void drop_region();
  void bury(std::vector<std::byte> memory);
  void look_at_graves();
  void take_news();
  void on_note(const std::string& text);
  void on_message(std::size_t player, const std::string& text);
  /// Whether the region's word holds what was added to it.
  void check_word();
  void storm();
  void play(std::size_t number);
  void calm();
  void end();

  Board& board_;
  const StormOptions& options_;
  const std::size_t worker_;
  base::Rng rng_;
  std::optional<Driver> driver_;
  Agent agent_;
  std::string region_name_;
  std::uint64_t region_number_ = 0;
  std::vector<std::byte> storage_;
  Region region_;
  std::vector<Grave> graves_;
  std::vector<std::vector<std::byte>> dropped_;  ///< Used by nobody knows whom: kept.
  std::set<std::uint64_t> notes_;
  /// The last message of a player.
  struct Heard {
    std::uint64_t stream = 0, number = 0;
    std::uint32_t interruptions = 0;
  };
  std::array<std::array<Heard, kPlayers>, kWorkersMax> heard_{};
  std::atomic<bool> closing_{false};
  std::vector<std::unique_ptr<Player>> players_;
};

}  // namespace hawser::storm
