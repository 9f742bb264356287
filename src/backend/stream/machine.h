#pragma once

// Machine: the remote-memory protocol of one path, over K byte streams. It holds no payload, no socket and no clock. It
// chooses what goes on a stream next, and gives each frame that comes to the member whose it is: Initiator and Target
// (chunks), MessageSender and MessageReader (messages), PathWords (the path's own words).
//
// Out: `gather` names the next bytes of a stream (staged heads, and payload where it lies), `sent` and `released` tell
// how far they got. In: `landing` names where the next bytes belong, `received` cuts them into frames and acts on them.
// What happened goes to the EventQueue.
//
// Stream 0 carries small chunks, urgent messages, read requests and acknowledgements, the others bulk; with one stream
// it carries all. Where streams are apart, links have streams of their own, which carry messages only. Which messages
// wait for which is in message_order.h. Acknowledgements wait for the next frame out, or
// for `flush`, so that a ping-pong costs one send each way.
//
// Thread rule: one thread. Lifetime: regions, events and path outlive it; memory of chunks as B3 says.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "backend/backend.h"
#include "backend/stream/events.h"
#include "backend/stream/initiator.h"
#include "backend/stream/link_use.h"
#include "backend/stream/machine_streams.h"
#include "backend/stream/message_reader.h"
#include "backend/stream/message_sender.h"
#include "backend/stream/path_words.h"
#include "backend/stream/target.h"

namespace hawser::backend::stream {

struct MachineOptions {
  std::string peer;                                ///< Name, for errors.
  unsigned streams = 1;                            ///< 1..kStreamsMax.
  std::uint64_t small_max = 16 * 1024;             ///< Larger chunks are bulk.
  bool has_identity = false;                       ///< The peer may tell of a renewed one.
  bool is_apart = false;                           ///< Links may have streams of their own.
  std::shared_ptr<PeerAccount> account = nullptr;  ///< See Target.
};

class Machine {
 public:
  /// `files` may be null: then peers reach no regions in files.
  Machine(RegionTable& regions, EventQueue& events, Path* path, MachineOptions options, FileDesk* files = nullptr);

  // What this side asks for.
  Binding* bind(const RemoteRegionRef& region) { return initiator_.bind(region); }
  void unbind(std::uint32_t index, std::uint32_t generation) { initiator_.unbind(index, generation); }
  std::uint32_t submit(std::span<const Chunk> chunks);
  bool send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body,
            Haste haste = Haste::kUsual);
  /// See Path.
  bool send_first(std::span<const std::byte> head, std::span<const std::byte> body);
  bool send_last(std::span<const std::byte> head, std::span<const std::byte> body);
  /// The stream of messages of this link.
  unsigned stream_for(wire::Link link) const { return sender_.stream_for(link); }
  void cancel(std::uint64_t transfer) { initiator_.cancel(transfer, streams_.outlets(), streams_.inlets()); }
  /// Whether the peer keeps memory that was given back: of cancelled writes, which only its acknowledgement ends, or of
  /// answers from closed regions that the stream refers to until they are received.
  bool awaits_memory() const {
    return initiator_.cancelled_writes() > 0 || target_.kept() > 0 || target_.holds_staged();
  }
  /// Another kAnswerPeriod is over. False: memory is kept for so long that only the path's end gives it back.
  bool next_memory_period() {
    const bool punctual = initiator_.next_cancel_period(streams_.outlets());
    return target_.next_keep_period(streams_.inlets(), streams_.outlets()) && punctual;
  }
  /// The bound that kept the last chunk out; empty when it was let in.
  std::string_view last_full() const { return initiator_.last_full(); }
  std::uint32_t chunks_in_flight() const { return initiator_.in_flight(); }
  std::uint64_t bytes_in_flight() const { return initiator_.bytes_in_flight(); }
  bool ping(std::uint64_t nonce) { return PathWords::ping(streams_.outlet(0), nonce); }
  bool pong(std::uint64_t nonce) { return PathWords::pong(streams_.outlet(0), nonce); }
  /// The last word: no chunk and no answer begins after it on streams of bulk.
  void bye(Code code, std::string_view reason);
  /// This side's renewed identity. False: there is no room now.
  bool tell_identity(std::span<const std::byte> proof) { return PathWords::tell_identity(streams_.outlet(0), proof); }

