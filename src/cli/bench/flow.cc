#include "cli/bench/flow.h"

#include "cli/bench/pace.h"
#include "cli/interrupt.h"

namespace hawser::cli::bench {
namespace {

constexpr Duration kPatience = std::chrono::seconds(20);  // without one end
constexpr Duration kLook = std::chrono::milliseconds(100);

}  // namespace

Result<std::size_t> Flow::step(std::vector<std::uint64_t>* singles) {
  while (in_flight_.size() < window_) {
    const std::int64_t begun = now_ns();
    HAWSER_TRY_ASSIGN(Transfer transfer, load_.next_plan().submit(options_));
    in_flight_.push_back({std::move(transfer), begun});
  }
  if (turns_ == Turns::kSleeping) {
    (void)in_flight_.front().transfer.wait(kLook);
  } else {
    agent_.poll();
  }
  std::size_t ended = 0;
  for (; !in_flight_.empty() && in_flight_.front().transfer.done(); ++ended) {
    HAWSER_TRY(in_flight_.front().transfer.status());
    if (singles != nullptr) singles->push_back(static_cast<std::uint64_t>(now_ns() - in_flight_.front().begun));
    in_flight_.pop_front();
  }
  return ended;
}

Status Flow::drain() {
  for (; !in_flight_.empty(); in_flight_.pop_front()) HAWSER_TRY(finish(agent_, in_flight_.front().transfer));
  return Status();
}

Result<double> measure_flow(Agent& agent, Load& load, std::size_t window, Duration budget,
                            std::vector<std::uint64_t>& singles, std::uint64_t* bytes, Turns turns) {
  Flow flow(agent, load, window, {}, turns);
  Pace pace(load.shape().bytes(), budget);
  std::int64_t last = now_ns();
  for (std::uint32_t steps = 1; pace.goes_on(); ++steps) {
    HAWSER_TRY_ASSIGN(const std::size_t ended, flow.step(&singles));
    for (std::size_t i = 0; i < ended; ++i) pace.count();
    *bytes += ended * load.shape().bytes();
    if (ended > 0) last = now_ns();
    if (steps % 1024 != 0 && turns == Turns::kSpinning) continue;
    HAWSER_TRY(interrupt_status());
    if (now_ns() - last > kPatience.count()) return Status(Code::kTimedOut, "a stream of transfers stands still");
  }
  HAWSER_TRY(flow.drain());
  return pace.gb_per_s();
}

}  // namespace hawser::cli::bench
