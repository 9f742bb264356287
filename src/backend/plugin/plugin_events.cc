// Events on their way from a plug-in to the agent.

#include "backend/plugin/plugin_port.h"
#include "base/format.h"

namespace hawser::backend {

using Life = PluginPath::Life;

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
  if (found != by_handle_.end()) return found->second->life_ == Life::kRefused ? nullptr : found->second;
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
  if (path->life_ == Life::kDown) {
    fault(base::format("an event of kind {} is of a path that it reported down", raw.kind));
    return false;
  }
  if (path->life_ == Life::kOpening && raw.kind != HAWSER_PLUGIN_PATH_UP && raw.kind != HAWSER_PLUGIN_PATH_DOWN) {
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
  if (path.life_ == Life::kUp || raw.peer == nullptr || id_from(raw.session).is_zero()) {
    fault(path.life_ == Life::kUp ? "a path came up twice" : "a path came up without peer or session");
    return false;
  }
  Result<Identity> peer = identity_from(*raw.peer, identity_);
  if (!peer) {
    refuse(path, peer.error());
    return false;
  }
  path.life_ = Life::kUp;
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
  path.life_ = Life::kDown;
  out->kind = PortEvent::Kind::kPathDown;
  out->peer = &path.peer_;
  out->session = path.session_;
  const std::uint32_t code = raw.code == HAWSER_PLUGIN_OK ? std::uint32_t{HAWSER_PLUGIN_DISCONNECTED} : raw.code;
  out->status = status_from(*library_, code, raw.reason).with_peer(path.peer_name_);
  return true;
}

}  // namespace hawser::backend
