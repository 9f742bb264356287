#pragma once

// Pipe: one direction of a simulated connection, from a sender's host to a receiver's.
//
// Bytes go in order, in segments, each as late as the fabric makes it; the sender is held back by a window (capacity
// less what is on its way or unread). Like a kernel that sends again from the caller's memory, a pipe that works by
// reference reads the bytes when they arrive, not when they were sent: who touches them too early corrupts the stream.
//
// Thread rule: the world's. Lifetime: by shared_ptr of its connection; events hold that.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <hawser/status.h>

#include "backend/sim/fabric.h"
#include "backend/stream/stream.h"

namespace hawser::sim {

struct PipeOptions {
  std::size_t capacity_bytes = 256 * 1024;  ///< Window and buffers together.
  std::size_t segment_bytes = 16 * 1024;    ///< Largest piece that arrives at once.
  bool by_reference = true;
  double short_chance = 0.05;  ///< Chance that a send or a receive moves less than it could.
};

class Pipe : public std::enable_shared_from_this<Pipe> {
 public:
  Pipe(World& world, Fabric& fabric, std::uint32_t from, std::uint32_t to, PipeOptions options)
      : world_(world), fabric_(fabric), from_(from), to_(to), options_(options) {}

  // The sender's end.
  backend::stream::Moved send(std::span<const iovec> parts);
  std::uint64_t released() const { return released_; }
  /// Orderly end behind what was sent. Later sends find it closed.
  void finish();
  /// Keeps the bytes that have not arrived in memory of its own.
  void detach();

  // The receiver's end.
  backend::stream::Moved receive(std::span<const iovec> parts);
  /// Puts a prefix of what arrived where it belongs, as networks do that have it in memory of their own.
  std::size_t place(backend::stream::Landing& landing);

  /// Ends it at once. What is on its way is lost; what arrived can still be read unless `drop_arrived`.
  void fail_sender(const Status& why);
  void fail_receiver(const Status& why, bool drop_arrived);
  /// What is on its way, and what is sent from now on, stays there until it is let go of.
  void hold() { held_ = true; }
  /// The sender's end is gone. Unlike after `fail_sender` what is on its way still arrives.
  void strand(const Status& why);
  void let_go();
  /// From now on segments that arrive vanish; `on_lost` hears of each.
  void blackhole() { blackhole_ = true; }

  void set_capacity(std::size_t bytes) { options_.capacity_bytes = bytes; }
  std::uint64_t sent() const { return sent_; }
  std::uint64_t arrived() const { return arrived_; }
  std::uint64_t read() const { return read_; }
  bool failed() const { return sender_failed_ || receiver_failed_; }
  bool has_unacknowledged() const { return sent_ != released_; }
  /// Whether there are bytes that nobody read.
  bool has_unread() const { return read_at_ < arrived_bytes_.size(); }

  std::function<void()> on_readable, on_writable, on_lost;

 private:
  struct Segment {
    std::vector<iovec> parts;      ///< The caller's memory, or
    std::vector<std::byte> bytes;  ///< our own.
    std::size_t size = 0;
    bool last = false;
    Instant arrival;
  };
  void push(Segment segment);
  void arrive();
  void take(const Segment& segment);
  void note_read(std::size_t bytes);
  std::size_t shorten(std::size_t size);

  World& world_;
  Fabric& fabric_;
  const std::uint32_t from_, to_;
  PipeOptions options_;

  std::deque<Segment> on_way_;
  Instant last_arrival_ = Instant::min();
  std::uint64_t sent_ = 0;
  std::uint64_t released_ = 0;  ///< Arrival as the sender knows it.
  std::uint64_t consumed_ = 0;  ///< Reading as the sender knows it: opens the window.
  bool finished_ = false;
  bool sender_failed_ = false;
  bool held_ = false;
  Status sender_status_;

  std::vector<std::byte> arrived_bytes_;
  std::size_t read_at_ = 0;
  std::uint64_t arrived_ = 0;
  std::uint64_t read_ = 0;
  bool end_arrived_ = false;
  bool receiver_failed_ = false;
  Status receiver_status_;
  bool blackhole_ = false;
};

}  // namespace hawser::sim
