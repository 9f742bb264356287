#pragma once

// PathStreams: the streams of one path, and the handshakes of those that are not through yet: first the numbered ones,
// of which stream 0 carries control, then those of links, where they are apart (message_order.h).
//
// Thread rule: confined to the port's lane. Lifetime: the network's streams point to the owners in here, so it does not
// move.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <hawser/time.h>

#include "backend/stream/handshake.h"
#include "backend/stream/machine.h"
#include "backend/stream/machine_landing.h"
#include "backend/stream/stream.h"

namespace hawser::backend::stream {

class StreamPath;

/// What Stream::owner points to: the path and its stream, or, without a path, a connection whose hello is awaited.
struct StreamOwner {
  StreamPath* path = nullptr;
  unsigned index = 0;
  bool readable = false;  ///< May have bytes: to be tried until it would block.
  bool blocked = false;   ///< A send took less than all; cleared when it becomes writable.
  bool hot = false;       ///< Moved bytes lately: tried in every turn, without being reported.
};

/// A stream that moved bytes is tried again in every turn for so long, without waiting to be reported.
inline constexpr Duration kHot = std::chrono::microseconds(200);

class PathStreams {
 public:
  struct Lane {
    bool is_there() const { return shake != nullptr || stream != nullptr; }
    /// Bytes that the stream refers to no more, beside those of the hello.
    std::uint64_t released() const {
      const std::uint64_t total = stream->released();
      return total > said.size() ? total - said.size() : 0;
    }
    void note_progress(std::size_t bytes, Instant now) {
      if (bytes > 0) hot_until = now + kHot;
      owner.hot = now < hot_until;
    }

    std::unique_ptr<Handshake> shake;  ///< Until the hellos are through,
    std::unique_ptr<Stream> stream;    ///< then the stream alone.
    std::string said;                  ///< Our hello, to which the stream may still refer.
    StreamOwner owner;
    std::optional<MachineLanding> landing;  ///< Once the hellos are through; the stream points to it.
    Instant deadline = Instant::max();      ///< By then both hellos must have gone through.
    Instant hot_until = Instant::min();
  };

  explicit PathStreams(StreamPath* path) : path_(path) {}
  PathStreams(const PathStreams&) = delete;
  PathStreams& operator=(const PathStreams&) = delete;

  /// How many numbered streams the session has; at most kStreamsMax.
  unsigned count() const { return count_; }
  void set_count(unsigned count) { count_ = count; }

  Lane& operator[](unsigned stream) {
    return is_link_stream(stream) ? (*link_lanes_)[stream - kStreamsMax] : lanes_[stream];
  }
  const Lane& operator[](unsigned stream) const {
    return is_link_stream(stream) ? (*link_lanes_)[stream - kStreamsMax] : lanes_[stream];
  }
  bool has_links() const { return link_lanes_ != nullptr; }
  bool is_there(unsigned stream) const {
    return is_link_stream(stream) ? has_links() && (*this)[stream].is_there() : lanes_[stream].is_there();
  }
  /// Those of links that were begun. Calls `see(stream, lane)` with each, the most urgent first.
  template <typename See>
  void each_link(See see) {
    if (link_lanes_ == nullptr) return;
    for (unsigned i = 0; i < wire::kLinks; ++i) {
      if (Lane& each = (*link_lanes_)[i]; each.is_there()) see(kStreamsMax + i, each);
    }
  }
  template <typename See>
  void each_link(See see) const {
    if (link_lanes_ == nullptr) return;
    for (unsigned i = 0; i < wire::kLinks; ++i) {
      if (const Lane& each = (*link_lanes_)[i]; each.is_there()) see(kStreamsMax + i, each);
    }
  }

  void adopt(unsigned stream, std::unique_ptr<Handshake> shake, Instant deadline);
  /// The hellos are through.
  void settle(unsigned stream);
  /// From here on its network may put what comes where the machine wants it,
  void land(unsigned stream, Machine& machine);
  /// or, on any of them, not any more.
  void stop_landing();
  /// The error that the machine found in what was put there.
  Status landed(unsigned stream) const;
  void close_all(bool abort);
  /// After close_all, for a question to the peer that has a stream of its own: what its network tells comes here.
  StreamOwner* owner_of_question();

  /// When the first of the hellos beside that of stream 0 has taken too long.
  Instant next_deadline() const;
  /// Nothing can be done on any of them before the network tells of one.
  bool may_sleep(const Machine* machine) const;
  /// Nothing can be heard on those behind stream 0.
  bool hears_nothing(const Machine& machine) const;
  bool is_hot() const;
  /// Of these streams and those of links all is sent.
  bool is_flushed(unsigned control, unsigned bulk) const;

  /// For people.
  std::string describe() const;
  std::string condition() const;

 private:
  using LinkLanes = std::array<Lane, wire::kLinks>;

  static bool may_sleep(const Machine* machine, unsigned stream, const Lane& lane);

  StreamPath* const path_;
  unsigned count_ = 1;
  std::array<Lane, kStreamsMax> lanes_;
  std::unique_ptr<LinkLanes> link_lanes_;  ///< From the first one on.
};

}  // namespace hawser::backend::stream
