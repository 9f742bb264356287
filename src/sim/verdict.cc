#include "sim/verdict.h"

#include <fmt/format.h>

namespace hawser::simulation {

void Verdict::fail(const Life& life, const std::string& what) {
  if (failed()) return;
  failure_ = fmt::format("at {:.6f} s, {} (life {}): {}", static_cast<double>(universe_.world.now().ns()) / 1e9,
                         life.name, life.number, what);
  universe_.world.note("FAILED", failure_);
}

}  // namespace hawser::simulation
