#include "schedule/collective.h"

#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include "base/check.h"
#include "schedule/circulant.h"
#include "schedule/direct.h"
#include "schedule/doubling.h"
#include "schedule/host_phases.h"
#include "schedule/hosts.h"
#include "schedule/mapped.h"
#include "schedule/pat.h"
#include "schedule/staging.h"
#include "schedule/tree.h"
#include "schedule/two_levels.h"

namespace hawser::schedule {
namespace {

Slice whole(Buffer buffer, std::uint64_t count) { return {buffer, 0, count}; }

/// The caller's input goes where the algorithm works.
void bring_input(Schedule& schedule, const Call& call, Slice to) {
  if (call.has_input_in_output) return;
  schedule.copy({Buffer::kInput, 0, to.count}, to);
  schedule.end_round();
}

/// By messages alone, on two levels.
bool is_on_levels(Algorithm algorithm) { return algorithm == Algorithm::kTwoLevels || has_phases(algorithm); }

void broadcast(Schedule& schedule, const Call& call, Algorithm algorithm, const CostModel& model) {
  if (is_on_levels(algorithm)) {
    return broadcast_two_levels(schedule, hosts_of(call), call.count, call.element_bytes, model);
  }
  if (algorithm == Algorithm::kMappedInHosts) {
    return broadcast_mapped_in_hosts(schedule, hosts_of(call), call.count, call.element_bytes, model);
  }
  const Members me = Members::from_root(call.rank, call.size, call.root);
  if (algorithm == Algorithm::kMapped) return broadcast_mapped(schedule, me, whole(Buffer::kOutput, call.count));
  if (algorithm == Algorithm::kTree) return broadcast_tree(schedule, me, whole(Buffer::kOutput, call.count));
  const Blocks blocks = Blocks::even(call.count, call.size);
  scatter_tree(schedule, me, blocks, Buffer::kOutput);
  all_gather_blocks(schedule, me, blocks, Buffer::kOutput);
}

/// In the order of ranks the tree ends at rank 0, which gives the result to the root.
void reduce_in_order(Schedule& schedule, const Call& call, Slice data) {
  reduce_tree(schedule, Members::all(call.rank, call.size), data);
  if (call.root == 0) return;
  if (call.rank == 0) schedule.send(call.root, data);
  if (call.rank == call.root) schedule.receive(0, data);
  schedule.end_round();
}

void reduce(Schedule& schedule, const Call& call, Algorithm algorithm, const CostModel& model) {
  const bool is_root = call.rank == call.root;
  if (algorithm == Algorithm::kFixedTree) {
    const Members me = Members::all(call.rank, call.size);
    const Blocks blocks = Blocks::even(call.count, call.size);
    const Slice own = {Buffer::kScratch, schedule.take_scratch(blocks.count(call.rank)), blocks.count(call.rank)};
    const Buffer from = is_root && call.has_input_in_output ? Buffer::kOutput : Buffer::kInput;
    reduce_scatter_fixed(schedule, me, blocks, from, own);
    return gather_direct(schedule, me, call.root, blocks, own, Buffer::kOutput);
  }
  // Who is not the root has no output, and the input is the caller's to keep. This scratch is the first, so it begins
  // where blocks in it do.
  const Slice data = is_root ? whole(Buffer::kOutput, call.count)
                             : Slice{Buffer::kScratch, schedule.take_scratch(call.count), call.count};
  if (is_root) {
    bring_input(schedule, call, data);
  } else {
    schedule.copy(whole(Buffer::kInput, call.count), data);
    schedule.end_round();
  }
  if (algorithm == Algorithm::kCirculant) {
    // Members count from the root, so its blocks do, too.
    const Members me = Members::from_root(call.rank, call.size, call.root);
    const Blocks blocks = Blocks::even(call.count, call.size);
    reduce_scatter_blocks(schedule, me, blocks, data.buffer);
    return gather_direct(schedule, me, 0, blocks, blocks.slice(data.buffer, me.rank), data.buffer);
  }
  if (!call.commutes) return reduce_in_order(schedule, call, data);
  if (is_on_levels(algorithm)) return reduce_two_levels(schedule, hosts_of(call), data, call.element_bytes, model);
  reduce_tree(schedule, Members::from_root(call.rank, call.size, call.root), data);
}

void all_reduce(Schedule& schedule, const Call& call, Algorithm algorithm, const CostModel& model) {
  const Members me = Members::all(call.rank, call.size);
  const Blocks blocks = Blocks::even(call.count, call.size);
  if (algorithm == Algorithm::kFixedTree) {
    const Buffer from = call.has_input_in_output ? Buffer::kOutput : Buffer::kInput;
    reduce_scatter_fixed(schedule, me, blocks, from, blocks.slice(Buffer::kOutput, call.rank));
    return all_gather_blocks(schedule, me, blocks, Buffer::kOutput);
  }
  if (algorithm == Algorithm::kMapped) return all_reduce_mapped(schedule, me, blocks);
  if (algorithm == Algorithm::kMappedInHosts) {
    return all_reduce_mapped_in_hosts(schedule, hosts_of(call), call.count, call.element_bytes, model);
  }
  bring_input(schedule, call, whole(Buffer::kOutput, call.count));
  if (algorithm == Algorithm::kTwoLevels || algorithm == Algorithm::kStagedInHosts) {
    return all_reduce_two_levels(schedule, hosts_of(call), call.count, call.element_bytes, model);
  }
  if (algorithm == Algorithm::kBoardsInHosts) {
    return all_reduce_by_leaders(schedule, hosts_of(call), call.count, call.element_bytes, model);
  }
  if (algorithm == Algorithm::kDoubling) {
    return all_reduce_doubling(schedule, me, whole(Buffer::kOutput, call.count));
  }
  reduce_scatter_blocks(schedule, me, blocks, Buffer::kOutput);
  all_gather_blocks(schedule, me, blocks, Buffer::kOutput);
}

void all_gather(Schedule& schedule, const Call& call, Algorithm algorithm) {
  const Blocks blocks(call.counts);
  bring_input(schedule, call, blocks.slice(Buffer::kOutput, call.rank));
  if (algorithm == Algorithm::kMapped) {
    return all_gather_mapped(schedule, Members::all(call.rank, call.size), blocks);
  }
  if (algorithm == Algorithm::kMappedInHosts) {
    return all_gather_mapped_in_hosts(schedule, hosts_of(call), Grid(call.hosts, call.size), blocks,
                                      call.element_bytes);
  }
  if (algorithm == Algorithm::kPat) {
    return all_gather_pat(schedule, Grid(call.hosts, call.size), call.rank, blocks, Buffer::kOutput,
                          call.element_bytes);
  }
  all_gather_blocks(schedule, Members::all(call.rank, call.size), blocks, Buffer::kOutput);
}

void reduce_scatter(Schedule& schedule, const Call& call, Algorithm algorithm) {
  const Members me = Members::all(call.rank, call.size);
  const Blocks blocks(call.counts);
  const Slice result = whole(Buffer::kOutput, blocks.count(call.rank));
  if (algorithm == Algorithm::kFixedTree) return reduce_scatter_fixed(schedule, me, blocks, Buffer::kInput, result);
  if (algorithm == Algorithm::kMapped) return reduce_scatter_mapped(schedule, me, blocks, result);
  // The input is the caller's to keep, so all of it is combined in scratch; this is the first that is taken there.
  const std::uint64_t work = schedule.take_scratch(blocks.total());
  HAWSER_ASSERT(work == 0, "blocks in scratch begin at its first element");
  if (algorithm == Algorithm::kMappedInHosts) {
    reduce_scatter_mapped_in_hosts(schedule, hosts_of(call), Grid(call.hosts, call.size), blocks, call.element_bytes);
    return schedule.copy(blocks.slice(Buffer::kScratch, call.rank), result);
  }
  schedule.copy(whole(Buffer::kInput, blocks.total()), whole(Buffer::kScratch, blocks.total()));
  schedule.end_round();
  if (algorithm == Algorithm::kPat) {
    reduce_scatter_pat(schedule, Grid(call.hosts, call.size), call.rank, blocks, Buffer::kScratch, call.element_bytes);
  } else {
    reduce_scatter_blocks(schedule, me, blocks, Buffer::kScratch);
  }
  schedule.copy(blocks.slice(Buffer::kScratch, call.rank), result);
}

void scan(Schedule& schedule, const Call& call) {
  const Members me = Members::all(call.rank, call.size);
  const Slice data = whole(Buffer::kOutput, call.count);
  bring_input(schedule, call, data);
  if (call.operation == Operation::kScan) {
    scan_doubling(schedule, me, data);
  } else {
    exclusive_scan_doubling(schedule, me, data);
  }
}

std::uint64_t total(std::span<const std::uint64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

/// Each rank has a block of its own.
bool moves_blocks(const Call& call) {
  return call.operation == Operation::kAllGather || call.operation == Operation::kReduceScatter ||
         call.operation == Operation::kGather || call.operation == Operation::kScatter ||
         call.operation == Operation::kAllToAll;
}

bool is_scan(const Call& call) {
  return call.operation == Operation::kScan || call.operation == Operation::kExclusiveScan;
}

/// Of the tensor, or of all blocks.
std::uint64_t elements_of(const Call& call) { return moves_blocks(call) ? total(call.counts) : call.count; }

/// All ranks of one host can write on their boards at once.
bool fits_turn(const Call& call) {
  if (!call.may_use_boards || call.size < 2 || call.size > kBoardRanksMax) return false;
  std::uint64_t all = 0;
  for (std::uint32_t rank = 0; rank < call.size; ++rank) {
    const std::uint64_t bytes = bytes_on_board(call, rank);
    if (bytes > call.piece_bytes) return false;
    all += bytes;
  }
  return all <= kBoardsBytesMax;
}

/// Those for which pat.h has functions.
bool goes_by_trees(const Call& call) {
  return call.operation == Operation::kAllGather || call.operation == Operation::kReduceScatter;
}

/// Rounds, elements sent, combined and read, and boards that are waited for, by the rank that has most to do.
struct Work {
  double messages = 0, moved = 0, combined = 0, read = 0, boards = 0;
};

/// Of so many ranks of one host, of which each tells something small to all others: on boards, which are open from one
/// of the first calls on. To tell where buffers lie is a meeting, too.
Work work_of_meetings(double meetings, const Call& call, std::uint32_t ranks) {
  constexpr double kLookUp = 1.25;  // Rounds of messages, in the time that each rank takes to find all others' buffers.
  const double by_messages = messages_to_meet(ranks);
  if (!call.may_use_boards || ranks > kBoardRanksMax) return {.messages = meetings * by_messages};
  return {.messages = kLookUp * by_messages, .boards = meetings * (ranks - 1)};
}

Work work_of_mapped(const Call& call, double count) {
  const double share = count * (call.size - 1) / call.size;
  Work work = work_of_meetings(call.operation == Operation::kAllReduce ? 4 : 3, call, call.size);
  switch (call.operation) {
    case Operation::kAllReduce:
      work.combined = work.read = share;
      break;
    case Operation::kReduceScatter:
      work.combined = share;
      break;
    case Operation::kAllGather:
      work.read = share;
      break;
    default:
      work.read = count;
  }
  return work;
}

Work work_of(const Call& call, Algorithm algorithm) {
  const double ranks = call.size, others = ranks - 1;
  const double rounds = std::bit_width(call.size - 1);  // ceil(log2(ranks))
  const auto count = static_cast<double>(elements_of(call));
  const double share = count * others / ranks;
  const bool combines = call.operation == Operation::kReduce || call.operation == Operation::kAllReduce ||
                        call.operation == Operation::kReduceScatter || is_scan(call);
  const bool goes_back = call.operation == Operation::kAllReduce || call.operation == Operation::kReduce;
  switch (algorithm) {
    case Algorithm::kDissemination:
      return {rounds, 0, 0};
    case Algorithm::kTree:
    case Algorithm::kDoubling: {
      const bool goes_in_pairs = algorithm == Algorithm::kDoubling && call.operation == Operation::kAllReduce;
      const double extra = goes_in_pairs && !std::has_single_bit(call.size) ? 2 : 0;
      // An exclusive scan is a shift, and a scan of all but one.
      const bool is_shifted = call.operation == Operation::kExclusiveScan && call.size > 1;
      const double steps = is_shifted ? 1 + std::bit_width(call.size - 2) : rounds + extra;
      return {steps, steps * count, combines ? steps * count : 0};
    }
    case Algorithm::kScatterGather:
      return {2 * rounds, 2 * share, 0};
    case Algorithm::kCirculant:
      return {goes_back ? 2 * rounds : rounds, goes_back ? 2 * share : share, combines ? share : 0};
    case Algorithm::kFixedTree:
      return {others + (goes_back ? rounds : 0), goes_back ? 2 * share : share, share};
    case Algorithm::kDirect:
      return {others, share, 0};
    case Algorithm::kMapped:
      return work_of_mapped(call, count);
    case Algorithm::kBoards:
    case Algorithm::kStaged:
      break;  // See cost_of_boards and cost_of_staging.
    case Algorithm::kTwoLevels:
      break;  // See cost_of_two_levels.
    case Algorithm::kPat:
      break;  // See cost_of_pat.
    case Algorithm::kMappedInHosts:
    case Algorithm::kBoardsInHosts:
    case Algorithm::kStagedInHosts:
      break;  // See the functions of these names.
  }
  return {};
}

double cost_of(const Work& work, double element_bytes, const CostModel& model) {
  return work.messages * model.message_ns + work.moved * element_bytes * model.byte_ns +
         work.combined * element_bytes * model.combined_byte_ns + work.read * element_bytes * model.read_byte_ns +
         work.boards * model.board_ns;
}

/// A rank writes its own bytes and reads those of all others, or of a reduce-scatter its share of them.
double cost_of_boards(const Call& call, const CostModel& model) {
  constexpr double kInCaches = 0.5;  // A byte of a board is in caches: it takes half as long as one of large memory.
  constexpr double kOneReader =
      0.5;  // A reduce or gather has one reader, and the other ranks leave the boards alone meanwhile.
  double moved = 0;
  for (std::uint32_t rank = 0; rank < call.size; ++rank) moved += static_cast<double>(bytes_on_board(call, rank));
  if (call.operation == Operation::kReduce || call.operation == Operation::kGather) moved *= kOneReader;
  const bool combines = call.operation == Operation::kReduce || call.operation == Operation::kAllReduce ||
                        call.operation == Operation::kReduceScatter || is_scan(call);
  const double share = call.operation == Operation::kReduceScatter ? 1.0 / call.size : 1;
  const double others = combines ? share * moved * (call.size - 1) / call.size : 0;
  return model.board_ns * (call.size - 1) + kInCaches * moved * model.read_byte_ns + others * model.combined_byte_ns;
}

/// A rank waits for the first piece, and then finds most others on the boards already. Before an all_to_all the ranks
/// meet once more, to tell each other their counts. The factors were fitted to `hawser bench coll -n 2` (and `-n 4` on
/// two cores): with them the model changes from boards to pieces where pieces became faster.
double cost_of_staging(const Call& call, const CostModel& model) {
  constexpr double kFirst = 3.2;      // The first turn takes as long as so many meetings, with what the call costs.
  constexpr double kLook = 0.3;       // A later turn takes so much of a meeting.
  constexpr double kInCaches = 0.64;  // A byte on its way over boards takes so much of one in large memory.
  const Staging staging(call);
  const auto turns = static_cast<double>(staging.turns()), first = static_cast<double>(staging.turns_of_piece());
  const double told = call.operation == Operation::kAllToAll ? 1 : 0;
  const double meetings = told + kFirst * first + kLook * std::max(turns - first, 0.0);
  const Staging::Work work = staging.work();
  return model.board_ns * (call.size - 1) * meetings + kInCaches * work.copied * model.read_byte_ns +
         work.combined * model.combined_byte_ns;
}

/// The cheapest way of that operation among so many ranks on one level. Of blocks: of `count` together.
double cost_among(std::uint32_t ranks, Operation operation, std::uint64_t count, const Call& call,
                  const CostModel& model) {
  Call one{.operation = operation, .size = ranks, .count = count, .element_bytes = call.element_bytes};
  if (moves_blocks(one)) one.counts.assign(ranks, (std::exchange(one.count, 0) + ranks - 1) / ranks);
  return choices(one, model).front().cost_ns;
}

/// So many ranks of each host send at once.
double cost_between(const Hosts& hosts, std::uint64_t count, std::uint32_t ranks_of_host, const Call& call,
                    const CostModel& model) {
  return cost_among(hosts.hosts(), call.operation, count, call, model.between_hosts(ranks_of_host));
}

/// The most of `count` that a rank of a host has, where its lanes share that.
std::uint64_t slice_of(const Hosts& hosts, std::uint64_t count) { return (count + hosts.lanes() - 1) / hosts.lanes(); }

/// So many messages to other hosts, a few of which are on their way at once (direct.h). Each takes its sender a while.
double cost_of_overlapping(std::uint64_t messages, const CostModel& model) {
  const std::uint64_t rounds = (messages + kPeersAtOnce - 1) / kPeersAtOnce;
  return static_cast<double>(rounds) * model.far_message_ns + static_cast<double>(messages) * model.message_ns;
}

/// What ports do in an all_to_all: the one that has most hosts to serve, at the host that has most to send.
double cost_of_ports(const Hosts& hosts, const Call& call, const CostModel& model) {
  const std::uint32_t others = hosts.hosts() - 1;
  std::uint64_t messages = 0, blocks = 0;
  for (std::uint32_t host = 0; host < hosts.hosts(); ++host) {
    const std::uint64_t ranks = hosts.ranks_of(host).size();
    messages = std::max(messages, (others + ranks - 1) / ranks);
    blocks = std::max(blocks, ranks * (call.size - ranks));
  }
  const std::uint64_t bytes = blocks * call.counts[0] * call.element_bytes;
  return cost_of_overlapping(messages, model) + static_cast<double>(bytes) * model.far_byte_ns;
}

/// Of the copies among the steps.
double cost_of_copies(const Schedule& schedule, std::uint64_t element_bytes, const CostModel& model) {
  double ns = 0;
  for (std::size_t round = 0; round < schedule.rounds(); ++round) {
    for (const Step& step : schedule.round(round)) {
      const bool is_copy = step.action == Action::kCopy;
      if (is_copy) ns += static_cast<double>(step.to.count * element_bytes) * model.read_byte_ns;
    }
  }
  return ns;
}

/// The leader of the host with most ranks.
std::uint32_t busiest_leader(const Call& call) {
  Call first = call;
  first.rank = 0;
  const Hosts hosts = hosts_of(first);
  const Members leaders = hosts.leaders();
  std::uint32_t best = 0;
  for (std::uint32_t host = 1; host < hosts.hosts(); ++host) {
    if (hosts.ranks_of(host).size() > hosts.ranks_of(best).size()) best = host;
  }
  return leaders.world_rank(best);
}

/// At the host with most ranks, and between hosts. The same for all ranks.
template <typename CostOfPhase>
double cost_of_phases(const Call& call, Algorithm algorithm, const CostModel& model, CostOfPhase cost_of_phase) {
  Call one = call;
  one.rank = busiest_leader(call);
  one.has_input_in_output = false;
  const HostPhases phases = host_phases(one, algorithm, model);
  const Hosts hosts = hosts_of(one);
  double ns = 0;
  for (const std::optional<HostPhase>* phase : {&phases.before, &phases.after}) {
    if (*phase && (*phase)->call.size > 1) ns += cost_of_phase((*phase)->call);
  }
  for (const Schedule* schedule : {&phases.between, &phases.last}) {
    ns += cost_of_copies(*schedule, call.element_bytes, model);
  }
  if (call.operation == Operation::kAllToAll) return ns + cost_of_ports(hosts, call, model);
  const bool has_lanes =
      algorithm == Algorithm::kStagedInHosts && call.operation == Operation::kAllReduce && is_sliced(hosts, call.count);
  if (has_lanes) return ns + cost_between(hosts, slice_of(hosts, call.count), hosts.lanes(), call, model);
  return ns + cost_between(hosts, elements_of(call), 1, call, model);
}

double cost_of_phases(const Call& call, Algorithm algorithm, const CostModel& model) {
  return cost_of_phases(call, algorithm, model, [&](const Call& phase) {
    return goes_in_pieces(phase, model) ? cost_of_staging(phase, model) : cost_of_boards(phase, model);
  });
}

/// Of the host with most ranks, and then between hosts. The same for all ranks.
double cost_of_two_levels(const Call& call, const CostModel& model) {
  if (moves_blocks(call) || is_scan(call)) {
    return cost_of_phases(call, Algorithm::kTwoLevels, model, [&](Call phase) {
      phase.may_use_boards = false;
      return choices(phase, model).front().cost_ns;
    });
  }
  const Hosts hosts(call.hosts, 0, call.root);
  const auto within = [&](Operation operation) {
    return cost_among(hosts.ranks_max(), operation, call.count, call, model);
  };
  const auto between = [&](std::uint64_t count, std::uint32_t ranks_of_host = 1) {
    return cost_between(hosts, count, ranks_of_host, call, model);
  };
  if (call.operation == Operation::kBarrier) {
    const double tellings = 2 + 2 * (hosts.ranks_max() - 1) / kPeersAtOnce;
    return between(0) + tellings * model.message_ns;
  }
  if (call.operation != Operation::kAllReduce) return within(call.operation) + between(call.count);
  if (!is_sliced(hosts, call.count)) {
    return within(Operation::kReduce) + between(call.count) + within(Operation::kBroadcast);
  }
  // Reduce-scatter and all-gather are the two halves of an all-reduce.
  return within(Operation::kAllReduce) + between(slice_of(hosts, call.count), hosts.lanes());
}

/// To tell where buffers lie is a meeting, too.
double cost_of_mapped_in_hosts(const Call& call, const CostModel& model) {
  const Hosts hosts(call.hosts, 0, call.root);
  const std::uint64_t count = goes_by_trees(call) ? total(call.counts) : call.count;
  const double ranks = hosts.ranks_max(), bytes = static_cast<double>(count * call.element_bytes);
  const double share = bytes * (ranks - 1) / (call.operation == Operation::kAllReduce ? hosts.lanes() : ranks);
  // On boards, too: ranks come to these when messages of other hosts have come, so most of the time they sleep before.
  const double meeting = messages_to_meet(hosts.ranks_max()) * model.message_ns;
  const double combined = share * model.combined_byte_ns;
  const auto trees = [&](bool combines) {
    return cost_of_pat(Grid(call.hosts, call.size), bytes / call.size, combines, model, PatLevels::kBetweenHosts);
  };
  switch (call.operation) {
    case Operation::kBroadcast:
      return 4 * meeting + bytes * model.read_byte_ns + cost_between(hosts, call.count, 1, call, model);
    case Operation::kAllGather:
      return 4 * meeting + share * model.read_byte_ns + trees(false);
    case Operation::kReduceScatter:
      return 3 * meeting + combined + trees(true);
    default:
      return 4 * meeting + combined + share * model.read_byte_ns +
             cost_between(hosts, slice_of(hosts, call.count), hosts.lanes(), call, model);
  }
}

/// All-gather or reduce-scatter on a circulant graph over all ranks of several hosts. Each round waits for the link of
/// the host that has most to send or to get.
double cost_of_circulant_over_hosts(const Call& call, const CostModel& model) {
  const std::uint32_t ranks = call.size;
  const double block = static_cast<double>(total(call.counts) * call.element_bytes) / ranks;
  double ns = call.operation == Operation::kReduceScatter ? block * (ranks - 1) * model.combined_byte_ns : 0;
  for (std::uint32_t size = ranks; size > 1; size = (size + 1) / 2) {
    const std::uint32_t skip = (size + 1) / 2, moved = size - skip;
    std::map<std::uint32_t, std::uint32_t> sent, got;
    std::uint32_t most = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t here = call.hosts[rank], there = call.hosts[(rank + skip) % ranks];
      if (here != there) most = std::max({most, ++sent[here], ++got[there]});
    }
    const double near = model.message_ns + moved * block * model.byte_ns;
    ns += most > 0 ? model.far_message_ns + most * moved * block * model.far_byte_ns : near;
  }
  return ns;
}

/// A few algorithms: no memory is allocated for them.
class Few {
 public:
  Few(std::initializer_list<Algorithm> all) {
    for (const Algorithm each : all) push_back(each);
  }
  void push_back(Algorithm one) { all_[count_++] = one; }
  std::span<const Algorithm> all() const& { return std::span(all_).first(count_); }
  std::span<const Algorithm> all() const&& = delete;  // They lie in here.

