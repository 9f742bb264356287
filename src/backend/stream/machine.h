#pragma once

// Machine: the remote-memory protocol of one path, over K byte streams. It holds no payload, no socket and no clock.
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
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/stream/events.h"
#include "backend/stream/initiator.h"
#include "backend/stream/inlet.h"
#include "backend/stream/message_order.h"
#include "backend/stream/outlet.h"
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

/// What the driver of a machine must act on, beside events.
struct ControlNews {
  bool ping = false;
  std::uint64_t ping_nonce = 0;
  bool pong = false;
  std::uint64_t pong_nonce = 0;
  std::optional<wire::PathBye> bye;
  bool renewal = false;
  std::string identity;  ///< With `renewal`: the peer's proof.
};

class Machine {
 public:
  /// `files` may be null: then peers reach no regions in files.
  Machine(RegionTable& regions, EventQueue& events, Path* path, MachineOptions options, FileDesk* files = nullptr);

  // What this side asks for.
  Binding* bind(const RemoteRegionRef& region) { return initiator_.bind(region); }
  void unbind(std::uint32_t index, std::uint32_t generation) { initiator_.unbind(index, generation); }
  std::uint32_t submit(std::span<const Chunk> chunks);
  bool send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body);
  /// See Path.
  bool send_first(std::span<const std::byte> head, std::span<const std::byte> body);
  bool send_last(std::span<const std::byte> head, std::span<const std::byte> body);
  /// The stream of messages of this link.
  unsigned stream_for(wire::Link link) const { return messages_out_.stream_for(link); }
  void cancel(std::uint64_t transfer) { initiator_.cancel(transfer, outlets(), inlets()); }
  /// Whether the peer keeps memory that was given back: of cancelled writes, which only its acknowledgement ends, or of
  /// answers from closed regions that the stream refers to until they are received.
  bool awaits_memory() const {
    return initiator_.cancelled_writes() > 0 || target_.kept() > 0 || target_.holds_staged();
  }
  /// Another kAnswerPeriod is over. False: memory is kept for so long that only the path's end gives it back.
  bool next_memory_period() {
    const bool punctual = initiator_.next_cancel_period(outlets());
    return target_.next_keep_period(inlets(), outlets()) && punctual;
  }
  /// The bound that kept the last chunk out; empty when it was let in.
  std::string_view last_full() const { return initiator_.last_full(); }
  std::uint32_t chunks_in_flight() const { return initiator_.in_flight(); }
  std::uint64_t bytes_in_flight() const { return initiator_.bytes_in_flight(); }
  bool ping(std::uint64_t nonce) { return send_number(wire::FrameType::kPing, nonce); }
  bool pong(std::uint64_t nonce) { return send_number(wire::FrameType::kPong, nonce); }
  /// The last word: no chunk and no answer begins after it on streams of bulk.
  void bye(Code code, std::string_view reason);
  /// This side's renewed identity. False: there is no room now.
  bool tell_identity(std::span<const std::byte> proof);

  // Out.
  /// Bulk goes to streams 1.. once they are open; until then, and when there is one only, to stream 0.
  /// From here on a link has its stream.
  void open_stream(unsigned stream);
  /// Links of which messages went or came, and which may have a stream of their own: a bit for each, told once.
  std::uint32_t take_unopened() { return std::exchange(unopened_, 0U); }
  bool has_unopened() const { return unopened_ != 0; }
  /// Frames what waits until the stream has `ahead` bytes to send. True: there is something to send.
  bool fill(unsigned stream, std::uint64_t ahead);
  /// Acknowledgements go out with the next `fill` of stream 0, alone if need be.
  void flush() { flush_ = true; }
  bool has_acks() const { return target_.has_acks(); }
  std::size_t gather(unsigned stream, std::span<iovec> out, std::uint64_t bytes_max) const {
    return outlet(stream).gather(out, bytes_max);
  }
  void sent(unsigned stream, std::uint64_t bytes, std::uint64_t released_total);
  /// Queued on a stream; anywhere, or not yet on any.
  bool has_unsent(unsigned stream) const { return outlet(stream).has_unsent(); }
  bool has_unsent() const;
  /// Some of what `bye` ends has not left.
  bool has_last_words() const { return has_unsent(0) || has_unsent(messages_out_.bulk_stream()) || has_unsent_links(); }
  /// This side's stream of bulk messages; 0: that of all others, too.
  unsigned bulk_messages_out() const { return messages_out_.bulk_stream(); }
  /// Whether the peer's messages may be on `stream`.
  bool may_carry_messages(unsigned stream) const { return messages_in_.may_come_on(stream); }
  /// The stream refers to memory still: ask it now and then, by `sent`.
  bool has_unreleased(unsigned stream) const {
    const Outlet& its = outlet(stream);
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
  bool wants(unsigned stream) const { return (paused_ >> stream & 1) == 0; }
  /// The lane has to poll before more can come.
  bool awaits_poll() const { return awaits_poll_ != 0; }
  std::size_t landing(unsigned stream, std::span<iovec> out, std::uint64_t bytes_max) {
    return inlet(stream).landing(out, bytes_max);
  }
  /// kCorrupt: the path must end.
  Status received(unsigned stream, std::uint64_t bytes);
  /// A goodbye is news once all that was said before it is there. `is_over`: no more will come, so it is now.
  ControlNews take_news(bool is_over = false);
  /// A goodbye came, and messages that were sent before it did not.
  bool awaits_words() const { return news_.bye && !is_bye_due(*news_.bye); }
  bool has_news() const { return news_.ping || news_.pong || news_.renewal || (news_.bye && is_bye_due(*news_.bye)); }

  /// See Port::region_quiet.
  bool region_quiet(std::uint32_t index, std::uint32_t generation) {
    return target_.let_go_region(index, generation, inlets(), outlets());
  }
  /// Somebody waits for the peer.
  bool busy() const { return !initiator_.idle() || has_unsent(); }
  /// Small operations came or went since last asked (acknowledgements and bulk are none).
  bool take_small() { return std::exchange(small_seen_, false); }
  /// The streams are closed: ends every chunk.
  void fail(const Status& why);

  /// Regions of this side that the peer has bound.
  std::size_t bindings() const { return target_.bindings(); }
  const PathCounters& counts() const { return counts_; }
  std::uint64_t bytes_in() const { return target_.bytes_in() + read_bytes_; }
  std::uint64_t bytes_out() const { return target_.bytes_out() + write_bytes_; }

 private:
  /// A bit for each stream.
  using Streams = std::uint32_t;
  static_assert(kAllStreamsMax <= 32);
  /// The message that a stream is bringing: one for stream 0, one for the stream of bulk messages, and for each link's.
  struct Incoming {
    MessageBuffer buffer;
    Piece place;
  };
  struct LinkStream {
    Outlet outlet;
    Inlet inlet;
    Incoming incoming;
  };

  // Those of operations.
  std::span<Outlet> outlets() { return {outlets_.data(), options_.streams}; }
  std::span<Inlet> inlets() { return {inlets_.data(), options_.streams}; }
  // Those of any stream that is open.
  LinkStream& link_stream(unsigned stream) const { return *links_[stream - kStreamsMax]; }
  Outlet& outlet(unsigned stream) { return is_link_stream(stream) ? link_stream(stream).outlet : outlets_[stream]; }
  const Outlet& outlet(unsigned stream) const {
    return is_link_stream(stream) ? link_stream(stream).outlet : outlets_[stream];
  }
  Inlet& inlet(unsigned stream) { return is_link_stream(stream) ? link_stream(stream).inlet : inlets_[stream]; }
  Incoming& incoming(unsigned stream) {
    return is_link_stream(stream) ? link_stream(stream).incoming : incoming_[stream == 0 ? 0 : 1];
  }
  bool has_unsent_links() const;
  bool put_message(unsigned stream, std::uint8_t flags, std::span<const std::uint64_t> meta,
                   std::span<const std::byte> head, std::span<const std::byte> body);
  void note_link(wire::Link link);
  bool carries_bulk(unsigned stream) const;
  bool has_waiting(unsigned stream) const;
  void frame_next(unsigned stream);
  void let_chunk_go(unsigned stream);
  bool send_number(wire::FrameType type, std::uint64_t number);
  Status process(unsigned stream);
  Status resume_held();
  bool must_wait(unsigned stream);
  bool is_early(unsigned stream);
  static bool tells_order(unsigned stream, const wire::FrameHead& head);
  bool is_bye_due(const wire::PathBye& bye) const { return messages_in_.has_others(bye.messages); }
  bool on_frame(unsigned stream, Inlet& inlet);
  bool on_payload(unsigned stream, Inlet& inlet);
  bool on_message(unsigned stream, Inlet& inlet);
  void message_came(unsigned stream);
  bool on_identity(unsigned stream, Inlet& inlet);
  bool on_data(unsigned stream, Inlet& inlet);
  bool on_acks(Inlet& inlet);
  bool on_quotas(const Inlet& inlet);
  bool on_control(Inlet& inlet);
  Status corrupt(unsigned stream, const wire::FrameHead& head) const;

  EventQueue& events_;
  Path* path_;
  MachineOptions options_;
  std::array<Outlet, kStreamsMax> outlets_;
  std::array<Inlet, kStreamsMax> inlets_;
  Initiator initiator_;
  Target target_;
  std::array<std::unique_ptr<LinkStream>, wire::kLinks> links_;
  std::array<bool, kStreamsMax> open_ = {true};
  Streams paused_ = 0;
  Streams awaits_poll_ = 0;                               ///< Paused for that reason.
  Streams holds_frame_ = 0;                               ///< Paused with a frame whose head was read.
  std::array<std::uint32_t, kStreamsMax> data_tag_ = {};  ///< Of the DATA frame whose payload is coming.
  MessagesOut messages_out_;
  MessagesIn messages_in_;
  std::array<Incoming, 2> incoming_;
  std::uint32_t used_ = 0, unopened_ = 0;  ///< Links that went or came on stream 0; those not told.
  std::string identity_;                   ///< The proof that is coming on stream 0.
  ControlNews news_;
  PathCounters counts_;
  std::uint64_t read_bytes_ = 0, write_bytes_ = 0;
  bool flush_ = false;
  bool small_seen_ = false;
  bool said_bye_ = false;
  bool said_last_ = false;      ///< The last message of the session went.
  bool awaits_others_ = false;  ///< That of the peer is held, and comes after others than those of stream 0.
  bool reply_next_ = false;     ///< Bulk writes and answers to reads take turns.
};

}  // namespace hawser::backend::stream
