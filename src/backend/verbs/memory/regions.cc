#include "backend/verbs/memory/regions.h"

#include <algorithm>
#include <system_error>

#include "backend/verbs/gpu/pointer.h"
#include "backend/verbs/memory/region_keys.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

/// Where the device has none, segments of several pieces are found piece by piece.
std::unique_ptr<IndirectKeys> indirect_keys(const Nic& nic, const RegionsOptions& options) {
  if (options.mlx5 == nullptr || !options.segments) return nullptr;
  Result<std::unique_ptr<Mlx5Keys>> keys = Mlx5Keys::open(nic.domain, options.mlx5);
  return keys ? *std::move(keys) : nullptr;
}

}  // namespace

Regions::Regions(std::vector<std::shared_ptr<Nic>> nics, RegionsOptions options)
    : options_(std::move(options)), nics_(with({}, nics)) {}

std::shared_ptr<const Regions::Nics> Regions::nics() const {
  const base::MutexLock lock(mutex_);
  return nics_;
}

std::shared_ptr<const Regions::Nics> Regions::with(const Nics& before,
                                                   std::span<const std::shared_ptr<Nic>> more) const {
  const Access access{.rights = Rights::kReadWrite, .relaxed_ordering = options_.relaxed_ordering};
  auto made = std::make_shared<Nics>(before);
  for (const auto& nic : more) {
    made->all.push_back(nic);
    const auto found = std::ranges::find(made->all, nic->shared, &Nic::shared);
    made->first.push_back(static_cast<std::size_t>(found - made->all.begin()));
    made->gpus.push_back(
        made->is_first(made->gpus.size())
            ? std::make_shared<GpuRegistrations>(nic, options_.segments, indirect_keys(*nic, options_), access)
            : made->gpus[made->first.back()]);
  }
  made->ranks_nodes = rank_nodes(made->all);
  return made;
}

Status Regions::Nics::any_there(std::size_t from) const {
  std::string gone;
  for (std::size_t i = from; i < all.size(); ++i) {
    if (!is_gone(i)) return {};
    if (is_first(i)) gone += (gone.empty() ? "" : ", ") + all[i]->device.name;
  }
  if (gone.empty()) return {};
  return Status(Code::kDisconnected, base::format("memory cannot be registered while {} is gone", gone))
      .with_device(gone)
      .with_advice("register it once the device is back");
}

Status Regions::check(const Nics& nics, const RegionEntry& region, Device device) {
  if (device.kind != DeviceKind::kHost && device.kind != DeviceKind::kCuda) {
    return Status(Code::kUnsupported, "RDMA devices reach memory of the host and of GPUs only");
  }
  for (const auto& nic : nics.all) {
    if (device.kind == DeviceKind::kCuda) HAWSER_TRY(nic->memory.refusal());
  }
  if (nics.all.empty()) return {};
  const auto start = reinterpret_cast<std::uintptr_t>(region.base);
  const Status other = check_device(nics.all.front()->gpus.get(), start, region.size, device);
  const bool is_told = other.code() == Code::kInvalid || other.code() == Code::kUnsupported;
  if (device.kind == DeviceKind::kHost && !is_told) return {};  // A driver in trouble is nothing to the host's memory.
  return other.code() != Code::kInvalid ? other : other.with_advice("say in RegionOptions::device whose memory it is");
}

Result<Regions::Registrations> Regions::register_host_memory(const Nics& nics, std::size_t from, const Wanted& wanted) {
  const std::size_t count = nics.all.size() - from;
  const bool is_large = wanted.size >= options_.large_bytes && count > 1;
  if (is_large) touch_pages(wanted.address, wanted.size, options_.threads);  // Once for all NICs.
  Registrations made(count);
  std::vector<Status> failures(count);
  std::atomic<bool> has_failed{false};
  in_parallel(count, is_large ? options_.threads : 1, [&](std::size_t i) {
    if (has_failed || !nics.is_first(from + i) || nics.is_gone(from + i)) return;
    auto one = register_host(nics.all[from + i]->domain, reinterpret_cast<const void*>(wanted.address), wanted.size,
                             wanted.access, options_.threads);
    if (one) {
      made[i] = *std::move(one);
    } else {
      failures[i] = one.error();
      has_failed = true;
    }
  });
  for (const Status& failure : failures) HAWSER_TRY(failure);  // What was made ends here.
  const int node =
      nics.ranks_nodes ? options_.node_of(wanted.address, wanted.size) : -1;  // Its pages are there by now.
  for (std::size_t i = 0; i < count; ++i) {
    made[i] = made[nics.first[from + i] - from];  // Ports of one device come together.
    if (!nics.is_first(from + i) || made[i] == nullptr) continue;
    made[i]->set_node(node);
    nics.all[from + i]->cache.add(made[i]);
  }
  return made;
}

