#include "agent/region_maker.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/try.h"
#include "fileio/file.h"

namespace hawser::agent {
namespace {

Status bad_region(std::string_view call, const std::string& what) {
  return Status(Code::kInvalid, std::string(call) + ": " + what);
}

}  // namespace

Status RegionMaker::check(const RegionOptions& region) {
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

RegionRegistrar::Entry RegionMaker::entry_of(const RegionOptions& region) {
  auto entry = std::make_shared<backend::RegionEntry>();
  entry->base = region.bytes.data();
  entry->size = region.bytes.size();
  entry->rights = region.rights;
  entry->device = region.device;
  entry->name = region.name;
  entry->listed = region.listed;
  if (region.device.kind != DeviceKind::kHost) return entry;
  // Peers map memory that this agent allocated wherever a region begins in it. It stays as long as one does.
  entry->arena = its_.arenas.find(region.bytes, region.rights);
  if (!entry->arena) entry->pages = hold_pages(region);
  return entry;
}

RegionMaker::Made RegionMaker::add(const RegionOptions& wanted) {
  HAWSER_TRY(its_.life.usable("add_region"));
  HAWSER_TRY(check(wanted));
  const RegionRegistrar::Entry entry = entry_of(wanted);
  return register_one("add_region", entry, false);
}

Status RegionMaker::add(std::span<const RegionOptions> wanted, std::vector<std::shared_ptr<LocalRegion>>* made,
                        std::size_t* wrong) {
  *wrong = 0;
  HAWSER_TRY(its_.life.usable("add_region"));
  std::vector<RegionRegistrar::Entry> entries;  // Lives beyond what follows: pages are given back without a lock.
  entries.reserve(wanted.size());
  for (const RegionOptions& region : wanted) {
    *wrong = entries.size();
    HAWSER_TRY(check(region));
    entries.push_back(entry_of(region));
  }
  RegionRegistrar::Registered done = register_all("add_region", entries, false);
  *wrong = done.wrong;
  for (auto& region : done.regions) made->push_back(std::move(region));
  return std::move(done.status);
}

std::shared_ptr<backend::ForeignPages> RegionMaker::hold_pages(const RegionOptions& region) {
  const bool adopts = its_.options.adopt && has_open("shm");  // No other backend maps memory.
  auto pages = backend::ForeignPages::hold(region.bytes, region.rights, adopts);
  if (adopts && !pages->file()) {
    HAWSER_LOG(its_.log, kInfo, "{}: region '{}' of {} bytes is not adopted: {}", its_.options.name, region.name,
               region.bytes.size(), pages->refusal().to_string());
  }
  if (!pages->unguarded().ok()) {
    HAWSER_LOG(
        its_.log, kWarn,
        "{}: no guard for adopted memory: what a thread stores in it while it is registered or closed is lost: {}",
        its_.options.name, pages->unguarded().to_string());
  }
  return pages;
}

bool RegionMaker::is_reached(Device device) {
  if (device.kind == DeviceKind::kHost) return true;
  if (device.kind == DeviceKind::kFile) return false;  // There are no bytes of it: add_file has its regions.
  const InLaneGuard guard(its_.lane);
  return std::ranges::any_of(its_.backends,
                             [&](const OpenBackend& each) { return each.traits->reaches.has(device.kind); });
}

bool RegionMaker::has_open(std::string_view backend) {
  const InLaneGuard guard(its_.lane);
  return std::ranges::any_of(its_.backends, [&](const OpenBackend& each) { return each.name == backend; });
}

Status RegionMaker::need_file_backend() {
  if (has_open("file")) return {};
  if (!its_.options.backends.empty()) {
    return Status(Code::kUnsupported, "add_file: agent '" + its_.options.name + "' was opened without the backend file")
        .with_advice("name hawser::file() in AgentOptions::backends, or call add_backend with it");
  }
  const Status opened = its_.add_backend({.name = "file", .params = {}});
  if (opened.ok() || has_open("file")) return {};  // Another thread may have been first.
  return Status(opened.code(), "add_file: the backend file does not open").because(opened);
}

RegionMaker::Made RegionMaker::add_file(const FileOptions& wanted) {
  HAWSER_TRY(its_.life.usable("add_file"));
  HAWSER_TRY(need_file_backend());
  HAWSER_TRY_ASSIGN(std::shared_ptr<fileio::File> file, fileio::File::open(wanted));
  constexpr std::uint64_t kFarthest = std::numeric_limits<std::int64_t>::max();  // As far as an off_t reaches.
  if (wanted.size > kFarthest)
    return bad_region("add_file", "size " + std::to_string(wanted.size) + " is above 2^63 - 1");
  const auto entry = std::make_shared<backend::RegionEntry>();
  entry->size = wanted.size == 0 ? kFarthest : wanted.size;
  entry->rights = wanted.rights;
  entry->device = {.kind = DeviceKind::kFile, .ordinal = 0};
  entry->name = wanted.name;
  entry->listed = wanted.listed;
  entry->file = std::move(file);
  return register_one("add_file", entry, false);
}

RegionMaker::Made RegionMaker::allocate(const AllocateOptions& wanted) {
  HAWSER_TRY(its_.life.usable("allocate"));
  if (wanted.size == 0)
    return bad_region("allocate", "region '" + wanted.name + "' has size 0").with_advice("ask for at least one byte");
  HAWSER_TRY_ASSIGN(const std::shared_ptr<backend::Arena> arena,
                    backend::Arena::create(wanted.size, wanted.rights, wanted.huge_pages));
  const auto entry = std::make_shared<backend::RegionEntry>();
  entry->base = arena->bytes().data();
  entry->size = wanted.size;
  entry->rights = wanted.rights;
  entry->name = wanted.name;
  entry->listed = wanted.listed;
  entry->arena = arena;
  its_.arenas.note(arena);
  constexpr std::size_t kSmallPage = 4096;
  return register_one("allocate", entry, arena->page_size() > kSmallPage);
}

RegionRegistrar::Registered RegionMaker::register_all(std::string_view call, RegionRegistrar::Entries entries,
                                                      bool has_huge_pages) {
  if (its_.closer.has_dropped()) its_.closer.sweep();  // Nobody may turn the lane of an agent that is polled.
  return its_.registrar.add(call, entries, has_huge_pages);
}

RegionMaker::Made RegionMaker::register_one(std::string_view call, const RegionRegistrar::Entry& entry,
                                            bool has_huge_pages) {
  RegionRegistrar::Registered made = register_all(call, std::span(&entry, 1), has_huge_pages);
  if (!made.status.ok()) return made.status;
  return std::move(made.regions.front());
}

}  // namespace hawser::agent
