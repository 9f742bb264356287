#include "schedule/host_phases.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/planted.h"
#include "schedule/circulant.h"
#include "schedule/direct.h"
#include "schedule/doubling.h"
#include "schedule/staging.h"
#include "schedule/two_levels.h"

namespace hawser::schedule {
namespace {

using Ranks = std::span<const std::uint32_t>;

std::uint32_t place_in(Ranks ranks, std::uint32_t rank) {
  return static_cast<std::uint32_t>(std::ranges::find(ranks, rank) - ranks.begin());
}

/// Blocks of all ranks, host by host, in the order of the hosts' numbers.
class PackedBlocks {
 public:
  PackedBlocks(const Hosts& hosts, const Blocks& blocks) : hosts_(hosts), blocks_(blocks) {
    std::vector<std::uint64_t> counts;
    std::uint32_t next = 0;
    for (std::uint32_t host = 0; host < hosts.hosts(); ++host) {
      std::uint64_t count = 0;
      const Ranks ranks = hosts.ranks_of(host);
      for (const std::uint32_t rank : ranks) {
        is_in_order_ = is_in_order_ && rank == next++;
        count += blocks.count(rank);
      }
      are_hosts_whole_ = are_hosts_whole_ && ranks.back() - ranks.front() + 1 == ranks.size();
      counts.push_back(count);
    }
    by_host_ = Blocks(counts);
  }

  /// That is the order of ranks.
  bool is_in_order() const { return is_in_order_; }
  /// The blocks of each host follow one another in the order of ranks, too.
  bool are_hosts_whole() const { return are_hosts_whole_; }
  const Blocks& by_host() const { return by_host_; }
  std::uint32_t first_rank(std::uint32_t host) const { return hosts_.ranks_of(host).front(); }
  std::uint64_t count(std::uint32_t host) const { return by_host_.count(host); }
  /// Calls `copy(block, packed)` for each rank: places in the order of ranks, and among packed ones from `at` on.
  template <typename Copy>
  void for_each(std::uint64_t at, Copy copy) const {
    for (std::uint32_t host = 0; host < hosts_.hosts(); ++host) {
      for (const std::uint32_t rank : hosts_.ranks_of(host)) {
        copy(blocks_.at(rank), at, blocks_.count(rank));
        at += blocks_.count(rank);
      }
    }
  }
  void pack(Schedule& schedule, Buffer from, Place to) const {
    for_each(to.at, [&](std::uint64_t block, std::uint64_t packed, std::uint64_t count) {
      schedule.copy({from, block, count}, {to.buffer, packed, count});
    });
    schedule.end_round();
  }
  void unpack(Schedule& schedule, Place from, Buffer to) const {
    for_each(from.at, [&](std::uint64_t block, std::uint64_t packed, std::uint64_t count) {
      schedule.copy({from.buffer, packed, count}, {to, block, count});
    });
    schedule.end_round();
  }

 private:
  const Hosts& hosts_;
  const Blocks& blocks_;
  Blocks by_host_;
  bool is_in_order_ = true, are_hosts_whole_ = true;
};

/// Which rank of a host exchanges messages with which other hosts in an all_to_all, and where what comes from them
/// lies: port by port, and of each port by the distance of the hosts in their circle. That distance tells the ports of
/// both hosts. Each port takes its hosts by rising distance. So no ports wait for each other in a circle.
class Ports {
 public:
  Ports(const Hosts& hosts, std::uint64_t block) : hosts_(hosts), block_(block) {
    std::vector<std::uint64_t> counts(mates());
    starts_.resize(hosts.hosts());
    std::uint64_t at = 0;
    for (std::uint32_t port = 0; port < mates(); ++port) {
      for (std::uint32_t distance = port + 1; distance < hosts.hosts(); distance += mates()) {
        starts_[distance] = at + counts[port];
        counts[port] += elements_from(distance);
      }
      at += counts[port];
    }
    by_port_ = Blocks(counts);
  }

