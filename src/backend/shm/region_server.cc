#include "backend/shm/region_server.h"

#include <errno.h>
#include <fcntl.h>

#include <optional>
#include <utility>

#include "backend/shm/file_maps.h"
#include "backend/shm/mapping.h"
#include "base/try.h"

namespace hawser::backend::shm {

bool RegionServer::answer(const Bind& asked, const Holder& holder) {
  Result<Bound> found = find(asked, holder);
  Bound reply;
  if (found) {
    reply = std::move(*found);
  } else {
    memory_.reset();
    reply.code = found.error().code();
    reply.reason = found.error().message();
  }
  reply.request = asked.request;
  reply_ = encode(reply);
  return found.has_value();
}

Result<Bound> RegionServer::find(const Bind& asked, const Holder& holder) {
  HAWSER_TRY_ASSIGN(const auto entry,
                    regions_.find(asked.index, asked.generation, asked.key, Rights::kNone, holder.incarnation));
  if (entry->device.kind != DeviceKind::kHost) return Status(Code::kUnsupported, "the region is not in host memory");
  Bound reply;
  reply.rights = entry->rights;
  reply.size = entry->size;
  const std::optional<SharedFile> file = shared_file(*entry);
  const bool has_ends = file && (file->head | file->tail) != 0;
  if (!file || !options_.map || (has_ends && !holder.knows_ends)) {
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
    memory_ = base::Fd(::fcntl(file->fd, F_DUPFD_CLOEXEC, 0));
    if (!memory_) return base::errno_status("passing an arena on", errno);
  } else {
    HAWSER_TRY_ASSIGN(memory_, reopen_read_only(file->fd));
  }
  return reply;
}

Io RegionServer::send(int socket) {
  const int fd = memory_.get();
  const Io io = send_packet(socket, std::as_bytes(std::span<const char>(reply_)),
                            fd >= 0 ? std::span<const int>(&fd, 1) : std::span<const int>());
  if (io == Io::kAgain) return io;
  reply_.clear();
  memory_.reset();
  return io;
}

}  // namespace hawser::backend::shm
