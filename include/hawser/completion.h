#pragma once

// Completion queues: where finished transfers and other news are reported as values, pulled by the caller.
//
// A queue is bounded; the slot of a completion is reserved when its transfer is submitted, so none is ever lost. When a
// queue is full, submit answers kBusy naming it, and a kRoom entry follows once there is room.
//
// Thread rule: thread-safe.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <hawser/export.h>
#include <hawser/status.h>
#include <hawser/time.h>

namespace hawser::agent {
class QueueCore;
}

HAWSER_NAMESPACE_BEGIN

enum class CompletionKind : std::uint8_t {
  kTransfer = 1,      ///< A transfer became final.
  kNotification = 2,  ///< A notification is there to be taken.
  kMessage = 3,       ///< A message is there on the channel `cookie`.
  kPeer = 4,          ///< A peer event is there to be taken.
  kRoom = 5,          ///< Something that answered kBusy has room again.
};

struct Completion {
  CompletionKind kind = CompletionKind::kTransfer;
  std::uint64_t cookie = 0;  ///< What submit was given; for kMessage the channel.
  std::uint64_t bytes = 0;   ///< Bytes moved.
  Status status;
};

class HAWSER_API CompletionQueue {
 public:
  CompletionQueue() = default;
  explicit CompletionQueue(std::shared_ptr<agent::QueueCore> core) : core_(std::move(core)) {}

  /// Takes up to `out.size()` entries without waiting. Does not make progress: see Agent::poll.
  std::size_t poll(std::span<Completion> out);
  /// Makes progress where no driver does, until there is an entry or `timeout` is over. Returns the number taken.
  std::size_t wait(std::span<Completion> out, Duration timeout);
  /// Readable while there are entries. Owned by the queue. For epoll and asyncio.
  int event_fd() const;
  std::size_t capacity() const;

 private:
  friend struct Inside;
  std::shared_ptr<agent::QueueCore> core_;
};

HAWSER_NAMESPACE_END
