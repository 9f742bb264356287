// A stream of messages from rank 0 to rank 1, four under way, each into a buffer that waits for it.
//
// usage: hawser run -n 2 -- rank_stream_bench [ROUNDS] [BYTES...]
// Prints for each size the median of ROUNDS (5) rounds in GB/s, and the slowest and fastest.

#include <hawser/config.h>
#include <hawser/world.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <span>
#include <vector>

#include "must.h"

namespace {

using Time = std::chrono::steady_clock;
constexpr std::size_t kUnderWay = 4;
constexpr std::uint64_t kTag = 7;
constexpr std::uint64_t kRoundBytes = std::uint64_t{256} << 20;
constexpr hawser::Duration kPatience = std::chrono::seconds(30);

hawser::World open_world() {
  const hawser::ConfigSources sources = hawser::ConfigSources::from_process();
  const hawser::LaunchedRank launched = must(hawser::launched_rank(sources));
  hawser::WorldOptions options;
  options.agent = must(hawser::load_config(sources)).options;
  options.name = "world." + launched.run;
  options.size = launched.size;
  options.rank = launched.rank;
  options.seed = hawser::launched_seed(sources);
  options.token_file = hawser::launched_token_file(sources);
  return must(hawser::World::open(options));
}

/// GB/s, from the first message to the last word of both ranks.
double run(hawser::World& world, std::vector<std::vector<std::byte>>& buffers) {
  const std::size_t bytes = buffers.front().size();
  const std::size_t count = std::clamp<std::size_t>(kRoundBytes / bytes, 8, 2000);
  must(world.barrier());
  const Time::time_point begin = Time::now();
  std::deque<hawser::Request> under_way;
  for (std::size_t i = 0; i < count; ++i) {
    if (under_way.size() == kUnderWay) {
      must(under_way.front().wait(kPatience));
      under_way.pop_front();
    }
    std::vector<std::byte>& buffer = buffers[i % kUnderWay];
    under_way.push_back(world.rank() == 0 ? world.isend(std::span<const std::byte>(buffer), 1, kTag)
                                          : world.ireceive(std::span<std::byte>(buffer), 0, kTag));
  }
  for (hawser::Request& each : under_way) must(each.wait(kPatience));
  must(world.barrier());
  const std::chrono::duration<double> seconds = Time::now() - begin;
  return static_cast<double>(count * bytes) / seconds.count() / 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 5;
  std::vector<std::size_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {256 << 10, 1 << 20, 16 << 20};
  hawser::World world = open_world();
  if (world.size() != 2 || std::ranges::count(sizes, std::size_t{0}) > 0) {
    std::fprintf(stderr, "usage: hawser run -n 2 -- rank_stream_bench [ROUNDS] [BYTES...]\n");
    return 2;
  }
  for (const std::size_t bytes : sizes) {
    std::vector<std::vector<std::byte>> buffers(kUnderWay, std::vector<std::byte>(bytes, std::byte{1}));
    std::vector<double> rates;
    for (int round = 0; round < rounds; ++round) rates.push_back(run(world, buffers));
    std::ranges::sort(rates);
    if (world.rank() == 0) {
      std::printf("%zu bytes: %.2f GB/s (%.2f to %.2f)\n", bytes, rates[rates.size() / 2], rates.front(), rates.back());
    }
  }
  must(world.shutdown(kPatience));
  return 0;
}
