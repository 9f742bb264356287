#pragma once

// Bindings: the peer's regions of one path, with the key by which each of the peer's ports reaches them.
//
// Thread rule: one thread at a time. Lifetime: a binding stays where it is until its region is unbound; plans hold it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/verbs/queues/queue_pair.h"

namespace hawser::backend::verbs {

/// A region of the peer, as each of the peer's ports reaches it.
class VerbsBinding final : public Binding {
 public:
  std::uint64_t size = 0;
  Rights rights = Rights::kNone;
  std::vector<RemoteKey> keys;  ///< By the peer's port.
  std::size_t told = 0;         ///< Bytes of the card that they are from.
  bool has_key(std::uint32_t port) const { return port < keys.size() && keys[port] != RemoteKey(); }
};

class Bindings {
 public:
  /// `is_of_use`: whether the ports that are in use reach a new one. `peer` is for errors: kUnsupported where RDMA does
  /// not lead to the region.
  Result<VerbsBinding*> bind(const RemoteRegionRef& region, std::string_view peer,
                             const std::function<bool(const VerbsBinding&)>& is_of_use);
  void unbind(std::uint32_t index, std::uint32_t generation) { bindings_.erase({index, generation}); }

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<VerbsBinding>> bindings_;
};

}  // namespace hawser::backend::verbs