  std::uint32_t hosts() const { return hosts_.hosts(); }
  Ranks ranks_to(std::uint32_t distance) const { return hosts_.ranks_of((hosts_.host() + distance) % hosts()); }
  Ranks ranks_from(std::uint32_t distance) const {
    return hosts_.ranks_of((hosts_.host() + hosts() - distance) % hosts());
  }
  static std::uint32_t port_of(Ranks ranks, std::uint32_t distance) {
    return (distance - 1) % static_cast<std::uint32_t>(ranks.size());
  }
  /// Elements of all pairs of ranks of the two hosts.
  std::uint64_t elements_to(std::uint32_t distance) const { return block_ * mates() * ranks_to(distance).size(); }
  std::uint64_t elements_from(std::uint32_t distance) const { return block_ * mates() * ranks_from(distance).size(); }
  const Blocks& by_port() const { return by_port_; }
  /// Where what comes from the host at that distance begins.
  std::uint64_t at(std::uint32_t distance) const { return starts_[distance]; }

 private:
  std::uint32_t mates() const { return static_cast<std::uint32_t>(hosts_.ranks_of(hosts_.host()).size()); }

  const Hosts& hosts_;
  const std::uint64_t block_;
  std::vector<std::uint64_t> starts_;  ///< By distance.
  Blocks by_port_;
};

class Maker {
 public:
  Maker(const Call& call, const CostModel& model)
      : call_(call), model_(model), hosts_(hosts_of(call)), mates_(hosts_.ranks_of(hosts_.host())) {}

