#include "backend/verbs/regions.h"

#include <algorithm>
#include <system_error>

#include "backend/verbs/pointer.h"
#include "backend/verbs/region_keys.h"
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
    : nics_(std::move(nics)), options_(std::move(options)), ranks_nodes_(rank_nodes(nics_)) {
  const Access access{.rights = Rights::kReadWrite, .relaxed_ordering = options_.relaxed_ordering};
  for (const auto& nic : nics_) {
    const auto found = std::ranges::find(nics_, nic->shared, &Nic::shared);
    first_.push_back(static_cast<std::size_t>(found - nics_.begin()));
    gpus_.push_back(is_first(gpus_.size()) ? std::make_shared<GpuRegistrations>(nic, options_.segments,
                                                                                indirect_keys(*nic, options_), access)
                                           : gpus_[first_.back()]);
  }
}

Status Regions::check(const RegionEntry& region, Device device) const {
  if (device.kind != DeviceKind::kHost && device.kind != DeviceKind::kCuda) {
    return Status(Code::kUnsupported, "RDMA devices reach memory of the host and of GPUs only");
  }
  for (const auto& nic : nics_) {
    if (device.kind == DeviceKind::kCuda) HAWSER_TRY(nic->memory.refusal());
  }
  if (nics_.empty()) return {};
  const auto start = reinterpret_cast<std::uintptr_t>(region.base);
  const Status other = check_device(nics_.front()->gpus.get(), start, region.size, device);
  const bool is_told = other.code() == Code::kInvalid || other.code() == Code::kUnsupported;
  if (device.kind == DeviceKind::kHost && !is_told) return {};  // A driver in trouble is nothing to the host's memory.
  return other.code() != Code::kInvalid ? other : other.with_advice("say in RegionOptions::device whose memory it is");
}

Result<Regions::Registrations> Regions::register_host_memory(const Wanted& wanted) {
  const bool is_large = wanted.size >= options_.large_bytes && nics_.size() > 1;
  if (is_large) touch_pages(wanted.address, wanted.size, options_.threads);  // Once for all NICs.
  Registrations made(nics_.size());
  std::vector<Status> failures(nics_.size());
  std::atomic<bool> has_failed{false};
  in_parallel(nics_.size(), is_large ? options_.threads : 1, [&](std::size_t i) {
    if (has_failed || !is_first(i)) return;
    auto one = register_host(nics_[i]->domain, reinterpret_cast<const void*>(wanted.address), wanted.size,
                             wanted.access, options_.threads);
    if (one) {
      made[i] = *std::move(one);
    } else {
      failures[i] = one.error();
      has_failed = true;
    }
  });
  for (const Status& failure : failures) HAWSER_TRY(failure);                          // What was made ends here.
  const int node = ranks_nodes_ ? options_.node_of(wanted.address, wanted.size) : -1;  // Its pages are there by now.
  for (std::size_t i = 0; i < nics_.size(); ++i) {
    made[i] = made[first_[i]];
    if (!is_first(i)) continue;
    made[i]->set_node(node);
    nics_[i]->cache.add(made[i]);
  }
  return made;
}

Result<Regions::Registrations> Regions::register_gpu_memory(const Wanted& wanted, int gpu) {
  {
    const base::MutexLock lock(ranking_);
    if (ranked_.insert(gpu).second) rank_ports(nics_, gpu, options_.sysfs_root);
  }
  Registrations made;
  for (const auto& each : gpus_) {
    auto one = each->acquire(wanted);
    if (!one) {
      drop(std::move(made));
      return one.error();
    }
    made.push_back(*std::move(one));
  }
  return made;
}

Result<std::string> Regions::add(const RegionEntry& region) {
  if (region.base == nullptr || region.size == 0) return std::string();
  HAWSER_TRY(check(region, region.device));
  const Wanted wanted{.address = reinterpret_cast<std::uintptr_t>(region.base),
                      .size = region.size,
                      .access = {.rights = region.rights, .relaxed_ordering = options_.relaxed_ordering}};
  const bool on_gpu = region.device.kind == DeviceKind::kCuda;
  HAWSER_TRY_ASSIGN(Registrations made, on_gpu ? register_gpu_memory(wanted, static_cast<int>(region.device.ordinal))
                                               : register_host_memory(wanted));
  std::vector<RemoteKey> keys;
  for (const auto& one : made) {
    const Keys told = one->keys(wanted.address, wanted.size);
    keys.push_back({.iova = told.iova, .rkey = told.rkey});
  }
  const base::MutexLock lock(mutex_);
  regions_[{region.index, region.generation}] = std::move(made);
  return encode_region_keys(keys, region.key);
}

void Regions::drop(Registrations dying) {
  for (std::size_t i = 0; i < dying.size(); ++i) {
    if (dying[i]->gpu() >= 0) {
      gpus_[i]->release(*dying[i]);
    } else if (is_first(i)) {
      nics_[i]->cache.remove(*dying[i]);
    }
    dying[i].reset();
  }
}

Regions::Registrations Regions::take(const Key& key) {
  const auto found = regions_.find(key);
  if (found == regions_.end()) return {};
  Registrations taken = std::move(found->second);
  regions_.erase(found);
  return taken;
}

std::unique_ptr<Regions::Retiring> Regions::start_retiring(Registrations& dying) {
  const bool is_large = !dying.empty() && dying[0]->gpu() < 0 && dying[0]->size() >= options_.large_bytes;
  if (!is_large || options_.threads < 2) return nullptr;
  auto retiring = std::make_unique<Retiring>();
  const auto held = std::make_shared<Registrations>(std::move(dying));
  try {
    retiring->thread = std::thread([this, held, done = &retiring->done] {
      drop(std::move(*held));
      done->store(true);
    });
  } catch (const std::system_error&) {
    dying = std::move(*held);  // No more threads to be had.
    return nullptr;
  }
  return retiring;
}

bool Regions::retire(std::uint32_t index, std::uint32_t generation) {
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
    } else {
      dying = take(key);
      auto started = start_retiring(dying);
      if (started != nullptr) {
        retiring_.emplace(key, std::move(started));
        return false;
      }
    }
  }
  if (over != nullptr) over->thread.join();
  drop(std::move(dying));
  return true;
}

void Regions::remove(std::uint32_t index, std::uint32_t generation) {
  Registrations dying;
  std::unique_ptr<Retiring> retiring;
  {
    const base::MutexLock lock(mutex_);
    dying = take({index, generation});
    const auto found = retiring_.find({index, generation});
    if (found != retiring_.end()) {
      retiring = std::move(found->second);
      retiring_.erase(found);
    }
  }
  if (retiring != nullptr) retiring->thread.join();
  drop(std::move(dying));
}

Regions::~Regions() {
  for (auto& [key, retiring] : retiring_) retiring->thread.join();
}

std::size_t Regions::count() const {
  const base::MutexLock lock(mutex_);
  return regions_.size();
}

}  // namespace hawser::backend::verbs
