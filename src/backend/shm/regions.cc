// ShmPath's regions: asking the peer for its own, answering for ours.

#include <errno.h>
#include <fcntl.h>

#include <utility>

#include "backend/shm/path.h"
#include "backend/shm/port.h"
#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::backend::shm {

Result<Binding*> ShmPath::bind(const RemoteRegionRef& region) {
  const std::uint64_t key = pin_value(region.index, region.generation);
  if (const auto found = bindings_.find(key); found != bindings_.end()) {
    ShmBinding& binding = *found->second;
    if (binding.state == ShmBinding::State::kFailed) return binding.status;
    return &binding;
  }
  if (region.device.kind != DeviceKind::kHost) {
    return named(Status(Code::kUnsupported, "shm reaches host memory only"));
  }
  const auto kind = region.extra.empty() ? CardKind::kArena : static_cast<CardKind>(region.extra[0]);
  if (kind == CardKind::kNone) return named(Status(Code::kUnsupported, "the peer does not serve this region by shm"));
  const bool attaches = kind == CardKind::kForeign || kind == CardKind::kAdopted;
  if (attaches && stage_ == Stage::kUp && !cross_status_.ok()) return named(cross_status_);
  auto binding = std::make_unique<ShmBinding>();
  binding->index = region.index;
  binding->generation = region.generation;
  binding->key = region.key;
  binding->size = region.size;
  ShmBinding* made = binding.get();
  bindings_.emplace(key, std::move(binding));
  to_ask_.push_back(key);
  ask_regions();
  return made;
}

void ShmPath::unbind(std::uint32_t index, std::uint32_t generation) {
  const auto found = bindings_.find(pin_value(index, generation));
  if (found == bindings_.end()) return;
  port_.unmap_later(FileMaps::let_go(std::move(found->second->mapping)));
  bindings_.erase(found);
}

/// As many requests as may be under way: so few that neither socket can fill up and both sides wait for the other.
void ShmPath::ask_regions() {
  while (stage_ == Stage::kUp && !to_ask_.empty() && asked_.size() < kAskedMax) {
    const auto found = bindings_.find(to_ask_.front());
    if (found != bindings_.end()) {
      ShmBinding& binding = *found->second;
      const std::string bytes = encode(Bind{next_request_, binding.index, binding.generation, binding.key});
      if (send_packet(socket_.get(), std::as_bytes(std::span<const char>(bytes)), {}) != Io::kDone) return;
      asked_.emplace(next_request_++, found->first);
    }
    to_ask_.pop_front();
  }
}

void ShmPath::on_bound(Packet& packet, const Bound& message) {
  const auto asked = asked_.find(message.request);
  if (asked == asked_.end()) return end(Status(Code::kCorrupt, "the peer answered what was not asked"));
  const auto found = bindings_.find(asked->second);
  asked_.erase(asked);
  ask_regions();
  if (found == bindings_.end()) return;  // unbound meanwhile
  ShmBinding& binding = *found->second;
  binding.status = adopt_memory(binding, packet, message);
  if (!binding.status.ok()) {
    binding.status = named(binding.status);
    binding.state = ShmBinding::State::kFailed;
  }
  for (Job& job : waiting_) {
    if (job.chunk.target != &binding) continue;
    base::IntrusiveList<Job, &Job::hook>::erase(job);
    port_.queue().schedule(job);
  }
}