  // Out.
  /// Bulk goes to streams 1.. once they are open; until then, and when there is one only, to stream 0.
  /// From here on a link has its stream.
  void open_stream(unsigned stream);
  /// Links of which messages went or came, and which may have a stream of their own: a bit for each, told once.
  std::uint32_t take_unopened() { return links_.take(); }
  bool has_unopened() const { return links_.has_news(); }
  /// Frames what waits until the stream has `ahead` bytes to send. True: there is something to send.
  bool fill(unsigned stream, std::uint64_t ahead);
  /// Acknowledgements go out with the next `fill` of stream 0, alone if need be.
  void flush() { flush_ = true; }
  bool has_acks() const { return target_.has_acks(); }
  std::size_t gather(unsigned stream, std::span<iovec> out, std::uint64_t bytes_max) const {
    return streams_.outlet(stream).gather(out, bytes_max);
  }
  void sent(unsigned stream, std::uint64_t bytes, std::uint64_t released_total);
  /// Queued on a stream; anywhere, or not yet on any.
  bool has_unsent(unsigned stream) const { return streams_.outlet(stream).has_unsent(); }
  bool has_unsent() const;
  /// Some of what `bye` ends has not left.
  bool has_last_words() const {
    return has_unsent(0) || has_unsent(sender_.bulk_stream()) || streams_.has_unsent_links();
  }
  /// This side's stream of bulk messages; 0: that of all others, too.
  unsigned bulk_messages_out() const { return sender_.bulk_stream(); }
  /// Whether the peer's messages may be on `stream`.
  bool may_carry_messages(unsigned stream) const { return reader_.may_come_on(stream); }
  /// The stream refers to memory still: ask it now and then, by `sent`.
  bool has_unreleased(unsigned stream) const {
    const Outlet& its = streams_.outlet(stream);
    return its.released_end() < its.sent_end();
  }
  /// Queued on the stream, or waiting for one and it may be this.
  bool has_work(unsigned stream) const {
    return has_unsent(stream) || (!is_link_stream(stream) && (has_waiting(stream) || initiator_.has_notes(stream)));
  }

  // In.
  /// At the start of a turn: regions that closed are let go (B7), messages that waited for room go on.
  Status begin_turn();
  /// False while the lane has not polled the messages that are there, or a message waits for others on stream 0.
  bool wants(unsigned stream) const { return !reader_.is_waiting(stream); }
  /// The lane has to poll before more can come.
  bool awaits_poll() const { return reader_.awaits_poll(); }
  std::size_t landing(unsigned stream, std::span<iovec> out, std::uint64_t bytes_max) {
    return streams_.inlet(stream).landing(out, bytes_max);
  }
  /// kCorrupt: the path must end.
  Status received(unsigned stream, std::uint64_t bytes);
  /// A goodbye is news once all that was said before it is there. `is_over`: no more will come, so it is now.
  ControlNews take_news(bool is_over = false) { return words_.take(reader_.others(), is_over); }
  /// A goodbye came, and messages that were sent before it did not.
  bool awaits_words() const { return words_.awaits_messages(reader_.others()); }
  bool has_news() const { return words_.has_news(reader_.others()); }

  /// See Port::region_quiet.
  bool region_quiet(std::uint32_t index, std::uint32_t generation) {
    return target_.let_go_region(index, generation, streams_.inlets(), streams_.outlets());
  }
  /// Somebody waits for the peer.
  bool busy() const { return !initiator_.idle() || has_unsent(); }
  /// Bulk is under way, either way.
  bool moves_bulk() const {
    return initiator_.has_bulk() || initiator_.bytes_in_flight() > small_max_ || target_.has_replies(true) ||
           target_.has_rest(0) || streams_.moves_bulk() ||
           (streams_.inlet(0).in_payload() && streams_.inlet(0).head().payload_size > small_max_);
  }
  /// Small operations came or went since last asked (acknowledgements and bulk are none).
  bool take_small() { return std::exchange(small_seen_, false); }
  /// The streams are closed: ends every chunk.
  void fail(const Status& why);

  /// Regions of this side that the peer has bound.
  std::size_t bindings() const { return target_.bindings(); }
  PathCounters counts() const {
    return {.chunks = chunks_, .messages_out = sender_.count(), .messages_in = reader_.count()};
  }
  std::uint64_t bytes_in() const { return target_.bytes_in() + read_bytes_; }
  std::uint64_t bytes_out() const { return target_.bytes_out() + write_bytes_; }

 private:
  void let_chunk_go(unsigned stream);
  bool has_waiting(unsigned stream) const;
  void frame_next(unsigned stream);
  Status process(unsigned stream);
  Status resume_waiting();
  bool on_frame(unsigned stream, Inlet& inlet);
  bool on_payload(unsigned stream, Inlet& inlet);
  bool on_message(unsigned stream, Inlet& inlet);
  bool on_data(unsigned stream, Inlet& inlet);
  bool on_acks(const Inlet& inlet);
  bool on_quotas(const Inlet& inlet);
  Status corrupt(unsigned stream, const wire::FrameHead& head) const;

  const std::string peer_;
  const std::uint64_t small_max_;
  MachineStreams streams_;
  LinkUse links_;
  Initiator initiator_;
  Target target_;
  MessageSender sender_;
  MessageReader reader_;
  PathWords words_;
  std::array<std::uint32_t, kStreamsMax> data_tag_ = {};  ///< Of the DATA frame whose payload is coming.
  std::uint64_t chunks_ = 0, read_bytes_ = 0, write_bytes_ = 0;
  bool flush_ = false;
  bool small_seen_ = false;
  bool said_bye_ = false;
  bool reply_next_ = false;  ///< Bulk writes and answers to reads take turns.
};

}  // namespace hawser::backend::stream
