#include "backend/file/port.h"

#include <algorithm>
#include <array>
#include <utility>

#include "backend/chunk_copy.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::file {
namespace {

constexpr std::size_t kInboxMax = 64;  // Messages given out by one poll.

std::uint64_t key_of(std::uint32_t index, std::uint32_t generation) { return std::uint64_t{generation} << 32 | index; }

const RegionEntry& region_of(const Chunk& chunk) { return *static_cast<const FileBinding*>(chunk.target)->region; }

Status closed() { return Status(Code::kDenied, "the file's region was closed").with_scope(Scope::kRequest); }

}  // namespace

Result<Binding*> FilePath::bind(const RemoteRegionRef& region) {
  const auto found = bindings_.find(key_of(region.index, region.generation));
  if (found != bindings_.end()) return found->second.get();
  HAWSER_TRY_ASSIGN(auto entry,
                    port_.context().regions.find(region.index, region.generation, region.key, Rights::kNone));
  if (entry->file == nullptr) return Status(Code::kUnsupported, "file reaches regions of files only");
  auto binding = std::make_unique<FileBinding>(std::move(entry));
  Binding* made = binding.get();
  bindings_.emplace(key_of(region.index, region.generation), std::move(binding));
  return made;
}

void FilePath::unbind(std::uint32_t index, std::uint32_t generation) { bindings_.erase(key_of(index, generation)); }

Submitted FilePath::submit(std::span<const Chunk> chunks, Instant) {
  Submitted result;
  for (; is_up_ && result.taken < chunks.size() && chunk_count_ < kChunksMax; ++result.taken, ++chunk_count_) {
    Job* job = port_.queue().make(*this, chunks[result.taken]);
    if (job == nullptr) break;
    port_.queue().schedule(*job);
  }
  if (result.taken > 0) port_.serve(TurnBudget().kernel_copy_bytes);
  return result;
}

bool FilePath::send(Priority, std::span<const std::byte> head, std::span<const std::byte> body) {
  if (!is_up_ || !messages_.push(head, body)) return false;
  ++counts_.messages_out;
  return true;
}

bool FilePath::take(std::string* out) {
  if (!messages_.take(out)) return false;
  ++counts_.messages_in;
  return true;
}

void FilePath::cancel(std::uint64_t transfer) {
  port_.stop_chunks(
      [&](const FilePath& path, const Chunk& chunk) { return &path == this && chunk.transfer == transfer; },
      Status(Code::kCancelled, "cancelled before all was moved").with_scope(Scope::kRequest));
}

void FilePath::end(const Status& why) {
  if (!std::exchange(is_up_, false)) return;
  down_status_ = why;
  port_.stop_chunks([this](const FilePath& path, const Chunk&) { return &path == this; }, why);
}

bool FilePath::take_down(Status* why) {
  if (is_up_ || chunk_count_ > 0 || std::exchange(down_told_, true)) return false;
  *why = down_status_;
  return true;
}

void FilePath::count_ended(const Chunk& chunk, const Status& status) {
  --chunk_count_;
  if (!status.ok()) return;
  ++counts_.chunks;
  (chunk.op == Operation::kWrite ? counts_.bytes_out : counts_.bytes_in) += chunk.bytes;
}

PathCounters FilePath::counters() const {
  PathCounters counters = counts_;
  counters.peer = port_.context().identity.name;
  counters.backend = "file";
  counters.state = is_up_ ? "up" : "down";
  counters.epochs = 1;
  counters.bytes_direct = port_.mover().counters().bytes_direct;
  counters.bytes_buffered = port_.mover().counters().bytes_buffered;
  return counters;
}

std::string FilePath::describe() const {
  const fileio::MoverCounters& counts = port_.mover().counters();
  return base::format(
      "files of this agent by {}: {} bytes past the page cache, {} through it, {} operations, {} fsyncs",
      port_.io().name(), counts.bytes_direct, counts.bytes_buffered, counts.operations, counts.syncs);
}

Result<Path*> FilePort::open_path(const PathTarget& target, Instant) {
  if (is_closing_) return Status(Code::kDisconnected, "this agent is closing");
  if (target.address != address_) return Status(Code::kUnsupported, "file reaches this agent's own files only");
  paths_.push_back(std::make_unique<FilePath>(*this));
  FilePath* path = paths_.back().get();
  PortEvent event;
  event.kind = PortEvent::Kind::kPathUp;
  event.path = path;
  event.peer = &context_.identity;
  event.session = path->session();
  events_.push_back(std::move(event));
  return path;
}

void FilePort::release_path(Path* released) {
  const auto found = std::ranges::find(paths_, released, &std::unique_ptr<FilePath>::get);
  if (found == paths_.end()) return;
  (*found)->end(Status(Code::kDisconnected, "released"));
  std::vector<base::SlotId> tasks;
  active_.for_each([&](base::SlotId, const Active& active) {
    if (active.path == released) tasks.push_back(active.task);
  });
  mover_.drain(tasks);
  collect();
  std::erase_if(events_, [&](const PortEvent& event) { return event.path == released; });
  paths_.erase(found);
}