Status ShmPath::adopt_memory(ShmBinding& binding, Packet& packet, const Bound& message) {
  if (message.code != Code::kOk) {
    return Status(message.code, base::shown(message.reason))
        .with_scope(Scope::kRequest)
        .with_advice(message.code == Code::kDenied ? "fetch the peer's card again" : "");
  }
  if (message.size != binding.size) {
    return Status(Code::kCorrupt,
                  base::format("the peer's region has {} bytes, its card says {}", message.size, binding.size));
  }
  binding.rights = message.rights;
  binding.gate = gates_.at(binding.index);
  if (binding.gate == nullptr) return Status(Code::kCorrupt, "the peer's region has no gate");
  if (message.kind == MemoryKind::kForeign) {
    if (!cross_status_.ok()) return cross_status_;
    binding.address = message.place;
    binding.state = ShmBinding::State::kForeign;
    return {};
  }
  if (message.kind == MemoryKind::kAdopted) {
    if (!cross_status_.ok()) return cross_status_;
    binding.address = message.address;
    binding.head = message.head;
    binding.tail = message.tail;
  }
  if (packet.fd_count != 1) return Status(Code::kCorrupt, "the peer sent no memory");
  HAWSER_TRY_ASSIGN(const std::size_t file_size, sealed_size(packet.fds[0].get()));
  if (!in_bounds(message.place, message.size, file_size)) {
    return Status(Code::kCorrupt, "the peer's region is larger than its memory");
  }
  const bool writes = allows(message.rights, Rights::kWrite);
  HAWSER_TRY_ASSIGN(binding.mapping, files_.map(packet.fds[0].get(), file_size,
                                                writes ? Mapping::Access::kReadWrite : Mapping::Access::kRead));
  binding.base = binding.mapping->base() + message.place;
  binding.first_touch = FirstTouch(binding.base, message.size);
  binding.state = ShmBinding::State::kMapped;
  return {};
}

void ShmPath::on_bind(const Bind& message) {
  base::Fd memory;
  Result<Bound> found = answer(message, &memory);
  Bound reply;
  if (found) {
    reply = std::move(*found);
  } else {
    reply.code = found.error().code();
    reply.reason = found.error().message();
  }
  reply.request = message.request;
  reply_ = encode(reply);
  reply_fd_ = std::move(memory);
  send_reply();
}

Result<Bound> ShmPath::answer(const Bind& message, base::Fd* memory) const {
  HAWSER_TRY_ASSIGN(const auto entry,
                    port_.shared().context.regions.find(message.index, message.generation, message.key, Rights::kNone,
                                                        peer_.incarnation));
  if (entry->device.kind != DeviceKind::kHost) return Status(Code::kUnsupported, "the region is not in host memory");
  Bound reply;
  reply.rights = entry->rights;
  reply.size = entry->size;
  const std::optional<SharedFile> file = shared_file(*entry);
  const bool has_ends = file && (file->head | file->tail) != 0;
  if (!file || !port_.options().map || (has_ends && !knows_ends_)) {
    reply.kind = MemoryKind::kForeign;
    reply.place = reinterpret_cast<std::uint64_t>(entry->base);
    return reply;
  }
  reply.kind = has_ends ? MemoryKind::kAdopted : MemoryKind::kMapped;
  reply.place = file->place;
  if (has_ends) {
    reply.address = reinterpret_cast<std::uint64_t>(entry->base);
    reply.head = file->head;
    reply.tail = file->tail;
  }
  if (allows(entry->rights, Rights::kWrite)) {
    *memory = base::Fd(::fcntl(file->fd, F_DUPFD_CLOEXEC, 0));
    if (!*memory) return base::errno_status("passing an arena on", errno);
  } else {
    HAWSER_TRY_ASSIGN(*memory, reopen_read_only(file->fd));
  }
  return reply;
}

/// Sends the waiting answer; while it does not go out, the socket is watched for room and not read.
void ShmPath::send_reply() {
  if (reply_.empty() || !socket_) return;
  const int fd = reply_fd_.get();
  const Io io = send_packet(socket_.get(), std::as_bytes(std::span<const char>(reply_)),
                            fd >= 0 ? std::span<const int>(&fd, 1) : std::span<const int>());
  const bool waits = io == Io::kAgain;
  if (waits == is_reply_waiting_ && waits) return;
  if (waits != is_reply_waiting_) {
    is_reply_waiting_ = waits;
    if (Status status = port_.rewatch(socket_.get(), waits ? EPOLLOUT : EPOLLIN | EPOLLRDHUP, socket_watch_);
        !status.ok()) {
      return end(std::move(status));
    }
  }
  if (waits) return;
  reply_.clear();
  reply_fd_.reset();
  if (io == Io::kFailed) end(base::errno_status("answering the peer", errno));
}

}  // namespace hawser::backend::shm