  void barrier() {
    made_.before = among_mates(Operation::kBarrier);
    barrier_of_leaders(made_.between, hosts_);
    made_.after = made_.before;
  }
  void broadcast() {
    broadcast_of_leaders(made_.between, hosts_, call_.count, call_.element_bytes, model_);
    made_.after = tensor(Operation::kBroadcast, Place(), Place());
  }
  void reduce() {
    const bool is_root = call_.rank == call_.root;
    Place result;
    if (hosts_.is_leader() && !is_root) result = scratch(call_.count);
    made_.before = tensor(Operation::kReduce, input(is_root ? Place() : Place{Buffer::kInput, 0}), result);
    reduce_of_leaders(made_.between, hosts_, result.slice(call_.count), call_.element_bytes, model_);
  }
  void all_reduce_by_leaders() {
    made_.before = tensor(Operation::kReduce, input(Place()), Place());
    all_reduce_of_leaders(made_.between, hosts_, call_.count, call_.element_bytes, model_);
    made_.after = tensor(Operation::kBroadcast, Place(), Place());
  }
  void all_reduce_by_slices() {
    const Blocks slices = slices_of(hosts_, call_.count);
    const Place own = {Buffer::kOutput, slices.at(hosts_.mates().rank)};
    made_.before = of_slices(Operation::kReduceScatter, slices, input(Place()), own);
    all_reduce_of_slices(made_.between, hosts_, call_.count, call_.element_bytes, model_);
    made_.after = of_slices(Operation::kAllGather, slices, own, Place());
  }
  void all_gather() {
    const Blocks blocks(call_.counts);
    const PackedBlocks packed(hosts_, blocks);
    const Place all = packed.is_in_order() ? Place() : scratch(blocks.total());
    const Place own = input({Buffer::kOutput, blocks.at(call_.rank)});
    made_.before = of_blocks(Operation::kGather, own, {all.buffer, all.at + packed.by_host().at(hosts_.host())});
    if (hosts_.is_leader()) {
      all_gather_blocks(made_.between, hosts_.leaders(), packed.by_host().shifted(all.at), all.buffer);
    }
    made_.after = tensor(Operation::kBroadcast, all, all, blocks.total());
    if (!packed.is_in_order()) packed.unpack(made_.last, all, Buffer::kOutput);
  }
  void reduce_scatter() {
    const Blocks blocks(call_.counts);
    const PackedBlocks packed(hosts_, blocks);
    Place all;
    if (hosts_.is_leader()) all = scratch(blocks.total());
    made_.before = tensor(Operation::kReduce, {Buffer::kInput, 0}, all, blocks.total());
    if (hosts_.is_leader()) {
      if (!packed.is_in_order()) {
        const Place in_order = std::exchange(all, scratch(blocks.total()));
        packed.for_each(all.at, [&](std::uint64_t block, std::uint64_t at, std::uint64_t count) {
          made_.between.copy({in_order.buffer, in_order.at + block, count}, {all.buffer, at, count});
        });
        made_.between.end_round();
      }
      reduce_scatter_blocks(made_.between, hosts_.leaders(), packed.by_host().shifted(all.at), all.buffer);
      all.at += packed.by_host().at(hosts_.host());
    }
    made_.after = of_blocks(Operation::kScatter, all, Place());
  }
  void gather() {
    const Blocks blocks(call_.counts);
    const PackedBlocks packed(hosts_, blocks);
    const bool is_root = call_.rank == call_.root;
    const Place all = is_root && !packed.are_hosts_whole() ? scratch(blocks.total()) : Place();
    const auto of_host = [&](std::uint32_t host) { return place_of(packed, blocks, all, host); };
    Place mine = is_root ? of_host(0) : Place();
    if (hosts_.is_leader() && !is_root) mine = scratch(packed.count(hosts_.host()));
    const Place own = is_root ? input({Buffer::kOutput, blocks.at(call_.rank)}) : Place{Buffer::kInput, 0};
    made_.before = of_blocks(Operation::kGather, own, mine);
    if (is_root) {
      for_other_hosts([&](std::uint32_t host, std::uint32_t leader) {
        made_.between.receive(leader, of_host(host).slice(packed.count(host)));
      });
      if (!packed.are_hosts_whole()) packed.unpack(made_.last, all, Buffer::kOutput);
    } else if (hosts_.is_leader()) {
      made_.between.send(call_.root, mine.slice(packed.count(hosts_.host())));
    }
  }
  void scatter() {
    const Blocks blocks(call_.counts);
    const PackedBlocks packed(hosts_, blocks);
    const bool is_root = call_.rank == call_.root;
    Place all = {Buffer::kInput, 0}, mine = all;
    if (is_root) {
      if (!packed.are_hosts_whole()) {
        all = scratch(blocks.total());
        packed.pack(made_.between, Buffer::kInput, all);
      }
      for_other_hosts([&](std::uint32_t host, std::uint32_t leader) {
        made_.between.send(leader, place_of(packed, blocks, all, host).slice(packed.count(host)));
      });
      mine = place_of(packed, blocks, all, 0);
    } else if (hosts_.is_leader()) {
      mine = scratch(packed.count(hosts_.host()));
      made_.between.receive(call_.root, mine.slice(packed.count(hosts_.host())));
    }
    made_.after = of_blocks(Operation::kScatter, mine, Place());
  }
  void all_to_all() {
    const std::uint64_t block = call_.counts[0], own = block * call_.size;
    const Place outgoing = scratch(own * mates_.size());  // Mate by mate, and of each in the order of targets.
    made_.before = of_equal_blocks(Operation::kAllGather, own, {Buffer::kInput, 0}, outgoing);
    const Ports ports(hosts_, block);
    const Place incoming = scratch(ports.by_port().total());
    exchange_by_ports(ports, outgoing, incoming);
    made_.after =
        tensor(Operation::kAllGather, {incoming.buffer, incoming.at + ports.by_port().at(place_in(mates_, call_.rank))},
               incoming, 0);
    for (std::uint32_t port = 0; port < mates_.size(); ++port) {
      made_.after->call.counts.push_back(ports.by_port().count(port));
      const Place from = {outgoing.buffer, outgoing.at + own * port + block * call_.rank};
      made_.last.copy(from.slice(block), {Buffer::kOutput, block * mates_[port], block});
    }
    take_from_ports(ports, incoming);
  }
  /// The last rank of a host leads it: what it has at first is the host's. Hosts are runs of ranks.
  void scan() {
    const std::vector<std::uint32_t> lasts = last_ranks();
    const bool is_last = call_.rank == mates_.back();
    const bool is_first_host = mates_.front() == 0;
    const Place own = input(Place());
    const bool keeps_total = is_last || !is_first_host;
    const Place total = keeps_total ? scratch(call_.count) : Place();
    Place within;
    if (call_.operation == Operation::kScan) {
      made_.before = led_by_last(Operation::kScan, own, within);
      if (is_last) copy(made_.between, within, total);
    } else {
      if (is_last) within = scratch(call_.count);  // The output may be the input, which the host's result needs, too.
      made_.before = led_by_last(Operation::kExclusiveScan, own, within);
      if (is_last && mates_.size() > 1) copy(made_.between, within, total);
      if (is_last && mates_.size() > 1) made_.between.combine(own.slice(call_.count), total.slice(call_.count));
      if (is_last && mates_.size() == 1) copy(made_.between, own, total);
      if (is_last) copy(made_.last, within, Place());
    }
    made_.between.end_round();
    if (is_last) {
      const Members me = Members::among(lasts, place_in(lasts, call_.rank));
      exclusive_scan_doubling(made_.between, me, total.slice(call_.count));
    }
    if (is_first_host) return;
    made_.after = led_by_last(Operation::kBroadcast, total, total);
    const bool has_none_before = call_.operation == Operation::kExclusiveScan && call_.rank == mates_.front();
    if (has_none_before) {
      copy(made_.last, total, Place());
    } else if (!base::planted(base::Planted::kHostsBeforeMissed)) {
      made_.last.combine_before(total.slice(call_.count), Place().slice(call_.count));
    }
  }
  HostPhases take() { return std::move(made_); }

