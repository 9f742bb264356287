#include "backend/stream/file_desk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include "backend/stream/target.h"
#include "base/format.h"
#include "fileio/leftovers.h"

namespace hawser::backend::stream {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
/// Buffers of a chunk's usual size are kept, so that their pages need not be made again.
constexpr std::uint64_t kSpareBytes = 1u << 20;
constexpr std::size_t kSparesMax = 16;
constexpr std::uint32_t kDepth = 128;
constexpr Duration kLeaveMax = std::chrono::seconds(2);

std::byte* new_pages(std::uint64_t bytes) {
  return static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{kPageBytes}, std::nothrow));
}

void delete_pages(std::byte* bytes) { ::operator delete[](bytes, std::align_val_t{kPageBytes}); }

Status closed_status() { return Status(Code::kDenied, "the file's region was closed"); }

}  // namespace

Staged& Staged::operator=(Staged&& other) noexcept {
  if (this == &other) return *this;
  reset();
  desk_ = std::exchange(other.desk_, nullptr);
  bytes_ = other.bytes_;
  capacity_ = other.capacity_;
  return *this;
}

void Staged::reset() {
  if (desk_ != nullptr) std::exchange(desk_, nullptr)->give_back(bytes_, capacity_);
}

std::shared_ptr<void> Staged::release() {
  if (std::exchange(desk_, nullptr) == nullptr) return nullptr;
  return {bytes_, [](std::byte* bytes) { delete_pages(bytes); }};
}

FileDesk::~FileDesk() {
  if (mover_ != nullptr) leave();
  active_.clear();
  waiting_.clear();
  ended_.clear();
  for (std::byte* spare : spares_) delete_pages(spare);
}

/// Asks the kernel to give up what it was handed. What it does not end soon stays behind, with its memory and files.
void FileDesk::leave() {
  const Status why(Code::kDisconnected, "the agent closes");
  active_.for_each([&](base::SlotId, const Active& active) { mover_->stop(active.task, why); });
  if (mover_->quiet_within(kLeaveMax)) return mover_.reset();
  HAWSER_LOG(
      context_.log, kWarn,
      "{}: closed with {} operations on its files that the system has not ended; their memory, {} bytes, is kept "
      "until it has",
      context_.identity.name, mover_->queue().in_flight(), staged_);
  std::vector<fileio::Pages> used;
  active_.for_each([&](base::SlotId, Active& active) { used.push_back(active.job.memory.release()); });
  fileio::keep_until_ended(std::move(mover_), std::move(used));
}

bool FileDesk::open() {
  if (std::exchange(tried_, true)) return mover_ != nullptr;
  Status why_not_uring;
  auto queue = fileio::open_queue({.depth = kDepth}, &why_not_uring);
  Status status = queue ? network_.watch((*queue)->wait_fd()) : queue.error();
  if (!status.ok()) {
    HAWSER_LOG(context_.log, kWarn, "{}: peers cannot use its files: {}", context_.identity.name, status.to_string());
    return false;
  }
  if (!why_not_uring.ok()) {
    HAWSER_LOG(context_.log, kWarn, "{}: threads read and write files for peers, since io_uring cannot be used: {}",
               context_.identity.name, why_not_uring.message());
  }
  use(*std::move(queue));
  return true;
}

void FileDesk::use(std::unique_ptr<fileio::Queue> queue) {
  tried_ = true;
  mover_ = std::make_unique<fileio::Mover>(std::move(queue), kDepth);
}

Staged FileDesk::stage(std::uint64_t bytes, std::uint64_t held) {
  const std::uint64_t capacity = bytes <= kPageBytes ? kPageBytes : std::bit_ceil(bytes);
  if (staged_ + capacity > kStagedMax) return {};
  const bool scarce = staged_ > kStagedMax / 2;
  if (scarce && held > 0 && held + capacity > (kStagedMax - staged_) / kStagedShare) return {};
  std::byte* memory = nullptr;
  if (capacity == kSpareBytes && !spares_.empty()) {
    memory = spares_.back();
    spares_.pop_back();
  } else {
    memory = new_pages(capacity);
  }
  if (memory == nullptr) return {};
  staged_ += capacity;
  return {this, memory, capacity};
}

void FileDesk::give_back(std::byte* bytes, std::uint64_t capacity) {
  staged_ -= capacity;
  if (capacity == kSpareBytes && spares_.size() < kSparesMax) {
    spares_.push_back(bytes);
  } else {
    delete_pages(bytes);
  }
}

void FileDesk::start(FileJob job) { waiting_.push_back(std::move(job)); }

/// What a path that ended has still with the kernel would land over what comes now, so that waits (B6).
bool FileDesk::must_wait(const FileJob& job) const {
  return std::ranges::find(strays_, job.file.get()) != strays_.end();
}

