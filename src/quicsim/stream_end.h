#pragma once

// StreamEnd: the user of one end of a stream. It writes and reads as its plan says, only when it was told that there is
// something to do, and leaves.
//
// Thread rule: one thread. Lifetime: its line's; the flow goes once it has left.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "quicsim/judge.h"

namespace hawser::quicsim {

class Line;

class StreamEnd {
 public:
  StreamEnd(Line& line, backend::quic::Flow& flow, std::uint64_t seed);
  StreamEnd(const StreamEnd&) = delete;
  StreamEnd& operator=(const StreamEnd&) = delete;

  void tell(bool is_readable, bool is_writable);
  /// Bytes that came just now: takes some of them, or none.
  std::size_t take(std::span<const std::byte> bytes);
  /// Does what it can do now.
  void look(Instant now);
  /// When it wants to look by itself.
  Instant next_at() const { return flow_ == nullptr ? Instant::max() : next_at_; }
  bool has_left() const { return flow_ == nullptr; }
  /// Readers that do not read go on, but for those that never do.
  void calm();
  /// The flow is no more.
  void forget() { flow_ = nullptr; }
  /// Its connection refers to bytes that were lent.
  bool has_lent() const;
  bool is_held_up() const { return flow_ != nullptr && book().is_stuck && !flow_->in.empty(); }

 private:
  HalfBook& book() const;
  void read_some(Instant now);
  bool read_once(Instant now);
  void see_end();
  void write_some(Instant now);
  void take_back(std::uint64_t released);
  void leave_if_done(Instant now);
  void leave(bool abort, Instant now);
  void wait_until(Instant at) { next_at_ = std::min(next_at_, at); }

  Line& line_;
  backend::quic::Flow* flow_;
  const std::int64_t id_;
  base::Rng rng_;
  const Plan plan_;
  const std::uint64_t expected_;
  Instant began_;
  Instant next_at_ = Instant::max(), read_at_ = Instant::min(), write_at_ = Instant::min();
  std::uint64_t piece_left_ = 0;
  /// What was given to write, up to that place of the stream. Others may use the memory once it is released.
  struct Lent {
    std::vector<std::byte> bytes;
    std::uint64_t end = 0;
  };
  std::deque<Lent> lent_;
  std::vector<std::vector<std::byte>> taken_back_;
  bool may_read_ = true, may_write_ = true;
};

}  // namespace hawser::quicsim
