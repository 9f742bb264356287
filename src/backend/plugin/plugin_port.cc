#include "backend/plugin/plugin_port.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

constexpr std::size_t kHolderMax = 512;  // Bytes.

}  // namespace

PluginPort::PluginPort(std::shared_ptr<const PluginLibrary> library, hawser_plugin_port* handle,
                       const Identity& identity, const base::Logger& log)
    : library_(std::move(library)), handle_(handle), identity_(identity), log_(log), sent_(kChunksMax) {}

PluginPath& PluginPort::add(hawser_plugin_path* handle, std::string peer) {
  auto path = std::make_unique<PluginPath>(*this, handle, std::move(peer));
  PluginPath& added = *path;
  by_handle_.emplace(handle, &added);
  paths_.emplace(&added, std::move(path));
  return added;
}

void PluginPort::erase(PluginPath& path) {
  sent_.for_each([&](base::SlotId id, const Sent& sent) {
    if (sent.path == &path) sent_.erase(id);
  });
  std::erase_if(own_, [&](const PortEvent& event) { return event.path == &path; });
  std::erase_if(refusals_, [&](const auto& refusal) { return refusal.first == &path; });
  paths_.erase(&path);
}

Result<Path*> PluginPort::open_path(const PathTarget& target, Instant now) {
  if (is_faulty()) return fault_;
  hawser_plugin_path_target its_target{};
  its_target.peer = text_of(target.peer);
  its_target.incarnation = id_of(target.incarnation);
  its_target.address = text_of(target.address);
  its_target.supersedes = id_of(target.supersedes);
  its_target.deadline_ns = target.deadline.ns();
  hawser_plugin_reason reason{};
  hawser_plugin_path* made = nullptr;
  const std::uint32_t code = library_->port.open_path(handle_, &its_target, now.ns(), &made, &reason);
  HAWSER_TRY(status_from(*library_, code, &reason));
  if (made == nullptr || by_handle_.contains(made)) {
    fault(made == nullptr ? "open_path gave a null handle" : "open_path gave a handle that it has given before");
    return fault_;
  }
  return &add(made, std::string(target.peer));
}

void PluginPort::release_path(Path* released) {
  const auto found = paths_.find(released);
  if (found == paths_.end()) return;
  PluginPath& path = *found->second;
  if (path.life_ != PluginPath::Life::kGone) {
    by_handle_.erase(path.handle_);
    library_->port.release_path(handle_, path.handle_);
  }
  erase(path);
}

std::size_t PluginPort::turn(Instant now, const TurnBudget& budget) {
  settle();
  if (is_faulty()) return own_.size();
  const hawser_plugin_budget its_budget{budget.copy_bytes, budget.kernel_copy_bytes};
  return own_.size() + std::min<std::size_t>(library_->port.turn(handle_, now.ns(), &its_budget), UINT32_MAX);
}

Instant PluginPort::next_deadline() const {
  // Not before the clock's origin, so that differences of times do not overflow.
  return is_faulty() ? Instant::max() : std::max(Instant(), Instant::from_ns(library_->port.next_deadline(handle_)));
}

bool PluginPort::prepare_sleep() {
  settle();
  if (!own_.empty()) return false;
  return is_faulty() || library_->port.prepare_sleep(handle_) != 0;
}

bool PluginPort::region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) {
  PluginSink sink(kHolderMax);
  if (library_->port.region_quiet(handle_, index, generation, sink.get()) != 0) return true;
  if (holder != nullptr) {
    *holder = sink.text();
    if (holder->empty()) *holder = base::format("plug-in {}, which does not say for whom", library_->name);
  }
  return false;
}

bool PluginPort::idle() const { return own_.empty() && (is_faulty() || library_->port.idle(handle_) != 0); }

// Chunks.

Submitted PluginPort::submit(PluginPath& path, std::span<const Chunk> chunks, Instant now) {
  offered_.clear();
  for (const Chunk& chunk : chunks) {
    const auto slot = sent_.emplace(Sent{&path, chunk.cookie});
    if (!slot) break;
    offered_.push_back(chunk_of(chunk, slot.id.to_u64(), static_cast<PluginBinding*>(chunk.target)->handle));
  }
  const auto count = static_cast<std::uint32_t>(offered_.size());
  if (count == 0) return {};
  path.in_flight_ += count;
  const hawser_plugin_submitted result = library_->path.submit(path.handle_, offered_.data(), count, now.ns());
  if (result.taken > count || result.done > result.taken) {
    fault(base::format("submit of {} chunks took {} and did {}", count, result.taken, result.done));
    return {.taken = count, .done = 0};  // settle() ends them.
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i < result.done || i >= result.taken) forget(base::SlotId::from_u64(offered_[i].cookie));
  }
  return {.taken = result.taken, .done = result.done};
}

void PluginPort::forget(base::SlotId id) {
  --sent_.get(id)->path->in_flight_;
  sent_.erase(id);
}

// Faults.

void PluginPort::fault(std::string what) {
  if (is_faulty()) return;
  fault_ = Status(Code::kFailed,
                  base::format("plug-in {} ({}) broke the contract: {}", library_->name, library_->origin, what))
               .with_scope(Scope::kPath)
               .with_advice("report it to the plug-in's makers; other backends go on");
  HAWSER_LOG(log_, kError, "{}: {}", identity_.name, fault_.message());
}

void PluginPort::refuse(PluginPath& path, const Status& why) {
  HAWSER_LOG(log_, kWarn, "{}: plug-in {}: path to '{}' is dropped: {}", identity_.name, library_->name,
             path.peer_name_, why.message());
  path.life_ = PluginPath::Life::kRefused;
  refusals_.emplace_back(&path, why);
}

/// Acts upon what was found wrong in an earlier call.
void PluginPort::settle() {
  for (const auto& [path, why] : std::exchange(refusals_, {})) end(*path, why);
  if (!is_faulty() || by_handle_.empty()) return;
  std::vector<PluginPath*> all;
  for (const auto& [handle, path] : by_handle_) all.push_back(path);
  for (PluginPath* path : all) end(*path, fault_);
}

/// Takes a path from the plug-in and ends what it carried.
void PluginPort::end(PluginPath& path, const Status& why) {
  const bool was_reported = path.life_ == PluginPath::Life::kDown;
  by_handle_.erase(path.handle_);
  library_->port.release_path(handle_, path.handle_);
  path.life_ = PluginPath::Life::kGone;
  if (!path.is_known_) {
    erase(path);
    return;
  }
  sent_.for_each([&](base::SlotId id, const Sent& sent) {
    if (sent.path != &path) return;
    PortEvent event;
    event.path = &path;
    event.cookie = sent.cookie;
    event.status = why;
    own_.push_back(std::move(event));
    forget(id);
  });
  if (!was_reported) push_down(path, why);
}

void PluginPort::push_down(PluginPath& path, const Status& why) {
  PortEvent event;
  event.kind = PortEvent::Kind::kPathDown;
  event.path = &path;
  event.peer = &path.peer_;
  event.session = path.session_;
  event.status = why;
  own_.push_back(std::move(event));
}

}  // namespace hawser::backend
