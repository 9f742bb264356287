#pragma once

// Meter: one rank's measuring of collectives. All ranks of the world make the same calls of it.
//
// Before every operation the rank writes its input anew and meets the others in a barrier; the time of an operation is
// that of the slowest rank. Every result is compared, element by element, with what it has to be.
//
// Thread rule: one thread. Lifetime: within the world's.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/memory.h>
#include <hawser/world.h>

#include "schedule/collective.h"

namespace hawser::cli::coll {

struct Item {
  schedule::Operation operation = schedule::Operation::kBarrier;
  std::uint64_t bytes = 0;          ///< As call_of takes them.
  std::string_view algorithm = {};  ///< Empty: the world chooses.
  bool mapped = false;              ///< Buffers in memory that the ranks of a host map.
};

struct Measured {
  Item item;
  schedule::Algorithm algorithm = schedule::Algorithm::kDirect;  ///< By which it went, in the end.
  std::vector<double> ns;                                        ///< Each time that it went so, sorted.
  std::uint64_t wrong = 0;                                       ///< Elements, on all ranks.
};

class Meter {
 public:
  explicit Meter(World& world) : world_(world) {}
  /// Errors: those of the world.
  Result<Measured> measure(const Item& item, std::size_t repetitions);
  /// So many that sizes take about as long as one another, at least `least`.
  static std::size_t repetitions_of(std::uint64_t bytes, std::size_t least, std::size_t most);

 private:
  struct Buffer {
    std::vector<float> heap;
    Region region;
    float* data = nullptr;
    std::size_t count = 0;
  };
  Status take(Buffer& buffer, std::size_t count, bool mapped);
  Status prepare(const schedule::Call& call, bool mapped);
  Request begin(const schedule::Call& call, std::string_view algorithm);
  void fill(std::size_t repetition);
  std::uint64_t count_wrong(const schedule::Call& call, std::size_t repetition) const;
  float right(const schedule::Call& call, std::size_t i, std::size_t repetition) const;

  World& world_;
  Buffer in_, out_;
};

}  // namespace hawser::cli::coll
