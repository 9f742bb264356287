// The write that python_bench.py measures, in C++: to the region "memory" of the agent whose card is in a file, from
// allocated memory, polled, for so many seconds. Prints the median rate of 16 writes in GB/s.
//
// usage: write_bench CARD_FILE BYTES SECONDS

#include <hawser/hawser.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

using Time = std::chrono::steady_clock;
constexpr int kBatch = 16;

double seconds_since(Time::time_point begin) { return std::chrono::duration<double>(Time::now() - begin).count(); }

double rate_of(const hawser::Plan& plan, double seconds) {
  std::vector<double> rates;
  const Time::time_point start = Time::now();
  while (seconds_since(start) < seconds) {
    const Time::time_point begin = Time::now();
    for (int i = 0; i < kBatch; ++i) {
      hawser::Transfer one = std::move(plan.submit().value());
      if (const hawser::Status status = one.wait(); !status.ok()) hawser::abort_on(status);
    }
    rates.push_back(kBatch * static_cast<double>(plan.bytes()) / seconds_since(begin) / 1e9);
  }
  std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2), rates.end());
  return rates[rates.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: write_bench CARD_FILE BYTES SECONDS\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  const std::string card((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const std::uint64_t bytes = std::strtoull(argv[2], nullptr, 10);
  hawser::Agent agent = std::move(hawser::Agent::open({.name = "write-bench"}).value());
  const hawser::Region source = std::move(agent.allocate({.size = bytes}).value());
  const hawser::Peer peer = agent.add_peer(card).value();
  const hawser::LocalRange from = source.range(0, bytes);
  const hawser::RemoteRange to = peer.range("memory", 0, bytes);
  const hawser::Plan plan = agent.plan_write(peer, {&from, 1}, {&to, 1}).value();
  std::printf("%.6f\n", rate_of(plan, std::strtod(argv[3], nullptr)));
  return 0;
}