 private:
  std::array<Algorithm, kAlgorithms> all_{};
  std::size_t count_ = 0;
};

/// Those that give the right result on one level, before anybody looks at what they cost.
Few right_on_one_level(const Call& call) {
  switch (call.operation) {
    case Operation::kBarrier:
      return {Algorithm::kDissemination};
    case Operation::kBroadcast:
      return {Algorithm::kTree, Algorithm::kScatterGather};
    case Operation::kReduce:
      if (call.reproducible) return {Algorithm::kFixedTree};
      if (!call.commutes) return {Algorithm::kTree, Algorithm::kFixedTree};
      return {Algorithm::kTree, Algorithm::kCirculant, Algorithm::kFixedTree};
    case Operation::kAllReduce:
      if (call.reproducible) return {Algorithm::kFixedTree};
      if (!call.commutes) return {Algorithm::kDoubling, Algorithm::kFixedTree};
      return {Algorithm::kDoubling, Algorithm::kCirculant, Algorithm::kFixedTree};
    case Operation::kReduceScatter:
      if (call.reproducible || !call.commutes) return {Algorithm::kFixedTree};
      return {Algorithm::kCirculant, Algorithm::kFixedTree};
    case Operation::kAllGather:
      return {Algorithm::kCirculant};
    case Operation::kGather:
    case Operation::kScatter:
    case Operation::kAllToAll:
      return {Algorithm::kDirect};
    case Operation::kScan:
    case Operation::kExclusiveScan:
      return {Algorithm::kDoubling};
  }
  return {};
}

/// On the boards of each host at once. The same for all ranks.
bool fits_boards_in_hosts(const Call& call) {
  const std::uint64_t ranks = Hosts(call.hosts, 0, 0).ranks_max();
  if (!call.may_use_boards || ranks > kBoardRanksMax) return false;
  if (call.operation == Operation::kBarrier) return true;
  const std::uint64_t bytes = elements_of(call) * call.element_bytes;
  const std::uint64_t most = moves_blocks(call) ? kBlocksInHostsMax : kBoardBytesInHostsMax;
  return bytes > 0 && bytes <= std::min(most, call.piece_bytes) && bytes * ranks <= kBoardsBytesMax;
}

bool can_be_staged_in_hosts(const Call& call) {
  const std::uint64_t ranks = Hosts(call.hosts, 0, 0).ranks_max();
  return call.may_use_boards && ranks <= kBoardRanksMax && call.operation != Operation::kBarrier && !is_scan(call) &&
         elements_of(call) > 0 && call.piece_bytes / call.element_bytes / ranks > 0;
}

/// An all_reduce needs slices: then hosts whose ranks cannot map send the same between hosts.
bool fits_mapped_in_hosts(const Call& call) {
  if (!call.may_be_mapped || call.count == 0) return false;
  return call.operation == Operation::kBroadcast ||
         (call.operation == Operation::kAllReduce && is_sliced(Hosts(call.hosts, 0, 0), call.count));
}

Few right_ones(const Call& call) {
  Few all = right_on_one_level(call);
  if (has_host_phases(call)) {
    all.push_back(Algorithm::kTwoLevels);
    if (fits_mapped_in_hosts(call)) all.push_back(Algorithm::kMappedInHosts);
    if (fits_boards_in_hosts(call)) {
      all.push_back(Algorithm::kBoardsInHosts);
    } else if (can_be_staged_in_hosts(call)) {
      all.push_back(Algorithm::kStagedInHosts);
    }
  }
  // On one host, or where hosts differ, a circulant graph takes as many rounds and bytes, and copies nothing.
  if (goes_by_trees(call) && call.commutes && !call.reproducible && Grid::has_hosts(call.hosts)) {
    all.push_back(Algorithm::kPat);
    if (call.may_be_mapped && total(call.counts) > 0) all.push_back(Algorithm::kMappedInHosts);
  }
  if (!call.hosts.empty()) return all;  // What follows is for the ranks of one host.
  const bool moves = call.operation == Operation::kBroadcast || call.operation == Operation::kAllGather;
  const bool combines = call.operation == Operation::kAllReduce || call.operation == Operation::kReduceScatter;
  if (call.may_be_mapped && call.size > 1 && (moves || (combines && call.commutes && !call.reproducible))) {
    all.push_back(Algorithm::kMapped);
  }
  if (fits_boards(call)) all.push_back(Algorithm::kBoards);
  if (fits_staging(call)) all.push_back(Algorithm::kStaged);
  return all;
}

/// The host that has most ranks has so many.
std::uint32_t ranks_of_host(const Call& call) {
  return Hosts::has_levels(call.hosts) ? Hosts(call.hosts, 0, 0).ranks_max() : 1;
}

class Costs {
 public:
  Costs(const Call& call, const CostModel& model)
      : call_(call),
        model_(model),
        // On one level each round waits for the slowest of its messages, and mostly all ranks of a host send to others.
        one_level_(Hosts::are_several(call.hosts) ? model.between_hosts(ranks_of_host(call)) : model) {}

