#pragma once

// Host: one simulated process that is turned when something is due: an event of the network, its own timer, a call of
// its user. It may be slow, be stopped (SIGSTOP) and go on, or die.
//
// A host turns only what it was woken for and what its own `next` asked for: code that forgets a timer or a wake hangs
// here, in virtual time, where a checker sees it.
//
// Thread rule: the world's. Lifetime: by shared_ptr; events hold it weakly.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <hawser/time.h>

#include "backend/sim/world.h"

namespace hawser::sim {

class Host : public std::enable_shared_from_this<Host> {
 public:
  enum class State : std::uint8_t { kRunning, kStopped, kDead };
  struct Turned {
    bool more = false;              ///< There is work left: turn again soon.
    Instant next = Instant::max();  ///< When to turn even if nothing happens.
  };

  static std::shared_ptr<Host> create(World& world, std::string name, std::uint32_t number);

  World& world() { return world_; }
  const std::string& name() const { return name_; }
  std::uint32_t number() const { return number_; }
  State state() const { return state_; }
  bool dead() const { return state_ == State::kDead; }
  bool running() const { return state_ == State::kRunning; }

  /// What a turn does; replaced when the process starts and cleared when it dies.
  void set_turn(std::function<Turned(Instant)> turn) { turn_ = std::move(turn); }
  /// Something happened that the process would be woken for.
  void wake();
  /// Time from being woken to turning, and between turns with work. Large: a slow peer.
  void set_pace(Duration pace) { pace_ = pace; }
  Duration pace() const { return pace_; }
  void stop();
  void resume();
  /// The process is gone; nothing of it runs any more. Its streams are the network's to end.
  void die();
  std::uint64_t turns() const { return turns_; }

  /// For a user's call of this process that blocks, and turns the process itself: lets the world go on until there is
  /// something for this process, or until `until`.
  void pause(Instant until);

 private:
  Host(World& world, std::string name, std::uint32_t number) : world_(world), name_(std::move(name)), number_(number) {}
  void schedule(Instant when);
  void turn(std::uint64_t ticket);

  World& world_;
  const std::string name_;
  const std::uint32_t number_;
  State state_ = State::kRunning;
  Duration pace_ = std::chrono::microseconds(1);
  std::function<Turned(Instant)> turn_;
  Instant due_ = Instant::max();  ///< When the scheduled turn will run.
  std::uint64_t ticket_ = 0;      ///< Of the scheduled turn; earlier ones were superseded.
  bool woken_ = false;            ///< While stopped or turning.
  bool turning_ = false;
  bool blocking_ = false;
  std::uint64_t turns_ = 0;
};

}  // namespace hawser::sim
