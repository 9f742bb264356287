// How fast an agent moves a file of its own: what file_bench.py measures beside fio.
//
// usage: file_bench FILE read|write BYTES BLOCK sequential|random direct|cached SECONDS
//
// FILE has BYTES bytes already. They are moved in two plans, each over half of the blocks, that take turns so that the
// device always has work. Prints GB/s over the whole time, after one pass that is not counted.

#include <hawser/hawser.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

#include "must.h"

namespace {

using Time = std::chrono::steady_clock;

struct Job {
  const char* file;
  bool writes, random, direct;
  std::uint64_t bytes, block;
  double seconds;
};

/// The plan over blocks [first, last) of `order`.
hawser::Plan plan_part(hawser::Agent& agent, const hawser::Region& memory, const Job& job,
                       const std::vector<std::uint64_t>& order, std::size_t first, std::size_t last) {
  std::vector<hawser::LocalRange> here;
  std::vector<hawser::RemoteRange> there;
  for (std::size_t i = first; i < last; ++i) {
    here.push_back(memory.range(i * job.block, job.block));
    there.push_back(agent.self().range("file", order[i] * job.block, job.block));
  }
  return must(job.writes ? agent.plan_write(agent.self(), here, there) : agent.plan_read(agent.self(), there, here));
}

double rate(const std::array<hawser::Plan, 2>& plans, double seconds) {
  std::array<hawser::Transfer, 2> running{must(plans[0].submit()), must(plans[1].submit())};
  double bytes = 0;
  Time::time_point begin{};
  for (int turn = 0;; ++turn) {
    hawser::Transfer& oldest = running[turn % 2];
    if (const hawser::Status status = oldest.wait(); !status.ok()) hawser::abort_on(status);
    const Time::time_point now = Time::now();
    if (turn == 1) begin = now;  // Both have run once: their pages are there, the file is mapped to the device.
    if (turn > 1) bytes += static_cast<double>(plans[turn % 2].bytes());
    const double passed = std::chrono::duration<double>(now - begin).count();
    if (turn > 1 && passed >= seconds) return bytes / passed / 1e9;
    oldest = must(plans[turn % 2].submit());
  }
}

double run(const Job& job) {
  hawser::Agent agent = must(hawser::Agent::open({.name = "file-bench", .backends = {hawser::file()}}));
  const hawser::Region memory = must(agent.allocate({.size = job.bytes}));
  const auto direct = job.direct ? hawser::DirectIo::kRequire : hawser::DirectIo::kOff;
  const hawser::Region file = must(agent.add_file({.name = "file", .path = job.file, .direct = direct}));
  std::vector<std::uint64_t> order(job.bytes / job.block);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (job.random) std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  const std::size_t half = order.size() / 2;
  return rate({plan_part(agent, memory, job, order, 0, half), plan_part(agent, memory, job, order, half, order.size())},
              job.seconds);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "usage: file_bench FILE read|write BYTES BLOCK sequential|random direct|cached SECONDS\n");
    return 2;
  }
  const Job job{.file = argv[1],
                .writes = std::string_view(argv[2]) == "write",
                .random = std::string_view(argv[5]) == "random",
                .direct = std::string_view(argv[6]) == "direct",
                .bytes = std::strtoull(argv[3], nullptr, 10),
                .block = std::strtoull(argv[4], nullptr, 10),
                .seconds = std::strtod(argv[7], nullptr)};
  if (job.block == 0 || job.bytes / job.block < 2) {
    std::fprintf(stderr, "file_bench: BYTES must hold two blocks of BLOCK bytes at least\n");
    return 2;
  }
  std::printf("%.6f\n", run(job));
  return 0;
}
