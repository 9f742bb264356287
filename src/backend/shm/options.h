#pragma once

// Options of the shm backend, from its string parameters.
//
// Thread rule: a value.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <hawser/backends.h>
#include <hawser/status.h>

namespace hawser::backend::shm {

/// What tests put in the way of the code; empty in use.
struct Hooks {
  std::function<void()> inside_pin;  ///< Between entering a pin and the first copy.
};

struct Options {
  std::string socket_dir;                 ///< Empty: chosen, see home.h.
  std::string runtime_dir;                ///< The user's, which is tried first when it is chosen.
  std::uint32_t ring_bytes = 256 * 1024;  ///< Of one direction; a power of two.
  /// Chunks up to this size are copied inside submit; up to 16 times as much where a transfer is one chunk, no driver
  /// runs the agent and nothing waits: its next poll would take as long.
  std::uint64_t inline_bytes_max = 64 * 1024;
  bool map = true;               ///< Map peers' arenas; else all goes by cross-memory attach.
  bool attach = true;            ///< Use cross-memory attach.
  bool allow_attach = false;     ///< Let any process of this user attach to us where Yama forbids it.
  bool membarrier = true;        ///< Pins without fences, where both sides can.
  std::uint32_t hot_paths = 16;  ///< Paths polled each turn; others have a doorbell.
  Hooks hooks;

  Params in_force;
  std::vector<std::string> warnings;
};

Result<Options> read_options(const Params& params);

}  // namespace hawser::backend::shm
