#include "backend/verbs/path/pair_set.h"

#include <utility>

namespace hawser::backend::verbs {

PathPair* PairSet::best(const Chunk& chunk, const VerbsBinding& binding, std::uint64_t* passed) const {
  static_assert(wire::kPairsMax <= 64);
  if (pairs_.size() == 1) {  // Most paths have no choice.
    PathPair& only = *pairs_.front();
    const bool fits = *passed == 0 && only.is_ready() && binding.has_key(only.remote());
    *passed = 1;
    return fits ? &only : nullptr;
  }
  std::size_t best = pairs_.size();
  std::pair<std::uint8_t, double> best_cost;
  // Where one speed is not known all count as equally fast.
  const bool is_known = std::ranges::all_of(pairs_, [](const auto& pair) { return pair->place().mbit_per_s > 0; });
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const PathPair& pair = *pairs_[i];
    if ((*passed >> i & 1) != 0 || !pair.is_ready() || !binding.has_key(pair.remote())) continue;
    const auto bytes = static_cast<double>(pair.qp().bytes_posted() + chunk.bytes);
    const std::pair cost(pair.qp().distance(chunk),
                         is_known ? bytes / static_cast<double>(pair.place().mbit_per_s) : bytes);
    if (best != pairs_.size() && cost >= best_cost) continue;
    best = i;
    best_cost = cost;
  }
  if (best == pairs_.size()) return nullptr;
  *passed |= std::uint64_t{1} << best;
  return pairs_[best].get();
}

bool PairSet::may_reach(const VerbsBinding& binding) const {
  return pairs_.empty() ||
         std::ranges::any_of(pairs_, [&binding](const auto& pair) { return binding.has_key(pair->remote()); });
}

bool PairSet::reaches(const VerbsBinding& binding) const {
  return std::ranges::any_of(
      pairs_, [&binding](const auto& pair) { return pair->is_ready() && binding.has_key(pair->remote()); });
}

bool PairSet::cancel(std::uint64_t transfer) const {
  bool is_posted = false;
  for (const auto& pair : pairs_) {
    pair->lost().cancel(transfer);
    is_posted = pair->qp().cancel(transfer) || is_posted;
  }
  return is_posted;
}

bool PairSet::is_idle() const {
  return std::ranges::all_of(pairs_, [](const auto& pair) { return pair->qp().is_idle() && pair->lost().empty(); });
}

std::size_t PairSet::lost() const {
  std::size_t lost = 0;
  for (const auto& pair : pairs_) lost += pair->lost().size();
  return lost;
}

bool PairSet::may_use(const KeysInUse& keys) const {
  return std::ranges::any_of(pairs_, [&keys](const auto& pair) {
    return &pair->qp().nic().cache == keys.cache && pair->qp().may_use(keys.address, keys.size, keys.before);
  });
}

Instant PairSet::next_deadline() const {
  Instant next = Instant::max();
  for (const auto& pair : pairs_) next = std::min(next, pair->next_deadline());
  return next;
}

}  // namespace hawser::backend::verbs
