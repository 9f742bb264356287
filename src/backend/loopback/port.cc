#include "backend/loopback/port.h"

#include <algorithm>
namespace hawser::backend::loopback {
namespace {

constexpr std::uint32_t kChunksMax = 64;          // Of one path.
constexpr std::uint64_t kAtOnceMax = 256 * 1024;  // Bytes copied by one submit.

base::CopyHint hint_for(const Chunk& chunk, std::uint64_t total_bytes) {
  return {.total_bytes = total_bytes, .scattered = chunk.pieces.size() > 1, .read_elsewhere = false};
}

Status not_admitted() {
  return Status(Code::kDenied, "the region does not allow this operation, or is smaller than planned")
      .with_scope(Scope::kRequest)
      .with_buffer(BufferState::kUntouched);
}

BufferState buffer_state(const Job& job) {
  return job.cursor.done == 0 ? BufferState::kUntouched : BufferState::kPartlyWritten;
}

}  // namespace

LoopbackPath::LoopbackPath(LoopbackPort& port) : SelfPath(port, kChunksMax), port_(port) {}

Submitted LoopbackPath::submit(std::span<const Chunk> chunks, Instant) {
  Submitted result;
  if (!is_up()) return result;
  if (!has_chunks()) result.taken = result.done = copy_at_once(chunks);
  result.taken += enqueue(chunks.subspan(result.taken));
  return result;
}

std::uint32_t LoopbackPath::copy_at_once(std::span<const Chunk> chunks) {
  std::uint64_t left = kAtOnceMax;
  std::uint32_t done = 0;
  bool is_fence_due = false;
  const RegionEntry* open = nullptr;
  for (const Chunk& chunk : chunks) {
    const RegionEntry& region = region_of(chunk);
    if (chunk.bytes > port_.inline_bytes_max() || chunk.bytes > left) break;
    if (!admits(region.size, region.rights, chunk)) break;
    if (open != &region && !port_.context().regions.is_open(region.index, region.generation)) break;
    open = &region;
    Cursor cursor;
    is_fence_due |= copy_part(region.base, chunk, &cursor, chunk.bytes, hint_for(chunk, chunk.bytes));
    left -= chunk.bytes;
    count_chunk(chunk);
    ++done;
  }
  if (is_fence_due) base::stream_fence();
  return done;
}

std::uint64_t LoopbackPath::work(Job& job, std::uint64_t limit) {
  const RegionEntry& region = region_of(job.chunk);
  if (job.cursor.done == 0 && !admits(region.size, region.rights, job.chunk)) {
    end_job(job, not_admitted());
    return 0;
  }
  if (!port_.context().regions.is_open(region.index, region.generation)) {
    end_job(job,
            Status(Code::kDenied, "the region was closed").with_scope(Scope::kRequest).with_buffer(buffer_state(job)));
    return 0;
  }
  const std::uint64_t before = job.cursor.done;
  const base::CopyHint hint = hint_for(job.chunk, port_.queue().transfer_bytes(job));
  if (copy_part(region.base, job.chunk, &job.cursor, limit, hint)) base::stream_fence();
  const std::uint64_t moved = job.cursor.done - before;
  if (job.cursor.done == job.chunk.bytes) end_job(job, {});
  return moved;
}

void LoopbackPath::end_job(Job& job, const Status& status) {
  const Chunk chunk = job.chunk;
  port_.queue().erase(job);
  chunk_ended(chunk, status);
}

void LoopbackPath::cancel(std::uint64_t transfer) {
  const Status cancelled = Status(Code::kCancelled, "cancelled before all was copied").with_scope(Scope::kRequest);
  port_.queue().for_each([&](Job& job) {
    if (job.path == this && job.chunk.transfer == transfer) end_job(job, cancelled.with_buffer(buffer_state(job)));
  });
}

void LoopbackPath::end_chunks(const Status& why) {
  port_.queue().for_each([&](Job& job) {
    if (job.path == this) end_job(job, why.with_buffer(buffer_state(job)));
  });
}

std::size_t LoopbackPort::turn(Instant, const TurnBudget& budget) {
  std::size_t work = 0;
  for (std::uint64_t left = budget.copy_bytes; left > 0; ++work) {
    Job* job = queue().front();
    if (job == nullptr) break;
    const base::SlotId id = job->id;
    left -= std::min(left, static_cast<LoopbackPath&>(*job->path).work(*job, left));
    if (Job* same = queue().get(id)) queue().rotate(*same);
  }
  return work + news();
}

}  // namespace hawser::backend::loopback