  double of(Algorithm algorithm) const {
    if (algorithm == Algorithm::kTwoLevels) return cost_of_two_levels(call_, model_);
    if (algorithm == Algorithm::kBoards) return cost_of_boards(call_, model_);
    if (algorithm == Algorithm::kStaged) return cost_of_staging(call_, model_);
    if (algorithm == Algorithm::kPat) return of_pat();
    const bool is_over_hosts = algorithm == Algorithm::kCirculant && goes_by_trees(call_);
    if (is_over_hosts && Hosts::are_several(call_.hosts)) return cost_of_circulant_over_hosts(call_, model_);
    if (algorithm == Algorithm::kMappedInHosts) return cost_of_mapped_in_hosts(call_, model_);
    if (has_phases(algorithm)) return cost_of_phases(call_, algorithm, model_);
    if (call_.operation == Operation::kAllToAll && Hosts::are_several(call_.hosts)) return of_direct_exchange();
    return cost_of(work_of(call_, algorithm), static_cast<double>(call_.element_bytes), one_level_);
  }

 private:
  double of_direct_exchange() const {
    const double moved = work_of(call_, Algorithm::kDirect).moved * static_cast<double>(call_.element_bytes);
    return cost_of_overlapping(call_.size - 1, model_) + moved * one_level_.byte_ns;
  }
  double of_pat() const {
    const auto bytes = static_cast<double>(total(call_.counts) * call_.element_bytes);
    return cost_of_pat(Grid(call_.hosts, call_.size), bytes / call_.size, call_.operation == Operation::kReduceScatter,
                       model_);
  }

