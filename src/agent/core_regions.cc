// Regions of an agent: how they get registered.

#include <algorithm>
#include <limits>

#include "agent/core.h"
#include "base/try.h"
#include "fileio/file.h"
#include "wire/limits.h"

namespace hawser::agent {
namespace {

Status bad_region(std::string_view call, const std::string& what) {
  return Status(Code::kInvalid, std::string(call) + ": " + what);
}

}  // namespace

/// Why these are no bytes that an agent can serve.
Status Core::check_region(const RegionOptions& region) {
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
  return {};
}

Status Core::add_regions(std::span<const RegionOptions> wanted, std::vector<Region>* made, std::size_t* wrong) {
  *wrong = 0;
  HAWSER_TRY(usable("add_region"));
  std::vector<FreshEntry> entries;  // Lives beyond what follows: pages are given back without a lock.
  entries.reserve(wanted.size());
  for (const RegionOptions& region : wanted) {
    *wrong = entries.size();
    HAWSER_TRY(check_region(region));
    auto entry = std::make_shared<backend::RegionEntry>();
    entry->base = region.bytes.data();
    entry->size = region.bytes.size();
    entry->rights = region.rights;
    entry->device = region.device;
    entry->name = region.name;
    if (region.device.kind == DeviceKind::kHost) {
      // Peers map memory that this agent allocated wherever a region begins in it. It stays as long as one does.
      entry->arena = arena_of(region.bytes, region.rights);
      if (!entry->arena) entry->pages = hold_pages(region);
    }
    entries.push_back(std::move(entry));
  }
  Registered done = register_regions("add_region", entries, false);
  *wrong = done.wrong;
  for (auto& region : done.regions) made->push_back(Region(std::move(region)));
  return std::move(done.status);
}

Result<Region> Core::add_region(const RegionOptions& wanted) {
  std::vector<Region> made;
  std::size_t wrong = 0;
  HAWSER_TRY(add_regions(std::span(&wanted, 1), &made, &wrong));
  return std::move(made.front());
}

std::shared_ptr<backend::Arena> Core::arena_of(std::span<const std::byte> bytes, Rights rights) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  std::shared_ptr<backend::Arena> arena;  // Let go without the lock: it may be the last one.
  const base::MutexLock lock(mutex_);
  for (auto place = arenas_.upper_bound(begin); place != arenas_.begin();) {
    --place;
    arena = place->second.lock();
    if (!arena) {
      place = arenas_.erase(place);
      continue;
    }
    const bool is_inside = backend::in_bounds(begin - place->first, bytes.size(), arena->bytes().size());
    const bool fits = !allows(rights, Rights::kWrite) || !arena->is_read_only();
    return is_inside && fits ? arena : nullptr;  // Those that live do not overlap.
  }
  return nullptr;
}

void Core::note_arena(const std::shared_ptr<backend::Arena>& arena) {
  const base::MutexLock lock(mutex_);
  if (arenas_.size() >= arenas_max_) {
    std::erase_if(arenas_, [](const auto& each) { return each.second.expired(); });
    arenas_max_ = std::max<std::size_t>(64, 2 * arenas_.size());
  }
  arenas_.insert_or_assign(reinterpret_cast<std::uintptr_t>(arena->bytes().data()), arena);
}

std::shared_ptr<backend::ForeignPages> Core::hold_pages(const RegionOptions& region) {
  const bool adopts = options.adopt && has_open("shm");  // No other backend maps memory.
  auto pages = backend::ForeignPages::hold(region.bytes, region.rights, adopts);
  if (adopts && !pages->file()) {
    HAWSER_LOG(log, kInfo, "{}: region '{}' of {} bytes is not adopted: {}", options.name, region.name,
               region.bytes.size(), pages->refusal().to_string());
  }
  if (!pages->unguarded().ok()) {
    HAWSER_LOG(
        log, kWarn,
        "{}: no guard for adopted memory: what a thread stores in it while it is registered or closed is lost: {}",
        options.name, pages->unguarded().to_string());
  }
  return pages;
}

