#pragma once

// An open backend with its port, as the lane keeps it.

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.h"

namespace hawser::agent {

struct OpenBackend {
  std::string name;
  std::uint32_t number = 0;  ///< Of no other backend of this agent, not even of one that failed to open.
  std::shared_ptr<backend::Backend> backend;  ///< Shared with who tells it of a region, without the lane's lock.
  std::unique_ptr<backend::Port> port;
  const backend::Traits* traits = nullptr;
  std::uint32_t renewals = 0;  ///< How often what it says of regions has changed.
};

/// Whether a backend may serve the region: one for a single holder is for those alone that know who uses it.
inline bool may_serve(const backend::Traits& traits, const backend::RegionEntry& region) {
  return region.holder.is_zero() || traits.checks_holder;
}

}  // namespace hawser::agent
