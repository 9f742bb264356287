#include "cli/demo_prefill.h"

#include <fmt/format.h>

#include <numeric>

#include "base/rng.h"
#include "base/try.h"
#include "cli/demo_pass.h"

namespace hawser::cli {
namespace {
constexpr std::size_t kQueueCapacity = 4096;
}

Result<Prefill> Prefill::open(const DemoSetup& setup) {
  HAWSER_TRY_ASSIGN(AgentOptions options, agent_options(setup, "prefill-0"));
  HAWSER_TRY_ASSIGN(Agent agent, Agent::open(std::move(options)));
  // Peers need no right to it: only this side moves bytes.
  HAWSER_TRY_ASSIGN(KvCache cache, KvCache::allocate(agent, setup.shape, Rights::kNone));
  HAWSER_TRY_ASSIGN(CompletionQueue queue, agent.make_queue(kQueueCapacity));
  return Prefill(setup, std::move(agent), std::move(cache), std::move(queue));
}

Status Prefill::meet(std::string_view card) {
  HAWSER_TRY_ASSIGN(peer_, agent_.add_peer(card));
  for (std::uint32_t layer = 0; layer < setup_.shape.layers; ++layer) {
    source_.push_back(cache_.table(layer));
    target_.push_back(peer_.table(layer_name(layer), setup_.shape.block_bytes));
    HAWSER_TRY(source_.back().status());
    HAWSER_TRY(target_.back().status());
  }
  return peer_.connect(setup_.timeout);
}

void Prefill::begin_wave(const std::vector<Request>& requests, std::vector<std::vector<std::uint32_t>> targets,
                         bool sum) {
  std::vector<std::uint32_t> free(setup_.shape.blocks);
  std::iota(free.begin(), free.end(), 0u);
  base::Rng(setup_.seed + 2 * ++wave_ + 1).shuffle(free);
  jobs_.assign(requests.size(), {});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Job& job = jobs_[i];
    job.request = requests[i];
    job.source.assign(free.end() - job.request.blocks, free.end());
    free.resize(free.size() - job.request.blocks);
    job.target = std::move(targets[i]);
    job.source_index = setup_.shape.indices(job.source);
    job.target_index = setup_.shape.indices(job.target);
    cache_.fill(job.source, setup_.seed ^ (std::uint64_t{job.request.id} + 1) << 32);
    if (sum) job.layer_sums = cache_.layer_sums(job.source);
    agent_.poll();
  }
}

Result<PassTimes> Prefill::run_pass(std::uint32_t pass, std::uint32_t concurrency,
                                    const std::function<Status(std::uint32_t)>& alive) {
  Pass run(*this, pass, concurrency);
  Result<PassTimes> times = run.run(alive);
  return times;
}

std::vector<std::uint32_t> Prefill::differing(std::uint32_t request, std::uint32_t layer,
                                              const std::vector<std::uint64_t>& sums) const {
  std::vector<std::uint32_t> blocks;
  for (const Job& job : jobs_) {
    if (job.request.id != request) continue;
    const auto mine = cache_.block_sums(layer, job.source);
    for (std::uint32_t i = 0; i < mine.size(); ++i) {
      const std::uint32_t block = i % static_cast<std::uint32_t>(job.source.size());
      if (i >= sums.size() || mine[i] != sums[i]) blocks.push_back(block);
    }
  }
  return blocks;
}

Status Prefill::close(Duration timeout) {
  Status first = cache_.close(timeout);
  Status second = agent_.close(timeout);
  return first.ok() ? second : first;
}

}  // namespace hawser::cli
