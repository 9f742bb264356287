#include "runtime/made_buffer.h"

#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/inside.h"
#include "runtime/pool_core.h"

namespace hawser::runtime {

void BufferReturn::operator()(std::byte* bytes) const {
  std::unique_ptr<std::byte[]> owned(bytes);
  if (held_ != nullptr) held_->fetch_sub(bytes_, std::memory_order_relaxed);
  if (pool_ != nullptr) pool_->give_back({.bytes = std::move(owned), .tier = tier_});
}

MadeBuffer heap_buffer(std::size_t bytes) { return MadeBuffer(new (std::nothrow) std::byte[bytes]); }

Result<MadeBuffer> BufferSource::make(std::size_t bytes) const {
  const std::shared_ptr<PoolCore>& pool = core_of(pool_);
  if (pool != nullptr && bytes > 0) {
    if (std::optional<PoolCore::Buffer> taken = pool->take(bytes)) {
      BufferReturn way;
      way.pool_ = pool;
      way.tier_ = taken->tier;
      return MadeBuffer(taken->bytes.release(), std::move(way));
    }
    if (pool->beyond() == BufferPool::Beyond::kRefuse) {
      const std::string text = "the buffer pool has no buffer for a message of " + std::to_string(bytes) + " bytes: ";
      if (bytes > pool->largest()) {
        return Status(Code::kBusy, text + "the largest of its buffers has " + std::to_string(pool->largest()))
            .with_advice("give the pool a tier of larger buffers, or receive into a buffer of your own");
      }
      return Status(Code::kBusy, text + "all that are large enough are in use")
          .with_advice("drop requests whose bytes are not needed any more, or give the pool more buffers");
    }
  }
  std::unique_ptr<std::byte[]> made(new (std::nothrow) std::byte[bytes]);
  if (made == nullptr) {
    return Status(Code::kBusy, "there is no memory for a message of " + std::to_string(bytes) + " bytes");
  }
  BufferReturn way;
  way.held_ = held_;
  way.bytes_ = bytes;
  held_->fetch_add(bytes, std::memory_order_relaxed);
  return MadeBuffer(made.release(), std::move(way));
}

}  // namespace hawser::runtime
