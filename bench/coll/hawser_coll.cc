// Collectives of worlds, measured as bench/coll_bench.py asks for: `hawser run -n 2 hawser_coll WHO SCALE OPS
// SIZES`. The operation `open` tells how long World::open took. With COLL_MAPPED in the environment the buffers lie
// in memory that the ranks map. COLL_ALGORITHMS names algorithms, with commas between them: each repetition takes
// them in turn, and each gets a row. With COLL_SPAN a time is that from when the first rank began until the last had
// ended.

#include <hawser/config.h>
#include <hawser/world.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "plan.h"

namespace {

using hawser::DataType;
using hawser::ReduceOp;
using hawser::Status;
using hawser::World;

void check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  std::exit(1);
}

std::vector<std::string> list_of(const char* text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, ',');) all.push_back(one);
  return all;
}

/// Floats of this process's heap, or of memory that the ranks of this host map.
class Floats {
 public:
  Floats(World& world, std::size_t count, bool is_mapped) : count_(count) {
    if (!is_mapped || count == 0) {
      heap_.resize(count);
      data_ = heap_.data();
      return;
    }
    auto made = world.allocate({.size = count * sizeof(float)});
    if (!made) check(made.error());
    region_ = std::move(*made);
    data_ = reinterpret_cast<float*>(region_.bytes().data());
  }
  float* data() { return data_; }
  std::size_t size() const { return count_; }

 private:
  std::size_t count_;
  float* data_ = nullptr;
  std::vector<float> heap_;
  hawser::Region region_;
};

struct Bench {
  World& world;
  const char* who;
  double scale;
  bool is_mapped = false;
  bool is_span = false;  ///< From when the first rank begins until the last has ended: not the slowest rank's own time.
  std::vector<std::string> algorithms = {""};  ///< Empty: the world chooses.
  long all_wrong = 0;                          ///< Elements, on all ranks.

  int rank() const { return static_cast<int>(world.rank()); }
  int size() const { return static_cast<int>(world.size()); }

  void run(int operation, std::size_t bytes) {
    const std::size_t count = bytes / sizeof(float);
    const auto ranks = static_cast<std::size_t>(size());
    Floats in(world, count, is_mapped), out(world, count * ranks, is_mapped);
    const std::size_t out_count = out_count_of(operation, count, rank(), size());
    const int repetitions = repetitions_of(bytes, scale), warm = 1 + repetitions / 10;
    std::vector<std::vector<double>> seconds(algorithms.size()), begins(algorithms.size());
    std::int64_t wrong = 0;
    for (int i = -warm; i < repetitions; ++i) {
      for (std::size_t way = 0; way < algorithms.size(); ++way) {
        fill_floats(in.data(), count, rank(), i + warm);
        check(world.barrier());
        const double begin = seconds_now();
        once(operation, in, out, algorithms[way]);
        const double end = seconds_now();
        if (i >= 0) seconds[way].push_back(is_span ? end : end - begin), begins[way].push_back(begin);
        const bool in_place = operation == kBroadcast || operation == kPingPong;
        if (i % 16 != 0) continue;
        const float* const got = in_place ? in.data() : out.data();
        wrong += operation == kBarrier ? 0 : count_wrong(operation, got, out_count, rank(), size(), i + warm);
      }
    }
    check(world.all_reduce(&wrong, &wrong, 1, DataType::kInt64, ReduceOp::kSum));
    all_wrong += static_cast<long>(wrong);
    for (std::size_t way = 0; way < algorithms.size(); ++way) {
      std::vector<double>& its = seconds[way];
      check(world.all_reduce(its.data(), its.data(), its.size(), DataType::kFloat64, ReduceOp::kMax));
      std::vector<double>& first = begins[way];
      check(world.all_reduce(first.data(), first.data(), first.size(), DataType::kFloat64, ReduceOp::kMin));
      for (std::size_t i = 0; is_span && i < its.size(); ++i) its[i] -= first[i];
      const char* const name = algorithms[way].empty() ? who : algorithms[way].c_str();
      if (rank() == 0) tell_row(name, operation, bytes, its.data(), repetitions, static_cast<long>(wrong));
    }
  }