 private:
  Place scratch(std::uint64_t count) { return {Buffer::kScratch, made_.between.take_scratch(count)}; }
  /// The messages of this rank, as a port. What goes is packed source by source, and of each target by target.
  void exchange_by_ports(const Ports& ports, Place outgoing, Place incoming) {
    const auto mates = static_cast<std::uint32_t>(mates_.size());
    const std::uint32_t port = place_in(mates_, call_.rank);
    std::vector<Slice> packed;
    for (std::uint32_t distance = port + 1; distance < ports.hosts(); distance += mates) {
      packed.push_back(pack_for(ports.ranks_to(distance), outgoing, ports.elements_to(distance)));
    }
    made_.between.end_round();
    for (std::uint32_t each = 0; each < packed.size(); ++each) {
      const std::uint32_t distance = port + 1 + each * mates;
      const Ranks to = ports.ranks_to(distance), from = ports.ranks_from(distance);
      made_.between.send(to[Ports::port_of(to, distance)], packed[each]);
      made_.between.receive(from[Ports::port_of(from, distance)],
                            {incoming.buffer, incoming.at + ports.at(distance), ports.elements_from(distance)});
      if ((each + 1) % kPeersAtOnce == 0) made_.between.end_round();
    }
    made_.between.end_round();
  }
  Slice pack_for(Ranks targets, Place outgoing, std::uint64_t count) {
    const std::uint64_t block = call_.counts[0];
    const Place packed = scratch(count);
    for (std::uint64_t source = 0; source < mates_.size(); ++source) {
      for (std::uint64_t target = 0; target < targets.size(); ++target) {
        const bool is_mixed = base::planted(base::Planted::kAggregateMixed);
        const std::uint64_t place = is_mixed ? target * mates_.size() + source : source * targets.size() + target;
        const std::uint64_t from = outgoing.at + block * (call_.size * source + targets[target]);
        made_.between.copy({outgoing.buffer, from, block}, {packed.buffer, packed.at + block * place, block});
      }
    }
    return packed.slice(count);
  }
  /// The rank's own blocks of what all ports of its host got.
  void take_from_ports(const Ports& ports, Place incoming) {
    const std::uint64_t block = call_.counts[0];
    const std::uint32_t place = place_in(mates_, call_.rank);
    for (std::uint32_t distance = 1; distance < ports.hosts(); ++distance) {
      const Ranks sources = ports.ranks_from(distance);
      for (std::uint64_t source = 0; source < sources.size(); ++source) {
        const std::uint64_t from = incoming.at + ports.at(distance) + block * (mates_.size() * source + place);
        made_.last.copy({incoming.buffer, from, block}, {Buffer::kOutput, block * sources[source], block});
      }
    }
    made_.last.end_round();
  }
  void copy(Schedule& schedule, Place from, Place to) const {
    schedule.copy(from.slice(call_.count), to.slice(call_.count));
  }
  /// Of each host, in the order of ranks.
  std::vector<std::uint32_t> last_ranks() const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t host = 0; host < hosts_.hosts(); ++host) all.push_back(hosts_.ranks_of(host).back());
    std::ranges::sort(all);
    return all;
  }
  HostPhase led_by_last(Operation operation, Place from, Place to) const {
    HostPhase phase = tensor(operation, from, to);
    phase.call.root = phase.call.size - 1;
    return phase;
  }
  /// Where the rank's input is, which may be a part of its output.
  Place input(Place in_output) const { return call_.has_input_in_output ? in_output : Place{Buffer::kInput, 0}; }
  /// Where the blocks of a host lie at the root: in the order of ranks, or packed.
  static Place place_of(const PackedBlocks& packed, const Blocks& blocks, Place all, std::uint32_t host) {
    if (packed.are_hosts_whole()) return {all.buffer, blocks.at(packed.first_rank(host))};
    return {all.buffer, all.at + packed.by_host().at(host)};
  }
  template <typename Visit>
  void for_other_hosts(Visit visit) {
    for (std::uint32_t host = 1; host < hosts_.hosts(); ++host) {
      visit(host, hosts_.leaders().world_rank(host));
      if (host % kPeersAtOnce == 0) made_.between.end_round();
    }
    made_.between.end_round();
  }
  HostPhase among_mates(Operation operation) const {
    return {.call = {.operation = operation,
                     .rank = place_in(mates_, call_.rank),
                     .size = static_cast<std::uint32_t>(mates_.size()),
                     .root = place_in(mates_, hosts_.mates().world_rank(0)),
                     .element_bytes = call_.element_bytes,
                     .may_use_boards = true,
                     .piece_bytes = call_.piece_bytes}};
  }
  HostPhase tensor(Operation operation, Place from, Place to, std::uint64_t count) const {
    HostPhase phase = among_mates(operation);
    phase.call.count = count;
    phase.input = from;
    phase.output = to;
    return phase;
  }
  HostPhase tensor(Operation operation, Place from, Place to) const { return tensor(operation, from, to, call_.count); }
  HostPhase of_slices(Operation operation, const Blocks& slices, Place from, Place to) const {
    HostPhase phase = tensor(operation, from, to, 0);
    for (std::uint32_t place = 0; place < slices.size(); ++place) phase.call.counts.push_back(slices.count(place));
    return phase;
  }
  HostPhase of_equal_blocks(Operation operation, std::uint64_t count, Place from, Place to) const {
    HostPhase phase = tensor(operation, from, to, 0);
    phase.call.counts.assign(mates_.size(), count);
    return phase;
  }
  /// Of the blocks of this host's ranks.
  HostPhase of_blocks(Operation operation, Place from, Place to) const {
    HostPhase phase = tensor(operation, from, to, 0);
    for (const std::uint32_t rank : mates_) phase.call.counts.push_back(call_.counts[rank]);
    return phase;
  }