bool FileDesk::can_feed() const {
  return mover_->has_room() && !active_.full() &&
         std::ranges::any_of(waiting_, [this](const FileJob& job) { return !must_wait(job); });
}

void FileDesk::feed() {
  while (mover_->has_room() && !active_.full()) {
    const auto first = std::ranges::find_if(waiting_, [this](const FileJob& job) { return !must_wait(job); });
    if (first == waiting_.end()) return;
    FileJob next = std::move(*first);
    waiting_.erase(first);
    if (!context_.regions.is_open(next.region, next.generation)) {
      end(std::move(next), wire::Outcome::kClosed);
      continue;
    }
    const auto made = active_.emplace(Active{.job = std::move(next), .task = {}});
    const FileJob& job = made.value->job;
    made.value->task = mover_->take({.op = job.op,
                                     .file = job.file,
                                     .pieces = job.pieces,
                                     .origin = job.file_offset,
                                     .cookie = made.id.to_u64(),
                                     .durable = job.durable});
  }
}

wire::Outcome FileDesk::outcome_of(const FileJob& job, const fileio::Moved& moved) const {
  if (moved.status.ok()) return wire::Outcome::kOk;
  if (!context_.regions.is_open(job.region, job.generation)) {
    return moved.bytes > 0 ? wire::Outcome::kClosedMidway : wire::Outcome::kClosed;
  }
  if (job.target != nullptr) {
    HAWSER_LOG(context_.log, kDebug, "{}: {} of a file for {} failed: {}", context_.identity.name,
               job.op == hawser::Operation::kRead ? "a read" : "a write", job.target->peer(), moved.status.to_string());
  }
  return moved.status.code() == Code::kBusy ? wire::Outcome::kFileFull : wire::Outcome::kFileFailed;
}

void FileDesk::end(FileJob job, wire::Outcome outcome) {
  if (job.target == nullptr) return;
  job.outcome = outcome;
  ended_.push_back(std::move(job));
}

void FileDesk::collect() {
  std::array<fileio::Moved, 64> moved;
  for (std::size_t count = 0; (count = mover_->poll(moved)) > 0;) {
    for (std::size_t i = 0; i < count; ++i) {
      const base::SlotId id = base::SlotId::from_u64(moved[i].cookie);
      FileJob job = std::move(active_.get(id)->job);
      active_.erase(id);
      if (is_stray(job)) strays_.erase(std::ranges::find(strays_, job.file.get()));
      const wire::Outcome outcome = outcome_of(job, moved[i]);
      end(std::move(job), outcome);
    }
  }
}

void FileDesk::stop_closed() {
  const fileio::File* open = nullptr;  // Mostly all are on one file.
  active_.for_each([&](base::SlotId, const Active& active) {
    if (active.job.file.get() == open) return;
    if (context_.regions.is_open(active.job.region, active.job.generation)) {
      open = active.job.file.get();
    } else {
      mover_->stop(active.task, closed_status());
    }
  });
}

std::size_t FileDesk::turn(std::uint64_t buffered_max) {
  if (mover_ == nullptr || (waiting_.empty() && mover_->idle())) return ended_.size();
  stop_closed();
  feed();
  const std::size_t work = mover_->turn(buffered_max);
  collect();
  feed();
  return work + ended_.size();
}

bool FileDesk::poll(FileJob* job) {
  if (ended_.empty()) return false;
  *job = std::move(ended_.front());
  ended_.pop_front();
  return true;
}

bool FileDesk::can_sleep() const { return mover_ == nullptr || (ended_.empty() && mover_->can_sleep() && !can_feed()); }

void FileDesk::abandon(const Target* target) {
  const auto is_its = [target](const FileJob& job) { return job.target == target; };
  std::erase_if(waiting_, is_its);
  std::erase_if(ended_, is_its);
  active_.for_each([&](base::SlotId, Active& active) {
    if (!is_its(active.job)) return;
    active.job.target = nullptr;
    if (is_stray(active.job)) strays_.push_back(active.job.file.get());
    mover_->stop(active.task, Status(Code::kDisconnected, "the path to the peer ended"));
  });
}

bool FileDesk::region_quiet(std::uint32_t index, std::uint32_t generation) {
  if (mover_ == nullptr) return true;
  const auto is_of_it = [&](const FileJob& job) { return job.region == index && job.generation == generation; };
  bool quiet = true;
  active_.for_each([&](base::SlotId, const Active& active) {
    if (!is_of_it(active.job)) return;
    mover_->stop(active.task, closed_status());
    quiet = false;
  });
  if (!quiet) collect();
  return quiet;
}

}  // namespace hawser::backend::stream
