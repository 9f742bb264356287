#include "backend/plugin/plugin_path.h"

#include "backend/plugin/plugin_port.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

constexpr std::size_t kPathTextMax = 4096;  // Bytes of a text for people.

std::uint64_t binding_key(std::uint32_t index, std::uint32_t generation) {
  return std::uint64_t{generation} << 32 | index;
}

std::string_view name_of(PathState state) {
  switch (state) {
    case PathState::kConnecting:
      return "connecting";
    case PathState::kUp:
      return "up";
    case PathState::kDown:
      break;
  }
  return "down";
}

}  // namespace

PathState PluginPath::state() const {
  if (port_.is_faulty()) return PathState::kDown;
  // An answer other than the three counts as down; up is what the agent was told.
  const bool is_live = life_ == Life::kOpening || life_ == Life::kUp;
  switch (is_live ? port_.library_->path.state(handle_) : std::uint32_t{HAWSER_PLUGIN_DOWN}) {
    case HAWSER_PLUGIN_CONNECTING:
      return PathState::kConnecting;
    case HAWSER_PLUGIN_UP:
      return life_ == Life::kUp ? PathState::kUp : PathState::kConnecting;
    default:
      return PathState::kDown;
  }
}

Result<Binding*> PluginPath::bind(const RemoteRegionRef& region) {
  if (port_.is_faulty()) return port_.fault_;
  if (!works()) return Status(Code::kDisconnected, "the path is not up").with_scope(Scope::kPath);
  const auto found = bindings_.find(binding_key(region.index, region.generation));
  if (found != bindings_.end()) return found->second.get();
  const hawser_plugin_remote_region its_region = remote_region_of(region);
  hawser_plugin_reason reason{};
  hawser_plugin_binding* made = nullptr;
  const PluginLibrary& library = *port_.library_;
  HAWSER_TRY(status_from(library, library.path.bind(handle_, &its_region, &made, &reason), &reason));
  if (made == nullptr) {
    port_.fault("bind gave a null handle");
    return port_.fault_;
  }
  auto binding = std::make_unique<PluginBinding>(made);
  Binding* result = binding.get();
  bindings_.emplace(binding_key(region.index, region.generation), std::move(binding));
  return result;
}

void PluginPath::unbind(std::uint32_t index, std::uint32_t generation) {
  if (bindings_.erase(binding_key(index, generation)) == 0 || life_ == Life::kGone || port_.is_faulty()) return;
  port_.library_->path.unbind(handle_, index, generation);
}

Submitted PluginPath::submit(std::span<const Chunk> chunks, Instant now) {
  if (!works() || port_.is_faulty()) return {};
  return port_.submit(*this, chunks, now);
}

bool PluginPath::send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) {
  if (!works() || port_.is_faulty()) return false;
  const auto its_priority = static_cast<std::uint32_t>(link.priority());
  return port_.library_->path.send(handle_, its_priority, text_of(head), text_of(body)) != 0;
}

void PluginPath::cancel(std::uint64_t transfer) {
  if (works() && !port_.is_faulty()) port_.library_->path.cancel(handle_, transfer);
}

PathCounters PluginPath::counters() const {
  hawser_plugin_counters its_counters{};
  if (life_ != Life::kGone && !port_.is_faulty()) port_.library_->path.counters(handle_, &its_counters);
  PathCounters counters;
  counters.peer = peer_name_;
  counters.backend = port_.library_->name;
  counters.state = name_of(state());
  counters.bytes_out = its_counters.bytes_out;
  counters.bytes_in = its_counters.bytes_in;
  counters.chunks = its_counters.chunks;
  counters.messages_out = its_counters.messages_out;
  counters.messages_in = its_counters.messages_in;
  counters.epochs = its_counters.epochs;
  return counters;
}

std::string PluginPath::describe() const {
  const std::string_view name = port_.library_->name;
  if (life_ == Life::kGone || port_.is_faulty()) return base::format("{}: taken from its plug-in", name);
  PluginSink sink(kPathTextMax);
  port_.library_->path.describe(handle_, sink.get());
  return base::format("{}: {}", name, sink.text());
}

}  // namespace hawser::backend
