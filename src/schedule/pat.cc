#include "schedule/pat.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

namespace hawser::schedule {
namespace {

/// What one rank sends in a round of all trees: to whom, and the blocks of which ranks.
struct Exchange {
  std::uint32_t to = 0, from = 0;
  std::vector<std::uint32_t> sent, received;
};

/// In the order of an all-gather: the greatest distance first. In a dimension of `size` places a block that has come
/// to a place has been handed on from others by distances that are multiples of twice this round's.
class Rounds {
 public:
  Rounds(const Grid& grid, std::uint32_t rank, PatLevels levels)
      : grid_(grid), host_(grid.host_of(rank)), place_(grid.place_of(rank)) {
    for (std::uint32_t d = std::bit_ceil(grid.hosts()) / 2; d > 0; d /= 2) all_.push_back(between_hosts(d));
    if (levels == PatLevels::kBetweenHosts) return;
    for (std::uint32_t d = std::bit_ceil(grid.ranks_of_host()) / 2; d > 0; d /= 2) all_.push_back(within_host(d));
  }
  const std::vector<Exchange>& all() const { return all_; }

 private:
  static std::uint32_t before(std::uint32_t at, std::uint32_t distance, std::uint32_t size) {
    return (at + size - distance) % size;
  }
  Exchange between_hosts(std::uint32_t distance) const {
    const std::uint32_t size = grid_.hosts(), from = before(host_, distance, size);
    Exchange one{.to = grid_.rank((host_ + distance) % size, place_), .from = grid_.rank(from, place_)};
    for (std::uint32_t gone = 0; gone + distance < size; gone += 2 * distance) {
      one.sent.push_back(grid_.rank(before(host_, gone, size), place_));
      one.received.push_back(grid_.rank(before(from, gone, size), place_));
    }
    return one;
  }
  /// Here a rank hands on, for each place, the blocks that all hosts have of that place.
  Exchange within_host(std::uint32_t distance) const {
    const std::uint32_t size = grid_.ranks_of_host(), from = before(place_, distance, size);
    Exchange one{.to = grid_.rank(host_, (place_ + distance) % size), .from = grid_.rank(host_, from)};
    for (std::uint32_t host = 0; host < grid_.hosts(); ++host) {
      for (std::uint32_t gone = 0; gone + distance < size; gone += 2 * distance) {
        one.sent.push_back(grid_.rank(host, before(place_, gone, size)));
        one.received.push_back(grid_.rank(host, before(from, gone, size)));
      }
    }
    return one;
  }

  const Grid& grid_;
  const std::uint32_t host_, place_;
  std::vector<Exchange> all_;
};

/// What goes at once: blocks that go alone, and small ones in one message.
struct Load {
  std::vector<std::uint32_t> alone, staged;
  std::uint64_t alone_count = 0, staged_count = 0;  ///< Elements.
};

/// Both ends cut the same list alike.
std::vector<Load> loads_of(const std::vector<std::uint32_t>& ranks, const Blocks& blocks, std::uint64_t element_bytes) {
  std::vector<Load> all;
  for (const std::uint32_t rank : ranks) {
    const std::uint64_t count = blocks.count(rank), bytes = count * element_bytes;
    if (count == 0) continue;
    const bool is_alone = bytes >= kPatAlone;
    const auto fits = [&](const Load& load) {
      if (!is_alone) return (load.staged_count + count) * element_bytes <= kPatStaged;
      return load.alone.empty() ||
             (load.alone.size() < kPatBlocks && (load.alone_count + count) * element_bytes <= kPatBytes);
    };
    if (all.empty() || !fits(all.back())) all.emplace_back();
    Load& load = all.back();
    (is_alone ? load.alone : load.staged).push_back(rank);
    (is_alone ? load.alone_count : load.staged_count) += count;
  }
  return all;
}

/// The most elements that one load brings of those that are counted.
template <typename Count>
std::uint64_t most_of(const std::vector<std::vector<Load>>& all, Count count) {
  std::uint64_t most = 0;
  for (const std::vector<Load>& loads : all) {
    for (const Load& load : loads) most = std::max(most, count(load));
  }
  return most;
}

class Mover {
 public:
  Mover(Schedule& schedule, const Blocks& blocks, Buffer buffer)
      : schedule_(schedule), blocks_(blocks), buffer_(buffer) {}

