#pragma once

// MessageSender: puts messages on the streams of one path, each with what the receiver has to have before it
// (message_order.h).
//
// Thread rule: one thread. Lifetime: streams and links outlive it. Bytes are copied.

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/stream/link_use.h"
#include "backend/stream/machine_streams.h"
#include "backend/stream/message_order.h"

namespace hawser::backend::stream {

/// Whether somebody may wait for a message by itself. See Path::send_aside.
enum class Haste : std::uint8_t { kUsual, kAside };

class MessageSender {
 public:
  MessageSender(MachineStreams& streams, LinkUse& links, bool is_apart)
      : streams_(streams), links_(links), order_(is_apart) {}

  // False: there is no room now, or the last message went. See Path.
  bool send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body,
            Haste haste = Haste::kUsual);
  bool send_first(std::span<const std::byte> head, std::span<const std::byte> body);
  bool send_last(std::span<const std::byte> head, std::span<const std::byte> body);
  void open(unsigned stream) { order_.open(stream); }

  /// The stream of messages of this link.
  unsigned stream_for(wire::Link link) const { return order_.stream_for(link); }
  /// The stream of bulk messages; 0: that of all others, too.
  unsigned bulk_stream() const { return order_.bulk_stream(); }
  unsigned last_stream() const { return order_.last_stream(); }
  /// Messages on other streams than 0.
  std::uint64_t others() const { return order_.others(); }
  /// A chunk that waits for `stream` goes before the next message there. Asked before each; told once.
  bool takes_turns(unsigned stream);
  /// Messages that went.
  std::uint64_t count() const { return count_; }

 private:
  bool put(unsigned stream, std::uint8_t flags, std::span<const std::uint64_t> meta, std::span<const std::byte> head,
           std::span<const std::byte> body);

  MachineStreams& streams_;
  LinkUse& links_;
  MessagesOut order_;
  std::uint64_t count_ = 0;
  bool said_last_ = false;  ///< The last message of the session went.
};

}  // namespace hawser::backend::stream
