#pragma once

// MessagesOut, MessagesIn: on which stream of a path a message goes, and which of those that came have to wait.
//
// Stream 0 carries urgent messages (critical, realtime). Bulk messages go on one of the other streams, beside the
// payload of large chunks, so no urgent message waits behind them. Each of them tells how many messages went on stream
// 0 before it, and the receiver reads it after these: it may be overtaken, and overtakes nothing. Until another stream
// is open, stream 0 carries all.
//
// Thread rule: values, one thread.

#include <cstddef>
#include <cstdint>

namespace hawser::backend::stream {

/// Bytes of bulk messages after which one large chunk that waits for the same stream goes first.
inline constexpr std::uint64_t kMessagesAhead = 256 * 1024;

class MessagesOut {
 public:
  /// The stream of bulk messages; 0: that of all others, too.
  unsigned bulk_stream() const { return bulk_stream_; }
  /// `stream` (not 0) is open now. Bulk messages keep the first one that was: there they are in order.
  void open(unsigned stream) {
    if (bulk_stream_ == 0) bulk_stream_ = stream;
  }
  /// One of `size` bytes was put on `stream`.
  void sent(unsigned stream, std::size_t size) {
    if (stream == 0) {
      ++urgent_;
    } else {
      ++bulk_;
      since_chunk_ += size;
    }
  }
  /// Those on stream 0, and those on the other one.
  std::uint64_t urgent() const { return urgent_; }
  std::uint64_t bulk() const { return bulk_; }
  /// Chunks that wait for the stream of bulk messages have waited long enough.
  bool owes_chunk() const { return since_chunk_ >= kMessagesAhead; }
  void chunk_sent() { since_chunk_ = 0; }

 private:
  unsigned bulk_stream_ = 0;
  std::uint64_t urgent_ = 0, bulk_ = 0;
  std::uint64_t since_chunk_ = 0;
};

class MessagesIn {
 public:
  /// Whether a message may come on `stream`: bulk ones keep the stream of the first.
  bool may_come_on(unsigned stream) const { return stream == 0 || bulk_stream_ == 0 || stream == bulk_stream_; }
  /// Whether all that went on stream 0 before a bulk message is there.
  bool has_urgent(std::uint64_t before) const { return urgent_ >= before; }
  /// Whether so many bulk messages are there.
  bool has_bulk(std::uint64_t count) const { return bulk_ >= count; }
  /// The first bytes of one on `stream` came.
  void begins(unsigned stream) {
    if (stream != 0) bulk_stream_ = stream;
  }
  /// It is there as a whole.
  void came(unsigned stream) { ++(stream == 0 ? urgent_ : bulk_); }

 private:
  unsigned bulk_stream_ = 0;
  std::uint64_t urgent_ = 0, bulk_ = 0;
};

}  // namespace hawser::backend::stream
