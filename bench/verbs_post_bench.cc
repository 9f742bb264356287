// What Hawser spends on posting: from Plan::submit until the adapter's post call has returned, per descriptor. Two
// agents over a fabric in memory whose post only reads what it is given, beside a plain loop that fills work requests
// and makes the same call, in turns, in one run.
//
//   verbs_post_bench [rounds]
//
// Descriptors are blocks of 4 KiB in any order, none beside another, so that each is a work request of its own.
// Prints nanoseconds per descriptor: median and 99th percentile over the rounds, and the ratio of the medians.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "agent/open.h"
#include "backend/verbs/mock/mock_backend.h"
#include "backend/verbs/mock/mock_verbs.h"
#include "base/rng.h"

namespace {

using namespace hawser;                  // NOLINT: a program
using namespace hawser::backend::verbs;  // NOLINT

constexpr std::uint64_t kBlock = 4096, kStride = 2 * kBlock, kBlocks = 16384;
constexpr std::size_t kSignalEvery = 64;  ///< In the plain loop, as the backend's chunks have so many pieces.

template <typename T>
T must(Result<T> result) {
  if (!result) abort_on(result.error());
  return *std::move(result);
}

/// Once `cheap` is set nothing moves any more: requests are read, and those with a signal have ended well.
class CheapVerbs final : public MockVerbs {
 public:
  using MockVerbs::MockVerbs;

  int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) override {
    if (!cheap) return MockVerbs::post_send(qp, first, bad);
    for (const ibv_send_wr* request = first; request != nullptr; request = request->next) {
      ++requests;
      read += request->wr.rdma.remote_addr + request->wr.rdma.rkey + static_cast<unsigned>(request->opcode);
      for (int i = 0; i < request->num_sge; ++i) {
        read += request->sg_list[i].addr + request->sg_list[i].length + request->sg_list[i].lkey;
      }
      if ((request->send_flags & IBV_SEND_SIGNALED) != 0) ended_.emplace_back(request->wr_id, qp->qp_num);
    }
    *bad = nullptr;
    return 0;
  }
  int poll_cq(ibv_cq* cq, int count, ibv_wc* out) override {
    if (!cheap) return MockVerbs::poll_cq(cq, count, out);
    const std::size_t filled = std::min(static_cast<std::size_t>(count), ended_.size());
    for (std::size_t i = 0; i < filled; ++i) {
      out[i] = ibv_wc();
      out[i].wr_id = ended_[i].first;
      out[i].qp_num = ended_[i].second;
    }
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(filled));
    return static_cast<int>(filled);
  }
  void forget() { ended_.clear(); }

  bool cheap = false;
  std::uint64_t requests = 0;
  std::uint64_t read = 0;  ///< So that nothing is left out.

 private:
  std::vector<std::pair<std::uint64_t, std::uint32_t>> ended_;
};

/// Two agents, each with a device, and a path between them.
class World {
 public:
  World() {
    const std::size_t size = kBlocks * kStride;
    source_ = must(a_.allocate({.name = "source", .size = size}));
    target_ = must(b_.allocate({.name = "target", .size = size}));
    peer_ = must(a_.add_peer(must(b_.card())));
    plan_ = must(make_plan(1));
    Transfer first = must(plan_.submit());
    while (!first.done()) poll();
    if (const Status status = first.status(); !status.ok()) abort_on(status);
    for (const std::uint32_t number : fabric_.qp_numbers()) {
      if (fabric_.device_of(number) == "mock0") qp_ = fabric_.qp_of_number(number);
    }
    for (int i = 0; i < 1000; ++i) poll();  // What is still to be said is said by and by.
    verbs_->cheap = true;
  }
  void poll() {
    a_.poll();
    b_.poll();
  }
  /// Turns of the sender alone until it has ended.
  void finish(Transfer& transfer) {
    while (!transfer.done()) a_.poll();
    if (const Status status = transfer.status(); !status.ok()) abort_on(status);
  }
  Result<Plan> make_plan(std::size_t count) {
    const StridedRange all{.offset = 0, .size = kBlock, .stride = kStride, .count = kBlocks};
    if (from_.empty()) {
      from_.resize(kBlocks);
      std::iota(from_.begin(), from_.end(), 0U);
      to_ = from_;
      base::Rng rng(1);
      for (auto* list : {&from_, &to_}) {
        for (std::size_t i = list->size() - 1; i > 0; --i) std::swap((*list)[i], (*list)[rng.below(i + 1)]);
      }
      here_ = source_.table(all);
      there_ = peer_.table("target", all);
    }
    return a_.plan_write(peer_, here_, std::span(from_).first(count), there_, std::span(to_).first(count));
  }
  /// The ceiling: `count` requests filled and posted, `batch` by one call.
  void loop(std::size_t count, std::size_t batch) {
    const auto here = reinterpret_cast<std::uintptr_t>(source_.bytes().data());
    const auto there = reinterpret_cast<std::uintptr_t>(target_.bytes().data());
    for (std::size_t first = 0; first < count; first += batch) {
      const std::size_t some = std::min(batch, count - first);
      for (std::size_t i = 0; i < some; ++i) {
        pieces_[i] = {.addr = here + from_[first + i] * kStride, .length = kBlock, .lkey = 7};
        ibv_send_wr& request = requests_[i];
        request = ibv_send_wr();
        request.wr_id = first + i;
        request.next = i + 1 < some ? &requests_[i + 1] : nullptr;
        request.sg_list = &pieces_[i];
        request.num_sge = 1;
        request.opcode = IBV_WR_RDMA_WRITE;
        request.send_flags = (i + 1) % kSignalEvery == 0 || i + 1 == some ? IBV_SEND_SIGNALED : 0;
        request.wr.rdma.remote_addr = there + to_[first + i] * kStride;
        request.wr.rdma.rkey = 9;
      }
      ibv_send_wr* bad = nullptr;
      Verbs& verbs = *verbs_;
      if (verbs.post_send(qp_, requests_.data(), &bad) != 0) std::abort();
    }
  }
  CheapVerbs& verbs() { return *verbs_; }

