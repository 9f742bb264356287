#include "backend/sim/fabric.h"

#include <algorithm>

namespace hawser::sim {

Fabric::Link& Fabric::link(std::uint32_t from, std::uint32_t to) {
  const auto [at, fresh] = links_.try_emplace({from, to});
  if (fresh) at->second.options = default_;
  return at->second;
}

void Fabric::set_link(std::uint32_t from, std::uint32_t to, const LinkOptions& options) {
  link(from, to).options = options;
}

Duration Fabric::noise(const LinkOptions& options) {
  Duration sum{};
  if (options.jitter_max.count() > 0) {
    sum += Duration(world_.rng().range(0, options.jitter_max.count()));
  }
  // Bounded: after the fourth loss in a row the segment gets through.
  Duration wait = options.retransmit;
  for (int i = 0; i < 4 && options.loss > 0 && world_.rng().chance(options.loss); ++i, wait *= 2) {
    sum += wait;
  }
  return sum;
}

Instant Fabric::arrival(std::uint32_t from, std::uint32_t to, std::uint64_t size) {
  Link& way = link(from, to);
  const auto occupied = Duration(static_cast<std::int64_t>(static_cast<double>(size) / way.options.bytes_per_ns));
  way.free_at = std::max(way.free_at, world_.now()) + occupied;
  return way.free_at + way.options.latency + noise(way.options);
}

Instant Fabric::arrival_small(std::uint32_t from, std::uint32_t to) {
  const LinkOptions& options = link(from, to).options;
  return world_.now() + options.latency + noise(options);
}

void Fabric::cut(std::uint32_t from, std::uint32_t to) { link(from, to).cut = true; }

void Fabric::heal(std::uint32_t from, std::uint32_t to) {
  Link& way = link(from, to);
  if (!way.cut) return;
  way.cut = false;
  // One after the other, as a sender that retransmits would, and never before what comes later.
  std::vector<std::function<void()>> held = std::move(way.held);
  way.held.clear();
  for (auto& action : held) deliver(from, to, arrival_small(from, to), std::move(action));
}

void Fabric::heal_all() {
  std::vector<Way> cut_ways;
  for (const auto& [way, link] : links_) {
    if (link.cut) cut_ways.push_back(way);
  }
  for (const Way& way : cut_ways) heal(way.first, way.second);
}

bool Fabric::is_cut(std::uint32_t from, std::uint32_t to) const {
  const auto at = links_.find({from, to});
  return at != links_.end() && at->second.cut;
}

void Fabric::deliver(std::uint32_t from, std::uint32_t to, Instant when, std::function<void()> action) {
  world_.at(when, [this, from, to, action = std::move(action)]() mutable {
    Link& way = link(from, to);
    if (way.cut) {
      way.held.push_back(std::move(action));
    } else {
      action();
    }
  });
}

}  // namespace hawser::sim