  const Call& call_;
  const CostModel& model_;
  const Hosts hosts_;
  const Ranks mates_;
  HostPhases made_;
};

/// A phase by messages.
class Messenger {
 public:
  Messenger(Schedule& schedule, const HostPhase& phase, Ranks mates, const CostModel& model)
      : schedule_(schedule), phase_(phase), call_(phase.call), mates_(mates), model_(model) {}

  void send() {
    switch (call_.operation) {
      case Operation::kBroadcast:
        return broadcast_among(schedule_, from_root(), phase_.output.slice(call_.count), call_.element_bytes, model_);
      case Operation::kReduce:
        return reduce();
      case Operation::kGather:
        return gather_direct(schedule_, all(), call_.root, blocks_at(phase_.output), own(phase_.input),
                             phase_.output.buffer);
      case Operation::kScatter:
        return scatter_direct(schedule_, all(), call_.root, blocks_at(phase_.input), phase_.input.buffer,
                              own(phase_.output));
      case Operation::kAllGather:
        return all_gather();
      case Operation::kReduceScatter:
        HAWSER_ASSERT(false, "slices go by messages as two_levels.h says");
        break;
      case Operation::kScan:
      case Operation::kExclusiveScan:
        return scan();
      default:
        break;
    }
  }

 private:
  void scan() {
    const Slice data = phase_.output.slice(call_.count);
    schedule_.copy(phase_.input.slice(call_.count), data);
    schedule_.end_round();
    if (call_.operation == Operation::kScan) return scan_doubling(schedule_, all(), data);
    exclusive_scan_doubling(schedule_, all(), data);
  }
  Members all() const { return Members::among(mates_, call_.rank); }
  Members from_root() const {
    return {(call_.rank + call_.size - call_.root) % call_.size, call_.size, call_.root, mates_};
  }
  Blocks blocks_at(Place place) const { return Blocks(call_.counts).shifted(place.at); }
  Slice own(Place place) const { return place.slice(call_.counts[call_.rank]); }
  void all_gather() {
    const Blocks blocks = blocks_at(phase_.output);
    const Slice block = blocks.slice(phase_.output.buffer, call_.rank);
    const bool is_there = phase_.input.buffer == block.buffer && phase_.input.at == block.at;
    if (!is_there) schedule_.copy(own(phase_.input), block);
    schedule_.end_round();
    all_gather_blocks(schedule_, all(), blocks, block.buffer);
  }
  void reduce() {
    const Place data =
        call_.rank == call_.root ? phase_.output : Place{Buffer::kScratch, schedule_.take_scratch(call_.count)};
    schedule_.copy(phase_.input.slice(call_.count), data.slice(call_.count));
    schedule_.end_round();
    reduce_among(schedule_, from_root(), data.slice(call_.count), call_.element_bytes, model_);
  }

