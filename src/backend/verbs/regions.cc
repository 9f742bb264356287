#include "backend/verbs/regions.h"

#include "backend/verbs/region_keys.h"
#include "base/try.h"

namespace hawser::backend::verbs {

Result<std::string> Regions::add(const RegionEntry& region) {
  if (region.base == nullptr || region.size == 0) return std::string();
  const Access access{.rights = region.rights, .atomics = true, .relaxed_ordering = relaxed_ordering_};
  Registered registered;
  std::vector<RemoteKey> keys;
  for (const auto& nic : nics_) {
    HAWSER_TRY_ASSIGN(auto registration, register_host(nic->domain, region.base, region.size, access));
    keys.push_back({.iova = registration->iova(), .rkey = registration->rkey()});
    registered.push_back(std::move(registration));
  }
  for (std::size_t i = 0; i < nics_.size(); ++i) nics_[i]->cache.add(registered[i]);
  const base::MutexLock lock(mutex_);
  regions_[{region.index, region.generation}] = std::move(registered);
  return encode_region_keys(keys, region.key);
}

void Regions::remove(std::uint32_t index, std::uint32_t generation) {
  Registered dying;
  {
    const base::MutexLock lock(mutex_);
    const auto found = regions_.find({index, generation});
    if (found == regions_.end()) return;
    dying = std::move(found->second);
    regions_.erase(found);
  }
  for (std::size_t i = 0; i < nics_.size(); ++i) nics_[i]->cache.remove(*dying[i]);
}

std::size_t Regions::count() const {
  const base::MutexLock lock(mutex_);
  return regions_.size();
}

}  // namespace hawser::backend::verbs
