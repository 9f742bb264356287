// One rank of a world whose ranks are processes, on this host or on several:
//
//     hawser run -n 4 ranks
//     hawser run --hosts node1:8,node2:8 ranks
//     mpirun -n 4 ranks          (with HAWSER_DIRECTORY=file:/a/shared/folder)
//
// The launcher's environment says which rank this is and where the others are found. The ranks draw points in a square;
// together they know how many of them lie in the circle, and so what pi is.

#include <cstdio>
#include <random>

#include <hawser/config.h>
#include <hawser/world.h>

namespace {

constexpr std::uint64_t kPoints = 1'000'000;

/// Of this rank's own points: how many lie in the circle.
std::uint64_t points_in_circle(std::uint32_t rank) {
  std::mt19937_64 generator(rank);
  std::uniform_real_distribution<double> side(-1, 1);
  std::uint64_t inside = 0;
  for (std::uint64_t i = 0; i < kPoints; ++i) {
    const double x = side(generator), y = side(generator);
    if (x * x + y * y <= 1) ++inside;
  }
  return inside;
}

hawser::Status run() {
  hawser::Result<hawser::WorldOptions> options = hawser::launched_world(hawser::ConfigSources::from_process());
  if (!options) return options.error();
  hawser::Result<hawser::World> world = hawser::World::open(std::move(*options));
  if (!world) return world.error();
  std::uint64_t inside = points_in_circle(world->rank());
  const hawser::Status summed =
      world->all_reduce(&inside, &inside, 1, hawser::DataType::kUInt64, hawser::ReduceOp::kSum);
  if (!summed.ok()) return summed;
  if (world->rank() == 0) {
    const double all = static_cast<double>(kPoints) * world->size();
    std::printf("pi is about %.4f, by %u ranks\n", 4 * static_cast<double>(inside) / all, world->size());
  }
  return world->shutdown(std::chrono::seconds(10));
}

}  // namespace

int main() {
  const hawser::Status status = run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return 1;
}