bool Core::is_reached(Device device) {
  if (device.kind == DeviceKind::kHost) return true;
  lane.lock();
  const auto& open = engine.ports().all();
  const bool is_reached = std::any_of(open.begin(), open.end(), [&](const auto& each) {
    return device.kind == DeviceKind::kCuda && each.traits->reaches_gpus;
  });
  lane.unlock();
  return is_reached;
}

bool Core::has_open(std::string_view backend) {
  lane.lock();
  const auto& open = engine.ports().all();
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
  return register_one("add_file", std::move(entry), false);
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
  note_arena(*arena);
  constexpr std::size_t kSmallPage = 4096;
  return register_one("allocate", std::move(entry), (*arena)->page_size() > kSmallPage);
}

Status Core::take_names(std::string_view call, std::span<const FreshEntry> entries, std::size_t* wrong) {
  const base::MutexLock lock(mutex_);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& name = entries[i]->name;
    if (name.empty()) continue;
    const bool is_long = name.size() > wire::kNameMax;
    if (!is_long && region_names_.insert(name).second) continue;
    *wrong = i;
    give_names_back(entries.first(i));
    if (is_long) {
      return bad_region(call, "the name has " + std::to_string(name.size()) + " bytes; at most 255 are allowed");
    }
    return bad_region(call, "there is a region '" + name + "' already")
        .with_advice("names are unique in an agent; the same memory may be registered again under another or no name");
  }
  return {};
}

void Core::give_names_back(std::span<const FreshEntry> entries) {
  for (const auto& entry : entries) {
    if (!entry->name.empty()) region_names_.erase(entry->name);
  }
}

Status Core::enter_table(std::string_view call, std::span<const FreshEntry> entries,
                         std::vector<NamedBackend>* backends, std::size_t* wrong) {
  lane.lock();
  // Two words of the agent's own randomness are as good as the system's only when no seed was set.
  for (const auto& entry : entries) {
    entry->key = options.seed != 0 ? base::Id128{engine.rng().u64(), engine.rng().u64()} : keys_.take();
  }
  Status added = regions.add(entries);
  backends->reserve(engine.ports().size());
  for (const OpenBackend& open : engine.ports().all()) {
    backends->push_back({open.name, open.number, open.backend, open.renewals});
  }
  lane.unlock();
  if (added.ok()) return added;
  *wrong = std::min<std::size_t>(regions.room(), entries.size() - 1);  // The first that had no place.
  const base::MutexLock lock(mutex_);
  give_names_back(entries);
  return Status(added.code(), std::string(call) + ": " + std::string(added.message())).with_advice(added.advice());
}

Status Core::tell_backends(std::span<const NamedBackend> backends, Joining* joining) {
  const backend::RegionEntry& entry = *joining->region->entry;
  for (const NamedBackend& each : backends.subspan(joining->told)) {
    Result<std::string> extra = each.backend->add_region(entry);
    if (!extra && !options.backends.empty()) return extra.error();
    ++joining->told;
    if (!extra) {
      // Nobody asked for this backend: the others serve the region, and who looks why is told.
      HAWSER_LOG(log, kWarn, "{}: region '{}' is not reached by {}: {}", identity.name, entry.name, each.name,
                 extra.error().to_string());
    } else if (!extra->empty()) {
      joining->extras.add(each.number, *extra);
    }
  }
  return {};
}

void Core::book(std::span<Joining> joining) {
  {
    const base::MutexLock lock(mutex_);
    for (Joining& each : joining) {
      const backend::RegionEntry& entry = *each.region->entry;
      BookedRegion& booked = this->booked(entry.index);
      booked.region = each.region;
      booked.is_there = true;
      booked.extras = std::move(each.extras);
      changed(entry.index, entry.generation, false);
    }
  }
  engine.exchange().on_own_change();
}

