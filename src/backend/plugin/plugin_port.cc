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

void PluginPort::describe(const WaitVisitor& visitor) const {
  for (const auto& [key, path] : paths_) {
    const Waiting waiting{.who = "plug-in", .what = "the hello", .peer = path->peer_name_};
    if (path->life_ == PluginPath::Life::kOpening) visitor(waiting);
  }
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

std::size_t PluginPort::poll(std::span<PortEvent> out) {
  settle();
  std::size_t count = 0;
  for (; count < out.size() && !own_.empty(); ++count) {
    out[count] = std::move(own_.front());
    own_.pop_front();
  }
  const std::size_t room = std::min(out.size() - count, raw_.size());
  if (room == 0 || is_faulty()) return count;
  const std::size_t given = library_->port.poll(handle_, raw_.data(), room);
  if (given > room) {
    fault(base::format("poll gave {} events for room of {}", given, room));
    raw_.fill({});
    return count;
  }
  for (std::size_t i = 0; i < given && !is_faulty(); ++i) {
    out[count] = {};
    if (take(raw_[i], &out[count])) ++count;
  }
  std::fill_n(raw_.begin(), given, hawser_plugin_event{});
  return count;
}

/// Null when there is nothing to be told: a fault, or a path that was refused.
PluginPath* PluginPort::path_of(const hawser_plugin_event& raw) {
  const auto found = by_handle_.find(raw.path);
  if (found != by_handle_.end()) return found->second->life_ == PluginPath::Life::kRefused ? nullptr : found->second;
  if (raw.kind != HAWSER_PLUGIN_PATH_UP || raw.inbound == 0 || raw.path == nullptr) {
    fault(base::format("an event of kind {} is of an unknown path", raw.kind));
    return nullptr;
  }
  PluginPath& path = add(raw.path, std::string());
  path.is_known_ = false;
  if (paths_.size() > kPathsMax) {
    refuse(path, Status(Code::kBusy, base::format("the agent has {} paths by this backend", kPathsMax)));
    return nullptr;
  }
  return &path;
}

bool PluginPort::take(const hawser_plugin_event& raw, PortEvent* out) {
  PluginPath* path = path_of(raw);
  if (path == nullptr) return false;
  if (path->life_ == PluginPath::Life::kDown) {
    fault(base::format("an event of kind {} is of a path that it reported down", raw.kind));
    return false;
  }
  if (path->life_ == PluginPath::Life::kOpening && raw.kind != HAWSER_PLUGIN_PATH_UP &&
      raw.kind != HAWSER_PLUGIN_PATH_DOWN) {
    fault(base::format("an event of kind {} is of a path that is not up", raw.kind));
    return false;
  }
  out->path = path;
  switch (raw.kind) {
    case HAWSER_PLUGIN_CHUNK_DONE:
      return take_chunk_done(*path, raw, out);
    case HAWSER_PLUGIN_MESSAGE:
      return take_message(*path, raw, out);
    case HAWSER_PLUGIN_ARRIVAL:
      out->kind = PortEvent::Kind::kArrival;
      out->peer = &path->peer_;
      out->transfer = raw.transfer;
      out->chunk = raw.chunk;
      return true;
    case HAWSER_PLUGIN_PATH_UP:
      return take_path_up(*path, raw, out);
    case HAWSER_PLUGIN_PATH_DOWN:
      return take_path_down(*path, raw, out);
    default:
      fault(base::format("an event has the unknown kind {}", raw.kind));
      return false;
  }
}

bool PluginPort::take_chunk_done(PluginPath& path, const hawser_plugin_event& raw, PortEvent* out) {
  const base::SlotId id = base::SlotId::from_u64(raw.cookie);
  const Sent* sent = sent_.get(id);
  if (sent == nullptr || sent->path != &path) {
    fault(base::format("chunk {:#x} ended, which is not in flight on its path", raw.cookie));
    return false;
  }
  out->kind = PortEvent::Kind::kChunkDone;
  out->peer = &path.peer_;
  out->cookie = sent->cookie;
  out->status = status_from(*library_, raw.code, raw.reason).with_peer(path.peer_name_);
  forget(id);
  return true;
}

bool PluginPort::take_message(PluginPath& path, const hawser_plugin_event& raw, PortEvent* out) {
  if (raw.bytes.data == nullptr && raw.bytes.size > 0) {
    fault(base::format("a message of {} bytes is at null", raw.bytes.size));
    return false;
  }
  if (raw.bytes.size > HAWSER_PLUGIN_MESSAGE_MAX) {
    refuse(path, Status(Code::kCorrupt, base::format("a message has {} bytes, more than {}", raw.bytes.size,
                                                     HAWSER_PLUGIN_MESSAGE_MAX)));
    return false;
  }
  out->kind = PortEvent::Kind::kMessage;
  out->peer = &path.peer_;
  out->bytes = std::as_bytes(std::span<const char>(raw.bytes.data, raw.bytes.size));
  return true;
}

bool PluginPort::take_path_up(PluginPath& path, const hawser_plugin_event& raw, PortEvent* out) {
  if (path.life_ == PluginPath::Life::kUp || raw.peer == nullptr || id_from(raw.session).is_zero()) {
    fault(path.life_ == PluginPath::Life::kUp ? "a path came up twice" : "a path came up without peer or session");
    return false;
  }
  Result<Identity> peer = identity_from(*raw.peer, identity_);
  if (!peer) {
    refuse(path, peer.error());
    return false;
  }
  path.life_ = PluginPath::Life::kUp;
  path.peer_ = std::move(*peer);
  path.peer_name_ = path.peer_.name;
  path.session_ = id_from(raw.session);
  out->kind = PortEvent::Kind::kPathUp;
  out->inbound = !path.is_known_;
  out->peer = &path.peer_;
  out->session = path.session_;
  path.is_known_ = true;
  return true;
}

bool PluginPort::take_path_down(PluginPath& path, const hawser_plugin_event& raw, PortEvent* out) {
  if (path.in_flight_ > 0) {
    fault(base::format("a path went down with {} chunks that have not ended", path.in_flight_));
    return false;
  }
  path.life_ = PluginPath::Life::kDown;
  out->kind = PortEvent::Kind::kPathDown;
  out->peer = &path.peer_;
  out->session = path.session_;
  const std::uint32_t code = raw.code == HAWSER_PLUGIN_OK ? std::uint32_t{HAWSER_PLUGIN_DISCONNECTED} : raw.code;
  out->status = status_from(*library_, code, raw.reason).with_peer(path.peer_name_);
  return true;
}

}  // namespace hawser::backend
