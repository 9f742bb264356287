#include "quicsim/stream_end.h"

#include <algorithm>
#include <array>
#include <vector>

#include "quicsim/host.h"

namespace hawser::quicsim {
namespace {

using std::chrono::microseconds;

constexpr std::size_t kPieceMax = 300'000;
constexpr std::size_t kSipMax = 20'000;
constexpr std::size_t kPartsMax = 3;

/// `bytes` in up to three parts.
struct Parts {
  std::array<iovec, kPartsMax> all;
  std::size_t count = 0;
  Parts(std::span<std::byte> bytes, base::Rng& rng) {
    while (!bytes.empty()) {
      const bool is_last = count + 1 == kPartsMax || rng.chance(0.6);
      const std::size_t size = is_last ? bytes.size() : 1 + rng.below(bytes.size());
      all[count++] = {.iov_base = bytes.data(), .iov_len = size};
      bytes = bytes.subspan(size);
    }
  }
  std::span<const iovec> span() const { return std::span(all).first(count); }
};

std::uint64_t planned(const Line& line, std::int64_t id, Side side) {
  return plan_of(line.host().settings(), line.number(), id, side == Side::kOpener).bytes;
}

}  // namespace

StreamEnd::StreamEnd(Line& line, backend::quic::Flow& flow, std::uint64_t seed)
    : line_(line),
      flow_(&flow),
      id_(flow.id),
      rng_(seed),
      plan_(plan_of(line.host().settings(), line.number(), flow.id, line.side() == Side::kOpener)),
      expected_(planned(line, flow.id, other_of(line.side()))),
      began_(line.host().world().now()) {
  flow.user = this;
  book().is_open = true;
  book().planned = plan_.bytes;
  book().is_stuck = plan_.reading == Plan::Reading::kStuck;
  line.host().world().note("open", line.name(), static_cast<std::uint64_t>(id_), plan_.bytes);
}

HalfBook& StreamEnd::book() const { return line_.host().judge().half(line_.number(), id_, line_.side()); }

void StreamEnd::tell(bool is_readable, bool is_writable) {
  may_read_ = may_read_ || is_readable;
  may_write_ = may_write_ || is_writable;
}

void StreamEnd::calm() {
  if (!plan_.is_stuck_for_good) book().is_stuck = false;
}

void StreamEnd::look(Instant now) {
  next_at_ = Instant::max();
  if (flow_ != nullptr) take_back(line_.connection().released(*flow_));
  if (flow_ != nullptr) read_some(now);
  if (flow_ != nullptr) write_some(now);
  if (flow_ != nullptr) leave_if_done(now);
}

void StreamEnd::read_some(Instant now) {
  while (may_read_ && !book().is_stuck) {
    if (now < read_at_) return wait_until(read_at_);
    if (!read_once(now)) may_read_ = false;
    if (plan_.reading == Plan::Reading::kSlow) read_at_ = now + microseconds(rng_.range(1, 2000));
  }
}

bool StreamEnd::read_once(Instant) {
  std::array<std::byte, kSipMax> room;
  const std::span<std::byte> bytes = std::span(room).first(1 + rng_.below(room.size()));
  const std::size_t count = line_.connection().read(*flow_, Parts(bytes, rng_).span());
  line_.host().judge().read(line_.number(), id_, line_.side(), bytes.first(count));
  if (count > 0) line_.host().world().note("read", line_.name(), static_cast<std::uint64_t>(id_), count);
  if (count == 0 && flow_->in.empty()) see_end();
  return count > 0;
}

std::size_t StreamEnd::take(std::span<const std::byte> bytes) {
  const bool may_take = line_.host().settings().is_placed && plan_.reading == Plan::Reading::kEager;
  if (!may_take || bytes.empty() || rng_.chance(0.3)) return 0;
  const std::size_t count = rng_.chance(0.5) ? bytes.size() : rng_.below(bytes.size());
  line_.host().judge().read(line_.number(), id_, line_.side(), bytes.first(count));
  line_.host().world().note("take", line_.name(), static_cast<std::uint64_t>(id_), count);
  return count;
}

/// As a QuicStream does, once all bytes are read.
void StreamEnd::see_end() {
  if (book().was_told_end || book().was_told_reset) return;
  if (!flow_->reset.ok()) {
    line_.host().world().note("reset", line_.name(), static_cast<std::uint64_t>(id_));
    line_.host().judge().told_reset(line_.number(), id_, line_.side(), flow_->reset);
  } else if (flow_->has_ended) {
    line_.host().world().note("end", line_.name(), static_cast<std::uint64_t>(id_));
    line_.host().judge().told_end(line_.number(), id_, line_.side());
  }
}

void StreamEnd::write_some(Instant now) {
  while (may_write_ && flow_->reset.ok() && book().written < plan_.bytes) {
    if (now < write_at_) return wait_until(write_at_);
    if (piece_left_ == 0) {
      const std::uint64_t most = rng_.chance(0.5) ? 200 : kPieceMax;
      piece_left_ = std::min(1 + rng_.below(most), plan_.bytes - book().written);
    }
    std::vector<std::byte> bytes(piece_left_);
    fill(line_.number(), id_, line_.side(), book().written, bytes);
    const std::uint64_t before = book().written;
    // The judge knows of it before the peer can have it.
    line_.host().judge().wrote(line_.number(), id_, line_.side(), bytes.size());
    const std::size_t count = line_.connection().write(*flow_, Parts(bytes, rng_).span(), now);
    book().written = before + count;
    line_.host().world().note("write", line_.name(), static_cast<std::uint64_t>(id_), count);
    piece_left_ -= count;
    if (line_.host().settings().options.is_lent && count > 0) {
      lent_.push_back({std::move(bytes), book().written});
      take_back(line_.connection().released(*flow_));
    }
    if (piece_left_ > 0) may_write_ = false;
    if (piece_left_ == 0 && rng_.chance(0.1)) write_at_ = now + microseconds(rng_.range(1, 5000));
  }
}

bool StreamEnd::has_lent() const {
  return flow_ != nullptr && line_.connection().released(*flow_) < flow_->out.given();
}

/// Another use of released memory changes it. It stays allocated, so that who reads it still reads wrong bytes.
void StreamEnd::take_back(std::uint64_t released) {
  while (!lent_.empty() && lent_.front().end <= released) {
    for (std::byte& byte : lent_.front().bytes) byte = ~byte;
    taken_back_.push_back(std::move(lent_.front().bytes));
    lent_.pop_front();
  }
}

void StreamEnd::leave_if_done(Instant now) {
  const HalfBook& own = book();
  const bool has_written = own.written == plan_.bytes;
  if (own.was_told_reset) return leave(rng_.chance(0.5), now);
  if (own.was_told_end && has_written) return leave(false, now);
  switch (plan_.leaving) {
    case Plan::Leaving::kAfterAll:
      if (has_written && own.read == expected_) leave(false, now);
      return;
    case Plan::Leaving::kAtOnce:
      if (has_written) leave(false, now);
      return;
    case Plan::Leaving::kAborts:
      if (now >= began_ + plan_.abort_after) return leave(true, now);
      return wait_until(began_ + plan_.abort_after);
    case Plan::Leaving::kStays:
      return;
  }
}

/// An end that has lent bytes leaves in order only once they are released, as a path does. If it aborts before, the
/// connection ends.
void StreamEnd::leave(bool abort, Instant now) {
  if (has_lent() && !abort) return;
  if (has_lent()) line_.note_close(abort, false);
  book().parting = abort ? Parting::kAborted : Parting::kOrderly;
  line_.host().world().note("leave", line_.name(), static_cast<std::uint64_t>(id_), abort ? 1 : 0);
  line_.connection().leave(*std::exchange(flow_, nullptr), abort, now);
  take_back(UINT64_MAX);
  line_.left(abort, now);
}

}  // namespace hawser::quicsim
