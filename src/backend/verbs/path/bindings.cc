#include "backend/verbs/path/bindings.h"

#include "backend/verbs/memory/region_keys.h"
#include "base/format.h"

namespace hawser::backend::verbs {

Result<VerbsBinding*> Bindings::bind(const RemoteRegionRef& region, std::string_view peer,
                                     const std::function<bool(const VerbsBinding&)>& is_of_use) {
  const auto found = bindings_.find({region.index, region.generation});
  VerbsBinding* const known = found == bindings_.end() ? nullptr : found->second.get();
  if (known != nullptr && (known->told == region.extra.size() || region.extra.empty())) return known;
  Result<std::vector<RemoteKey>> keys = decode_region_keys(region.extra, region.key);
  if (known != nullptr) {  // Plans hold it: it gets the keys that came behind those that it has.
    if (keys && keys->size() > known->keys.size()) known->keys = *std::move(keys);
    return known;
  }
  if (!keys) {
    return Status(Code::kUnsupported, base::format("region {} of {} cannot be reached by RDMA", region.index, peer))
        .with_scope(Scope::kPath)
        .because(keys.error());
  }
  // Ports that came later have keys in newer cards alone, and such a card may be on its way.
  auto made = std::make_unique<VerbsBinding>();
  made->size = region.size;
  made->rights = region.rights;
  made->keys = *std::move(keys);
  made->told = region.extra.size();
  if (!is_of_use(*made)) {
    return Status(Code::kUnsupported,
                  base::format("the card of {} has no keys of region {} for the ports in use", peer, region.index))
        .with_scope(Scope::kPath);
  }
  return (bindings_[{region.index, region.generation}] = std::move(made)).get();
}

}  // namespace hawser::backend::verbs