  /// One exchange, in as many rounds as it has loads: `take` receives one and puts it where it belongs.
  template <typename Take>
  void exchange(const std::vector<Load>& sent, std::uint32_t to, std::uint64_t staged_at,
                const std::vector<Load>& received, Take take) {
    for (std::size_t part = 0; part < std::max(sent.size(), received.size()); ++part) {
      if (part < sent.size()) stage(sent[part], staged_at);  // At the end of the round before.
      schedule_.end_round();
      if (part < sent.size()) send(sent[part], to, staged_at);
      if (part < received.size()) take(received[part]);
    }
  }
  void stage(const Load& load, std::uint64_t at) {
    for (const std::uint32_t rank : load.staged) {
      const Slice block = blocks_.slice(buffer_, rank);
      schedule_.copy(block, {Buffer::kScratch, at, block.count});
      at += block.count;
    }
  }
  void send(const Load& load, std::uint32_t to, std::uint64_t staged_at) {
    schedule_.send(to, {Buffer::kScratch, staged_at, load.staged_count});
    for (const std::uint32_t rank : load.alone) schedule_.send(to, blocks_.slice(buffer_, rank));
  }

  /// An all-gather's: each block goes to its place.
  void receive(const Load& load, std::uint32_t from, std::uint64_t staged_at) {
    schedule_.receive(from, {Buffer::kScratch, staged_at, load.staged_count});
    for (const std::uint32_t rank : load.alone) schedule_.receive(from, blocks_.slice(buffer_, rank));
  }
  void unstage(const Load& load, std::uint64_t at) {
    for (const std::uint32_t rank : load.staged) {
      const Slice block = blocks_.slice(buffer_, rank);
      schedule_.copy({Buffer::kScratch, at, block.count}, block);
      at += block.count;
    }
  }

  /// A reduce-scatter's: all that comes waits to be combined.
  void receive_apart(const Load& load, std::uint32_t from, std::uint64_t at) {
    schedule_.receive(from, {Buffer::kScratch, at, load.staged_count});
    at += load.staged_count;
    for (const std::uint32_t rank : load.alone) {
      schedule_.receive(from, {Buffer::kScratch, at, blocks_.count(rank)});
      at += blocks_.count(rank);
    }
  }
  void combine(const Load& load, std::uint64_t at) {
    for (const std::vector<std::uint32_t>* ranks : {&load.staged, &load.alone}) {
      for (const std::uint32_t rank : *ranks) {
        const Slice block = blocks_.slice(buffer_, rank);
        schedule_.combine({Buffer::kScratch, at, block.count}, block);
        at += block.count;
      }
    }
  }

 private:
  Schedule& schedule_;
  const Blocks& blocks_;
  const Buffer buffer_;
};

}  // namespace

Grid::Grid(std::span<const std::uint32_t> hosts, std::uint32_t size) : places_(size) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_host;
  const bool is_even = has_hosts(hosts);
  for (std::uint32_t rank = 0; rank < size; ++rank) by_host[is_even ? hosts[rank] : 0].push_back(rank);
  hosts_ = static_cast<std::uint32_t>(by_host.size());
  for (const auto& [host, its] : by_host) ranks_.insert(ranks_.end(), its.begin(), its.end());
  for (std::uint32_t place = 0; place < size; ++place) places_[ranks_[place]] = place;
}

bool Grid::has_hosts(std::span<const std::uint32_t> hosts) {
  std::map<std::uint32_t, std::size_t> ranks;
  for (const std::uint32_t host : hosts) ++ranks[host];
  return ranks.size() > 1 && ranks.size() < hosts.size() &&
         std::ranges::all_of(ranks, [&](const auto& each) { return each.second == ranks.begin()->second; });
}

