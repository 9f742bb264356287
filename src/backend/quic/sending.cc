#include "backend/quic/sending.h"

#include <algorithm>

#include "base/planted.h"

namespace hawser::backend::quic {

using base::Planted;
using base::planted;

Sending::Sending(const Flows& flows, PacketWriter& writer, PacketSender& sender, PacketBatch::Buffer& spare,
                 const ConnectionOptions& options)
    : flows_(flows),
      writer_(writer),
      batch_(sender, spare),
      limit_(options.datagram_max),
      brake_(!options.is_paced),
      datagram_max_(options.datagram_max),
      is_paced_(options.is_paced),
      lend_min_(options.is_lent ? SendQueue::kLendMin : SIZE_MAX) {}

// ---- Datagrams.

PacketWriter::Written Sending::write_one(Flow* flow, std::span<std::byte> room, Instant now) {
  if (flow == nullptr) return writer_.write({}, room, now);
  // As it was when these faults were there: the second shows with the short datagrams that this makes.
  const bool is_short = planted(Planted::kEndEarly) || planted(Planted::kLateCounted);
  const SendParts next = flow->out.unsent(is_short ? 1 : SIZE_MAX);
  const bool is_last = flow->out.ends_with(next) || (flow->out.is_ending() && planted(Planted::kEndEarly));
  const PacketWriter::Written written =
      writer_.write({.stream = flow->id, .parts = {next.parts.data(), next.count}, .is_last = is_last}, room, now);
  if (written.taken >= 0) flow->out.note_sent(static_cast<std::size_t>(written.taken), is_last);
  return written;
}

/// Makes datagrams of what `flow` has (null: of what the connection has to say beside) until something holds it back.
int Sending::pump(Flow* flow, Instant now) {
  std::size_t left = is_paced_ ? std::max(writer_.burst_max(), datagram_max_) : SIZE_MAX;
  while (left > 0 && (flow == nullptr || flow->out.has_unsent())) {
    const std::span<std::byte> room = batch_.room(limit_.bytes(now));
    if (room.empty()) break;
    const PacketWriter::Written written = write_one(flow, room, now);
    if (written.size == NGTCP2_ERR_STREAM_DATA_BLOCKED || written.size == NGTCP2_ERR_STREAM_SHUT_WR ||
        written.size == NGTCP2_ERR_STREAM_NOT_FOUND) {
      break;
    }
    if (written.size < 0) return static_cast<int>(written.size);
    if (written.size == 0) break;
    const auto size = static_cast<std::size_t>(written.size);
    batch_.add(written.route, size);
    if (log_ != nullptr) log_->sent(size);
    left -= std::min(left, size);
  }
  if (is_paced_) writer_.note_burst(now);
  return 0;
}

int Sending::settle(Instant now) {
  for (const bool is_small : {true, false}) {
    for (const auto& flow : flows_) {
      if (!flow->out.has_unsent() || (flow->out.unsent() <= kSmallUnsent) != is_small) continue;
      if (const int error = pump(flow.get(), now); error != 0) return error;
    }
  }
  if (const int error = pump(nullptr, now); error != 0) return error;
  static_cast<void>(batch_.flush());
  return 0;
}

// ---- Bytes of streams.

Sending::Taken Sending::write(Flow& flow, std::span<const iovec> parts, Instant now) {
  Taken taken;
  flow.wants_room = true;
  if (flow.out.unsent() > 0) taken.error = pump(&flow, now);
  std::size_t wanted = 0;
  for (const iovec& part : parts) wanted += part.iov_len;
  std::size_t allowed = brake_.room(wanted, under_way(), now);
  taken.is_held = allowed == 0;
  if (taken.is_held || taken.error != 0) return taken;
  brake_.note_write(wanted, flow.bulk_until, now);
  std::size_t skip = 0;  // So much of the first part is taken.
  while (taken.error == 0 && taken.bytes < wanted && flow.out.unsent() == 0 &&
         flow.out.size() < SendQueue::kUnackedMax) {
    std::size_t room = std::min(allowed, writer_.congestion_left() == 0 ? kSmallUnsent : kTakeAtOnce);
    if (room == 0) break;
    while (!parts.empty() && room > 0) {
      const std::span<const std::byte> rest{static_cast<const std::byte*>(parts[0].iov_base) + skip,
                                            parts[0].iov_len - skip};
      const std::size_t count = std::min(rest.size(), room);
      if (count >= lend_min_) {
        flow.out.lend(rest.first(count));
      } else {
        flow.out.append(rest.first(count));
      }
      room -= count;
      allowed -= count;
      taken.bytes += count;
      skip += count;
      if (skip < parts[0].iov_len) break;
      parts = parts.subspan(1);
      skip = 0;
    }
    taken.error = pump(&flow, now);
  }
  static_cast<void>(batch_.flush());
  if (taken.bytes == wanted) flow.wants_room = false;
  return taken;
}

bool Sending::has_room(const Flow& flow) const {
  return flow.out.unsent() == 0 && flow.out.size() < SendQueue::kUnackedMax && writer_.stream_window_left(flow.id) > 0;
}

void Sending::tell_room() {
  if (batch_.is_blocked() || writer_.congestion_left() == 0 || writer_.window_left() == 0) return;
  for (const auto& flow : flows_) {
    if (!flow->wants_room || !has_room(*flow)) continue;
    flow->wants_room = false;
    flow->is_writable = !planted(Planted::kRoomUntold);
  }
}

// ---- What the peer has.

void Sending::note_acknowledged(std::int64_t stream, std::size_t bytes) {
  for (const auto& flow : flows_) {
    if (flow->id != stream) continue;
    flow->is_released = flow->is_released || flow->out.refers_to_user();
    flow->out.note_acknowledged(bytes);
    flow->watch.note_settled();
  }
}

void Sending::watch(Instant now, Duration timeout) {
  for (const auto& flow : flows_) {
    if (flow->is_awaited()) {
      flow->watch.note_sent(now, timeout);
    } else {
      flow->watch.note_settled();
    }
  }
}

std::optional<Duration> Sending::note_heard(Instant now, Duration timeout) {
  bool is_missed = false;
  Duration waited = Duration::zero();
  for (const auto& flow : flows_) {
    is_missed = flow->watch.note_heard(now, timeout) || is_missed;
    waited = std::max(waited, flow->watch.waited(now));
  }
  if (!is_missed || planted(Planted::kHoleKept)) return std::nullopt;
  limit_.note_missed(now);
  return waited;
}

std::size_t Sending::under_way() const {
  std::size_t bytes = 0;
  for (const auto& flow : flows_) bytes += flow->under_way();
  return bytes;
}

std::size_t Sending::unsent() const {
  std::size_t bytes = 0;
  for (const auto& flow : flows_) bytes += flow->out.unsent();
  return bytes;
}

bool Sending::is_delivered() const {
  return std::ranges::all_of(flows_, [](const auto& flow) { return flow->is_delivered(); });
}

}  // namespace hawser::backend::quic