void Core::ask_again(std::span<Joining> joining, std::span<const NamedBackend> backends) {
  for (std::size_t i = 0; i < backends.size(); ++i) {
    const NamedBackend& its = backends[i];
    if (engine.ports()[i].renewals == its.renewals) continue;
    for (Joining& each : joining) each.extras.replace(its.number, its.backend->told(*each.region->entry));
  }
}

void Core::drop_unbooked(std::span<const FreshEntry> entries, std::span<const Joining> joining,
                         std::span<const NamedBackend> backends) {
  for (const Joining& each : joining) {
    for (std::size_t i = 0; i < each.told; ++i) backends[i].backend->remove_region(*each.region->entry);
  }
  lane.lock();
  {
    const base::MutexLock lock(mutex_);
    give_names_back(entries);
  }
  for (const auto& entry : entries) {
    regions.close(entry->index, entry->generation);
    regions.remove(entry->index, entry->generation);
  }
  lane.unlock();
}

bool Core::book_if_all_are_told(std::string_view call, std::span<Joining> joining, std::vector<NamedBackend>* backends,
                                Status* status) {
  lane.lock();
  if (status->ok()) *status = usable(call);  // It may have been closed meanwhile.
  const std::span<const OpenBackend> fresh =
      std::span(engine.ports().all()).subspan(status->ok() ? backends->size() : 0);
  const bool is_over = !status->ok() || fresh.empty();
  if (status->ok() && is_over) {
    ask_again(joining, *backends);
    book(joining);
  }
  for (std::size_t i = 0; !is_over && i < fresh.size(); ++i) {
    backends->push_back({fresh[i].name, fresh[i].number, fresh[i].backend, fresh[i].renewals});
  }
  lane.unlock();
  return is_over;
}

Core::Registered Core::register_regions(std::string_view call, std::span<const FreshEntry> entries, bool huge_pages) {
  Registered made;
  if (sweep.next_deadline() != Instant::max()) sweep_dropped();  // Nobody may turn the lane of an agent that is polled.
  made.status = take_names(call, entries, &made.wrong);
  if (!made.status.ok()) return made;
  std::vector<NamedBackend> backends;
  made.status = enter_table(call, entries, &backends, &made.wrong);
  if (!made.status.ok()) return made;
  std::vector<Joining> joining(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    joining[i].region = std::make_shared<LocalRegion>(shared_from_this(), entries[i], huge_pages);
  }
  do {  // Once more for each backend that opens meanwhile.
    // Without the lane's lock: a NIC takes seconds to register much memory, and heartbeats must go on.
    for (std::size_t i = 0; i < entries.size() && made.status.ok(); ++i) {
      made.status = tell_backends(backends, &joining[i]);
      made.wrong = i;
    }
  } while (!book_if_all_are_told(call, joining, &backends, &made.status));
  if (!made.status.ok()) {
    drop_unbooked(entries, joining, backends);
    return made;
  }
  lane.wake();
  made.regions.reserve(joining.size());
  for (Joining& each : joining) made.regions.push_back(std::move(each.region));
  return made;
}

Result<Region> Core::register_one(std::string_view call, backend::RegionEntry entry, bool huge_pages) {
  // Lives beyond what follows: adopted pages are given back without a lock when that fails.
  const auto one = std::make_shared<backend::RegionEntry>(std::move(entry));
  Registered made = register_regions(call, std::span(&one, 1), huge_pages);
  if (!made.status.ok()) return made.status;
  return Region(std::move(made.regions.front()));
}

std::vector<std::shared_ptr<const backend::RegionEntry>> Core::registered() const {
  std::vector<std::shared_ptr<const backend::RegionEntry>> booked;
  const base::MutexLock lock(mutex_);
  for (auto& entry : regions.all()) {
    if (is_booked(entry->index)) booked.push_back(std::move(entry));
  }
  return booked;
}

}  // namespace hawser::agent
