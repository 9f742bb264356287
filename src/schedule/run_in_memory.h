#pragma once

// For tests: runs the schedules of all ranks in memory, in an order that a seed decides, over elements whose
// combination does not commute. Checks what a schedule promises.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "schedule/schedule.h"

namespace hawser::schedule {

/// A sequence of ranks' contributions, as a hash: joining two sequences is associative and does not commute.
struct Element {
  std::uint64_t hash = 0;
  std::uint64_t weight = 1;

  static Element of(std::uint64_t rank, std::uint64_t index) {
    const std::uint64_t mixed = (rank * 1'000'003 + index + 1) * 0x9E3779B97F4A7C15ULL;
    return {mixed ^ (mixed >> 29), 0x100000001B3ULL};
  }
  friend bool operator==(const Element&, const Element&) = default;
};

inline Element join(const Element& a, const Element& b) { return {a.hash * b.weight + b.hash, a.weight * b.weight}; }
/// The same for operations that commute.
inline Element add(const Element& a, const Element& b) { return {a.hash + b.hash, 1}; }

using Array = std::vector<Element>;

struct RankState {
  Schedule schedule;
  Array input, output, scratch;
  bool input_is_output = false;
  std::uint64_t input_at = 0;  ///< In the output, where the input is a part of it.
  std::size_t round = 0;
  std::size_t received = 0;  ///< Receives of this round that came.
  std::size_t acted = 0;     ///< Steps of this round that were looked at since.
  bool has_sent = false;
  std::uint32_t host = 0;  ///< Meetings are of ranks of one host.
  std::uint32_t met = 0;   ///< Meetings that it came to.

  Array& of(Buffer buffer) {
    if (buffer == Buffer::kScratch) return scratch;
    return buffer == Buffer::kOutput || input_is_output ? output : input;
  }
  /// What others read of it.
  std::pair<Array*, std::uint64_t> lent(const Slice& slice) {
    if (slice.buffer == Buffer::kInput && input.empty()) return {&output, input_at + slice.at};
    return {&of(slice.buffer), slice.at};
  }
};

class InMemory {
 public:
  InMemory(std::vector<RankState> ranks, bool commutes, std::uint64_t seed)
      : ranks_(std::move(ranks)), commutes_(commutes), rng_(seed) {
    for (RankState& rank : ranks_) rank.scratch.resize(rank.schedule.scratch());
  }

  /// False: they wait for one another for ever, or broke a promise.
  bool run() {
    std::vector<std::uint32_t> going(ranks_.size());
    for (std::uint32_t i = 0; i < going.size(); ++i) going[i] = i;
    std::size_t idle = 0;
    while (!going.empty() && is_good_) {
      const std::size_t at = rng_.u64() % going.size();
      RankState& rank = ranks_[going[at]];
      idle = step(going[at]) ? 0 : idle + 1;
      if (rank.round == rank.schedule.rounds()) {
        going[at] = going.back();
        going.pop_back();
      }
      if (idle > 100 * ranks_.size() && !any_can_go(going)) return false;
    }
    for (const auto& [pair, queue] : wire_) is_good_ = is_good_ && queue.empty();
    return is_good_;
  }
  std::vector<RankState>& ranks() { return ranks_; }

 private:
  bool any_can_go(const std::vector<std::uint32_t>& going) {
    for (const std::uint32_t rank : going) {
      if (step(rank)) return true;
    }
    return false;
  }

  std::span<Element> at(RankState& rank, const Slice& slice) {
    Array& array = rank.of(slice.buffer);
    is_good_ = is_good_ && slice.at + slice.count <= array.size();
    return is_good_ ? std::span(array).subspan(slice.at, slice.count) : std::span<Element>();
  }

  bool step(std::uint32_t number) {
    RankState& rank = ranks_[number];
    if (rank.round == rank.schedule.rounds()) return false;
    const std::span<const Step> steps = rank.schedule.round(rank.round);
    if (!std::exchange(rank.has_sent, true)) {
      check_overlaps(rank, steps);
      for (const Step& step : steps) {
        if (step.action != Action::kSend) continue;
        const auto data = at(rank, step.from);
        wire_[{number, step.peer}].emplace_back(data.begin(), data.end());
      }
      return true;
    }
    std::size_t receives = 0;
    for (const Step& step : steps) {
      if (step.action != Action::kReceive || receives++ < rank.received) continue;
      auto& queue = wire_[{step.peer, number}];
      if (queue.empty()) return false;
      is_good_ = is_good_ && queue.front().size() == step.to.count;
      if (!is_good_) return false;
      std::ranges::copy(queue.front(), at(rank, step.to).begin());
      queue.pop_front();
      ++rank.received;
      return true;
    }
    if (!steps.empty() && steps[0].action == Action::kMeet && !is_met(rank, steps)) return false;
    if (rank.acted < steps.size()) {
      act(rank, steps[rank.acted++]);
      return true;
    }
    ++rank.round;
    rank.received = 0;
    rank.acted = 0;
    rank.has_sent = false;
    return true;
  }

  /// All of the host have come to this meeting.
  bool is_met(RankState& rank, std::span<const Step> steps) {
    is_good_ = is_good_ && steps.size() == 1;
    if (rank.acted == 0) {
      rank.acted = 1;
      ++rank.met;
    }
    return std::ranges::all_of(ranks_,
                               [&](const RankState& each) { return each.host != rank.host || each.met >= rank.met; });
  }

  void act(RankState& rank, const Step& step) {
    if (step.action == Action::kSend || step.action == Action::kReceive || step.action == Action::kMeet) return;
    if (step.action == Action::kRead || step.action == Action::kCombineRead) return act_there(rank, step);
    const auto from = at(rank, step.from), to = at(rank, step.to);
    is_good_ = is_good_ && from.size() == to.size();
    for (std::size_t i = 0; is_good_ && i < from.size(); ++i) {
      if (step.action == Action::kCopy) {
        to[i] = from[i];
      } else if (commutes_) {
        to[i] = add(to[i], from[i]);
      } else {
        to[i] = step.action == Action::kCombine ? join(to[i], from[i]) : join(from[i], to[i]);
      }
    }
  }

  void act_there(RankState& rank, const Step& step) {
    const auto [array, at_there] = ranks_[step.peer].lent(step.there);
    is_good_ = is_good_ && at_there + step.there.count <= array->size() && step.there.count == step.to.count;
    const auto to = at(rank, step.to);
    if (!is_good_) return;
    const auto there = std::span(*array).subspan(at_there, step.there.count);
    if (step.action == Action::kRead) {
      std::ranges::copy(there, to.begin());
      return;
    }
    const auto from = at(rank, step.from);
    is_good_ = is_good_ && from.size() == to.size();
    for (std::size_t i = 0; is_good_ && i < from.size(); ++i) to[i] = add(from[i], there[i]);
  }

  void check_overlaps(RankState& rank, std::span<const Step> steps) {
    for (const Step& into : steps) {
      if (into.action != Action::kReceive) continue;
      for (const Step& other : steps) {
        if (&other == &into || (other.action != Action::kSend && other.action != Action::kReceive)) continue;
        const Slice& slice = other.action == Action::kSend ? other.from : other.to;
        const bool same = &rank.of(slice.buffer) == &rank.of(into.to.buffer);
        const bool overlap = same && slice.at < into.to.at + into.to.count && into.to.at < slice.at + slice.count;
        is_good_ = is_good_ && !overlap;
      }
    }
  }

  std::vector<RankState> ranks_;
  const bool commutes_;
  base::Rng rng_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<Array>> wire_;
  bool is_good_ = true;
};

}  // namespace hawser::schedule
