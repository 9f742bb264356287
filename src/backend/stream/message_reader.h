#pragma once

// MessageReader: the peer's messages. It hands each to the lane in the order that the peer meant, and makes the streams
// wait where a message is early or the lane has not polled those that are there.
//
// Frames behind a message that has to wait do so in the read-ahead buffer, and the stream is not read. On stream 0 any
// frame waits while there is no room for messages: it may be one.
//
// Thread rule: one thread. Lifetime: streams, links and events outlive it.

#include <array>
#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "backend/stream/events.h"
#include "backend/stream/inlet.h"
#include "backend/stream/link_use.h"
#include "backend/stream/machine_streams.h"
#include "backend/stream/message_order.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

class MessageReader {
 public:
  /// A bit for each stream.
  using Streams = std::uint32_t;
  static_assert(kAllStreamsMax <= 32);

  MessageReader(MachineStreams& streams, LinkUse& links, EventQueue& events, Path* path)
      : streams_(streams), links_(links), events_(events), path_(path) {}

  // When a stream is read.
  /// Whether `stream` has to wait now, which it does from here on until this says no.
  bool must_wait(unsigned stream);
  /// Streams that wait.
  Streams waiting() const { return paused_; }
  bool is_waiting(unsigned stream) const { return (paused_ & bit(stream)) != 0; }
  /// Some wait until the lane has polled.
  bool awaits_poll() const { return awaits_poll_ != 0; }
  /// A message that the peer sent last of all waits for others than those of stream 0.
  bool awaits_others() const { return awaits_others_; }
  /// A frame's head came: true where it tells of messages that come before it, so `must_wait` has to be asked again.
  bool holds(unsigned stream, const wire::FrameHead& head);
  /// Whether a frame was held, which is to be read now.
  bool take_held(unsigned stream);

  // What is read.
  /// False: senseless.
  bool on_message(unsigned stream, Inlet& inlet);
  /// Its payload is there.
  void on_message_end(unsigned stream);
  /// Whether messages may come on `stream`.
  bool may_come_on(unsigned stream) const { return order_.may_come_on(stream); }
  /// Messages on other streams than 0 that came.
  std::uint64_t others() const { return order_.others(); }
  std::uint64_t count() const { return count_; }
  /// The streams are closed.
  void clear();

 private:
  /// The message that a stream is bringing: one for stream 0, one for the stream of bulk messages, and each link's.
  struct Incoming {
    MessageBuffer buffer;
    Piece place;
  };
  static constexpr Streams bit(unsigned stream) { return Streams{1} << stream; }
  static bool tells_order(unsigned stream, const wire::FrameHead& head);
  bool is_early(unsigned stream);
  Incoming& incoming(unsigned stream);

  MachineStreams& streams_;
  LinkUse& links_;
  EventQueue& events_;
  Path* path_;
  MessagesIn order_;
  std::array<Incoming, 2> incoming_;
  std::array<std::unique_ptr<Incoming>, wire::kLinks> link_incoming_;
  Streams paused_ = 0;
  Streams awaits_poll_ = 0;     ///< Paused for that reason.
  Streams holds_frame_ = 0;     ///< Paused with a frame whose head was read.
  bool awaits_others_ = false;  ///< The peer's last message is held, and comes after others than those of stream 0.
  std::uint64_t count_ = 0;
};

}  // namespace hawser::backend::stream
