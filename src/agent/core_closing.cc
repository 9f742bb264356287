// Regions of an agent: how they are closed, once nobody uses them.

#include <algorithm>
#include <utility>

#include "agent/core.h"
#include "agent/fork_guard.h"
#include "backend/address_space.h"
#include "base/planted.h"
#include "base/small_vector.h"

namespace hawser::agent {
namespace {

constexpr std::size_t kChangesMax = 4096;  ///< Kept for deltas; who is further behind gets a full card.
/// Closed together, while the lane is held.
constexpr std::size_t kRegionsAtOnce = 64;
/// Between two looks at regions that were dropped while something used them; twice as long after each.
constexpr Duration kSweepPause = std::chrono::milliseconds(1);
constexpr Duration kSweepPauseMax = std::chrono::milliseconds(128);

/// Few are closed at once, mostly, and then lists of them take no memory.
template <typename T>
using Few = base::SmallVector<T, 4>;

Few<backend::RegionId> ids_of(std::span<const std::shared_ptr<LocalRegion>> regions) {
  Few<backend::RegionId> ids;
  ids.reserve(regions.size());
  for (const auto& region : regions) ids.push_back({region->entry->index, region->entry->generation});
  return ids;
}

bool has_closed(const LocalRegion& region) {
  return region.state.load(std::memory_order_acquire) == RegionState::kClosed;
}

Status left_region(const LocalRegion& region, const std::string& holder) {
  return Status(Code::kTimedOut, "close: region '" + region.entry->name + "' was still used by " + holder +
                                     " when its agent was closed, and nobody can tell when that ends")
      .with_advice(
          "do not free the memory; an agent's close() that is called until it gives kOk leaves no such region");
}

}  // namespace

void Core::release_pages(const LocalRegion& region) {
  if (!region.entry->pages) return;
  if (Status status = region.entry->pages->release(); !status.ok()) {
    HAWSER_LOG(log, kWarn, "{}: memory of region '{}' keeps its bytes, but stays in a memory file: {}", options.name,
               region.entry->name, status.to_string());
  }
}

bool Core::region_quiet(const LocalRegion& region, std::string* holder) {
  if (!region.left_to.empty()) {
    *holder = region.left_to;
    return false;
  }
  if (region.users > 0 && !base::planted(base::Planted::kUsersForgotten)) {
    *holder = std::to_string(region.users) + " transfers of this agent";
    return false;
  }
  if (region.watchers > 0) {
    *holder = std::to_string(region.watchers) + " threads that wait for a word of it";
    return false;
  }
  if (region.newcomers > 0) {
    *holder = "a backend that is being added";
    return false;
  }
  bool quiet = true;
  for (OpenBackend& open : engine.ports().all()) {
    quiet = open.port->region_quiet(region.entry->index, region.entry->generation, holder) && quiet;
  }
  return quiet;
}

void Core::finish_regions(std::span<const std::shared_ptr<LocalRegion>> quiet) {
  if (quiet.empty()) return;
  for (const auto& region : quiet) {
    region->state.store(RegionState::kClosed, std::memory_order_release);
    for (OpenBackend& open : engine.ports().all()) open.backend->remove_region(*region->entry);
    for (Arriving* each : arriving_) {
      const bool was_told = each->extras.erase({region->entry->index, region->entry->generation}) > 0;
      if (was_told) each->open.backend->remove_region(*region->entry);
    }
  }
  {
    const base::MutexLock lock(mutex_);
    // Not before: an agent that closes waits for all that are there.
    for (const auto& region : quiet) booked(region->entry->index) = {};
  }
  regions.remove(ids_of(quiet));
}

void Core::changed(std::uint32_t index, std::uint32_t generation, bool removed) {
  const std::uint64_t revision = revision_.fetch_add(1, std::memory_order_acq_rel) + 1;
  changes_.push_back({.revision = revision, .index = index, .generation = generation, .removed = removed});
  if (changes_.size() > kChangesMax) changes_.pop_front();
  presence.ask();
}

void Core::begin_closing(std::span<const std::shared_ptr<LocalRegion>> closing) {
  lane.take_submissions(kSubmissionsMax, now());  // What was submitted before is in there, to be cancelled.
  Few<std::shared_ptr<LocalRegion>> begun;
  begun.reserve(closing.size());
  for (const auto& region : closing) {
    if (region->state.load(std::memory_order_relaxed) != RegionState::kOpen) continue;
    region->state.store(RegionState::kClosing, std::memory_order_release);
    begun.push_back(region);
  }
  if (begun.empty()) return;
  const Few<backend::RegionId> ids = ids_of(begun);
  regions.close(ids);
  for (OpenBackend& open : engine.ports().all()) open.port->regions_closing(ids);
  const Instant at = now();
  for (const auto& region : begun) {
    engine.transfers().cancel_region(*region, at);
    engine.bindings().on_own_region_closed(*self_, region->entry->index, region->entry->generation, at);
  }
  {
    const base::MutexLock lock(mutex_);
    for (const auto& region : begun) {
      if (!region->entry->name.empty()) region_names_.erase(region->entry->name);
      booked(region->entry->index).extras.clear();
      changed(region->entry->index, region->entry->generation, true);
    }
  }
  engine.exchange().on_own_change();
  const bool is_watched = std::ranges::any_of(begun, [](const auto& region) { return region->watchers > 0; });
  if (is_watched) lane.news_from_outside();  // Its closing is what those who wait for a word look for, too.
}

void Core::let_go(std::span<const std::shared_ptr<LocalRegion>> closing) {
  Few<std::shared_ptr<backend::Backend>> slow;
  for (const OpenBackend& open : engine.ports().all()) {
    if (open.traits->lets_go_slowly) slow.push_back(open.backend);
  }
  if (slow.empty()) return;
  Few<std::shared_ptr<const backend::RegionEntry>> unused;
  for (const auto& region : closing) {
    if (!has_closed(*region) && region->users == 0 && region->newcomers == 0) unused.push_back(region->entry);
  }
  if (unused.empty()) return;
  lane.unlock();
  for (const auto& backend : slow) {
    for (const auto& entry : unused) backend->let_go(*entry);
  }
  lane.lock();
}

void Core::close_the_quiet(std::span<const std::shared_ptr<LocalRegion>> closing) {
  Few<std::shared_ptr<LocalRegion>> quiet;
  quiet.reserve(closing.size());
  std::string holder;
  lane.lock();
  begin_closing(closing);
  let_go(closing);
  for (const auto& region : closing) {
    if (!has_closed(*region) && region_quiet(*region, &holder)) quiet.push_back(region);
  }
  finish_regions(quiet);
  lane.unlock();
}

/// Waits until nobody uses the region.
Status Core::finish_closing(const std::shared_ptr<LocalRegion>& region, Instant deadline) {
  std::string holder;
  for (;;) {
    lane.lock();
    let_go(std::span(&region, 1));
    const bool closed = region->state.load(std::memory_order_relaxed) == RegionState::kClosed;
    const bool quiet = closed || region_quiet(*region, &holder);
    const bool is_left = !region->left_to.empty();
    if (quiet && !closed) finish_regions(std::span(&region, 1));
    lane.unlock();
    if (quiet) {
      release_pages(*region);
      return {};
    }
    if (is_left) return left_region(*region, holder);
    if (now() >= deadline) break;
    lane.wait_until([] { return false; }, std::min(deadline, now() + std::chrono::microseconds(100)));
  }
  Status status(Code::kTimedOut, "close: region '" + region->entry->name + "' is still used by " + holder);
  if (region->entry->base == nullptr) return status.with_advice("call close again");
  if (!region->entry->arena) return status.with_advice("do not free the memory; call close again");
  region->entry->arena->abandon();
  return status.with_advice("the memory was abandoned: it is never given out again; close may be called again");
}

Status Core::close_region(const std::shared_ptr<LocalRegion>& region, Duration timeout) {
  return close_regions(std::span(&region, 1), timeout);
}

Status Core::close_regions(std::span<const std::shared_ptr<LocalRegion>> closing, Duration timeout) {
  const Instant deadline = now() + timeout;
  for (auto rest = closing; !rest.empty(); rest = rest.subspan(std::min(kRegionsAtOnce, rest.size()))) {
    close_the_quiet(rest.first(std::min(kRegionsAtOnce, rest.size())));  // Mostly all of them.
  }
  lane.wake();
  Status answer;  // Of memory sooner than of a file: its owner must not free it.
  bool is_of_memory = false;
  const backend::AreaSurvey survey(backend::AreaDetail::kPlain);  // One look at the process for all that are adopted.
  for (const auto& region : closing) {
    if (has_closed(*region)) {
      release_pages(*region);
    } else if (Status status = finish_closing(region, deadline); !status.ok()) {
      const bool has_memory = region->entry->base != nullptr;
      if (answer.ok() || (has_memory && !is_of_memory)) answer = std::move(status);
      is_of_memory = is_of_memory || has_memory;
    }
  }
  return answer;
}

void Core::drop_region(std::shared_ptr<LocalRegion> region) {
  if (disowned() || region->state.load(std::memory_order_acquire) == RegionState::kClosed) return;
  // Adopted memory is given back while its user waits, not some time later: a copy that is under way is over soon.
  constexpr Duration kPatience = std::chrono::milliseconds(100);
  const bool is_adopted = region->entry->pages && region->entry->pages->file();
  if (close_region(region, is_adopted ? kPatience : Duration::zero()).ok()) return;
  lane.lock();
  if (!is_closed() && !base::planted(base::Planted::kDropsForgotten)) {  // A closed one swept for the last time.
    lingering_.push_back(std::move(region));
    sweep_pause_ = kSweepPause;
    sweep.look_at(now() + sweep_pause_);
  }
  lane.unlock();
  lane.wake();
}

void Core::Sweep::describe(const Visitor& visitor) const {
  if (core.lingering_.empty()) return;
  visitor({.who = "dropped regions", .what = "their users to be done", .count = core.lingering_.size()});
}

void Core::sweep_dropped() {
  std::vector<std::shared_ptr<LocalRegion>> held, finished;
  std::string holder;
  lane.lock();
  let_go(std::vector(lingering_));  // Others may drop some or sweep meanwhile.
  for (auto& region : lingering_) {
    if (has_closed(*region)) continue;
    (region_quiet(*region, &holder) ? finished : held).push_back(std::move(region));
  }
  finish_regions(finished);
  lingering_ = std::move(held);
  sweep_pause_ = std::min(2 * sweep_pause_, kSweepPauseMax);
  sweep.look_at(lingering_.empty() ? Instant::max() : now() + sweep_pause_);
  lane.unlock();
  for (const auto& each : finished) {
    // Dropped long ago: its user may write to the memory now, so nothing is moved.
    if (each->entry->pages) each->entry->pages->keep();
  }
}

}  // namespace hawser::agent