  Schedule& schedule_;
  const HostPhase& phase_;
  const Call& call_;
  const Ranks mates_;
  const CostModel& model_;
};

}  // namespace

PhaseKind kind_of(const HostPhase& phase, const CostModel& model) {
  return goes_in_pieces(phase.call, model) ? PhaseKind::kPieces : PhaseKind::kBoards;
}

std::uint64_t turns_of(const std::optional<HostPhase>& phase, const CostModel& model) {
  if (!phase) return 0;
  return kind_of(*phase, model) == PhaseKind::kPieces ? turns_of_staging(phase->call) : 1;
}

Hosts hosts_of(const Call& call) {
  const bool is_rooted = call.operation == Operation::kBroadcast || call.operation == Operation::kReduce ||
                         call.operation == Operation::kGather || call.operation == Operation::kScatter;
  return {call.hosts, call.rank, is_rooted ? call.root : 0};
}

bool has_host_phases(const Call& call) {
  if (!Hosts::has_levels(call.hosts)) return false;
  switch (call.operation) {
    case Operation::kBarrier:
    case Operation::kBroadcast:
    case Operation::kAllGather:
    case Operation::kGather:
    case Operation::kScatter:
      return true;
    case Operation::kReduce:
    case Operation::kAllReduce:
    case Operation::kReduceScatter:
      return call.commutes && !call.reproducible;
    case Operation::kAllToAll:
      return call.is_even && call.counts[0] <= kPortBytesMax / call.element_bytes / call.size;
    case Operation::kScan:
    case Operation::kExclusiveScan:
      return !call.reproducible && Hosts::are_runs(call.hosts);
    default:
      return false;
  }
}

HostPhases host_phases(const Call& call, Algorithm algorithm, const CostModel& model) {
  Maker maker(call, model);
  switch (call.operation) {
    case Operation::kBroadcast:
      maker.broadcast();
      break;
    case Operation::kReduce:
      maker.reduce();
      break;
    case Operation::kAllReduce:
      if (algorithm == Algorithm::kStagedInHosts && is_sliced(hosts_of(call), call.count)) {
        maker.all_reduce_by_slices();
      } else {
        maker.all_reduce_by_leaders();
      }
      break;
    case Operation::kAllGather:
      maker.all_gather();
      break;
    case Operation::kReduceScatter:
      maker.reduce_scatter();
      break;
    case Operation::kGather:
      maker.gather();
      break;
    case Operation::kScatter:
      maker.scatter();
      break;
    case Operation::kAllToAll:
      maker.all_to_all();
      break;
    case Operation::kScan:
    case Operation::kExclusiveScan:
      maker.scan();
      break;
    default:
      maker.barrier();
  }
  return maker.take();
}

Schedule phases_by_messages(const HostPhases& phases, const Hosts& hosts, const CostModel& model) {
  const Ranks mates = hosts.ranks_of(hosts.host());
  Schedule made;
  made.take_scratch(phases.between.scratch());  // Its places are those that the phases have.
  if (phases.before) Messenger(made, *phases.before, mates, model).send();
  made.append(phases.between);
  if (phases.after) Messenger(made, *phases.after, mates, model).send();
  made.append(phases.last);
  return made;
}

}  // namespace hawser::schedule
