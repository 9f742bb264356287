#include "cli/bench/pong.h"

#include <atomic>

#include "cli/bench/sampler.h"

namespace hawser::cli::bench {
namespace {

std::atomic_ref<std::uint64_t> word(const Region& region, std::size_t number) {
  return std::atomic_ref<std::uint64_t>(reinterpret_cast<std::uint64_t*>(region.bytes().data())[number * 8]);
}

}  // namespace

Result<Pong> make_pong(Stage& stage) {
  Pong pong;
  HAWSER_TRY_ASSIGN(pong.memory, stage.agent().allocate({.name = "pong", .size = 4096}));
  HAWSER_TRY(stage.remote_memory("pong", 4096, MemoryKind::kAllocated).status());
  HAWSER_TRY_ASSIGN(const std::string card, stage.agent().card());
  Json command = control_message("pong");
  command["card"] = to_hex(card);
  HAWSER_TRY(stage.ask(command).status());
  const LocalRange from = pong.memory.range(0, 8);
  const RemoteRange to = stage.peer().range("pong", 0, 8);
  HAWSER_TRY_ASSIGN(pong.plan, stage.agent().plan_write(stage.peer(), {&from, 1}, {&to, 1}));
  return pong;
}

Result<double> pong_round_trips(Stage& stage, const Pong& pong, Duration budget, std::vector<std::uint64_t>& singles) {
  const auto out = word(pong.memory, 0), back = word(pong.memory, 1);
  return stage.measure({{"mode", "pong_words"}}, [&]() -> Result<double> {
    return sample_ns(budget, 1, &singles, [&]() -> Status {
      const std::uint64_t value = out.load(std::memory_order_relaxed) + 1;
      out.store(value, std::memory_order_relaxed);
      HAWSER_TRY_ASSIGN(const Transfer sent, pong.plan.submit());
      for (std::uint32_t polls = 1; back.load(std::memory_order_acquire) != value; ++polls) {
        stage.agent().poll();
        if (polls % 10'000'000 == 0) return Status(Code::kTimedOut, "the second process does not write back");
      }
      // Where the bytes were seen before their acknowledgement. Until then the word must stay as it is.
      return sent.done() ? sent.status() : finish(stage.agent(), sent);
    });
  });
}

}  // namespace hawser::cli::bench
