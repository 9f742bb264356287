// Four ranks of one process fit a line, each to points of its own: every rank computes the gradient of its points, and
// all of them step by the average. So all ranks hold the same line after each step, and in the end the true one.

#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

#include <hawser/world.h>

namespace {

constexpr std::uint32_t kRanks = 4;
constexpr int kPoints = 256, kSteps = 400;
constexpr double kSlope = 3, kOffset = -1, kRate = 0.5;

/// Gives what the rank found: slope and offset.
hawser::Status fit(hawser::World& world, double* line) {
  for (int step = 0; step < kSteps; ++step) {
    double gradient[2] = {};
    for (int i = 0; i < kPoints; ++i) {
      const double x = (i * kRanks + world.rank()) / double{kPoints * kRanks};  // Each rank has points of its own.
      const double error = line[0] * x + line[1] - (kSlope * x + kOffset);
      gradient[0] += 2 * error * x / kPoints;
      gradient[1] += 2 * error / kPoints;
    }
    const hawser::Status status =
        world.all_reduce(gradient, gradient, 2, hawser::DataType::kFloat64, hawser::ReduceOp::kAvg);
    if (!status.ok()) return status;
    for (int i = 0; i < 2; ++i) line[i] -= kRate * gradient[i];
  }
  return world.shutdown(std::chrono::seconds(10));
}

}  // namespace

int main() {
  hawser::Result<std::vector<hawser::World>> worlds = hawser::World::local(kRanks);
  if (!worlds) {
    std::fprintf(stderr, "%s\n", worlds.error().to_string().c_str());
    return 1;
  }
  std::vector<hawser::Status> ended(kRanks);
  std::vector<std::vector<double>> lines(kRanks, std::vector<double>(2));
  std::vector<std::thread> ranks;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] { ended[rank] = fit((*worlds)[rank], lines[rank].data()); });
  }
  for (std::thread& rank : ranks) rank.join();
  int wrong = 0;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    if (!ended[rank].ok()) std::fprintf(stderr, "rank %u: %s\n", rank, ended[rank].to_string().c_str());
    const bool is_right = ended[rank].ok() && lines[rank] == lines[0];  // All ranks hold equal bits.
    wrong += is_right ? 0 : 1;
  }
  std::printf("y = %.3f x %+.3f\n", lines[0][0], lines[0][1]);
  const bool is_true = lines[0][0] > kSlope - 0.01 && lines[0][0] < kSlope + 0.01;
  return wrong == 0 && is_true ? 0 : 1;
}
