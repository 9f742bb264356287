#pragma once

// BoardMemory, for tests: room for one rank's board.
//
// Thread rule: the test's thread.

#include <array>
#include <cstddef>

#include "runtime/board.h"

namespace hawser::runtime {

struct alignas(kBoardLine) BoardMemory {
  std::array<std::byte, kBoardBytes> bytes{};
};

}  // namespace hawser::runtime
