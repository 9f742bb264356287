#include "backend/stream/stage.h"

#include <algorithm>

#include "base/copy.h"

namespace hawser::backend::stream {

Stage::Block& Stage::add_block() {
  Block block = std::exchange(spare_, Block());
  if (block.bytes == nullptr) block.bytes = std::make_unique_for_overwrite<std::byte[]>(kBlockSize);
  block.begin = end_;
  block.used = 0;
  return blocks_.push(std::move(block));
}

std::byte* Stage::extend(std::size_t size) {
  HAWSER_ASSERT(size <= kBlockSize, "a frame's head is larger than a block");
  Block* block = blocks_.empty() ? nullptr : &blocks_.back();
  if (block == nullptr || kBlockSize - block->used < size) block = &add_block();
  std::byte* at = block->bytes.get() + block->used;
  block->used += size;
  end_ += size;
  return at;
}

void Stage::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t left = blocks_.empty() ? 0 : kBlockSize - blocks_.back().used;
    const std::size_t size = std::min(bytes.size(), left == 0 ? kBlockSize : left);
    base::copy_cached(extend(size), bytes.data(), size);
    bytes = bytes.subspan(size);
  }
}

std::size_t Stage::gather(std::uint64_t from, std::uint64_t to, std::span<iovec> out, std::uint64_t* bytes) const {
  std::size_t count = 0;
  *bytes = 0;
  for (std::size_t i = 0; i < blocks_.count() && from < to && count < out.size(); ++i) {
    const Block& block = blocks_[i];
    if (from >= block.begin + block.used) continue;
    const std::uint64_t size = std::min(to, block.begin + block.used) - from;
    out[count++] = {block.bytes.get() + (from - block.begin), static_cast<std::size_t>(size)};
    *bytes += size;
    from += size;
  }
  return count;
}

void Stage::release(std::uint64_t to) {
  while (!blocks_.empty() && blocks_.front().begin + blocks_.front().used <= to) spare_ = blocks_.pop();
}

}  // namespace hawser::backend::stream
