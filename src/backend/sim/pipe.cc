#include "backend/sim/pipe.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hawser::sim {

using backend::stream::Moved;

std::size_t Pipe::shorten(std::size_t size) {
  if (size < 2 || options_.short_chance <= 0 || !world_.rng().chance(options_.short_chance)) return size;
  return 1 + static_cast<std::size_t>(world_.rng().below(size - 1));
}

Moved Pipe::send(std::span<const iovec> parts) {
  if (sender_failed_) return {0, true, sender_status_};
  if (finished_) {
    return {0, true, Status(Code::kDisconnected, "this way of the stream was shut")};
  }
  const std::uint64_t in_use = sent_ - consumed_;
  std::size_t room = in_use < options_.capacity_bytes ? options_.capacity_bytes - in_use : 0;
  if (room == 0) return {};
  world_.count_send(from_);
  const std::size_t all_room = room;
  room = shorten(room);
  std::size_t taken = 0;
  Segment segment;
  for (const iovec& part : parts) {
    std::size_t at = 0;
    while (at < part.iov_len && taken < room) {
      const std::size_t size = std::min({part.iov_len - at, room - taken, options_.segment_bytes - segment.size});
      segment.parts.push_back({static_cast<std::byte*>(part.iov_base) + at, size});
      segment.size += size;
      at += size;
      taken += size;
      if (segment.size == options_.segment_bytes) push(std::exchange(segment, {}));
    }
  }
  if (segment.size > 0) push(std::move(segment));
  // A send that was cut short though there is room must not look like a full window to who trusts edges.
  if (taken == room && room < all_room && on_writable) on_writable();
  return {taken, false, {}};
}

void Pipe::push(Segment segment) {
  sent_ += segment.size;
  if (!options_.by_reference) {
    for (const iovec& part : segment.parts) {
      const auto* from = static_cast<const std::byte*>(part.iov_base);
      segment.bytes.insert(segment.bytes.end(), from, from + part.iov_len);
    }
    segment.parts.clear();
    released_ = sent_;
  }
  // Jitter and loss may delay a segment, and then all behind it: a stream never reorders.
  last_arrival_ = std::max(last_arrival_, fabric_.arrival(from_, to_, segment.size));
  segment.arrival = last_arrival_;
  on_way_.push_back(std::move(segment));
  fabric_.deliver(from_, to_, last_arrival_, [self = shared_from_this()] { self->arrive(); });
}

void Pipe::take(const Segment& segment) {
  for (const iovec& part : segment.parts) {
    const auto* from = static_cast<const std::byte*>(part.iov_base);
    arrived_bytes_.insert(arrived_bytes_.end(), from, from + part.iov_len);
  }
  arrived_bytes_.insert(arrived_bytes_.end(), segment.bytes.begin(), segment.bytes.end());
  arrived_ += segment.size;
  end_arrived_ = end_arrived_ || segment.last;
}

void Pipe::arrive() {
  if (on_way_.empty() || held_) return;  // It failed meanwhile.
  if (blackhole_) {
    if (on_lost) on_lost();
    return;
  }
  // Its sender does not know of the reset yet. What was on its way before is lost, so nothing behind it counts.
  if (receiver_failed_) return on_way_.pop_front();
  take(on_way_.front());
  on_way_.pop_front();
  if (on_readable) on_readable();
  if (!options_.by_reference) return;
  fabric_.deliver(to_, from_, fabric_.arrival_small(to_, from_), [self = shared_from_this(), arrived = arrived_] {
    self->released_ = std::max(self->released_, arrived);
    if (self->on_writable) self->on_writable();
  });
}

Moved Pipe::receive(std::span<const iovec> parts) {
  const std::size_t there = arrived_bytes_.size() - read_at_;
  if (there == 0) {
    if (receiver_failed_) return {0, true, receiver_status_};
    if (end_arrived_) return {0, true, {}};
    return {};
  }
  const std::size_t most = shorten(there);
  std::size_t done = 0;
  for (const iovec& part : parts) {
    const std::size_t size = std::min(part.iov_len, most - done);
    if (size == 0) continue;
    std::memcpy(part.iov_base, arrived_bytes_.data() + read_at_, size);
    read_at_ += size;
    done += size;
  }
  note_read(done);
  // The pipe tells again of what is left: a reader that trusts edges would take a short read for an empty stream.
  if (done < there && on_readable) on_readable();
  return {done, false, {}};
}

std::size_t Pipe::place(backend::stream::Landing& landing) {
  if (!has_unread()) return 0;
  const std::size_t done = landing.place(std::span(arrived_bytes_).subspan(read_at_));
  read_at_ += done;
  if (done > 0) note_read(done);
  return done;
}

void Pipe::note_read(std::size_t bytes) {
  read_ += bytes;
  if (read_at_ == arrived_bytes_.size() || read_at_ > 1024 * 1024) {
    arrived_bytes_.erase(arrived_bytes_.begin(), arrived_bytes_.begin() + static_cast<std::ptrdiff_t>(read_at_));
    read_at_ = 0;
  }
  fabric_.deliver(to_, from_, fabric_.arrival_small(to_, from_), [self = shared_from_this(), read = read_] {
    self->consumed_ = std::max(self->consumed_, read);
    if (self->on_writable) self->on_writable();
  });
}

void Pipe::finish() {
  if (finished_ || sender_failed_) return;
  finished_ = true;
  Segment segment;
  segment.last = true;
  push(std::move(segment));
  if (on_writable) on_writable();
}

void Pipe::detach() {
  for (Segment& segment : on_way_) {
    for (const iovec& part : segment.parts) {
      const auto* from = static_cast<const std::byte*>(part.iov_base);
      segment.bytes.insert(segment.bytes.end(), from, from + part.iov_len);
    }
    segment.parts.clear();
  }
}

void Pipe::fail_sender(const Status& why) {
  if (sender_failed_) return;
  sender_failed_ = true;
  sender_status_ = why;
  on_way_.clear();
  if (on_writable) on_writable();
}

void Pipe::strand(const Status& why) {
  if (sender_failed_) return;
  detach();  // Its memory is given back.
  sender_failed_ = true;
  sender_status_ = why;
  if (on_writable) on_writable();
}

void Pipe::let_go() {
  held_ = false;
  while (!on_way_.empty() && !blackhole_ && !receiver_failed_) {
    take(on_way_.front());
    on_way_.pop_front();
  }
  if (on_readable) on_readable();
}

void Pipe::fail_receiver(const Status& why, bool drop_arrived) {
  if (receiver_failed_) return;
  receiver_failed_ = true;
  receiver_status_ = why;
  on_way_.clear();
  if (drop_arrived) {
    arrived_bytes_.clear();
    read_at_ = 0;
  }
  if (on_readable) on_readable();
}

}  // namespace hawser::sim
