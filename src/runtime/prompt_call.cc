#include "runtime/prompt_call.h"

#include <sched.h>

#include "base/spin.h"
#include "reduce/reduce.h"

namespace hawser::runtime {
namespace {

/// Other threads wait for the lane meanwhile. A rank on this core, which cannot run while this one looks, is asked for
/// after a few.
constexpr int kLooks = 96, kFewLooks = 2;

BoardPhase::Buffers buffers_of(const CollectiveCall& call) {
  BoardPhase::Buffers buffers = {.input = static_cast<const std::byte*>(call.input),
                                 .output = static_cast<std::byte*>(call.output),
                                 .combine = combine_of(call)};
  return buffers;
}

}  // namespace

bool PromptCall::can_be(const CollectiveCall& call, schedule::Algorithm algorithm) {
  const bool is_exchange = call.call.operation == schedule::Operation::kAllToAll;
  const bool is_one_turn =
      algorithm == schedule::Algorithm::kBoards || (algorithm == schedule::Algorithm::kStaged && is_exchange);
  return is_one_turn && call.call.hosts.empty() && has_buffers_for_boards(call.call, call.input, call.output);
}

PromptCall::PromptCall(Board& board, const CollectiveCall& call, std::uint64_t turn, std::uint64_t number,
                       std::uint64_t digest)
    : call_(call), phase_(begin(board, turn, number, digest)) {}

BoardPhase& PromptCall::begin(Board& board, std::uint64_t turn, std::uint64_t number, std::uint64_t digest) {
  if (call_.call.operation == schedule::Operation::kAllToAll) {
    return exchange_call_.emplace(board, call_.call, buffers_of(call_), turn, number, digest);
  }
  return board_call_.emplace(board, call_.call, buffers_of(call_), turn, number, digest);
}

bool PromptCall::has_all(bool is_crowded) {
  for (int i = 0; i < kLooks; ++i) {
    const BoardPhase::Step step = phase_.go_on();
    if (step != BoardPhase::Step::kWaits) return step == BoardPhase::Step::kOver;
    if (i == kFewLooks && (is_crowded || phase_.awaits_one_on(::sched_getcpu()))) return false;
    base::cpu_relax();
  }
  return false;
}

bool PromptCall::carry_through(bool is_crowded) {
  if (!has_all(is_crowded) || (exchange_call_ && !exchange_call_->has_all())) return false;
  if (call_.op == ReduceOp::kAvg) {
    reduce::finish(call_.type, *call_.op, call_.output, schedule::output_count(call_.call), call_.call.size);
  }
  return true;
}

}  // namespace hawser::runtime
