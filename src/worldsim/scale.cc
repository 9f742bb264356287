#include "worldsim/scale.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "runtime/agreement.h"
#include "worldsim/virtual_links.h"

namespace hawser::worldsim {
namespace {

using schedule::Action;
using schedule::CostModel;
using schedule::Step;
using What = schedule::Operation;

constexpr std::uint64_t kElementBytes = 4;

VirtualLinks::Costs links_of(const CostModel& model) {
  return {.message_ns = model.message_ns, .byte_ns = model.byte_ns};
}

/// ⌈log₂ ranks⌉
double rounds_of(std::uint32_t ranks) { return std::bit_width(ranks - 1); }

/// All ranks' schedules of one collective.
class SchedulePlay {
 public:
  SchedulePlay(std::vector<schedule::Schedule> ranks, const CostModel& model)
      : links_(static_cast<std::uint32_t>(ranks.size()), links_of(model)), model_(model) {
    for (schedule::Schedule& schedule : ranks) ranks_.push_back({.schedule = std::move(schedule)});
  }
  /// The time when the last rank has ended.
  double run() {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      links_.at(0, [this, rank] { begin_round(rank); });
    }
    links_.run();
    for (const Rank& rank : ranks_) {
      HAWSER_ASSERT(rank.round == rank.schedule.rounds(), "a rank waits for a message that nobody sends");
    }
    return ended_;
  }
  std::uint64_t messages() const { return links_.messages(); }

 private:
  struct Rank {
    schedule::Schedule schedule;
    std::size_t round = 0;
    std::size_t awaited = 0;  ///< Receives of this round that have not ended.
    double sent = 0;          ///< When the round's sends have left.
    std::unordered_map<std::uint32_t, std::size_t> arrived = {}, wanted = {};  ///< By source: messages.
  };

  void begin_round(std::uint32_t number) {
    Rank& rank = ranks_[number];
    if (rank.round == rank.schedule.rounds()) {
      ended_ = links_.now();
      return;
    }
    rank.sent = links_.now();
    rank.wanted.clear();
    for (const Step& step : rank.schedule.round(rank.round)) {
      if (step.action == Action::kSend) {
        const std::uint32_t to = step.peer;
        rank.sent =
            links_.send(number, to, step.from.count * kElementBytes, [this, number, to] { arrive(number, to); });
      } else if (step.action == Action::kReceive) {
        ++rank.wanted[step.peer];
      }
    }
    rank.awaited = 0;
    for (auto& [from, count] : rank.wanted) {
      const std::size_t there = std::min(rank.arrived[from], count);
      rank.arrived[from] -= there;
      count -= there;
      rank.awaited += count;
    }
    end_if_complete(number);
  }

  void arrive(std::uint32_t from, std::uint32_t to) {
    Rank& rank = ranks_[to];
    const auto wanted = rank.wanted.find(from);
    if (wanted == rank.wanted.end() || wanted->second == 0) {
      ++rank.arrived[from];
      return;
    }
    --wanted->second;
    --rank.awaited;
    end_if_complete(to);
  }

  void end_if_complete(std::uint32_t number) {
    Rank& rank = ranks_[number];
    if (rank.awaited > 0) return;
    std::uint64_t combined = 0;
    for (const Step& step : rank.schedule.round(rank.round)) {
      const bool combines = step.action == Action::kCombine || step.action == Action::kCombineBefore;
      combined += combines ? step.to.count * kElementBytes : 0;
    }
    ++rank.round;
    const double ready = std::max(links_.now(), rank.sent);
    links_.at(ready + static_cast<double>(combined) * model_.combined_byte_ns, [this, number] { begin_round(number); });
  }

