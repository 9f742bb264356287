#pragma once

// EventQueue: what happened on the paths of one port, in order, until the lane polls it.
//
// Thread rule: one thread. Lifetime: message bytes that `poll` showed live until the next call of `poll` or `recycle`.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/stream/ring.h"

namespace hawser::backend::stream {

/// Bytes of one message.
struct MessageBuffer {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size = 0;
  std::size_t capacity = 0;
};

class EventQueue {
 public:
  /// Paths stop receiving messages while this much waits to be polled.
  static constexpr std::size_t kMessagesMax = 256;
  static constexpr std::size_t kMessageBytesMax = 1 << 20;

  void chunk_done(Path* path, std::uint64_t cookie, Status status, bool uncounted = false) {
    Event& event = add(PortEvent::Kind::kChunkDone, path);
    event.uncounted = uncounted;
    event.cookie = cookie;
    event.status = std::move(status);
  }
  /// It ended here, and may still land at the peer.
  void chunk_done_unsettled(Path* path, std::uint64_t cookie, Status status) {
    Event& event = add(PortEvent::Kind::kChunkDone, path);
    event.unsettled = true;
    event.cookie = cookie;
    event.status = std::move(status);
  }
  void arrival(Path* path, std::uint64_t transfer, std::uint32_t chunk) {
    Event& event = add(PortEvent::Kind::kArrival, path);
    event.transfer = transfer;
    event.chunk = chunk;
  }
  void uncounted(Path* path, std::uint64_t transfer) { add(PortEvent::Kind::kUncounted, path).transfer = transfer; }
  void regions_changed() { add(PortEvent::Kind::kRegions, nullptr); }
  void message(Path* path, MessageBuffer message);
  /// `held`: told with the first other event of it. Until then nothing of a stranger is worth memory.
  void path_up(Path* path, const Identity* peer, const base::Id128& session, bool inbound,
               const base::Id128& supersedes, bool held);
  /// Nothing is told of a path whose beginning was not told.
  void path_down(Path* path, Status status, bool refused = false);
  /// The peer misses its heartbeats.
  void path_silent(Path* path, Status status) { add(PortEvent::Kind::kPathSilent, path).status = std::move(status); }
  void path_heard(Path* path) { add(PortEvent::Kind::kPathHeard, path); }
  /// It is up, and nobody was told.
  bool is_held(const Path* path) const;

  bool empty() const { return events_.empty(); }
  bool messages_full() const { return messages_ >= kMessagesMax || message_bytes_ >= kMessageBytesMax; }
  /// A buffer for a message of `size` bytes, an old one if there is one.
  MessageBuffer buffer(std::size_t size);
  /// What the last poll showed may be used again.
  void recycle() {
    if (!shown_.empty()) recycle_shown();
  }
  std::size_t poll(std::span<PortEvent> out);
  /// As poll, but what was shown since then stays.
  std::size_t poll_more(std::span<PortEvent> out);
  /// Nothing of `path` will be told any more.
  void forget(const Path* path);

 private:
  struct Event {
    PortEvent::Kind kind = PortEvent::Kind::kChunkDone;
    bool inbound = false;
    bool uncounted = false;
    bool unsettled = false;
    bool refused = false;
    Path* path = nullptr;
    std::uint64_t cookie = 0;
    std::uint64_t transfer = 0;
    std::uint32_t chunk = 0;
    const Identity* peer = nullptr;
    base::Id128 session = {};
    base::Id128 supersedes = {};
    MessageBuffer message = {};
    Status status = {};
  };
  Event& add(PortEvent::Kind kind, Path* path) {
    if (!held_.empty()) tell_held(path);
    Event& event = events_.add();
    event.kind = kind;
    event.path = path;
    return event;
  }
  void show(Event& event, PortEvent& out);
  void recycle_shown();
  void tell_held(const Path* path);

  static constexpr std::size_t kSparesMax = 16;        ///< Buffers kept, each of
  static constexpr std::size_t kSpareSize = 4 * 1024;  ///< this size; larger ones are not kept.
  Ring<Event> events_;
  std::vector<Event> held_;  ///< Beginnings of inbound paths that are not told yet; few, see Lobby.
  std::vector<MessageBuffer> shown_;
  std::vector<MessageBuffer> spares_;
  std::size_t messages_ = 0, message_bytes_ = 0;
};

}  // namespace hawser::backend::stream