 private:
  static AgentOptions options(const char* name, const char* device) {
    return {.name = name, .backends = {hawser::verbs({{"devices", device}})}};
  }

  MockFabric fabric_{{"mock0", "mock1"}};
  std::shared_ptr<CheapVerbs> verbs_ = std::make_shared<CheapVerbs>(fabric_);
  Agent a_ = must(agent::open_with(options("a", "mock0"), {mock_backend(fabric_, verbs_)}));
  Agent b_ =
      must(agent::open_with(options("b", "mock1"), {mock_backend(fabric_, std::make_shared<MockVerbs>(fabric_))}));
  Region source_, target_;
  Peer peer_;
  Plan plan_;
  ibv_qp* qp_ = nullptr;
  RangeTable here_, there_;
  std::vector<std::uint32_t> from_, to_;
  std::array<ibv_sge, 512> pieces_{};
  std::array<ibv_send_wr, 512> requests_{};
};

double ns_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

struct Quantiles {
  explicit Quantiles(std::vector<double> times, std::size_t count) {
    std::sort(times.begin(), times.end());
    p50 = times[times.size() / 2] / static_cast<double>(count);
    p99 = times[times.size() * 99 / 100] / static_cast<double>(count);
  }
  double p50, p99;
};

void print(const char* what, std::size_t count, const Quantiles& ours, const Quantiles& loop) {
  std::printf("%-34s %6zu  %8.1f %8.1f  %8.1f %8.1f  %6.2f\n", what, count, ours.p50, ours.p99, loop.p50, loop.p99,
              ours.p50 / loop.p50);
}

/// `ours` and the loop in turns; `after` each of ours is not counted.
void compare(World& world, const char* what, std::size_t count, std::size_t rounds, const std::function<void()>& ours,
             const std::function<void()>& after) {
  std::vector<double> times, loops;
  const std::uint64_t before = world.verbs().requests;
  for (std::size_t i = 0; i < rounds + 10; ++i) {
    const double took = ns_of(ours);
    after();
    const double loop = ns_of([&] { world.loop(count, 512); });
    world.verbs().forget();
    if (i < 10) continue;  // Warm first.
    times.push_back(took);
    loops.push_back(loop);
  }
  if (world.verbs().requests - before != 2 * count * (rounds + 10)) {
    std::fprintf(stderr, "a descriptor was not a work request of its own\n");
    std::exit(1);
  }
  print(what, count, Quantiles(std::move(times), count), Quantiles(std::move(loops), count));
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t rounds = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 5000;
  const std::size_t only = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (rounds == 0 || (argc > 2 && (only == 0 || only > kBlocks))) {
    std::fprintf(stderr, "usage: verbs_post_bench [rounds [count: only kept plans of so many, for a profile]]\n");
    return 2;
  }
  World world;
  std::printf("ns per descriptor                   count  Hawser  p50      p99  loop p50      p99   ratio\n");
  const std::vector<std::size_t> counts =
      only > 0 ? std::vector<std::size_t>{only} : std::vector<std::size_t>{1, 4, 8, 16, 64, 512};
  for (const std::size_t count : counts) {
    const Plan plan = must(world.make_plan(count));
    Transfer sent;
    compare(
        world, "submit a kept plan", count, rounds, [&] { sent = must(plan.submit()); }, [&] { world.finish(sent); });
  }
  if (only > 0) return 0;
  for (const std::size_t count : {1U, 64U, 512U}) {
    Plan plan;
    Transfer sent;
    compare(
        world, "plan and submit", count, rounds,
        [&] {
          plan = must(world.make_plan(count));
          sent = must(plan.submit());
        },
        [&] { world.finish(sent); });
  }
  const Plan all = must(world.make_plan(kBlocks));
  compare(
      world, "submit a kept plan, to its end", kBlocks, std::max<std::size_t>(rounds / 50, 10),
      [&] {
        Transfer sent = must(all.submit());
        world.finish(sent);
      },
      [] {});
  const double clock = Quantiles(
                           [&] {
                             std::vector<double> times(1000);
                             for (double& time : times) time = ns_of([] {});
                             return times;
                           }(),
                           1)
                           .p50;
  std::printf("reading the clock, once in each round: %.1f ns\n", clock);
  return 0;
}
