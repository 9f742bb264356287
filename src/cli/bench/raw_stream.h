#pragma once

// Raw streams: blocks gathered into sendmsg and scattered out of recvmsg, without Hawser, over sockets that stay open.
//
// Both sides run passes over their list of blocks until the board says which pass is the last. The parent measures, as
// sender or as receiver; the child is the other side.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "cli/bench/board.h"

namespace hawser::cli::bench {

/// The blocks that one side moves in each pass.
struct RawPass {
  std::byte* base = nullptr;
  std::vector<std::uint64_t> offsets;  ///< Where its blocks begin, in order.
  std::uint64_t block_bytes = 0;

  std::uint64_t bytes() const { return block_bytes * offsets.size(); }
};

struct RawWay {
  std::size_t sockets = 1;
  bool threads = false;                 ///< A thread per socket, on any core; else one thread spins over all.
  bool blocking = false;                ///< Sleeps in the kernel; else spins.
  std::uint64_t call_bytes = 1u << 20;  ///< At most in one call, ...
  std::size_t call_blocks = 64;         ///< ... and so many blocks.
};

enum class RawSide { kSend, kReceive };

/// Before a stream, by the parent: no pass is the last yet.
void open_stream(BoardPage& page);
/// The child's side: until the last pass, or `over` while the line is quiet.
Status run_stream(std::span<const int> sockets, const RawPass& pass, const RawWay& way, RawSide side, BoardPage& page,
                  const std::function<bool()>& over);
struct RawRate {
  double gb_per_s = 0;
  std::uint64_t bytes = 0;  ///< All that were moved, those before and after the timed passes too.
};
/// The parent's side: for about `budget`, then tells the child which pass is the last and ends with it.
Result<RawRate> measure_stream(std::span<const int> sockets, const RawPass& pass, const RawWay& way, RawSide side,
                               BoardPage& page, Duration budget);

}  // namespace hawser::cli::bench