  VirtualLinks links_;
  const CostModel model_;
  std::vector<Rank> ranks_;
  double ended_ = 0;
};

/// Of the bytes that each rank has, alone.
double bandwidth_bound(What operation, std::uint32_t ranks, std::uint64_t bytes, const CostModel& model) {
  const auto size = static_cast<double>(bytes);
  const double part = (ranks - 1.0) / ranks;
  if (operation == What::kBarrier) return 0;
  if (operation == What::kAllReduce) return part * size * (2 * model.byte_ns + model.combined_byte_ns);
  return size * model.byte_ns;
}

std::uint64_t bytes_of(const runtime::AgreementMessage& message) {
  constexpr std::uint64_t kHead = 32;
  return kHead + (message.value.failed.size() + message.value.dead.size()) / 8;
}

}  // namespace

ScaleRow run_at_scale(What operation, std::uint32_t ranks, std::uint64_t bytes, const CostModel& model) {
  schedule::Call call = {
      .operation = operation, .size = ranks, .count = bytes / kElementBytes, .element_bytes = kElementBytes};
  call.has_input_in_output = true;
  const schedule::Algorithm algorithm = schedule::choices(call, model).front().algorithm;
  std::vector<schedule::Schedule> all;
  for (call.rank = 0; call.rank < ranks; ++call.rank) all.push_back(schedule::make_schedule(call, algorithm));
  SchedulePlay play(std::move(all), model);
  ScaleRow row = {.operation = std::string(to_string(operation)),
                  .algorithm = std::string(to_string(algorithm)),
                  .bytes = bytes,
                  .time_ns = play.run()};
  row.bound_ns = std::max(rounds_of(ranks) * model.message_ns, bandwidth_bound(operation, ranks, bytes, model));
  row.messages = play.messages();
  return row;
}

ScaleRow shrink_at_scale(std::uint32_t ranks, const CostModel& model) {
  VirtualLinks links(ranks, links_of(model));
  std::vector<std::unique_ptr<runtime::Agreement>> all;
  std::vector<bool> is_decided(ranks);
  double ended = 0;
  const auto look = [&](std::uint32_t rank) {
    if (is_decided[rank] || all[rank]->decision(1) == nullptr) return;
    is_decided[rank] = true;
    ended = links.now();
  };
  for (std::uint32_t rank = 0; rank + 1 < ranks; ++rank) {
    all.push_back(std::make_unique<runtime::Agreement>(
        rank, ranks, [&, rank](std::uint32_t to, const runtime::AgreementMessage& message) {
          links.send(rank, to, bytes_of(message), [&, rank, to, message] {
            all[to]->hear(rank, message);
            look(to);
          });
        }));
  }
  for (std::uint32_t rank = 0; rank + 1 < ranks; ++rank) {
    links.at(0, [&, rank] {
      all[rank]->note_failed(ranks - 1);
      all[rank]->vote({.calls = runtime::kCallsShrink});
      look(rank);
    });
  }
  links.run();
  HAWSER_ASSERT(std::ranges::count(is_decided, true) == ranks - 1, "a rank has not decided");
  return {.operation = "shrink",
          .algorithm = "star",
          .time_ns = ended,
          .bound_ns = 2 * rounds_of(ranks) * model.message_ns,
          .messages = links.messages()};
}

std::vector<ScaleRow> run_scale(std::uint32_t ranks) {
  const CostModel model;
  constexpr std::uint64_t kKiB = 1024;
  std::vector<ScaleRow> rows = {run_at_scale(What::kBarrier, ranks, 0, model)};
  for (const std::uint64_t bytes : {std::uint64_t{8}, 64 * kKiB, 4 * kKiB * kKiB, kKiB * kKiB * kKiB}) {
    rows.push_back(run_at_scale(What::kAllReduce, ranks, bytes, model));
  }
  for (const std::uint64_t bytes : {std::uint64_t{8}, kKiB * kKiB * kKiB}) {
    rows.push_back(run_at_scale(What::kBroadcast, ranks, bytes, model));
  }
  rows.push_back(shrink_at_scale(ranks, model));
  return rows;
}

}  // namespace hawser::worldsim
