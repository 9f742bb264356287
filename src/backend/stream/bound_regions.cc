#include "backend/stream/bound_regions.h"

#include "base/bytes.h"
#include "base/planted.h"

namespace hawser::backend::stream {

bool BoundRegions::on_bind(unsigned stream, std::span<const std::byte> meta) {
  base::ByteReader in(meta);
  wire::Bind bind;
  if (!wire::decode_bind(in, &bind) || !in.finished()) return false;
  const auto bit = static_cast<std::uint8_t>(1u << stream);
  if (const auto known = bindings_.find(bind.binding); known != bindings_.end()) {  // From another stream.
    BoundRegion& bound = known->second;
    if ((bound.announced & bit) != 0 || bound.index != bind.index || bound.generation != bind.generation) return false;
    bound.announced |= bit;
    return true;
  }
  const auto entry = regions_.find(bind.index, bind.generation, bind.key, Rights::kNone, account_.incarnation());
  if (!entry) return true;  // Nothing to remember: a binding that is not known is denied when it is used.
  if (!has_room()) return false;
  BoundRegion& bound = bindings_[bind.binding];
  bound = BoundRegion{.index = bind.index, .generation = bind.generation, .announced = bit};
  bound.file = (*entry)->file;
  bound.file_offset = (*entry)->file_offset;
  bound.once = (*entry)->once;
  const bool is_reached =
      bound.file != nullptr ? files_ != nullptr && files_->open() : (*entry)->device.kind == DeviceKind::kHost;
  if (!is_reached) return true;
  bound.base = (*entry)->base;
  bound.size = (*entry)->size;
  bound.rights = (*entry)->rights;
  bound.valid = true;
  return true;
}

// Of regions that closed, the peer may not have heard yet.
bool BoundRegions::has_room() {
  if (bindings_.size() < kBindingsFree) return true;
  const std::size_t most = kBindingsFree + 2 * std::size_t{regions_.count()};
  if (bindings_.size() < most) return true;
  std::erase_if(bindings_,
                [this](const auto& each) { return !regions_.is_open(each.second.index, each.second.generation); });
  return bindings_.size() < most;
}

bool BoundRegions::on_unbind(unsigned stream, std::span<const std::byte> meta) {
  base::ByteReader in(meta);
  const auto found = bindings_.find(in.u32());
  const auto bit = static_cast<std::uint8_t>(1u << stream);
  if (!in.finished()) return false;
  if (found == bindings_.end()) return true;  // It named no region that is known here.
  // Announced on this stream before the region was known under that key, or not at all.
  if ((found->second.announced & bit) == 0) return true;
  found->second.announced = static_cast<std::uint8_t>(found->second.announced & ~bit);
  if (found->second.announced == 0) bindings_.erase(found);
  return true;
}

BoundRegions::Resolved BoundRegions::resolve(const wire::ChunkHead& chunk, Rights right,
                                             std::span<const wire::RemotePiece> pieces, std::vector<Piece>& out) const {
  const auto at = bindings_.find(chunk.binding);
  if (at == bindings_.end() || !at->second.valid) return {.outcome = wire::Outcome::kDenied};
  const BoundRegion& bound = at->second;
  const bool allowed = allows(bound.rights, right) || base::planted(base::Planted::kRightsUnchecked);
  if (!allowed) return {.outcome = wire::Outcome::kDenied};
  const bool open =
      regions_.is_open(bound.index, bound.generation) || base::planted(base::Planted::kGenerationUnchecked);
  if (!open) return {.outcome = wire::Outcome::kClosed};
  if (bound.once != nullptr && !bound.once->admits(account_.incarnation(), chunk.transfer) &&
      !base::planted(base::Planted::kSecondUseServed)) {
    return {.outcome = wire::Outcome::kClosed};  // For all that are not the one transfer it is.
  }
  out.resize(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const bool inside =
        in_bounds(pieces[i].remote, pieces[i].size, bound.size) || base::planted(base::Planted::kBoundsUnchecked);
    if (!inside) return {.outcome = wire::Outcome::kOutOfBounds};
    out[i] = bound.file != nullptr ? Piece{.local = nullptr, .remote = pieces[i].remote, .size = pieces[i].size}
                                   : Piece{.local = bound.base + pieces[i].remote, .remote = 0, .size = pieces[i].size};
  }
  return {.region = &bound};
}

}  // namespace hawser::backend::stream
