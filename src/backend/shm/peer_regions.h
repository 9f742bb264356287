#pragma once

// PeerRegions: the regions of one path's peer that transfers name, and how this agent reaches each. It asks the peer
// over the path's socket, and maps what the peer sends.
//
// Nothing that the peer says is trusted: a region that is larger than its file, or has no gate, fails with kCorrupt.
//
// Thread rule: confined to the lane. Lifetime: owns the bindings until they are forgotten.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <hawser/status.h>

#include "backend/backend.h"
#include "backend/shm/binding.h"
#include "backend/shm/control.h"
#include "backend/shm/file_maps.h"
#include "backend/shm/gate.h"
#include "backend/shm/mapping.h"
#include "backend/shm/packet.h"

namespace hawser::backend::shm {

class PeerRegions {
 public:
  /// Requests without an answer yet: so few that neither socket can fill up while both ends wait for the other.
  static constexpr std::size_t kAskedMax = 16;
  /// Puts one packet into the socket.
  using Send = std::function<Io(std::span<const std::byte>)>;

  /// The region as it is known: asked for, reachable, or why it is not. `can_attach`: whether this process may reach
  /// the peer's memory by cross-memory attach; ok before anybody knows. Then call ask().
  Result<ShmBinding*> bind(const RemoteRegionRef& region, const Status& can_attach);
  /// Answers the mapping to end, if nobody else has it.
  Mapping forget(std::uint32_t index, std::uint32_t generation);
  /// Forgets all, and answers the mappings to end.
  std::vector<Mapping> forget_all();
  /// Asks for those that nobody asked for, as many as may be under way.
  void ask(const Send& send);

  /// What the path knows of its peer once it is up.
  struct Means {
    const PeerGates& gates;
    const Status& can_attach;
  };
  /// The peer's answer. Null: the region was forgotten meanwhile. An error: nobody asked, so the path must end. A
  /// region that cannot be reached says why in its status.
  Result<ShmBinding*> take(Packet& packet, const Bound& answer, const Means& means);

  /// Bytes and number of those that are mapped.
  struct Mapped {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
  };
  Mapped mapped() const;

 private:
  Status adopt(ShmBinding& binding, Packet& packet, const Bound& answer, const Means& means);

  FileMaps files_;
  std::unordered_map<std::uint64_t, std::unique_ptr<ShmBinding>> bindings_;  ///< By pin_value(index, generation).
  std::deque<std::uint64_t> to_ask_;
  std::unordered_map<std::uint32_t, std::uint64_t> asked_;  ///< Request to binding.
  std::uint32_t next_request_ = 1;
};

}  // namespace hawser::backend::shm