void all_gather_pat(Schedule& schedule, const Grid& grid, std::uint32_t rank, const Blocks& blocks, Buffer buffer,
                    std::uint64_t element_bytes, PatLevels levels) {
  const Rounds rounds(grid, rank, levels);
  std::vector<std::vector<Load>> sent, received;
  for (const Exchange& each : rounds.all()) {
    sent.push_back(loads_of(each.sent, blocks, element_bytes));
    received.push_back(loads_of(each.received, blocks, element_bytes));
  }
  const auto staged = [](const Load& load) { return load.staged_count; };
  const std::uint64_t out = schedule.take_scratch(most_of(sent, staged));
  const std::uint64_t in = schedule.take_scratch(most_of(received, staged));
  Mover mover(schedule, blocks, buffer);
  for (std::size_t i = 0; i < rounds.all().size(); ++i) {
    mover.exchange(sent[i], rounds.all()[i].to, out, received[i], [&](const Load& load) {
      mover.receive(load, rounds.all()[i].from, in);
      mover.unstage(load, in);
    });
  }
  schedule.end_round();
}

void reduce_scatter_pat(Schedule& schedule, const Grid& grid, std::uint32_t rank, const Blocks& blocks, Buffer buffer,
                        std::uint64_t element_bytes, PatLevels levels) {
  // An all-gather backwards: what it received is sent to where it came from, and what it sent comes back.
  const Rounds rounds(grid, rank, levels);
  std::vector<std::vector<Load>> sent, received;
  for (const Exchange& each : rounds.all()) {
    sent.push_back(loads_of(each.received, blocks, element_bytes));
    received.push_back(loads_of(each.sent, blocks, element_bytes));
  }
  const std::uint64_t out = schedule.take_scratch(most_of(sent, [](const Load& load) { return load.staged_count; }));
  const std::uint64_t in =
      schedule.take_scratch(most_of(received, [](const Load& load) { return load.staged_count + load.alone_count; }));
  Mover mover(schedule, blocks, buffer);
  for (std::size_t i = rounds.all().size(); i-- > 0;) {
    mover.exchange(sent[i], rounds.all()[i].from, out, received[i], [&](const Load& load) {
      mover.receive_apart(load, rounds.all()[i].to, in);
      mover.combine(load, in);
    });
  }
  schedule.end_round();
}

double cost_of_pat(const Grid& grid, double block_bytes, bool combines, const CostModel& model, PatLevels levels) {
  const bool is_alone = block_bytes >= static_cast<double>(kPatAlone);
  const double at_once = is_alone ? std::clamp(std::floor(static_cast<double>(kPatBytes) / block_bytes), 1.0,
                                               static_cast<double>(kPatBlocks))
                                  : std::floor(static_cast<double>(kPatStaged) / std::max(block_bytes, 1.0));
  const double byte_ns =
      combines ? model.combined_byte_ns + (is_alone ? 0 : model.read_byte_ns) : (is_alone ? 0 : 2 * model.read_byte_ns);
  const auto along = [&](std::uint32_t size, double blocks_each, const CostModel& costs) {
    double ns = 0;
    for (std::uint32_t distance = std::bit_ceil(size) / 2; distance > 0; distance /= 2) {
      const double trees = (size - distance + 2 * distance - 1) / (2 * distance);
      const double blocks = trees * blocks_each;
      ns += std::ceil(blocks / at_once) * costs.message_ns + blocks * block_bytes * (costs.byte_ns + byte_ns);
    }
    return ns;
  };
  const bool is_far = grid.hosts() > 1;
  const double between = along(grid.hosts(), 1, is_far ? model.between_hosts(grid.ranks_of_host()) : model);
  return levels == PatLevels::kBetweenHosts ? between : between + along(grid.ranks_of_host(), grid.hosts(), model);
}

}  // namespace hawser::schedule
