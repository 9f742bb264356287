// What registering costs: listed and unlisted regions, and grants, beside PEERS peers with a session. All agents are of
// this process and are polled by one thread, so the parts are counted apart: the call, the turns of the owner, and
// those of all peers, of which some find nothing to do.
//
//   region_bench BACKEND [PEERS] [ROUNDS]

#include <hawser/hawser.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using hawser::Agent;
using hawser::Duration;
using hawser::Region;

template <typename T>
T must(hawser::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return std::move(*result);
}
void must(const hawser::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.to_string());
}

double now_ns() { return static_cast<double>(hawser::Clock::steady().now().ns()); }

struct Row {
  const char* what;
  std::vector<double> call = {}, owner = {}, peers = {};  ///< Of each round, in ns for one.
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

class Bench {
 public:
  Bench(const std::string& backend, std::size_t peers) {
    owner_ = open("owner", backend);
    for (std::size_t i = 0; i < peers; ++i) {
      peers_.push_back(open("peer-" + std::to_string(i), backend));
      const hawser::Peer peer = must(peers_.back().add_peer(must(owner_.card())));
      while (peer.state() != hawser::PeerState::kUp) {
        (void)peer.connect(0ns);
        owner_.poll();
        peers_.back().poll();
      }
    }
    settle();
  }

  /// Makes `kAtOnce` things by `make`, and lets all hear of them.
  template <typename Make>
  void round(Row& row, Make&& make) {
    const double begun = now_ns();
    for (std::size_t i = 0; i < kAtOnce; ++i) make();
    const double made = now_ns();
    while (owner_.poll() > 0) {
    }
    const double told = now_ns();
    settle();
    row.call.push_back((made - begun) / kAtOnce);
    row.owner.push_back((told - made) / kAtOnce);
    row.peers.push_back((now_ns() - told) / kAtOnce);
    regions_.clear();
    for (const hawser::Grant& grant : grants_) must(grant.revoke(1s));
    grants_.clear();
    settle();
  }
  void add(bool listed) { regions_.push_back(must(owner_.add_region({.bytes = memory_, .listed = listed}))); }
  void grant(const Region& region) {
    grants_.push_back(must(region.grant(0, memory_.size(), hawser::Rights::kWrite, hawser::Duration::max())));
  }
  Region parent() { return must(owner_.add_region({.bytes = memory_, .listed = false})); }

 private:
  static constexpr std::size_t kAtOnce = 512;

  static Agent open(const std::string& name, const std::string& backend) {
    hawser::AgentOptions options{.name = name, .backends = {{backend, {}}}};
    options.status_page = "off";
    options.log.level = hawser::LogLevel::kError;
    return must(Agent::open(options));
  }
  void settle() {
    for (std::size_t work = 1; work > 0;) {
      work = owner_.poll();
      for (Agent& peer : peers_) work += peer.poll();
    }
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(64 * 1024);
  Agent owner_;
  std::vector<Agent> peers_;
  std::vector<Region> regions_;
  std::vector<hawser::Grant> grants_;
};

int run(int argc, char** argv) {
  const std::string backend = argc > 1 ? argv[1] : "shm";
  const auto peers = static_cast<std::size_t>(argc > 2 ? std::atoi(argv[2]) : 64);
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 21;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  Bench bench(backend, peers);
  const Region parent = bench.parent();
  Row listed{"listed region"}, unlisted{"unlisted region"}, grant{"grant"};
  for (int i = 0; i < rounds; ++i) {
    bench.round(listed, [&] { bench.add(true); });
    bench.round(unlisted, [&] { bench.add(false); });
    bench.round(grant, [&] { bench.grant(parent); });
  }
  std::printf("%s, %zu peers, median of %d rounds of 512; us for one\n", backend.c_str(), peers, rounds);
  std::printf("%-16s %10s %10s %10s\n", "", "call", "owner", "all peers");
  for (const Row* row : {&listed, &unlisted, &grant}) {
    std::printf("%-16s %10.2f %10.2f %10.2f\n", row->what, median(row->call) / 1e3, median(row->owner) / 1e3,
                median(row->peers) / 1e3);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "region_bench: %s\n", error.what());
    return 1;
  }
}
