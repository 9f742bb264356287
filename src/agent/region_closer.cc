#include "agent/region_closer.h"

#include <algorithm>
#include <utility>

#include "backend/address_space.h"
#include "base/planted.h"
#include "base/small_vector.h"

namespace hawser::agent {
namespace {

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

void RegionCloser::release_pages(const LocalRegion& region) const {
  if (!region.entry->pages) return;
  if (Status status = region.entry->pages->release(); !status.ok()) {
    HAWSER_LOG(its_.log, kWarn, "{}: memory of region '{}' keeps its bytes, but stays in a memory file: {}", its_.agent,
               region.entry->name, status.to_string());
  }
}

bool RegionCloser::is_quiet(const LocalRegion& region, std::string* holder) const {
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
  if (region.grants > 0) {
    *holder = std::to_string(region.grants) + " grants of it";
    return false;
  }
  bool quiet = true;
  for (const OpenBackend& open : its_.backends) {
    quiet = open.port->region_quiet(region.entry->index, region.entry->generation, holder) && quiet;
  }
  return quiet;
}

void RegionCloser::finish_quiet(Regions quiet) {
  if (quiet.empty()) return;
  for (const auto& region : quiet) {
    region->state.store(RegionState::kClosed, std::memory_order_release);
    for (const OpenBackend& open : its_.backends) open.backend->remove_region(*region->entry);
    its_.users.forget(*region->entry);
    if (region->parent != nullptr) its_.grants.remove(*region);
  }
  const Few<backend::RegionId> ids = ids_of(quiet);
  its_.book.remove(ids);  // Not before: an agent that closes waits for all that are there.
  its_.table.remove(ids);
}

void RegionCloser::begin(Regions closing) {
  const Instant now = its_.clock.now();
  its_.users.take_submissions(now);
  Few<std::shared_ptr<LocalRegion>> begun;
  begun.reserve(closing.size());
  for (const auto& region : closing) {
    if (region->state.load(std::memory_order_relaxed) != RegionState::kOpen) continue;
    region->state.store(RegionState::kClosing, std::memory_order_release);
    begun.push_back(region);
  }
  if (begun.empty()) return;
  const Few<backend::RegionId> ids = ids_of(begun);
  its_.table.close(ids);
  for (const OpenBackend& open : its_.backends) open.port->regions_closing(ids);
  for (const auto& region : begun) its_.users.end_use(*region, now);
  its_.book.close(ids);
  const bool any_listed = std::ranges::any_of(begun, [](const auto& region) { return region->entry->listed; });
  if (any_listed) its_.card.remove_regions(ids);
  for (const auto& region : begun) {
    if (region->entry->listed) its_.names.give_back(region->entry->name);
  }
  if (any_listed) its_.users.card_changed();
  const bool is_watched = std::ranges::any_of(begun, [](const auto& region) { return region->watchers > 0; });
  if (is_watched) its_.lane.news_from_outside();  // Its closing is what those who wait for a word look for, too.
}

void RegionCloser::let_go(Regions closing) {
  Few<std::shared_ptr<backend::Backend>> slow;
  for (const OpenBackend& open : its_.backends) {
    if (open.traits->lets_go_slowly) slow.push_back(open.backend);
  }
  if (slow.empty()) return;
  Few<std::shared_ptr<const backend::RegionEntry>> unused;
  for (const auto& region : closing) {
    if (!has_closed(*region) && region->users == 0 && region->newcomers == 0) unused.push_back(region->entry);
  }
  if (unused.empty()) return;
  its_.lane.unlock();
  for (const auto& backend : slow) {
    for (const auto& entry : unused) backend->let_go(*entry);
  }
  its_.lane.lock();
}

void RegionCloser::close_the_quiet(Regions closing, RegionBook::Regions* granted) {
  Few<std::shared_ptr<LocalRegion>> quiet;
  quiet.reserve(closing.size());
  std::string holder;
  its_.lane.lock();
  begin(closing);
  for (const auto& region : closing) {
    if (granted == nullptr || region->grants == 0) continue;
    for (auto& grant : its_.grants.of(*region)) granted->push_back(std::move(grant));
  }
  let_go(closing);
  for (const auto& region : closing) {
    if (!has_closed(*region) && is_quiet(*region, &holder)) quiet.push_back(region);
  }
  finish_quiet(quiet);
  its_.lane.unlock();
}

bool RegionCloser::close_now(const std::shared_ptr<LocalRegion>& region) {
  if (has_closed(*region)) return true;
  if (std::ranges::any_of(its_.backends, [](const OpenBackend& open) { return open.traits->lets_go_slowly; })) {
    return false;
  }
  const Regions alone(&region, 1);
  begin(alone);
  std::string holder;
  if (!base::planted(base::Planted::kReportTrusted) && !is_quiet(*region, &holder)) return false;
  finish_quiet(alone);
  return true;
}

/// Waits until nobody uses the region.
Status RegionCloser::finish(const std::shared_ptr<LocalRegion>& region, Instant deadline) {
  std::string holder;
  for (;;) {
    its_.lane.lock();
    let_go(std::span(&region, 1));
    const bool closed = region->state.load(std::memory_order_relaxed) == RegionState::kClosed;
    const bool quiet = closed || is_quiet(*region, &holder);
    const bool is_left = !region->left_to.empty();
    if (quiet && !closed) finish_quiet(std::span(&region, 1));
    its_.lane.unlock();
    if (quiet) {
      release_pages(*region);
      return {};
    }
    if (is_left) return left_region(*region, holder);
    if (its_.clock.now() >= deadline) break;
    its_.lane.pause(std::min(deadline, its_.clock.now() + std::chrono::microseconds(100)));
  }
  if (region->parent != nullptr) {  // Its memory is the parent's, which is not closed before it.
    return Status(Code::kTimedOut, "the grant of region '" + region->entry->name + "' is still used by " + holder)
        .with_advice("do not use the memory for something else yet; call revoke again");
  }
  Status status(Code::kTimedOut, "close: region '" + region->entry->name + "' is still used by " + holder);
  if (region->entry->base == nullptr) return status.with_advice("call close again");
  if (!region->entry->arena) return status.with_advice("do not free the memory; call close again");
  region->entry->arena->abandon();
  return status.with_advice("the memory was abandoned: it is never given out again; close may be called again");
}

Status RegionCloser::close(Regions closing, Duration timeout) {
  const Instant deadline = its_.clock.now() + timeout;
  RegionBook::Regions granted;  // Mostly none.
  for (auto rest = closing; !rest.empty(); rest = rest.subspan(std::min(kRegionsAtOnce, rest.size()))) {
    close_the_quiet(rest.first(std::min(kRegionsAtOnce, rest.size())), &granted);  // Mostly all of them.
  }
  for (Regions rest = granted; !rest.empty(); rest = rest.subspan(std::min(kRegionsAtOnce, rest.size()))) {
    close_the_quiet(rest.first(std::min(kRegionsAtOnce, rest.size())), nullptr);
  }
  its_.lane.wake();
  Status answer;  // Of memory sooner than of a file: its owner must not free it.
  bool is_of_memory = false;
  const backend::AreaSurvey survey(backend::AreaDetail::kPlain);  // One look at the process for all that are adopted.
  const auto end = [&](const std::shared_ptr<LocalRegion>& region) {
    if (has_closed(*region)) {
      release_pages(*region);
    } else if (Status status = finish(region, deadline); !status.ok()) {
      const bool has_memory = region->entry->base != nullptr;
      if (answer.ok() || (has_memory && !is_of_memory)) answer = std::move(status);
      is_of_memory = is_of_memory || has_memory;
    }
  };
  std::ranges::for_each(granted, end);  // A region waits for its grants.
  std::ranges::for_each(closing, end);
  return answer;
}

void RegionCloser::drop(std::shared_ptr<LocalRegion> region) {
  if (its_.life.disowned() || region->state.load(std::memory_order_acquire) == RegionState::kClosed) return;
  // Adopted memory is given back while its user waits, not some time later: a copy that is under way is over soon.
  constexpr Duration kPatienceForAdopted = std::chrono::milliseconds(100);
  const bool is_adopted = region->entry->pages && region->entry->pages->file();
  const bool may_close = !its_.life.user_code().runs_here();  // Else a sweep does, after the turn.
  if (may_close && close(std::span(&region, 1), is_adopted ? kPatienceForAdopted : Duration::zero()).ok()) return;
  its_.lane.lock();
  // An agent that is closed has swept for the last time.
  if (!its_.life.is_closed() && !base::planted(base::Planted::kDropsForgotten)) {
    for (auto& grant : its_.grants.of(*region)) {
      if (!grant->is_ending) dropped_.push_back(std::move(grant));  // Else it is dropped for itself.
    }
    dropped_.push_back(std::move(region));
    pause_ = kSweepPause;
    set_next(its_.clock.now() + pause_);
  }
  its_.lane.unlock();
  its_.lane.wake();
}

void RegionCloser::describe(const Visitor& visitor) const {
  assume_in_lane();  // See Part.
  if (dropped_.empty()) return;
  visitor({.who = "dropped regions", .what = "their users to be done", .count = dropped_.size()});
}

void RegionCloser::sweep() {
  std::vector<std::shared_ptr<LocalRegion>> held, finished;
  std::string holder;
  its_.lane.lock();
  let_go(std::vector(dropped_));  // Others may drop some or sweep meanwhile.
  for (auto& region : dropped_) {
    if (has_closed(*region)) continue;
    (is_quiet(*region, &holder) ? finished : held).push_back(std::move(region));
  }
  finish_quiet(finished);
  dropped_ = std::move(held);
  pause_ = std::min(2 * pause_, kSweepPauseMax);
  set_next(dropped_.empty() ? Instant::max() : its_.clock.now() + pause_);
  its_.lane.unlock();
  for (const auto& each : finished) {
    // Dropped long ago: its user may write to the memory now, so nothing is moved.
    if (each->entry->pages) each->entry->pages->keep();
  }
}

void RegionCloser::part_quiet(Regions all, Abandoned* parted) {
  const std::size_t before = parted->quiet.size();
  for (const auto& region : all) {
    if (has_closed(*region)) continue;
    std::string holder;
    if (is_quiet(*region, &holder)) {
      parted->quiet.push_back(region);
    } else {
      region->left_to = holder.empty() ? "somebody" : holder;
      parted->left.push_back(region);
    }
  }
  finish_quiet(std::span(parted->quiet).subspan(before));
}

RegionCloser::Abandoned RegionCloser::abandon() {
  Abandoned all;
  RegionBook::Regions regions = its_.book.all();
  const auto others =
      std::stable_partition(regions.begin(), regions.end(), [](const auto& each) { return each->parent != nullptr; });
  const auto grants = static_cast<std::size_t>(others - regions.begin());
  part_quiet(std::span(regions).first(grants), &all);  // Before the regions that they are parts of.
  part_quiet(std::span(regions).subspan(grants), &all);
  its_.grants.clear();
  dropped_.clear();  // They hold their agent. `all` has them.
  set_next(Instant::max());
  return all;
}

void RegionCloser::release(const Abandoned& abandoned) {
  for (const auto& region : abandoned.quiet) release_pages(*region);
  for (const auto& region : abandoned.left) {
    if (region->entry->arena) region->entry->arena->abandon();
    if (region->entry->pages) region->entry->pages->keep();
  }
}

}  // namespace hawser::agent
