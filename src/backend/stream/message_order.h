#pragma once

// MessagesOut, MessagesIn: on which stream of a path a message goes, and which of those that came have to wait.
//
// Stream 0 carries urgent messages (critical, realtime). Bulk messages go on one of the other streams, beside the
// payload of large chunks, so no urgent message waits behind them. Until another stream is open, stream 0 carries all.
//
// Where streams do not wait for one another's bytes (Network::streams_are_apart), most links have a stream of their own
// beside those: a *link stream*, which carries nothing but messages of that link. Only the first links of realtime and
// bulk, which carry the library's own messages, have none. A link's stream opens after its first message; until then
// stream 0 carries that link.
//
// Each message that is not on stream 0 tells how many messages on stream 0 it comes after; the receiver reads it after
// these. Where streams wait for one another these are all that went there before, so a bulk message overtakes nothing.
// Where streams are apart these are no more than the order needs: the last greeting, and what the link itself sent on
// stream 0. The last message of a session comes after all others: it tells how many went on the other streams, too.
//
// Thread rule: values, one thread.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/hello.h"
#include "wire/link.h"

namespace hawser::backend::stream {

/// Bytes of bulk messages after which one large chunk that waits for the same stream goes first.
inline constexpr std::uint64_t kMessagesAhead = 256 * 1024;

/// Most streams of one path that carry operations,
inline constexpr unsigned kStreamsMax = wire::kLinkStreamFirst;
/// and all: behind those, by number, are the streams of links.
inline constexpr unsigned kAllStreamsMax = kStreamsMax + static_cast<unsigned>(wire::kLinks);
constexpr bool is_link_stream(unsigned stream) { return stream >= kStreamsMax; }
constexpr unsigned stream_of(wire::Link link) { return kStreamsMax + static_cast<unsigned>(link.index()); }
/// The link whose messages that stream carries. `stream` is a link stream.
constexpr wire::Link link_of(unsigned stream) { return wire::Link::at(stream - kStreamsMax); }
/// Whether the link has a stream of its own where streams are apart.
constexpr bool has_own_stream(wire::Link link) { return link != Priority::kRealtime && link != Priority::kBulk; }

class MessagesOut {
 public:
  explicit MessagesOut(bool is_apart = false) : is_apart_(is_apart) {}

  /// The stream of bulk messages that have no own; 0: that of all others, too.
  unsigned bulk_stream() const { return bulk_stream_; }
  /// On which stream messages of this link go now.
  unsigned stream_for(wire::Link link) const {
    if (is_apart_ && has_own_stream(link)) return is_open_[link.index()] ? stream_of(link) : 0;
    return link.priority() == Priority::kBulk ? bulk_stream_ : 0;
  }
  /// That of the last message of all. It never waits on stream 0, where the path's own words are.
  unsigned last_stream() const { return bulk_stream_ != 0 ? bulk_stream_ : last_opened_; }
  /// `stream` (not 0) is open now. Bulk messages keep the first one that was: there they are in order.
  void open(unsigned stream) {
    last_opened_ = stream;
    if (is_link_stream(stream)) {
      is_open_[link_of(stream).index()] = true;
      moved_[link_of(stream).index()] = urgent_;
    } else if (bulk_stream_ == 0) {
      bulk_stream_ = stream;
      moved_[wire::Link(Priority::kBulk).index()] = urgent_;
    }
  }
  /// After how many messages on stream 0 the next one of this link comes, which goes on another stream.
  std::uint64_t ahead(wire::Link link) const {
    if (!is_apart_) return urgent_;
    return std::max(greetings_, moved_[link.index()]);
  }
  /// One of `size` bytes was put on `stream`.
  void sent(unsigned stream, std::size_t size) {
    if (stream == 0) {
      ++urgent_;
    } else {
      ++others_;
      if (!is_link_stream(stream)) since_chunk_ += size;
    }
  }
  /// The one that was put on stream 0 just now comes before all that are sent from now on.
  void greeted() { greetings_ = urgent_; }
  /// Those on stream 0, and those on all others.
  std::uint64_t urgent() const { return urgent_; }
  std::uint64_t others() const { return others_; }
  /// Chunks that wait for the stream of bulk messages have waited long enough.
  bool owes_chunk() const { return since_chunk_ >= kMessagesAhead; }
  void chunk_sent() { since_chunk_ = 0; }

 private:
  bool is_apart_;
  unsigned bulk_stream_ = 0, last_opened_ = 0;
  std::uint64_t urgent_ = 0, others_ = 0;
  std::uint64_t greetings_ = 0;  ///< So many went on stream 0 up to the last greeting.
  std::uint64_t since_chunk_ = 0;
  std::array<bool, wire::kLinks> is_open_ = {};
  std::array<std::uint64_t, wire::kLinks> moved_ = {};  ///< So many went on stream 0 before the link left it.
};

class MessagesIn {
 public:
  /// Whether a message may come on `stream`: bulk ones keep the stream of the first.
  bool may_come_on(unsigned stream) const {
    return stream == 0 || is_link_stream(stream) || bulk_stream_ == 0 || stream == bulk_stream_;
  }
  /// Whether all that went on stream 0 before a message on another one is there.
  bool has_urgent(std::uint64_t before) const { return urgent_ >= before; }
  /// Whether so many messages on other streams are there.
  bool has_others(std::uint64_t count) const { return others_ >= count; }
  std::uint64_t others() const { return others_; }
  /// The first bytes of one on `stream` came.
  void begins(unsigned stream) {
    if (stream != 0 && !is_link_stream(stream)) bulk_stream_ = stream;
  }
  /// It is there as a whole.
  void came(unsigned stream) { ++(stream == 0 ? urgent_ : others_); }

 private:
  unsigned bulk_stream_ = 0;
  std::uint64_t urgent_ = 0, others_ = 0;
};

}  // namespace hawser::backend::stream
