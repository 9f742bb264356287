#pragma once

// The ways in which one thread can copy blocks in mapped memory: the ceiling of all that shm does, in demo and bench.
// Some are the plain loops that anybody would write; the last are Hawser's own kernels without all around them.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/copy.h"

namespace hawser::cli {

struct CopyWay {
  std::string name;
  std::function<void(std::span<const base::CopyPiece>)> run;
};

std::vector<CopyWay> copy_ways(std::uint64_t block_bytes, std::uint64_t total_bytes, bool scattered);

}  // namespace hawser::cli