template <typename Matches>
std::uint32_t FilePort::stop_chunks(Matches&& matches, const Status& why) {
  std::uint32_t stopped = 0;
  queue_.for_each([&](Job& job) {
    FilePath& path = static_cast<FilePath&>(*job.path);
    if (!matches(path, job.chunk)) return;
    const Chunk chunk = job.chunk;
    queue_.erase(job);
    end_chunk(path, chunk, why.with_buffer(BufferState::kUntouched));
    ++stopped;
  });
  active_.for_each([&](base::SlotId, const Active& active) {
    if (!matches(*active.path, active.chunk)) return;
    mover_.stop(active.task, why);
    ++stopped;
  });
  return stopped;
}

void FilePort::end_chunk(FilePath& path, const Chunk& chunk, const Status& status) {
  PortEvent event;
  event.kind = PortEvent::Kind::kChunkDone;
  event.path = &path;
  event.cookie = chunk.cookie;
  event.status = status.with_peer(context_.identity.name);
  path.count_ended(chunk, status);
  events_.push_back(std::move(event));
}

/// Gives chunks to the mover, transfer by transfer.
void FilePort::feed() {
  while (mover_.has_room() && !active_.full()) {
    Job* job = queue_.front();
    if (job == nullptr) return;
    FilePath& path = static_cast<FilePath&>(*job->path);
    const Chunk chunk = job->chunk;
    queue_.rotate(*job);
    queue_.erase(*job);
    const RegionEntry& region = region_of(chunk);
    if (!admits(region.size, region.rights, chunk)) {
      end_chunk(path, chunk,
                Status(Code::kDenied, "the file's region does not allow this operation, or is smaller than planned")
                    .with_scope(Scope::kRequest)
                    .with_buffer(BufferState::kUntouched));
      continue;
    }
    if (!context_.regions.is_open(region.index, region.generation)) {
      end_chunk(path, chunk, closed().with_buffer(BufferState::kUntouched));
      continue;
    }
    const auto active = active_.emplace(Active{.path = &path, .chunk = chunk, .task = {}});
    active.value->task = mover_.take({.op = chunk.op,
                                      .file = region.file,
                                      .pieces = chunk.pieces,
                                      .cookie = active.id.to_u64(),
                                      .durable = chunk.durable});
  }
}

void FilePort::collect() {
  std::array<fileio::Moved, 64> moved;
  for (std::size_t count = 0; (count = mover_.poll(moved)) > 0;) {
    for (std::size_t i = 0; i < count; ++i) {
      const base::SlotId id = base::SlotId::from_u64(moved[i].cookie);
      const Active active = *active_.get(id);
      active_.erase(id);
      end_chunk(*active.path, active.chunk, moved[i].status);
    }
  }
}

void FilePort::stop_closed() {
  const RegionEntry* open = nullptr;
  active_.for_each([&](base::SlotId, const Active& active) {
    const RegionEntry& region = region_of(active.chunk);
    if (&region == open) return;
    if (context_.regions.is_open(region.index, region.generation)) {
      open = &region;
    } else {
      mover_.stop(active.task, closed());
    }
  });
}

std::size_t FilePort::serve(std::uint64_t buffered_max) {
  feed();
  const std::size_t work = mover_.turn(buffered_max);
  collect();
  feed();
  return work;
}

std::size_t FilePort::turn(Instant, const TurnBudget& budget) {
  if (!active_.empty()) stop_closed();
  std::size_t work = serve(budget.kernel_copy_bytes);
  tell_down();
  work += events_.size();
  for (const auto& path : paths_) work += path->has_message() ? 1 : 0;
  return work;
}

void FilePort::tell_down() {
  for (const auto& path : paths_) {
    Status why;
    if (!path->take_down(&why)) continue;
    PortEvent event;
    event.kind = PortEvent::Kind::kPathDown;
    event.path = path.get();
    event.peer = &context_.identity;
    event.session = path->session();
    event.status = std::move(why);
    events_.push_back(std::move(event));
  }
}

std::size_t FilePort::poll(std::span<PortEvent> out) {
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

bool FilePort::prepare_sleep() {
  return events_.empty() && mover_.can_sleep() && (queue_.empty() || !mover_.has_room()) &&
         std::ranges::none_of(paths_, [](const auto& path) { return path->has_message(); });
}

bool FilePort::region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) {
  const auto is_of_it = [&](const FilePath&, const Chunk& chunk) {
    const RegionEntry& region = region_of(chunk);
    return region.index == index && region.generation == generation;
  };
  stop_chunks(is_of_it, closed());
  mover_.turn(0);
  collect();
  std::uint32_t left = 0;
  active_.for_each([&](base::SlotId, const Active& active) { left += is_of_it(*active.path, active.chunk) ? 1 : 0; });
  if (left > 0 && holder != nullptr) *holder = base::format("{} chunks that the kernel still moves", left);
  return left == 0;
}

void FilePort::begin_close(Instant) {
  is_closing_ = true;
  for (const auto& path : paths_) path->end(Status(Code::kDisconnected, "this agent closes").with_scope(Scope::kPeer));
  tell_down();
}

}  // namespace hawser::backend::file
