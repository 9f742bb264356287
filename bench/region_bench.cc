// What registering costs: listed and unlisted regions, grants and remote buffers, made and ended beside PEERS peers
// with a session. All agents are of this process and are polled by one thread, so the parts are counted apart: the
// call, the turns of the owner, and those of all peers, of which some find nothing to do. Grants for one transfer are
// used by one peer and end by that.
//
//   region_bench BACKEND [PEERS] [ROUNDS] [unlisted]
//
// With `unlisted` nothing but unlisted regions is made and ended, so that the call finds the caches as it left them.

#include <hawser/hawser.h>
#include <hawser/rdma.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
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
    source_ = must(peers_.front().allocate({.size = kUsed}));
    holder_ = must(owner_.add_peer(must(peers_.front().card())));
    rdma_.emplace(must(hawser::rdma::Backend::open(owner_, {.thread = false})));
    lent_ = must(rdma_->local_memory(memory_));
  }

  /// Makes `kAtOnce` things by `make(i)`, ends them by `end(i)`, and lets all hear of each.
  template <typename Make, typename End>
  void round(Row& made, Row& ended, Make&& make, End&& end) {
    time(made, make);
    time(ended, end);
    regions_.clear();
    grants_.clear();
    buffers_.clear();
    settle();
  }
  void add(bool listed) { regions_.push_back(must(owner_.add_region({.bytes = memory_, .listed = listed}))); }
  void close(std::size_t i) { must(regions_[i].close(1s)); }
  void grant(const Region& region) {
    grants_.push_back(must(region.grant(0, memory_.size(), hawser::Rights::kWrite, hawser::Duration::max())));
  }
  void revoke(std::size_t i) { must(grants_[i].revoke(1s)); }
  void lend(std::size_t i) { buffers_.push_back(must(rdma_->request_buffer(i, lent_))); }
  void drop(std::size_t i) { must(must(rdma_->release(buffers_[i], 1s)).wait()); }
  /// Grants for one transfer, each made, used by the first peer and closed: the owner's part and that of the peer.
  void use_once(Row& row, const Region& parent, bool is_bound) {
    hawser::GrantOptions options{.peer = {}, .single_use = true};
    if (is_bound) options.peer = holder_;
    double call = 0, owner = 0, peer = 0;
    const auto timed = [](double& sum, auto&& work) {
      const double begun = now_ns();
      work();
      sum += now_ns() - begun;
    };
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      hawser::Grant grant;
      hawser::Transfer sent;
      timed(call,
            [&] { grant = must(parent.grant(0, kUsed, hawser::Rights::kWrite, hawser::Duration::max(), options)); });
      timed(peer, [&] { sent = use(grant); });
      while (!sent.done() || !grant.ended()) {
        timed(owner, [&] { owner_.poll(); });
        timed(peer, [&] { peers_.front().poll(); });
      }
    }
    row.call.push_back(call / kAtOnce);
    row.owner.push_back(owner / kAtOnce);
    row.peers.push_back(peer / kAtOnce);
    settle();
  }
  Region parent() { return must(owner_.add_region({.bytes = memory_, .listed = false})); }

 private:
  static constexpr std::size_t kAtOnce = 512, kUsed = 4096;

  hawser::Transfer use(const hawser::Grant& grant) {
    Agent& user = peers_.front();
    const hawser::GrantedRegion target = must(user.import_grant(grant.bytes()));
    const hawser::LocalRange ours = source_.range(0, kUsed);
    const hawser::RemoteRange theirs = target.whole();
    return must(must(user.plan_write(target.peer(), std::span(&ours, 1), std::span(&theirs, 1))).submit());
  }

  template <typename Work>
  void time(Row& row, Work&& work) {
    const double begun = now_ns();
    for (std::size_t i = 0; i < kAtOnce; ++i) work(i);
    const double done = now_ns();
    while (owner_.poll() > 0) {
    }
    const double told = now_ns();
    settle();
    row.call.push_back((done - begun) / kAtOnce);
    row.owner.push_back((told - done) / kAtOnce);
    row.peers.push_back((now_ns() - told) / kAtOnce);
  }

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
  Region source_;        // The first peer writes from it.
  hawser::Peer holder_;  // The first peer, as the owner knows it.
  std::vector<Region> regions_;
  std::vector<hawser::Grant> grants_;
  std::optional<hawser::rdma::Backend> rdma_;
  hawser::rdma::LocalMemory lent_;
  std::vector<hawser::rdma::RemoteBuffer> buffers_;
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
  Row listed{"listed region"}, unlisted{"unlisted region"}, grant{"grant"}, buffer{"remote buffer"};
  Row listed_end{"its close"}, unlisted_end{"its close"}, grant_end{"revoked"}, buffer_end{"dropped"};
  Row once{"used once"}, bound{"used once, bound"};
  const bool is_alone = argc > 4 && std::string_view(argv[4]) == "unlisted";
  const auto close = [&](std::size_t at) { bench.close(at); };
  for (int i = 0; i < rounds; ++i) {
    if (!is_alone) {
      bench.round(
          listed, listed_end, [&](std::size_t) { bench.add(true); }, close);
    }
    bench.round(
        unlisted, unlisted_end, [&](std::size_t) { bench.add(false); }, close);
    if (is_alone) continue;
    bench.round(
        grant, grant_end, [&](std::size_t) { bench.grant(parent); }, [&](std::size_t at) { bench.revoke(at); });
    bench.round(
        buffer, buffer_end, [&](std::size_t at) { bench.lend(at); }, [&](std::size_t at) { bench.drop(at); });
    bench.use_once(once, parent, false);
    bench.use_once(bound, parent, true);
  }
  std::printf("%s, %zu peers, median of %d rounds of 512; us for one\n", backend.c_str(), peers, rounds);
  std::printf("%-16s %10s %10s %10s\n", "", "call", "owner", "all peers");
  for (const Row* row :
       {&listed, &listed_end, &unlisted, &unlisted_end, &grant, &grant_end, &buffer, &buffer_end, &once, &bound}) {
    if (row->call.empty()) continue;
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
