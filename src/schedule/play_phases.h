#pragma once

// For tests: the phases of a collective of several hosts, as one rank does them, as a schedule in memory. What a rank
// writes on its board it sends to all others of its host.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "schedule/host_phases.h"

namespace hawser::schedule {

class PhasePlayer {
 public:
  PhasePlayer(const HostPhases& phases, std::span<const std::uint32_t> mates) : phases_(phases), mates_(mates) {
    made_.take_scratch(phases.between.scratch());
  }
  Schedule play() {
    if (phases_.before) play(*phases_.before);
    made_.append(phases_.between);
    if (phases_.after) play(*phases_.after);
    made_.append(phases_.last);
    return std::move(made_);
  }

 private:
  static std::uint64_t written(const Call& call, std::uint32_t place) {
    return bytes_on_board(call, place) / call.element_bytes;
  }
  void play(const HostPhase& phase) {
    const Call& call = phase.call;
    const Place from = call.operation == Operation::kBroadcast ? phase.output : phase.input;
    std::vector<Place> boards;
    for (std::uint32_t place = 0; place < call.size; ++place) {
      boards.push_back({Buffer::kScratch, made_.take_scratch(written(call, place))});
    }
    const std::uint64_t own = written(call, call.rank);
    made_.copy(from.slice(own), boards[call.rank].slice(own));
    made_.end_round();
    for (std::uint32_t place = 0; place < call.size; ++place) {
      if (place == call.rank) continue;
      made_.send(mates_[place], boards[call.rank].slice(own));
      made_.receive(mates_[place], boards[place].slice(written(call, place)));
    }
    made_.end_round();
    take(phase, boards);
    made_.end_round();
  }
  void take(const HostPhase& phase, std::span<const Place> boards) {
    const Call& call = phase.call;
    const bool is_root = call.rank == call.root;
    const Blocks blocks(call.counts);
    switch (call.operation) {
      case Operation::kBroadcast:
        if (!is_root) made_.copy(boards[call.root].slice(call.count), phase.output.slice(call.count));
        break;
      case Operation::kReduce:
        if (is_root) combine(boards, 0, phase.output.slice(call.count));
        break;
      case Operation::kScan:
        combine(boards.first(call.rank + 1), 0, phase.output.slice(call.count));
        break;
      case Operation::kExclusiveScan:
        combine(boards.first(std::max(call.rank, 1U)), 0, phase.output.slice(call.count));
        break;
      case Operation::kReduceScatter:
        combine(boards, blocks.at(call.rank), phase.output.slice(blocks.count(call.rank)));
        break;
      case Operation::kAllGather:
        for (std::uint32_t place = 0; place < call.size; ++place) take_block(phase, blocks, place, boards[place]);
        break;
      case Operation::kGather:
        for (std::uint32_t place = 0; is_root && place < call.size; ++place) {
          take_block(phase, blocks, place, place == call.rank ? phase.input : boards[place]);
        }
        break;
      case Operation::kScatter: {
        const Place all = is_root ? phase.input : boards[call.root];
        const std::uint64_t count = blocks.count(call.rank);
        made_.copy({all.buffer, all.at + blocks.at(call.rank), count}, phase.output.slice(count));
        break;
      }
      default:
        break;
    }
  }
  void take_block(const HostPhase& phase, const Blocks& blocks, std::uint32_t place, Place from) {
    const std::uint64_t count = blocks.count(place);
    made_.copy(from.slice(count), {phase.output.buffer, phase.output.at + blocks.at(place), count});
  }
  void combine(std::span<const Place> boards, std::uint64_t at, Slice result) {
    for (std::size_t place = 0; place < boards.size(); ++place) {
      const Slice its = {Buffer::kScratch, boards[place].at + at, result.count};
      if (place == 0) made_.copy(its, result);
      if (place > 0) made_.combine(its, result);
    }
  }

  const HostPhases& phases_;
  const std::span<const std::uint32_t> mates_;
  Schedule made_;
};

/// The rank's part in `call` on boards.
inline Schedule played(const Call& call, Algorithm algorithm) {
  const Hosts hosts = hosts_of(call);
  const HostPhases phases = host_phases(call, algorithm, {});
  return PhasePlayer(phases, hosts.ranks_of(hosts.host())).play();
}

}  // namespace hawser::schedule