Result<Regions::Registrations> Regions::register_gpu_memory(const Nics& nics, std::size_t from, const Wanted& wanted,
                                                            int gpu) {
  {
    const base::MutexLock lock(ranking_);
    if (from > 0 || ranked_.insert(gpu).second) rank_ports(nics.all, gpu, options_.sysfs_root);
  }
  Registrations made;
  for (std::size_t i = from; i < nics.all.size(); ++i) {
    if (nics.is_gone(i)) {
      made.emplace_back();
      continue;
    }
    auto one = nics.gpus[i]->acquire(wanted);
    if (!one) {
      hide(nics, std::move(made), from);
      return one.error();
    }
    made.push_back(*std::move(one));
  }
  return made;
}

Result<Regions::Registrations> Regions::register_with(const Nics& nics, std::size_t from, const Region& region) {
  HAWSER_TRY(nics.any_there(from));
  return region.gpu >= 0 ? register_gpu_memory(nics, from, region.wanted, region.gpu)
                         : register_host_memory(nics, from, region.wanted);
}

Result<std::string> Regions::add(const RegionEntry& region) {
  if (region.base == nullptr || region.size == 0) return std::string();
  const std::shared_ptr<const Nics> known = nics();
  HAWSER_TRY(check(*known, region, region.device));
  const Key key{region.index, region.generation};
  Region fresh{.made = {},
               .wanted = {.address = reinterpret_cast<std::uintptr_t>(region.base),
                          .size = region.size,
                          .access = {.rights = region.rights, .relaxed_ordering = options_.relaxed_ordering}},
               .gpu = region.device.kind == DeviceKind::kCuda ? static_cast<int>(region.device.ordinal) : -1};
  HAWSER_TRY_ASSIGN(fresh.made, register_with(*known, 0, fresh));
  {
    const base::MutexLock lock(mutex_);
    regions_[key] = std::move(fresh);
  }
  static_cast<void>(join(key));  // NICs that came meanwhile: without their keys the region is served by the others.
  return told(region);
}

std::string Regions::told(const RegionEntry& region) const {
  const base::MutexLock lock(mutex_);
  const auto found = regions_.find({region.index, region.generation});
  if (found == regions_.end()) return {};
  std::vector<RemoteKey> keys;
  for (const auto& one : found->second.made) {
    if (one == nullptr) {
      keys.emplace_back();
      continue;
    }
    const Keys own = one->keys(found->second.wanted.address, found->second.wanted.size);
    keys.push_back({.iova = own.iova, .rkey = own.rkey});
  }
  return encode_region_keys(keys, region.key);
}

Status Regions::add_nics(std::span<const std::shared_ptr<Nic>> more) {
  std::vector<Key> there;
  std::shared_ptr<const Nics> all = with(*nics(), more);
  {
    const base::MutexLock lock(mutex_);
    nics_ = std::move(all);
    for (const auto& [key, region] : regions_) there.push_back(key);
  }
  Status first;
  for (const Key& key : there) {
    if (Status status = join(key); first.ok()) first = std::move(status);
  }
  return first;
}

/// Registers a region with the NICs that it does not know. It stays meanwhile: `retire` waits.
Status Regions::join(const Key& key) {
  // NICs that come while it is being told of others leave it to who tells it.
  while (std::optional<Joint> joint = begin_joining(key)) {
    Result<Registrations> made = register_with(*joint->nics, joint->from, joint->region);
    HAWSER_TRY(end_joining(key, *joint, std::move(made)));
  }
  return {};
}

std::optional<Regions::Joint> Regions::begin_joining(const Key& key) {
  const base::MutexLock lock(mutex_);
  const auto found = regions_.find(key);
  if (found == regions_.end()) return std::nullopt;
  Region& region = found->second;
  if (region.is_joined || region.made.size() == nics_->all.size()) return std::nullopt;
  region.is_joined = true;
  return Joint{
      .nics = nics_, .from = region.made.size(), .region = {.made = {}, .wanted = region.wanted, .gpu = region.gpu}};
}

