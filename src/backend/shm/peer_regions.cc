#include "backend/shm/peer_regions.h"

#include <utility>

#include "backend/shm/pin.h"
#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::backend::shm {

Result<ShmBinding*> PeerRegions::bind(const RemoteRegionRef& region, const Status& can_attach) {
  const std::uint64_t key = pin_value(region.index, region.generation);
  if (const auto found = bindings_.find(key); found != bindings_.end()) {
    ShmBinding& binding = *found->second;
    if (binding.state == ShmBinding::State::kFailed) return binding.status;
    return &binding;
  }
  if (region.device.kind != DeviceKind::kHost) return Status(Code::kUnsupported, "shm reaches host memory only");
  const auto kind = region.extra.empty() ? CardKind::kArena : static_cast<CardKind>(region.extra[0]);
  if (kind == CardKind::kNone) return Status(Code::kUnsupported, "the peer does not serve this region by shm");
  if ((kind == CardKind::kForeign || kind == CardKind::kAdopted) && !can_attach.ok()) return can_attach;
  auto made = std::make_unique<ShmBinding>();
  made->index = region.index;
  made->generation = region.generation;
  made->key = region.key;
  made->size = region.size;
  to_ask_.push_back(key);
  return bindings_.emplace(key, std::move(made)).first->second.get();
}

Mapping PeerRegions::forget(std::uint32_t index, std::uint32_t generation) {
  const auto found = bindings_.find(pin_value(index, generation));
  if (found == bindings_.end()) return {};
  Mapping left = FileMaps::let_go(std::move(found->second->mapping));
  bindings_.erase(found);
  return left;
}

std::vector<Mapping> PeerRegions::forget_all() {
  std::vector<Mapping> left;
  for (auto& [key, binding] : bindings_) left.push_back(FileMaps::let_go(std::move(binding->mapping)));
  bindings_.clear();
  return left;
}

void PeerRegions::ask(const Send& send) {
  while (!to_ask_.empty() && asked_.size() < kAskedMax) {
    if (const auto found = bindings_.find(to_ask_.front()); found != bindings_.end()) {
      const ShmBinding& binding = *found->second;
      const std::string bytes = encode(Bind{next_request_, binding.index, binding.generation, binding.key});
      if (send(std::as_bytes(std::span<const char>(bytes))) != Io::kDone) return;
      asked_.emplace(next_request_++, found->first);
    }
    to_ask_.pop_front();
  }
}

Result<ShmBinding*> PeerRegions::take(Packet& packet, const Bound& answer, const Means& means) {
  const auto asked = asked_.find(answer.request);
  if (asked == asked_.end()) return Status(Code::kCorrupt, "the peer answered what was not asked");
  const auto found = bindings_.find(asked->second);
  asked_.erase(asked);
  if (found == bindings_.end()) return nullptr;
  ShmBinding& binding = *found->second;
  binding.status = adopt(binding, packet, answer, means);
  if (!binding.status.ok()) binding.state = ShmBinding::State::kFailed;
  return &binding;
}

Status PeerRegions::adopt(ShmBinding& binding, Packet& packet, const Bound& answer, const Means& means) {
  if (answer.code != Code::kOk) {
    return Status(answer.code, base::shown(answer.reason))
        .with_scope(Scope::kRequest)
        .with_advice(answer.code == Code::kDenied ? "fetch the peer's card again" : "");
  }
  if (answer.size != binding.size) {
    return Status(Code::kCorrupt,
                  base::format("the peer's region has {} bytes, its card says {}", answer.size, binding.size));
  }
  binding.rights = answer.rights;
  binding.gate = means.gates.at(binding.index);
  if (binding.gate == nullptr) return Status(Code::kCorrupt, "the peer's region has no gate");
  if (answer.kind != MemoryKind::kMapped && !means.can_attach.ok()) return means.can_attach;
  if (answer.kind == MemoryKind::kForeign) {
    binding.address = answer.place;
    binding.state = ShmBinding::State::kForeign;
    return {};
  }
  if (answer.kind == MemoryKind::kAdopted) {
    binding.address = answer.address;
    binding.head = answer.head;
    binding.tail = answer.tail;
  }
  if (packet.fd_count != 1) return Status(Code::kCorrupt, "the peer sent no memory");
  HAWSER_TRY_ASSIGN(const std::size_t file_size, sealed_size(packet.fds[0].get()));
  if (!in_bounds(answer.place, answer.size, file_size)) {
    return Status(Code::kCorrupt, "the peer's region is larger than its memory");
  }
  const bool writes = allows(answer.rights, Rights::kWrite);
  HAWSER_TRY_ASSIGN(binding.mapping, files_.map(packet.fds[0].get(), file_size,
                                                writes ? Mapping::Access::kReadWrite : Mapping::Access::kRead));
  binding.base = binding.mapping->base() + answer.place;
  binding.first_touch = FirstTouch(binding.base, answer.size);
  binding.state = ShmBinding::State::kMapped;
  return {};
}

PeerRegions::Mapped PeerRegions::mapped() const {
  Mapped all;
  for (const auto& [key, binding] : bindings_) {
    if (binding->state != ShmBinding::State::kMapped) continue;
    ++all.count;
    all.bytes += binding->size;
  }
  return all;
}

}  // namespace hawser::backend::shm
