#pragma once

// Queue: operations on descriptors, started now and ended later, at most `depth` at once. By io_uring; where that is
// not allowed, by a few threads that do the same calls.
//
// Thread rule: one thread at a time. Lifetime: memory of a started operation is touched until `reap` gave its end; the
// destructor waits for all.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <hawser/status.h>
#include <hawser/time.h>

namespace hawser::fileio {

enum class Engine : std::uint8_t { kAuto, kUring, kThreads };

struct QueueOptions {
  Engine engine = Engine::kAuto;
  std::uint32_t depth = 128;  ///< Operations in flight, at most.
  std::uint32_t threads = 4;  ///< For the engine kThreads.
};

struct Operation {
  enum class Kind : std::uint8_t { kRead, kWrite, kSync };
  Kind kind = Kind::kRead;
  int fd = -1;
  std::byte* memory = nullptr;
  std::uint32_t size = 0;
  std::uint64_t offset = 0;
  std::uint64_t cookie = 0;  ///< Comes back; below 2^63.
};

struct Ended {
  std::uint64_t cookie = 0;
  int result = 0;  ///< Bytes, or an error number with a minus.
};

class Queue {
 public:
  virtual ~Queue() = default;
  virtual std::string_view name() const = 0;  ///< "io_uring" or "threads".
  virtual std::uint32_t in_flight() const = 0;
  /// False: `depth` are in flight. May begin only with the next flush.
  virtual bool start(const Operation& operation) = 0;
  /// False: the kernel took not all; again later.
  virtual bool flush() = 0;
  /// Asks for an early end; there is an end in any case.
  virtual void cancel(std::uint64_t cookie) = 0;
  virtual std::size_t reap(std::span<Ended> out) = 0;
  virtual bool has_ended() const = 0;
  /// Readable while there is something to reap.
  virtual int wait_fd() const = 0;
  /// In a forked child: closes descriptors, by system calls only.
  virtual void disown_after_fork() = 0;
};

/// `*why_not_uring` is set when kAuto had to take threads.
Result<std::unique_ptr<Queue>> open_queue(const QueueOptions& options, Status* why_not_uring);
Result<std::unique_ptr<Queue>> open_uring_queue(const QueueOptions& options);
Result<std::unique_ptr<Queue>> open_thread_queue(const QueueOptions& options);

}  // namespace hawser::fileio
