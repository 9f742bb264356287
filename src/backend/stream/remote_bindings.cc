#include "backend/stream/remote_bindings.h"

#include "backend/stream/chunk_limits.h"
#include "backend/stream/frame_writer.h"

namespace hawser::backend::stream {

RemoteBinding* RemoteBindings::bind(const RemoteRegionRef& region) {
  auto& binding = bindings_[{region.index, region.generation}];
  if (binding == nullptr) {
    binding = std::make_unique<RemoteBinding>();
    binding->bind = {.binding = next_++, .index = region.index, .generation = region.generation, .key = region.key};
    binding->in_file = region.device.kind == DeviceKind::kFile;
  }
  return binding.get();
}

void RemoteBindings::unbind(std::uint32_t index, std::uint32_t generation) {
  const auto found = bindings_.find({index, generation});
  if (found == bindings_.end()) return;
  std::unique_ptr<RemoteBinding> binding = std::move(found->second);
  bindings_.erase(found);
  binding->gone = true;
  retired_.push_back(std::move(binding));
  if (retired_.back()->uses == 0) drop(*retired_.back());
}

void RemoteBindings::drop(RemoteBinding& binding) {
  if (binding.announced != 0) unbinds_.emplace_back(binding.bind.binding, binding.announced);
  std::erase_if(retired_, [&binding](const auto& retired) { return retired.get() == &binding; });
}

void RemoteBindings::announce(RemoteBinding& binding, unsigned stream, Outlet& outlet) {
  const auto bit = static_cast<std::uint8_t>(1u << stream);
  if ((binding.announced & bit) != 0) return;
  binding.announced |= bit;
  FrameWriter frame(outlet, {.type = wire::FrameType::kBind, .meta_size = 28});
  wire::encode_bind(frame.meta(), binding.bind);
}

void RemoteBindings::stage_unbinds(unsigned stream, Outlet& outlet) {
  const auto bit = static_cast<std::uint8_t>(1u << stream);
  for (auto& [binding, streams] : unbinds_) {
    if ((streams & bit) == 0 || !outlet.has_room(kFrameRoom)) continue;
    streams = static_cast<std::uint8_t>(streams & ~bit);
    FrameWriter(outlet, {.type = wire::FrameType::kUnbind, .meta_size = 4}).meta().u32(binding);
  }
  std::erase_if(unbinds_, [](const auto& unbind) { return unbind.second == 0; });
}

}  // namespace hawser::backend::stream
