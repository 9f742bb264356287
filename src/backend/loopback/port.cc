#include "backend/loopback/port.h"

#include <algorithm>
#include <utility>

#include "base/try.h"

namespace hawser::backend::loopback {
namespace {

constexpr std::size_t kInboxMax = 64;  // Messages given out by one poll.

std::uint64_t key_of(std::uint32_t index, std::uint32_t generation) { return std::uint64_t{generation} << 32 | index; }

base::CopyHint hint_for(const Chunk& chunk, std::uint64_t total_bytes) {
  return {.total_bytes = total_bytes, .scattered = chunk.pieces.size() > 1, .read_elsewhere = false};
}

const RegionEntry& region_of(const Chunk& chunk) { return *static_cast<const LoopbackBinding*>(chunk.target)->region; }

Status not_admitted() {
  return Status(Code::kDenied, "the region does not allow this operation, or is smaller than planned")
      .with_scope(Scope::kRequest)
      .with_buffer(BufferState::kUntouched);
}

BufferState buffer_state(const Job& job) {
  return job.cursor.done == 0 ? BufferState::kUntouched : BufferState::kPartlyWritten;
}

}  // namespace

Result<Binding*> LoopbackPath::bind(const RemoteRegionRef& region) {
  const auto found = bindings_.find(key_of(region.index, region.generation));
  if (found != bindings_.end()) return found->second.get();
  HAWSER_TRY_ASSIGN(auto entry,
                    port_.context().regions.find(region.index, region.generation, region.key, Rights::kNone));
  if (entry->device.kind != DeviceKind::kHost) return Status(Code::kUnsupported, "loopback reaches host memory only");
  auto binding = std::make_unique<LoopbackBinding>(std::move(entry));
  Binding* made = binding.get();
  bindings_.emplace(key_of(region.index, region.generation), std::move(binding));
  return made;
}

void LoopbackPath::unbind(std::uint32_t index, std::uint32_t generation) { bindings_.erase(key_of(index, generation)); }

void LoopbackPath::count_chunk(const Chunk& chunk) {
  ++counts_.chunks;
  (chunk.op == Operation::kWrite ? counts_.bytes_out : counts_.bytes_in) += chunk.bytes;
}

Submitted LoopbackPath::submit(std::span<const Chunk> chunks, Instant) {
  Submitted result;
  if (!is_up_) return result;
  if (job_count_ == 0) result.taken = result.done = copy_at_once(chunks);
  for (; result.taken < chunks.size() && job_count_ < kJobsMax; ++result.taken, ++job_count_) {
    Job* job = port_.queue().make(*this, chunks[result.taken]);
    if (job == nullptr) break;
    port_.queue().schedule(*job);
  }
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
  PortEvent event;
  event.kind = PortEvent::Kind::kChunkDone;
  event.path = this;
  event.cookie = job.chunk.cookie;
  event.status = status.with_peer(port_.context().identity.name);
  if (status.ok()) count_chunk(job.chunk);
  --job_count_;
  port_.queue().erase(job);
  port_.push(std::move(event));
}

void LoopbackPath::cancel(std::uint64_t transfer) {
  const Status cancelled = Status(Code::kCancelled, "cancelled before all was copied").with_scope(Scope::kRequest);
  port_.queue().for_each([&](Job& job) {
    if (job.path == this && job.chunk.transfer == transfer) end_job(job, cancelled.with_buffer(buffer_state(job)));
  });
}

bool LoopbackPath::send(Priority, std::span<const std::byte> head, std::span<const std::byte> body) {
  if (!is_up_ || !messages_.push(head, body)) return false;
  ++counts_.messages_out;
  return true;
}

bool LoopbackPath::take(std::string* out) {
  if (!messages_.take(out)) return false;
  ++counts_.messages_in;
  return true;
}

void LoopbackPath::end(const Status& why) {
  if (!std::exchange(is_up_, false)) return;
  port_.queue().for_each([&](Job& job) {
    if (job.path == this) end_job(job, why.with_buffer(buffer_state(job)));
  });
  PortEvent event;
  event.kind = PortEvent::Kind::kPathDown;
  event.path = this;
  event.peer = &port_.context().identity;
  event.session = session_;
  event.status = why;
  port_.push(std::move(event));
}

PathCounters LoopbackPath::counters() const {
  PathCounters counters = counts_;
  counters.peer = port_.context().identity.name;
  counters.backend = "loopback";
  counters.state = is_up_ ? "up" : "down";
  counters.epochs = 1;
  return counters;
}

Result<Path*> LoopbackPort::open_path(const PathTarget& target, Instant) {
  if (is_closing_) return Status(Code::kDisconnected, "this agent is closing");
  if (target.address != address_) return Status(Code::kUnsupported, "loopback reaches this agent only");
  paths_.push_back(std::make_unique<LoopbackPath>(*this));
  PortEvent event;
  event.kind = PortEvent::Kind::kPathUp;
  event.path = paths_.back().get();
  event.peer = &context_.identity;
  event.session = paths_.back()->session();
  push(std::move(event));
  return paths_.back().get();
}

void LoopbackPort::release_path(Path* released) {
  const auto found = std::ranges::find(paths_, released, &std::unique_ptr<LoopbackPath>::get);
  if (found == paths_.end()) return;
  (*found)->end(Status(Code::kDisconnected, "released"));
  std::erase_if(events_, [&](const PortEvent& event) { return event.path == released; });
  paths_.erase(found);
}

std::size_t LoopbackPort::turn(Instant, const TurnBudget& budget) {
  std::size_t work = events_.size();
  for (std::uint64_t left = budget.copy_bytes; left > 0; ++work) {
    Job* job = queue_.front();
    if (job == nullptr) break;
    const base::SlotId id = job->id;
    left -= std::min(left, static_cast<LoopbackPath&>(*job->path).work(*job, left));
    if (Job* same = queue_.get(id)) queue_.rotate(*same);
  }
  for (const auto& path : paths_) work += path->has_message() ? 1 : 0;
  return work;
}

std::size_t LoopbackPort::poll(std::span<PortEvent> out) {
  std::size_t count = 0;
  for (; count < out.size() && !events_.empty(); ++count) {
    out[count] = std::move(events_.front());
    events_.pop_front();
  }
  if (inbox_.empty()) inbox_.resize(kInboxMax);
  std::size_t used = 0;
  for (const auto& path : paths_) {
    while (count < out.size() && used < kInboxMax && events_.empty() && path->take(&inbox_[used])) {
      PortEvent& event = out[count++];
      event = {};
      event.kind = PortEvent::Kind::kMessage;
      event.path = path.get();
      event.peer = &context_.identity;
      event.bytes = std::as_bytes(std::span<const char>(inbox_[used++]));
    }
  }
  return count;
}

bool LoopbackPort::prepare_sleep() {
  return events_.empty() && queue_.empty() &&
         std::ranges::none_of(paths_, [](const auto& path) { return path->has_message(); });
}

void LoopbackPort::begin_close(Instant) {
  is_closing_ = true;
  for (const auto& path : paths_) path->end(Status(Code::kDisconnected, "this agent closes").with_scope(Scope::kPeer));
}

}  // namespace hawser::backend::loopback