  const Call& call_;
  const CostModel& model_;
  const CostModel one_level_;
};

bool knows_all_counts(const Call& call) {
  return call.operation != Operation::kAllToAll || (call.is_even && !call.hosts.empty());
}

/// No rank knows the others' counts, and all choose alike: so by what the call costs without elements.
Algorithm cheapest_exchange(const Call& call, const CostModel& model) {
  Call empty = call;
  empty.counts.assign(call.size, 0);
  empty.in_counts = empty.counts;
  const Costs costs(empty, model);
  const bool is_staged = fits_staging(call) && costs.of(Algorithm::kStaged) < costs.of(Algorithm::kDirect);
  return is_staged ? Algorithm::kStaged : Algorithm::kDirect;
}

}  // namespace

std::string_view to_string(Operation operation) {
  constexpr std::array<std::string_view, 11> kNames = {"barrier",    "broadcast",      "reduce",        "all_reduce",
                                                       "all_gather", "reduce_scatter", "gather",        "scatter",
                                                       "all_to_all", "scan",           "exclusive_scan"};
  const auto at = static_cast<std::size_t>(operation);
  return at < kNames.size() ? kNames[at] : "unknown";
}

std::string_view to_string(Algorithm algorithm) {
  constexpr std::array<std::string_view, kAlgorithms> kNames = {"dissemination",   "tree",       "scatter and gather",
                                                                "doubling",        "circulant",  "fixed tree",
                                                                "direct",          "two levels", "mapped",
                                                                "boards",          "pat",        "mapped in hosts",
                                                                "boards in hosts", "staged",     "staged in hosts"};
  const auto at = static_cast<std::size_t>(algorithm);
  return at < kNames.size() ? kNames[at] : "unknown";
}

std::optional<Algorithm> algorithm_named(std::string_view name) {
  for (std::size_t number = 0; number < kAlgorithms; ++number) {
    const auto each = static_cast<Algorithm>(number);
    if (to_string(each) == name) return each;
  }
  return std::nullopt;
}

std::vector<Choice> choices(const Call& call, const CostModel& model) {
  std::vector<Choice> all;
  const Costs costs(call, model);
  const Few right = right_ones(call);
  for (const Algorithm algorithm : right.all()) all.push_back({algorithm, costs.of(algorithm)});
  std::ranges::stable_sort(all, {}, &Choice::cost_ns);
  if (!knows_all_counts(call)) {
    const Algorithm best = cheapest(call, model);
    std::stable_partition(all.begin(), all.end(), [&](const Choice& choice) { return choice.algorithm == best; });
  }
  return all;
}

Algorithm cheapest(const Call& call, const CostModel& model) {
  if (!knows_all_counts(call)) return cheapest_exchange(call, model);
  const Costs costs(call, model);
  std::optional<Choice> best;
  const Few right = right_ones(call);
  for (const Algorithm algorithm : right.all()) {
    const double cost = costs.of(algorithm);
    if (!best || cost < best->cost_ns) best = Choice{algorithm, cost};
  }
  HAWSER_ASSERT(best.has_value(), "each operation can be done");
  return best->algorithm;
}

bool has_phases(Algorithm algorithm) {
  return algorithm == Algorithm::kBoardsInHosts || algorithm == Algorithm::kStagedInHosts;
}

bool is_by_hosts(Algorithm algorithm) {
  return algorithm == Algorithm::kTwoLevels || algorithm == Algorithm::kPat || algorithm == Algorithm::kMappedInHosts ||
         has_phases(algorithm);
}

bool is_by_memory(Algorithm algorithm) {
  return algorithm == Algorithm::kMapped || algorithm == Algorithm::kMappedInHosts || is_on_boards(algorithm);
}

bool is_on_boards(Algorithm algorithm) {
  return algorithm == Algorithm::kBoards || algorithm == Algorithm::kStaged || has_phases(algorithm);
}

std::vector<Choice> unmapped_choices(const Call& call, const CostModel& model) {
  std::vector<Choice> all = choices(call, model);
  std::erase_if(all, [](const Choice& choice) { return is_by_memory(choice.algorithm); });
  return all;
}

bool fits_boards(const Call& call) {
  const bool has_order = call.operation == Operation::kBarrier || call.operation == Operation::kBroadcast ||
                         call.operation == Operation::kAllGather;
  const bool combines = call.operation == Operation::kReduce || call.operation == Operation::kAllReduce ||
                        call.operation == Operation::kReduceScatter || is_scan(call);
  if (!(has_order || (combines && !call.reproducible)) || !fits_turn(call)) return false;
  return elements_of(call) > 0 || call.operation == Operation::kBarrier;  // For nothing no rank waits for another one.
}

bool goes_in_pieces(const Call& call, const CostModel& model) {
  if (!has_pieces(call)) return false;
  return !fits_turn(call) || cost_of_staging(call, model) < cost_of_boards(call, model);
}

ByMessages by_messages(const Call& call, Algorithm algorithm, const CostModel& model) {
  ByMessages made;
  if (has_phases(algorithm)) {
    made.algorithm = Algorithm::kTwoLevels;
    made.schedule = make_schedule(call, algorithm, model);
    return made;
  }
  if (algorithm == Algorithm::kMappedInHosts) {
    const bool has_trees = goes_by_trees(call);
    made.algorithm = has_trees ? Algorithm::kPat : Algorithm::kTwoLevels;
    const Costs costs(call, model);
    // Between hosts that sends the same.
    const bool is_staged =
        !has_trees && can_be_staged_in_hosts(call) && costs.of(Algorithm::kStagedInHosts) < costs.of(made.algorithm);
    if (is_staged) made.on_boards = Algorithm::kStagedInHosts;
  } else {
    const Choice best = unmapped_choices(call, model)[0];
    made.algorithm = best.algorithm;
    double least = best.cost_ns;
    for (const Algorithm each : {Algorithm::kBoards, Algorithm::kStaged}) {
      const bool fits = each == Algorithm::kBoards ? fits_boards(call) : fits_staging(call);
      const double cost = fits ? Costs(call, model).of(each) : 0;
      if (!fits || cost > least) continue;
      made.on_boards = each;
      least = cost;
    }
  }
  made.schedule = make_schedule(call, made.algorithm, model);
  return made;
}

std::uint64_t bytes_on_board(const Call& call, std::uint32_t rank) {
  std::uint64_t count = 0;
  switch (call.operation) {
    case Operation::kBroadcast:
      count = rank == call.root ? call.count : 0;
      break;
    case Operation::kReduce:
    case Operation::kAllReduce:
    case Operation::kScan:
    case Operation::kExclusiveScan:
      count = call.count;
      break;
    case Operation::kAllGather:
      count = call.counts[rank];
      break;
    case Operation::kReduceScatter:
      count = total(call.counts);
      break;
    case Operation::kGather:
      count = rank == call.root ? 0 : call.counts[rank];
      break;
    case Operation::kScatter:
      count = rank == call.root ? total(call.counts) : 0;
      break;
    default:
      break;
  }
  return count * call.element_bytes;
}

std::uint64_t input_count(const Call& call) {
  const bool is_root = call.rank == call.root;
  switch (call.operation) {
    case Operation::kBarrier:
    case Operation::kBroadcast:
      return 0;
    case Operation::kAllGather:
    case Operation::kGather:
      return call.counts[call.rank];
    case Operation::kScatter:
      return is_root ? total(call.counts) : 0;
    case Operation::kReduceScatter:
    case Operation::kAllToAll:
      return total(call.counts);
    default:
      return call.count;
  }
}

std::uint64_t output_count(const Call& call) {
  const bool is_root = call.rank == call.root;
  switch (call.operation) {
    case Operation::kAllGather:
      return total(call.counts);
    case Operation::kGather:
      return is_root ? total(call.counts) : 0;
    case Operation::kScatter:
    case Operation::kReduceScatter:
      return call.counts[call.rank];
    case Operation::kAllToAll:
      return total(call.in_counts);
    case Operation::kReduce:
      return is_root ? call.count : 0;
    default:
      return call.count;
  }
}

Schedule make_schedule(const Call& call, Algorithm algorithm, const CostModel& model, Meetings meetings) {
  HAWSER_ASSERT(call.size > 0 && call.rank < call.size && call.root < call.size, "ranks are those of the world");
  if (is_on_levels(algorithm) && (moves_blocks(call) || is_scan(call))) {
    return phases_by_messages(host_phases(call, algorithm, model), hosts_of(call), model);
  }
  Schedule schedule(meetings);
  const Members me = Members::all(call.rank, call.size);
  switch (call.operation) {
    case Operation::kBarrier:
      if (is_on_levels(algorithm)) {
        barrier_two_levels(schedule, hosts_of(call));
      } else {
        barrier_dissemination(schedule, me);
      }
      break;
    case Operation::kBroadcast:
      broadcast(schedule, call, algorithm, model);
      break;
    case Operation::kReduce:
      reduce(schedule, call, algorithm, model);
      break;
    case Operation::kAllReduce:
      all_reduce(schedule, call, algorithm, model);
      break;
    case Operation::kAllGather:
      all_gather(schedule, call, algorithm);
      break;
    case Operation::kReduceScatter:
      reduce_scatter(schedule, call, algorithm);
      break;
    case Operation::kGather: {
      const Blocks blocks(call.counts);
      const Slice own = call.has_input_in_output && call.rank == call.root
                            ? blocks.slice(Buffer::kOutput, call.rank)
                            : whole(Buffer::kInput, blocks.count(call.rank));
      gather_direct(schedule, me, call.root, blocks, own, Buffer::kOutput);
      break;
    }
    case Operation::kScatter: {
      const Blocks blocks(call.counts);
      scatter_direct(schedule, me, call.root, blocks, Buffer::kInput, whole(Buffer::kOutput, blocks.count(call.rank)));
      break;
    }
    case Operation::kAllToAll:
      exchange_blocks(schedule, me, Blocks(call.counts), Buffer::kInput, Blocks(call.in_counts), Buffer::kOutput);
      break;
    case Operation::kScan:
    case Operation::kExclusiveScan:
      scan(schedule, call);
      break;
  }
  return schedule;
}

}  // namespace hawser::schedule
