#pragma once

// RemoteBindings: how this end names the peer's regions on one path. A stream carries BIND before the first chunk that
// names a region there, and UNBIND once the region is gone and no chunk names it any more.
//
// Thread rule: one thread. Lifetime: a binding lives until `unbind` and until the last chunk that uses it has ended.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/stream/outlet.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

/// A remote region as this path names it on the wire.
class RemoteBinding final : public Binding {
 public:
  wire::Bind bind;
  std::uint32_t uses = 0;      ///< Chunks that name it and have not ended at both sides.
  std::uint32_t strays = 0;    ///< Writes among them that ended here without an answer: they may still land.
  std::uint8_t announced = 0;  ///< Bit per stream on which BIND went out.
  bool gone = false;
  bool in_file = false;
};

class RemoteBindings {
 public:
  /// The same binding for the same region, until that is unbound.
  RemoteBinding* bind(const RemoteRegionRef& region);
  void unbind(std::uint32_t index, std::uint32_t generation);

  /// A chunk names it from now on.
  static void use(RemoteBinding& binding) { ++binding.uses; }
  /// A chunk that named it has ended. The binding may be gone after it.
  void release(RemoteBinding& binding) {
    if (--binding.uses == 0 && binding.gone) drop(binding);
  }

  /// Frames BIND, unless the stream has carried it.
  static void announce(RemoteBinding& binding, unsigned stream, Outlet& outlet);
  bool has_unbinds() const { return !unbinds_.empty(); }
  /// Frames each UNBIND that this stream owes, as far as there is room.
  void stage_unbinds(unsigned stream, Outlet& outlet);

  std::size_t count() const { return bindings_.size() + retired_.size(); }

 private:
  void drop(RemoteBinding& binding);

  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<RemoteBinding>> bindings_;
  std::vector<std::unique_ptr<RemoteBinding>> retired_;          ///< Gone, still named by chunks.
  std::vector<std::pair<std::uint32_t, std::uint8_t>> unbinds_;  ///< Binding, streams that still have to say so.
  std::uint32_t next_ = 1;
};

}  // namespace hawser::backend::stream
