// Regions of an agent: registered, closed once nobody uses them.

#include <algorithm>
#include <iterator>
#include <limits>

#include "agent/core.h"
#include "agent/fork_guard.h"
#include "base/planted.h"
#include "fileio/file.h"
#include "wire/limits.h"

namespace hawser::agent {
namespace {

constexpr std::size_t kChangesMax = 4096;  ///< Kept for deltas; who is further behind gets a full card.

Status bad_region(std::string_view call, const std::string& what) {
  return Status(Code::kInvalid, std::string(call) + ": " + what);
}

}  // namespace

Result<Region> Core::add_region(const RegionOptions& region) {
  if (Status status = usable("add_region"); !status.ok()) return status;
  if (region.bytes.empty())
    return bad_region("add_region", "region '" + region.name + "' has no bytes")
        .with_advice("give the memory's address and at least one byte");
  if (region.device.kind == DeviceKind::kFile) {
    return bad_region("add_region", "a file is no memory").with_advice("register files with add_file");
  }
  if (!is_reached(region.device)) {
    return Status(Code::kUnsupported, "add_region: no backend here serves memory of device " + to_string(region.device))
        .with_advice("register host memory, or for a GPU's open verbs; `hawser info` tells what each backend reaches");
  }
  const auto start = reinterpret_cast<std::uintptr_t>(region.bytes.data());
  if (region.bytes.data() == nullptr || start + region.bytes.size() < start) {
    return bad_region("add_region", "region '" + region.name + "' of " + std::to_string(region.bytes.size()) +
                                        " bytes is no valid range of addresses")
        .with_advice("give memory of this process");
  }
  backend::RegionEntry entry;
  entry.base = region.bytes.data();
  entry.size = region.bytes.size();
  entry.rights = region.rights;
  entry.device = region.device;
  entry.name = region.name;
  // Lives beyond what follows: given back without a lock when that fails.
  const auto pages = region.device.kind == DeviceKind::kHost ? hold_pages(region) : nullptr;
  entry.pages = pages;
  Result<std::shared_ptr<LocalRegion>> made = register_region("add_region", std::move(entry), false);
  if (!made) return made.error();
  return Region(std::move(*made));
}

std::shared_ptr<backend::ForeignPages> Core::hold_pages(const RegionOptions& region) {
  const bool adopts = options.adopt && has_open("shm");  // No other backend maps memory.
  auto pages = backend::ForeignPages::hold(region.bytes, region.rights, adopts);
  if (adopts && !pages->file()) {
    HAWSER_LOG(log, kInfo, "{}: region '{}' of {} bytes is not adopted: {}", options.name, region.name,
               region.bytes.size(), pages->refusal().to_string());
  }
  return pages;
}

void Core::release_pages(const LocalRegion& region) {
  if (!region.entry->pages) return;
  if (Status status = region.entry->pages->release(); !status.ok()) {
    HAWSER_LOG(log, kWarn, "{}: memory of region '{}' keeps its bytes, but stays in a memory file: {}", options.name,
               region.entry->name, status.to_string());
  }
}

bool Core::is_reached(Device device) {
  if (device.kind == DeviceKind::kHost) return true;
  lane.lock();
  const auto& open = engine.backends();
  const bool is_reached = std::any_of(open.begin(), open.end(), [&](const auto& each) {
    return device.kind == DeviceKind::kCuda && each.traits->reaches_gpus;
  });
  lane.unlock();
  return is_reached;
}

bool Core::has_open(std::string_view backend) {
  lane.lock();
  const auto& open = engine.backends();
  const bool is_open = std::any_of(open.begin(), open.end(), [&](const auto& each) { return each.name == backend; });
  lane.unlock();
  return is_open;
}

Status Core::need_file_backend() {
  if (has_open("file")) return {};
  if (!options.backends.empty()) {
    return Status(Code::kUnsupported, "add_file: agent '" + options.name + "' was opened without the backend file")
        .with_advice("name hawser::file() in AgentOptions::backends, or call add_backend with it");
  }
  const Status opened = add_backend({.name = "file", .params = {}});
  if (opened.ok() || has_open("file")) return {};  // Another thread may have been first.
  return Status(opened.code(), "add_file: the backend file does not open").because(opened);
}

Result<Region> Core::add_file(const FileOptions& wanted) {
  if (Status status = usable("add_file"); !status.ok()) return status;
  if (Status missing = need_file_backend(); !missing.ok()) return missing;
  Result<std::shared_ptr<fileio::File>> file = fileio::File::open(wanted);
  if (!file) return file.error();
  constexpr std::uint64_t kFarthest = std::numeric_limits<std::int64_t>::max();  // As far as an off_t reaches.
  if (wanted.size > kFarthest)
    return bad_region("add_file", "size " + std::to_string(wanted.size) + " is above 2^63 - 1");
  backend::RegionEntry entry;
  entry.size = wanted.size == 0 ? kFarthest : wanted.size;
  entry.rights = wanted.rights;
  entry.device = {.kind = DeviceKind::kFile, .ordinal = 0};
  entry.name = wanted.name;
  entry.file = std::move(*file);
  Result<std::shared_ptr<LocalRegion>> made = register_region("add_file", std::move(entry), false);
  if (!made) return made.error();
  return Region(std::move(*made));
}

Result<Region> Core::allocate(const AllocateOptions& wanted) {
  if (Status status = usable("allocate"); !status.ok()) return status;
  if (wanted.size == 0)
    return bad_region("allocate", "region '" + wanted.name + "' has size 0").with_advice("ask for at least one byte");
  Result<std::shared_ptr<backend::Arena>> arena = backend::Arena::create(wanted.size, wanted.rights, wanted.huge_pages);
  if (!arena) return arena.error();
  backend::RegionEntry entry;
  entry.base = (*arena)->bytes().data();
  entry.size = wanted.size;
  entry.rights = wanted.rights;
  entry.name = wanted.name;
  entry.arena = *arena;
  constexpr std::size_t kSmallPage = 4096;
  Result<std::shared_ptr<LocalRegion>> made =
      register_region("allocate", std::move(entry), (*arena)->page_size() > kSmallPage);
  if (!made) return made.error();
  return Region(std::move(*made));
}

Status Core::take_name(std::string_view call, const std::string& name) {
  if (name.size() > wire::kNameMax) {
    return bad_region(call, "the name has " + std::to_string(name.size()) + " bytes; at most 255 are allowed");
  }
  const base::MutexLock lock(mutex_);
  if (!name.empty() && region_names_.contains(name)) {
    return bad_region(call, "there is a region '" + name + "' already")
        .with_advice("names are unique in an agent; the same memory may be registered again under another or no name");
  }
  if (!name.empty()) region_names_.emplace(name, 0);
  return {};
}

Core::Serving Core::tell_backends(const backend::RegionEntry& entry, std::vector<NamedBackend> backends) {
  Serving serving;
  for (const NamedBackend& each : backends) serving.known.push_back(each.backend.get());
  for (NamedBackend& each : backends) {
    Result<std::string> extra = each.backend->add_region(entry);
    if (!extra && !options.backends.empty()) {
      serving.failure = extra.error();
      break;
    }
    if (!extra) {
      // Nobody asked for this backend: the others serve the region, and who looks why is told.
      HAWSER_LOG(log, kWarn, "{}: region '{}' is not reached by {}: {}", identity.name, entry.name, each.name,
                 extra.error().to_string());
      continue;
    }
    if (!extra->empty()) serving.extras.emplace_back(each.name, std::move(*extra));
    serving.backends.push_back(std::move(each.backend));
  }
  return serving;
}

std::shared_ptr<LocalRegion> Core::book_region(std::shared_ptr<const backend::RegionEntry> entry, bool huge_pages,
                                               Serving& serving) {
  auto region = std::make_shared<LocalRegion>();
  region->core = shared_from_this();
  region->entry = std::move(entry);
  region->huge_pages = huge_pages;
  const base::MutexLock lock(mutex_);
  BookedRegion& booked = this->booked(region->entry->index);
  booked.region = region;
  booked.is_there = true;
  // Those that are there already are of backends that opened meanwhile.
  booked.extras.insert(booked.extras.begin(), std::make_move_iterator(serving.extras.begin()),
                       std::make_move_iterator(serving.extras.end()));
  changed(region->entry->index, region->entry->generation, false);
  return region;
}

void Core::drop_unbooked(const backend::RegionEntry& entry, const Serving& serving) {
  for (const auto& backend : serving.backends) backend->remove_region(entry);
  lane.lock();
  for (const OpenBackend& open : engine.backends()) {
    const bool is_late = std::ranges::find(serving.known, open.backend.get()) == serving.known.end();
    if (is_late) open.backend->remove_region(entry);  // It was told of all regions when it opened.
  }
  {
    const base::MutexLock lock(mutex_);
    booked(entry.index) = {};
    region_names_.erase(entry.name);
  }
  regions.close(entry.index, entry.generation);
  regions.remove(entry.index, entry.generation);
  lane.unlock();
}

Result<std::shared_ptr<LocalRegion>> Core::register_region(std::string_view call, backend::RegionEntry entry,
                                                           bool huge_pages) {
  const std::string name = entry.name;
  if (Status status = take_name(call, name); !status.ok()) return status;
  lane.lock();
  // Two words of the agent's own randomness are as good as the system's only when no seed was set.
  entry.key = options.seed != 0 ? base::Id128{engine.rng_.u64(), engine.rng_.u64()} : keys_.take();
  Result<std::shared_ptr<const backend::RegionEntry>> added = regions.add(std::move(entry));
  std::vector<NamedBackend> backends;
  for (OpenBackend& open : engine.backends()) backends.push_back({open.name, open.backend});
  lane.unlock();
  if (!added) {
    const base::MutexLock lock(mutex_);
    region_names_.erase(name);
    return Status(added.error().code(), std::string(call) + ": " + std::string(added.error().message()))
        .with_advice(added.error().advice());
  }
  // Without the lane's lock: a NIC takes seconds to register much memory, and heartbeats must go on.
  Serving serving = tell_backends(**added, std::move(backends));
  lane.lock();
  if (serving.failure.ok()) serving.failure = usable(call);  // It may have been closed meanwhile.
  std::shared_ptr<LocalRegion> region;
  if (serving.failure.ok()) {
    region = book_region(*added, huge_pages, serving);
    engine.card_changed();
  }
  const std::vector<std::shared_ptr<LocalRegion>> finished = sweep_lingering();
  lane.unlock();
  for (const auto& each : finished) {
    // Dropped long ago: its user may write to the memory now, so nothing is moved.
    if (each->entry->pages) each->entry->pages->keep();
  }
  if (region == nullptr) {
    drop_unbooked(**added, serving);
    return serving.failure;
  }
  lane.wake();
  return region;
}

std::vector<std::shared_ptr<const backend::RegionEntry>> Core::registered() const {
  std::vector<std::shared_ptr<const backend::RegionEntry>> booked;
  const base::MutexLock lock(mutex_);
  for (auto& entry : regions.all()) {
    if (is_booked(entry->index)) booked.push_back(std::move(entry));
  }
  return booked;
}

void Core::changed(std::uint32_t index, std::uint32_t generation, bool removed) {
  const std::uint64_t revision = revision_.fetch_add(1, std::memory_order_acq_rel) + 1;
  changes_.push_back({.revision = revision, .index = index, .generation = generation, .removed = removed});
  if (changes_.size() > kChangesMax) changes_.pop_front();
  presence.ask();
}

bool Core::region_quiet(const LocalRegion& region, std::string* holder) {
  if (region.users > 0 && !base::planted(base::Planted::kUsersForgotten)) {
    *holder = std::to_string(region.users) + " transfers of this agent";
    return false;
  }
  bool quiet = true;
  for (OpenBackend& open : engine.backends()) {
    quiet = open.port->region_quiet(region.entry->index, region.entry->generation, holder) && quiet;
  }
  return quiet;
}

void Core::finish_region(const std::shared_ptr<LocalRegion>& region) {
  region->state.store(RegionState::kClosed, std::memory_order_release);
  for (OpenBackend& open : engine.backends()) open.backend->remove_region(*region->entry);
  {
    const base::MutexLock lock(mutex_);
    booked(region->entry->index) = {};  // Not before: an agent that closes waits for all that are there.
  }
  regions.remove(region->entry->index, region->entry->generation);
}

void Core::begin_closing(std::span<const std::shared_ptr<LocalRegion>> closing) {
  const Instant at = now();
  for (const auto& region : closing) {
    if (region->state.load(std::memory_order_relaxed) != RegionState::kOpen) continue;
    region->state.store(RegionState::kClosing, std::memory_order_release);
    regions.close(region->entry->index, region->entry->generation);
    engine.cancel_region(*region, at);
    engine.on_own_region_closed(region->entry->index, region->entry->generation, at);
    const base::MutexLock lock(mutex_);
    region_names_.erase(region->entry->name);
    booked(region->entry->index).extras.clear();
    changed(region->entry->index, region->entry->generation, true);
  }
  engine.card_changed();
}

/// Waits until nobody uses the region.
Status Core::finish_closing(const std::shared_ptr<LocalRegion>& region, Instant deadline) {
  std::string holder;
  for (;;) {
    lane.lock();
    const bool closed = region->state.load(std::memory_order_relaxed) == RegionState::kClosed;
    const bool quiet = closed || region_quiet(*region, &holder);
    if (quiet && !closed) finish_region(region);
    lane.unlock();
    if (quiet) {
      release_pages(*region);
      return {};
    }
    if (now() >= deadline) break;
    lane.wait_until([] { return false; }, std::min(deadline, now() + std::chrono::microseconds(100)));
  }
  Status status(Code::kTimedOut, "close: region '" + region->entry->name + "' is still used by " + holder);
  if (!region->entry->arena) return status.with_advice("do not free the memory; call close again");
  region->entry->arena->abandon();
  return status.with_advice("the memory was abandoned: it is never given out again; close may be called again");
}

Status Core::close_region(const std::shared_ptr<LocalRegion>& region, Duration timeout) {
  return close_regions(std::span(&region, 1), timeout);
}

Status Core::close_regions(std::span<const std::shared_ptr<LocalRegion>> closing, Duration timeout) {
  const Instant deadline = now() + timeout;
  std::string holder;
  lane.lock();
  begin_closing(closing);
  // Mostly nobody uses them, and then this is all.
  for (const auto& region : closing) {
    const bool is_closed = region->state.load(std::memory_order_relaxed) == RegionState::kClosed;
    if (!is_closed && region_quiet(*region, &holder)) finish_region(region);
  }
  lane.unlock();
  lane.wake();
  Status answer;
  for (const auto& region : closing) {
    if (region->state.load(std::memory_order_acquire) == RegionState::kClosed) {
      release_pages(*region);
    } else if (Status status = finish_closing(region, deadline); !status.ok() && answer.ok()) {
      answer = std::move(status);
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
  lingering_.push_back(std::move(region));
  lane.unlock();
  lane.wake();
}

std::vector<std::shared_ptr<LocalRegion>> Core::sweep_lingering() {
  std::vector<std::shared_ptr<LocalRegion>> held, finished;
  std::string holder;
  for (auto& region : lingering_) {
    if (region->state.load(std::memory_order_relaxed) == RegionState::kClosed) continue;
    if (region_quiet(*region, &holder)) {
      finish_region(region);
      finished.push_back(std::move(region));
    } else {
      held.push_back(std::move(region));
    }
  }
  lingering_ = std::move(held);
  return finished;
}

}  // namespace hawser::agent