Status Regions::end_joining(const Key& key, const Joint& joint, Result<Registrations> made) {
  bool is_there = false;
  {
    const base::MutexLock lock(mutex_);
    const auto found = regions_.find(key);
    is_there = found != regions_.end();  // Not so when the agent was closed without waiting for it.
    if (is_there) found->second.is_joined = false;
    if (is_there && made) found->second.made.insert(found->second.made.end(), made->begin(), made->end());
  }
  if (!made) return made.error();
  if (!is_there) hide(*joint.nics, *std::move(made), joint.from);
  return {};
}

Regions::Hidden Regions::hide(const Nics& nics, Registrations made, std::size_t from) {
  Hidden hidden{.made = std::move(made), .uses = {}};
  for (std::size_t i = 0; i < hidden.made.size(); ++i) {
    if (hidden.made[i] == nullptr) continue;
    const Registration& one = *hidden.made[i];
    MrCache& cache = nics.all[from + i]->cache;
    std::uint64_t found_before = 0;
    if (one.gpu() >= 0) {
      nics.gpus[from + i]->release(one, &found_before);
    } else if (nics.is_first(from + i)) {
      cache.remove(one, &found_before);
    }
    if (found_before == 0) continue;
    hidden.uses.push_back({.cache = &cache, .address = one.address(), .size = one.size(), .before = found_before});
  }
  return hidden;
}

Regions::Hidden Regions::take(const Key& key) {
  if (auto known = hidden_.extract(key)) return std::move(known.mapped());
  const auto found = regions_.find(key);
  if (found == regions_.end()) return {};
  Registrations taken = std::move(found->second.made);
  regions_.erase(found);
  return hide(*nics_, std::move(taken));
}

Regions::Registrations Regions::take_unused(const Key& key, const IsUsed& is_used) {
  Hidden taken = take(key);
  if (taken.uses.empty() || (is_used && std::ranges::none_of(taken.uses, is_used))) return std::move(taken.made);
  hidden_.emplace(key, std::move(taken));
  return {};
}

std::unique_ptr<Regions::Retiring> Regions::start_retiring(Registrations& dying) {
  const bool is_large = std::ranges::any_of(dying, [this](const auto& each) {
    return each != nullptr && each->gpu() < 0 && each->size() >= options_.large_bytes;
  });
  if (!is_large || options_.threads < 2) return nullptr;
  auto retiring = std::make_unique<Retiring>();
  const auto held = std::make_shared<Registrations>(std::move(dying));
  try {
    retiring->thread = std::thread([held, done = &retiring->done] {
      held->clear();
      done->store(true);
    });
  } catch (const std::system_error&) {
    dying = std::move(*held);  // No more threads to be had.
    return nullptr;
  }
  return retiring;
}

bool Regions::retire(std::uint32_t index, std::uint32_t generation, const IsUsed& is_used) {
  const Key key{index, generation};
  Registrations dying;
  std::unique_ptr<Retiring> over;
  {
    const base::MutexLock lock(mutex_);
    const auto found = retiring_.find(key);
    if (found != retiring_.end()) {
      if (!found->second->done) return false;
      over = std::move(found->second);
      retiring_.erase(found);
    } else if (const auto busy = regions_.find(key); busy != regions_.end() && busy->second.is_joined) {
      return false;
    } else if (ending_.contains(key)) {
      return false;
    } else {
      dying = take_unused(key, is_used);
      if (hidden_.contains(key)) return false;
      auto started = start_retiring(dying);
      if (started != nullptr) {
        retiring_.emplace(key, std::move(started));
        return false;
      }
      if (!dying.empty()) ending_.insert(key);
    }
  }
  if (over != nullptr) over->thread.join();
  if (dying.empty()) return true;
  dying.clear();
  const base::MutexLock lock(mutex_);
  ending_.erase(key);
  return true;
}

void Regions::remove(std::uint32_t index, std::uint32_t generation) {
  Registrations dying;
  std::unique_ptr<Retiring> retiring;
  {
    const base::MutexLock lock(mutex_);
    dying = take({index, generation}).made;
    const auto found = retiring_.find({index, generation});
    if (found != retiring_.end()) {
      retiring = std::move(found->second);
      retiring_.erase(found);
    }
  }
  if (retiring != nullptr) retiring->thread.join();
}

Regions::~Regions() {
  for (auto& [key, retiring] : retiring_) retiring->thread.join();
}

std::size_t Regions::count() const {
  const base::MutexLock lock(mutex_);
  return regions_.size();
}

}  // namespace hawser::backend::verbs
