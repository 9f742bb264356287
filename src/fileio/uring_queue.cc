#include <liburing.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/fd.h"
#include "base/try.h"
#include "fileio/queue.h"

namespace hawser::fileio {
namespace {

constexpr std::uint64_t kCancelMark = UINT64_MAX;  ///< Cookie of requests to cancel; their own ends tell nothing.

class UringQueue final : public Queue {
 public:
  explicit UringQueue(std::uint32_t depth) : depth_(depth) {}
  ~UringQueue() override;
  Status open();

  std::string_view name() const override { return "io_uring"; }
  std::uint32_t in_flight() const override { return in_flight_; }
  bool start(const Operation& operation) override;
  bool flush() override;
  void cancel(std::uint64_t cookie) override;
  std::size_t reap(std::span<Ended> out) override;
  bool has_ended() const override { return ::io_uring_cq_ready(&ring_) > 0; }
  int wait_fd() const override { return ring_.ring_fd; }
  void disown_after_fork() override {
    // The mappings were not inherited (dontfork), and the ring's memory is the parent's.
    ::close(ring_.ring_fd);
    is_open_ = false;
  }

 private:
  const std::uint32_t depth_;
  io_uring ring_{};
  bool is_open_ = false;
  std::uint32_t in_flight_ = 0;
};

Status UringQueue::open() {
  const int error = ::io_uring_queue_init(depth_, &ring_, 0);
  if (error < 0) return base::errno_status("opening an io_uring", -error);
  is_open_ = true;
  ::io_uring_ring_dontfork(&ring_);
  return {};
}

UringQueue::~UringQueue() {
  if (!is_open_) return;
  std::array<Ended, 64> ended;
  while (in_flight_ > 0) {
    flush();
    constexpr int kLookAgainMs = 100;
    pollfd wait{.fd = ring_.ring_fd, .events = POLLIN, .revents = 0};
    if (reap(ended) == 0) ::poll(&wait, 1, kLookAgainMs);
  }
  ::io_uring_queue_exit(&ring_);
}

bool UringQueue::start(const Operation& operation) {
  if (in_flight_ == depth_) return false;
  io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
  if (entry == nullptr) {  // Requests to cancel take places too.
    if (!flush()) return false;
    entry = ::io_uring_get_sqe(&ring_);
    if (entry == nullptr) return false;
  }
  switch (operation.kind) {
    case Operation::Kind::kRead:
      ::io_uring_prep_read(entry, operation.fd, operation.memory, operation.size, operation.offset);
      break;
    case Operation::Kind::kWrite:
      ::io_uring_prep_write(entry, operation.fd, operation.memory, operation.size, operation.offset);
      break;
    case Operation::Kind::kSync:
      ::io_uring_prep_fsync(entry, operation.fd, 0);
      break;
  }
  ::io_uring_sqe_set_data64(entry, operation.cookie);
  ++in_flight_;
  return true;
}

bool UringQueue::flush() {
  if (::io_uring_sq_ready(&ring_) == 0) return true;
  ::io_uring_submit(&ring_);  // Operations that it could not take stay for the next time.
  return ::io_uring_sq_ready(&ring_) == 0;
}

void UringQueue::cancel(std::uint64_t cookie) {
  io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
  if (entry == nullptr) return;  // It then takes as long as it takes.
  ::io_uring_prep_cancel64(entry, cookie, 0);
  ::io_uring_sqe_set_data64(entry, kCancelMark);
}

std::size_t UringQueue::reap(std::span<Ended> out) {
  std::size_t count = 0;
  unsigned seen = 0;
  unsigned head = 0;
  io_uring_cqe* entry = nullptr;
  io_uring_for_each_cqe(&ring_, head, entry) {
    if (count == out.size()) break;
    ++seen;
    if (entry->user_data == kCancelMark) continue;
    out[count++] = {.cookie = entry->user_data, .result = entry->res};
  }
  ::io_uring_cq_advance(&ring_, seen);
  in_flight_ -= static_cast<std::uint32_t>(count);
  return count;
}

}  // namespace

Result<std::unique_ptr<Queue>> open_uring_queue(const QueueOptions& options) {
  auto queue = std::make_unique<UringQueue>(options.depth);
  HAWSER_TRY(queue->open());
  return std::unique_ptr<Queue>(std::move(queue));
}

}  // namespace hawser::fileio
