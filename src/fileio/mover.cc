#include "fileio/mover.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/fd.h"
#include "base/file_limit.h"
#include "base/format.h"

namespace hawser::fileio {
namespace {

using Kind = fileio::Operation::Kind;

constexpr std::uint64_t kSyncBit = std::uint64_t{1} << 62;  ///< In cookies of fsyncs.
/// Direct and buffered operations never share a page: the cache would write it over what went past it.
constexpr std::uint64_t kPage = 4096;

constexpr std::uint64_t up(std::uint64_t value, std::uint64_t align) { return (value + align - 1) / align * align; }
constexpr std::uint64_t down(std::uint64_t value, std::uint64_t align) { return value / align * align; }
std::uint64_t align_of(const File& file) { return std::max<std::uint64_t>(file.alignment().offset, kPage); }

Status error_of(const File& file, bool is_read, std::uint64_t offset, int error) {
  const Status status =
      base::errno_status(base::format("{} {} at offset {}", is_read ? "reading" : "writing", file.name(), offset),
                         error)
          .with_device("file");
  if (error == ENOSPC || error == EDQUOT) {
    return status.with_advice("free space on its file system, or raise the quota; then submit again");
  }
  if (error == EINVAL && !file.has_buffered()) {
    return status.with_advice(
        "the file is open with O_DIRECT and cannot be opened without: align offset, size and memory");
  }
  if (error == EFBIG) return status.with_advice("the file system has no files of that size");
  return status;
}

Status end_of_file(const File& file, std::uint64_t offset, std::uint64_t wanted) {
  return Status(Code::kFailed, base::format("{} ends at or before byte {}; {} bytes were to be read from there on",
                                            file.name(), offset, wanted))
      .with_device("file")
      .with_advice("the file is shorter than planned, or was truncated; look with query_file");
}

Status beyond_limit(const Request& request) {
  std::uint64_t end = 0;
  if (request.op != hawser::Operation::kWrite) return {};
  for (const backend::Piece& piece : request.pieces) end = std::max(end, request.origin + piece.remote + piece.size);
  return base::check_file_limit("writing " + request.file->name(), end).with_device("file");
}

}  // namespace

Mover::Mover(std::unique_ptr<Queue> queue, std::uint32_t depth)
    : queue_(std::move(queue)), tasks_(kRequestsMax), runs_(depth) {
  for (std::uint32_t i = 0; i < depth; ++i) free_runs_.push_back(depth - 1 - i);
}

Mover::~Mover() { queue_.reset(); }  // First: it waits for what still touches memory.

base::SlotId Mover::take(const Request& request) {
  const auto made = tasks_.emplace();
  HAWSER_ASSERT(made.value != nullptr, "take() needs has_room()");
  Task& task = *made.value;
  task.id = made.id;
  task.request = request;
  ready_.push_back(task);
  // Else the kernel would end the process: sizes are the peer's choice.
  if (Status over = beyond_limit(request); !over.ok()) {
    fail(task, over);
    settle(task);
  }
  return made.id;
}

bool Mover::can_sleep() const {
  const bool has_room = queue_->in_flight() < runs_.size();
  const bool can_start = has_room && (!again_.empty() || (!ready_.empty() && !free_runs_.empty()));
  return ended_.empty() && !flush_due_ && !queue_->has_ended() && !can_start;
}

std::size_t Mover::turn(std::uint64_t buffered_max) {
  std::size_t work = 0;
  std::array<Ended, 64> ended;
  for (std::size_t count = 0; (count = queue_->reap(ended)) > 0;) {
    for (std::size_t i = 0; i < count; ++i) on_ended(ended[i]);
    work += count;
  }
  std::uint64_t left = buffered_max;
  const std::vector<std::uint32_t> again = std::exchange(again_, {});
  for (const std::uint32_t place : again) {
    Task& task = *tasks_.get(runs_[place].task);
    if (!task.stopped) {
      if (start_run(place)) ++work;
      continue;
    }
    release(place);
    settle(task);
  }
  while (left > 0 && start_more(&left)) ++work;
  start_syncs();
  if (flush_due_) flush_due_ = !queue_->flush();
  return work;
}

std::size_t Mover::poll(std::span<Moved> out) {
  const std::size_t count = std::min(out.size(), ended_.size());
  std::move(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(count), out.begin());
  ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

/// Shortens the run to what one operation may move and says whether that goes past the page cache.
bool Mover::cut(const File& file, Run* run) const {
  run->size = std::min(run->size, kOperationMax);
  if (file.direct() < 0) return false;
  const std::uint64_t align = align_of(file);
  const std::uint64_t begin = up(run->offset, align), end = down(run->offset + run->size, align);
  const auto memory = reinterpret_cast<std::uintptr_t>(run->memory) + (begin - run->offset);
  if (begin >= end || memory % std::max<std::uint32_t>(file.alignment().memory, 1) != 0) return false;
  if (begin > run->offset) {
    run->size = begin - run->offset;  // The edge first.
    return false;
  }
  run->size = end - begin;
  return true;
}

Mover::Run Mover::next_run(Task& task) const {
  const backend::Piece& piece = task.request.pieces[task.piece];
  Run run{.task = task.id,
          .memory = piece.local + task.offset,
          .offset = task.request.origin + piece.remote + task.offset,
          .size = piece.size - task.offset};
  run.direct = cut(*task.request.file, &run);
  return run;
}

bool Mover::start_run(std::uint32_t place) {
  Run& run = runs_[place];
  const Task& task = *tasks_.get(run.task);
  const File& file = *task.request.file;
  const bool is_read = task.request.op == hawser::Operation::kRead;
  run.direct = run.direct && file.direct() >= 0;
  const bool started = queue_->start({.kind = is_read ? Kind::kRead : Kind::kWrite,
                                      .fd = run.direct || !file.has_buffered() ? file.direct() : file.buffered(),
                                      .memory = run.memory,
                                      .size = static_cast<std::uint32_t>(run.size),
                                      .offset = run.offset,
                                      .cookie = place});
  run.waiting = !started;
  if (!started) {
    again_.push_back(place);
    return false;
  }
  flush_due_ = true;
  ++counters_.operations;
  return true;
}

bool Mover::start_more(std::uint64_t* buffered_left) {
  Task* task = ready_.front();
  if (task == nullptr || free_runs_.empty()) return false;
  if (all_started(*task)) {  // Nothing to move at all.
    ready_.erase(*task);
    settle(*task);
    return true;
  }
  const std::uint32_t place = free_runs_.back();
  free_runs_.pop_back();
  runs_[place] = next_run(*task);
  const std::uint64_t size = runs_[place].size;
  ++task->in_flight;
  task->offset += size;
  if (task->offset == task->request.pieces[task->piece].size) {
    ++task->piece;
    task->offset = 0;
  }
  if (all_started(*task)) ready_.erase(*task);
  if (!runs_[place].direct) *buffered_left -= std::min(*buffered_left, size);
  return start_run(place);
}

void Mover::on_ended(const Ended& ended) {
  if ((ended.cookie & kSyncBit) != 0) {
    on_synced(static_cast<std::size_t>(ended.cookie & ~kSyncBit), ended.result);
  } else {
    on_run_ended(static_cast<std::uint32_t>(ended.cookie), ended.result);
  }
}

void Mover::on_run_ended(std::uint32_t place, int result) {
  Run& run = runs_[place];
  Task& task = *tasks_.get(run.task);
  if (result > 0) {
    const auto size = static_cast<std::uint64_t>(result);
    task.moved += size;
    (run.direct ? counters_.bytes_direct : counters_.bytes_buffered) += size;
    run.memory += size;
    run.offset += size;
    run.size -= size;
    if (run.size > 0) ++counters_.short_results;
  } else if (run.size > 0) {
    on_error(task, run, -result);
  }
  if (task.stopped || run.size == 0) {
    release(place);
    settle(task);
    return;
  }
  if (run.offset % align_of(*task.request.file) != 0) run.direct = false;  // The end of the file, mostly.
  run.waiting = true;
  again_.push_back(place);
}

/// Leaves the run to be started again, or fails the task.
void Mover::on_error(Task& task, Run& run, int error) {
  if (task.stopped) return;
  const File& file = *task.request.file;
  const bool is_read = task.request.op == hawser::Operation::kRead;
  if (error == 0) {
    fail(task, is_read ? end_of_file(file, run.offset, run.size) : error_of(file, false, run.offset, ENOSPC));
  } else if (error == EINVAL && run.direct && file.has_buffered()) {
    task.request.file->direct_failed();
    run.direct = false;
  } else if (error != EINTR && error != EAGAIN && error != ECANCELED) {
    // Those three: the kernel gave it up, as it does when the thread that started it ends. Nothing happened.
    fail(task, error_of(file, is_read, run.offset, error));
  }
}

void Mover::release(std::uint32_t place) {
  --tasks_.get(runs_[place].task)->in_flight;
  runs_[place] = Run();
  free_runs_.push_back(place);
}

void Mover::fail(Task& task, const Status& why) {
  if (task.stopped) return;
  task.stopped = true;
  task.outcome = why;
  task.hook.unlink();
  for (std::uint32_t place = 0; place < runs_.size(); ++place) {
    if (runs_[place].task != task.id || runs_[place].waiting) continue;
    queue_->cancel(place);
    flush_due_ = true;
  }
}

void Mover::stop(base::SlotId id, const Status& why) {
  Task* task = tasks_.get(id);
  if (task == nullptr || task->stopped) return;
  fail(*task, why);
  std::erase_if(again_, [&](std::uint32_t place) {
    if (runs_[place].task != id) return false;
    release(place);
    return true;
  });
  if (flush_due_) flush_due_ = !queue_->flush();
  settle(*task);
}

/// After something of the task ended: is it over?
void Mover::settle(Task& task) {
  if (task.in_flight > 0 || (!task.stopped && (!all_started(task) || task.syncing))) return;
  if (!task.stopped && task.request.durable && task.request.op == hawser::Operation::kWrite) return want_sync(task);
  finish(task);
}

void Mover::finish(Task& task) {
  const BufferState buffer = task.moved == 0 ? BufferState::kUntouched : BufferState::kPartlyWritten;
  ended_.push_back({.cookie = task.request.cookie, .bytes = task.moved, .status = task.outcome.with_buffer(buffer)});
  tasks_.erase(task.id);
}

void Mover::want_sync(Task& task) {
  task.syncing = true;
  Sync* free = nullptr;
  for (const auto& sync : syncs_) {
    if (sync->file == task.request.file) return sync->waiting.push_back(task.id);
    if (sync->file == nullptr) free = sync.get();
  }
  if (free == nullptr) free = syncs_.emplace_back(std::make_unique<Sync>()).get();
  free->file = task.request.file;
  free->waiting.push_back(task.id);
}

void Mover::start_syncs() {
  for (std::size_t place = 0; place < syncs_.size(); ++place) {
    Sync& sync = *syncs_[place];
    if (sync.running || sync.waiting.empty()) continue;
    std::erase_if(sync.waiting, [this](base::SlotId id) { return tasks_.get(id) == nullptr; });  // Stopped meanwhile.
    if (sync.waiting.empty()) {
      sync.file.reset();
      continue;
    }
    const int fd = sync.file->has_buffered() ? sync.file->buffered() : sync.file->direct();
    if (!queue_->start(
            {.kind = Kind::kSync, .fd = fd, .memory = {}, .size = 0, .offset = 0, .cookie = place | kSyncBit}))
      return;
    std::swap(sync.covered, sync.waiting);
    sync.running = flush_due_ = true;
    ++counters_.syncs;
  }
}

void Mover::on_synced(std::size_t place, int result) {
  Sync& sync = *syncs_[place];
  sync.running = false;
  if (result == -EINTR || result == -EAGAIN || result == -ECANCELED) {
    sync.waiting.insert(sync.waiting.end(), sync.covered.begin(), sync.covered.end());
    sync.covered.clear();
    return;
  }
  for (const base::SlotId id : std::exchange(sync.covered, {})) {
    Task* task = tasks_.get(id);
    if (task == nullptr) continue;  // Stopped meanwhile.
    if (result < 0) task->outcome = base::errno_status("fsync of " + sync.file->name(), -result).with_device("file");
    finish(*task);
  }
  if (sync.waiting.empty()) sync.file.reset();
}

/// Until the queue's descriptor says that something ended, or it is time to look again.
void Mover::await_end() const {
  constexpr int kLookAgainMs = 10;
  if (queue_->has_ended()) return;
  pollfd wait{.fd = queue_->wait_fd(), .events = POLLIN, .revents = 0};
  ::poll(&wait, 1, kLookAgainMs);
}

/// False: not within this time. Only the kernel can say that it is done with memory.
template <typename Done>
bool Mover::wait_until(Done&& done, Duration patience) {
  const Instant until = Clock::steady().now() + patience;
  for (;;) {
    turn(0);
    if (done()) return true;
    if (Clock::steady().now() >= until) return false;
    await_end();
  }
}

bool Mover::drain(std::span<const base::SlotId> tasks, Duration patience) {
  const auto is_over = [this](base::SlotId id) { return tasks_.get(id) == nullptr; };
  return wait_until([&] { return std::ranges::all_of(tasks, is_over); }, patience);
}

bool Mover::quiet_within(Duration patience) {
  return wait_until([this] { return queue_->in_flight() == 0; }, patience);
}

bool Mover::touches(const std::byte* memory, std::uint64_t size) const {
  return std::ranges::any_of(runs_, [&](const Run& run) {
    return run.size > 0 && !run.waiting && run.memory < memory + size && memory < run.memory + run.size;
  });
}

}  // namespace hawser::fileio