  /// How long this rank's World::open took, in one row.
  void tell_open(double seconds) const {
    std::printf(
        "{\"who\": \"%s\", \"op\": \"open\", \"bytes\": 0, \"n\": 1, \"p50\": %.1f, \"p99\": %.1f, \"wrong\": 0}\n",
        who, 1e6 * seconds, 1e6 * seconds);
  }

  void once(int operation, Floats& in, Floats& out, std::string_view algorithm) {
    const auto ranks = static_cast<std::size_t>(size());
    const std::size_t count = in.size();
    const std::vector<std::uint64_t> whole(ranks, count), share(ranks, count / ranks);
    switch (operation) {
      case kBarrier:
        return check(world.barrier({.algorithm = algorithm}));
      case kAllReduce:
        return check(world.all_reduce(in.data(), out.data(), count, DataType::kFloat32, ReduceOp::kSum,
                                      {.algorithm = algorithm}));
      case kBroadcast:
        return check(world.broadcast(in.data(), count, DataType::kFloat32, 0, {.algorithm = algorithm}));
      case kAllGather:
        return check(world.all_gather(in.data(), out.data(), whole, DataType::kFloat32, {.algorithm = algorithm}));
      case kReduceScatter:
        return check(world.reduce_scatter(in.data(), out.data(), share, DataType::kFloat32, ReduceOp::kSum,
                                          {.algorithm = algorithm}));
      case kGather:
        return check(world.gather(in.data(), out.data(), whole, DataType::kFloat32, 0, {.algorithm = algorithm}));
      case kScatter:
        return check(world.scatter(in.data(), out.data(), share, DataType::kFloat32, 0, {.algorithm = algorithm}));
      case kScan:
      case kExclusiveScan:
        return check(world.scan(in.data(), out.data(), count, DataType::kFloat32, ReduceOp::kSum,
                                operation == kExclusiveScan, {.algorithm = algorithm}));
      case kAllToAll:
        return check(
            world.all_to_all(in.data(), out.data(), count / ranks, DataType::kFloat32, {.algorithm = algorithm}));
      default: {
        const auto bytes = std::as_writable_bytes(std::span(in.data(), in.size()));
        if (rank() == 0) {
          check(world.send(bytes, 1, 1));
          const auto got = world.receive(bytes, 1, 2);
          if (!got) check(got.error());
        } else if (rank() == 1) {
          const auto got = world.receive(bytes, 0, 1);
          if (!got) check(got.error());
          check(world.send(bytes, 0, 2));
        }
      }
    }
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const hawser::ConfigSources sources = hawser::ConfigSources::from_process();
  const auto launched = hawser::launched_rank(sources);
  if (!launched) check(launched.error());
  const auto config = hawser::load_config(sources);
  if (!config) check(config.error());
  hawser::WorldOptions options;
  options.agent = config->options;
  options.name = "world." + launched->run;
  options.size = launched->size;
  options.rank = launched->rank;
  options.seed = hawser::launched_seed(sources);
  options.token_file = hawser::launched_token_file(sources);
  options.driven = std::getenv("COLL_DRIVEN") != nullptr;
  double opened = seconds_now();
  auto world = World::open(options);
  if (!world) check(world.error());
  opened = seconds_now() - opened;
  Bench bench{*world, argv[1], std::atof(argv[2]), std::getenv("COLL_MAPPED") != nullptr};
  bench.is_span = std::getenv("COLL_SPAN") != nullptr;
  if (const char* const algorithms = std::getenv("COLL_ALGORITHMS")) bench.algorithms = list_of(algorithms);
  for (const std::string& name : list_of(argv[3])) {
    if (name == "open" && bench.rank() == 0) bench.tell_open(opened);
    for (int operation = 0; operation < kOperations; ++operation) {
      if (name != kNames[operation]) continue;
      for (const std::string& size : list_of(operation == kBarrier ? "0" : argv[4])) {
        bench.run(operation, std::stoul(size));
      }
    }
  }
  check(world->shutdown(std::chrono::seconds(10)));
  return bench.all_wrong == 0 ? 0 : 1;
}
