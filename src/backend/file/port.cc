#include "backend/file/port.h"

#include <array>
#include <utility>
#include <vector>

#include "backend/chunk_copy.h"
#include "base/format.h"
#include "base/log.h"
#include "fileio/leftovers.h"

namespace hawser::backend::file {
namespace {

constexpr std::uint32_t kChunksMax = 256;  // Of one path.
/// A dropped path waits for the kernel, and its lane for it, no longer.
constexpr Duration kLetGoMax = std::chrono::seconds(2);

Status closed() { return Status(Code::kDenied, "the file's region was closed").with_scope(Scope::kRequest); }

}  // namespace

FilePath::FilePath(FilePort& port) : SelfPath(port, kChunksMax), port_(port) {}

Submitted FilePath::submit(std::span<const Chunk> chunks, Instant) {
  const Submitted result{.taken = enqueue(chunks), .done = 0};
  if (result.taken > 0) port_.serve(TurnBudget().kernel_copy_bytes);
  return result;
}

void FilePath::cancel(std::uint64_t transfer) {
  port_.stop_chunks(
      [&](const FilePath& path, const Chunk& chunk) { return &path == this && chunk.transfer == transfer; },
      Status(Code::kCancelled, "cancelled before all was moved").with_scope(Scope::kRequest));
}

void FilePath::end_chunks(const Status& why) {
  port_.stop_chunks([this](const FilePath& path, const Chunk&) { return &path == this; }, why);
}

void FilePath::let_go() { port_.let_go(*this); }

PathCounters FilePath::counters() const {
  PathCounters counters = SelfPath::counters();
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

FilePort::~FilePort() {
  if (mover_->quiet_within(Duration::zero())) return;
  HAWSER_LOG(
      context().log, kWarn,
      "{}: closed with {} operations on its files that the system has not ended; their memory stays in use until "
      "it has",
      context().identity.name, mover_->queue().in_flight());
  fileio::keep_until_ended(std::move(mover_), {});  // The agent said whose memory that is.
}

void FilePort::let_go(const FilePath& path) {
  std::vector<base::SlotId> tasks;
  active_.for_each([&](base::SlotId, const Active& active) {
    if (active.path == &path) tasks.push_back(active.task);
  });
  const bool is_quiet = !is_closing() && mover_->drain(tasks, kLetGoMax);
  collect();
  if (is_quiet) return;
  std::uint32_t count = 0;
  active_.for_each([&](base::SlotId, Active& active) {
    if (active.path != &path) return;
    active.path = nullptr;
    ++count;
  });
  left_ += count;
  if (is_closing()) return;  // Its user is told what is still used.
  HAWSER_LOG(context().log, kWarn,
             "{}: dropped the path to its files with {} chunks that the system has not ended; it may use their memory "
             "until the close of their regions says otherwise",
             context().identity.name, count);
}

template <typename Matches>
void FilePort::stop_chunks(Matches&& matches, const Status& why) {
  queue().for_each([&](Job& job) {
    FilePath& path = static_cast<FilePath&>(*job.path);
    if (!matches(path, job.chunk)) return;
    const Chunk chunk = job.chunk;
    queue().erase(job);
    path.chunk_ended(chunk, why.with_buffer(BufferState::kUntouched));
  });
  active_.for_each([&](base::SlotId, const Active& active) {
    if (active.path != nullptr && matches(*active.path, active.chunk)) mover_->stop(active.task, why);
  });
}

/// Gives chunks to the mover, transfer by transfer.
void FilePort::feed() {
  while (mover_->has_room() && !active_.full()) {
    Job* job = queue().front();
    if (job == nullptr) return;
    FilePath& path = static_cast<FilePath&>(*job->path);
    const Chunk chunk = job->chunk;
    queue().rotate(*job);
    queue().erase(*job);
    const RegionEntry& region = region_of(chunk);
    if (!admits(region.size, region.rights, chunk)) {
      path.chunk_ended(
          chunk, Status(Code::kDenied, "the file's region does not allow this operation, or is smaller than planned")
                     .with_scope(Scope::kRequest)
                     .with_buffer(BufferState::kUntouched));
      continue;
    }
    if (!context().regions.is_open(region.index, region.generation)) {
      path.chunk_ended(chunk, closed().with_buffer(BufferState::kUntouched));
      continue;
    }
    const auto active =
        active_.emplace(Active{.path = &path, .chunk = chunk, .file = {region.index, region.generation}, .task = {}});
    active.value->task = mover_->take({.op = chunk.op,
                                       .file = region.file,
                                       .pieces = chunk.pieces,
                                       .origin = region.file_offset,
                                       .cookie = active.id.to_u64(),
                                       .durable = chunk.durable});
  }
}

void FilePort::collect() {
  std::array<fileio::Moved, 64> moved;
  for (std::size_t count = 0; (count = mover_->poll(moved)) > 0;) {
    for (std::size_t i = 0; i < count; ++i) {
      const base::SlotId id = base::SlotId::from_u64(moved[i].cookie);
      const Active active = *active_.get(id);
      active_.erase(id);
      if (active.path == nullptr) {
        --left_;
      } else {
        active.path->chunk_ended(active.chunk, moved[i].status);
      }
    }
  }
}

void FilePort::stop_closed() {
  const RegionEntry* open = nullptr;
  active_.for_each([&](base::SlotId, const Active& active) {
    if (active.path == nullptr) return;
    const RegionEntry& region = region_of(active.chunk);
    if (&region == open) return;
    if (context().regions.is_open(region.index, region.generation)) {
      open = &region;
    } else {
      mover_->stop(active.task, closed());
    }
  });
}

std::size_t FilePort::serve(std::uint64_t buffered_max) {
  feed();
  const std::size_t work = mover_->turn(buffered_max);
  collect();
  feed();
  return work;
}

std::size_t FilePort::turn(Instant, const TurnBudget& budget) {
  if (!active_.empty()) stop_closed();
  const std::size_t work = serve(budget.kernel_copy_bytes);
  return work + news();
}

bool FilePort::prepare_sleep() {
  return news() == 0 && mover_->can_sleep() && (queue().empty() || !mover_->has_room());
}

bool FilePort::region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) {
  const auto is_of_it = [&](const FilePath&, const Chunk& chunk) {
    const RegionEntry& region = region_of(chunk);
    return region.index == index && region.generation == generation;
  };
  stop_chunks(is_of_it, closed());
  mover_->turn(0);
  collect();
  std::uint32_t left = 0;
  active_.for_each([&](base::SlotId, const Active& active) {
    left += active.file.index == index && active.file.generation == generation ? 1 : 0;
  });
  if (left > 0 && holder != nullptr) *holder = base::format("{} chunks that the kernel still moves", left);
  return left == 0 && memory_quiet(index, generation, holder);
}

/// The agent counts the transfers that use its memory; here are those that it has ended, as it closes.
bool FilePort::memory_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) const {
  if (left_ == 0) return true;
  const std::shared_ptr<const RegionEntry> region = context().regions.at(index);
  if (region == nullptr || region->generation != generation || region->base == nullptr) return true;
  if (!mover_->touches(region->base, region->size)) return true;
  if (holder != nullptr) *holder = "operations on files that the kernel has not ended";
  return false;
}

}  // namespace hawser::backend::file
