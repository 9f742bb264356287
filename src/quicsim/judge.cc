#include "quicsim/judge.h"

#include <fmt/format.h>

#include <algorithm>

namespace hawser::quicsim {
namespace {

std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

double seconds_of(Instant at) { return static_cast<double>(at.ns()) / 1e9; }

bool says(const Status& why, std::string_view part) { return why.to_string().find(part) != std::string::npos; }

}  // namespace

std::byte byte_at(std::size_t connection, std::int64_t stream, Side writer, std::uint64_t at) {
  const std::uint64_t whose =
      (connection * 1024 + static_cast<std::uint64_t>(stream)) * 2 + (writer == Side::kOpener ? 1U : 0U);
  return static_cast<std::byte>(mixed((whose << 40) + at / 8) >> (8 * (at % 8)));
}

void fill(std::size_t connection, std::int64_t stream, Side writer, std::uint64_t at, std::span<std::byte> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = byte_at(connection, stream, writer, at + i);
}

void QuicJudge::fail(std::string_view what) {
  if (failed()) return;
  failure_ = fmt::format("at {:.6f} s, {}", seconds_of(world_.now()), what);
  world_.note("failed", what);
}

std::string QuicJudge::of(std::size_t connection, Side side) const {
  return fmt::format("connection {}, {}", connection, to_string(side));
}

std::uint64_t QuicJudge::streams() const {
  std::uint64_t sum = 0;
  for (const Talk& each : talks_) sum += each.streams.size();
  return sum;
}

void QuicJudge::came_up(std::size_t connection, Side side, const std::array<std::byte, 32>& binding) {
  Talk& talk = talks_[connection];
  if (talk.end(side).is_up) fail(of(connection, side) + ": came up twice");
  talk.end(side).is_up = true;
  talk.end(side).binding = binding;
  const EndBook& other = talk.end(other_of(side));
  if (other.is_up && other.binding != binding) fail(of(connection, side) + ": the two ends know different numbers");
}

void QuicJudge::wrote(std::size_t connection, std::int64_t stream, Side side, std::size_t bytes) {
  half(connection, stream, side).written += bytes;
  bytes_ += bytes;
}

void QuicJudge::read(std::size_t connection, std::int64_t stream, Side side, std::span<const std::byte> bytes) {
  HalfBook& own = half(connection, stream, side);
  const HalfBook& other = half(connection, stream, other_of(side));
  if (own.was_told_end && !bytes.empty())
    fail(fmt::format("{}: stream {} goes on after its end", of(connection, side), stream));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == byte_at(connection, stream, other_of(side), own.read + i)) continue;
    return fail(fmt::format("{}: stream {} brought another byte at {}", of(connection, side), stream, own.read + i));
  }
  own.read += bytes.size();
  if (own.read > other.written) {
    fail(fmt::format("{}: stream {} brought {} bytes, and {} were written", of(connection, side), stream, own.read,
                     other.written));
  }
}

void QuicJudge::told_end(std::size_t connection, std::int64_t stream, Side side) {
  HalfBook& own = half(connection, stream, side);
  const HalfBook& other = half(connection, stream, other_of(side));
  own.was_told_end = true;
  if (other.parting != Parting::kOrderly) {
    fail(fmt::format("{}: stream {} ended, and its writer did not end it", of(connection, side), stream));
  } else if (own.read != other.written) {
    fail(
        fmt::format("{}: stream {} ended after {} bytes of {}", of(connection, side), stream, own.read, other.written));
  }
}

void QuicJudge::told_reset(std::size_t connection, std::int64_t stream, Side side, const Status& why) {
  Talk& talk = talks_[connection];
  HalfBook& own = half(connection, stream, side);
  const HalfBook& other = half(connection, stream, other_of(side));
  own.was_told_reset = true;
  if (!talk.end(side).has_ended) {
    if (other.parting != Parting::kAborted) {
      fail(fmt::format("{}: stream {} was reset, and its writer did not abort it", of(connection, side), stream));
    }
    return;
  }
  // What a writer said before it closed in order is there, whatever the reader was told after it.
  const EndBook& far = talk.end(other_of(side));
  if (why.code() == Code::kOk) fail(of(connection, side) + ": a reset without a reason");
  if (far.is_clean && talk.end(side).closed == Parting::kNone && says(why, "the peer has closed") &&
      other.parting == Parting::kOrderly && own.read != other.written) {
    fail(fmt::format("{}: stream {} brought {} bytes of {} before the peer closed in order", of(connection, side),
                     stream, own.read, other.written));
  }
}

bool QuicJudge::is_troubled(const Talk& talk, Instant since) {
  return std::ranges::any_of(
      talk.ends, [since](const EndBook& end) { return end.lost >= since || end.stopped >= since || end.is_gone; });
}

/// Connections of a host share its cable.
bool QuicJudge::may_queue_for(Duration time) const {
  const auto all = static_cast<double>(settings_.connections * settings_.streams * settings_.bytes);
  const auto is_busy = [&](const Weather& weather) {
    return weather.bytes_per_ns > 0 && all / weather.bytes_per_ns >= static_cast<double>(time.count());
  };
  return is_busy(settings_.up) || is_busy(settings_.down);
}

void QuicJudge::ended_idle(std::size_t connection, Side side) {
  const Talk& talk = talks_[connection];
  const EndBook& end = talk.end(side);
  const Duration silence = world_.now() - end.heard;
  // An opener that missed the acceptor's part of the handshake has no keys to read what comes.
  const Instant since = end.is_up ? end.heard : std::min(end.heard, world_.now() - settings_.options.idle_timeout);
  // Not to the ms: a datagram that came late or twice may have been of no use.
  if (end.is_up && silence < settings_.options.idle_timeout * 7 / 8) {
    return fail(fmt::format("{}: ended as idle, and it heard something {} ms ago", of(connection, side),
                            silence.count() / 1'000'000));
  }
  // An opener that does not know that the handshake is confirmed asks with packets that its peer cannot read any more.
  if (talk.end(Side::kAcceptor).late >= end.heard) return;
  if (is_troubled(talk, since) || talk.is_over(other_of(side))) return;
  const std::string work = has_work(connection);
  if (!work.empty()) fail(fmt::format("{}: ended as idle with nothing in its way: {}", of(connection, side), work));
}

void QuicJudge::ended(std::size_t connection, Side side, const Status& why, bool was_up) {
  check_why(connection, side, why, was_up);
  talks_[connection].end(side).has_ended = true;
}

void QuicJudge::check_why(std::size_t connection, Side side, const Status& why, bool was_up) {
  const Talk& talk = talks_[connection];
  const EndBook& far = talk.end(other_of(side));
  const EndBook& own = talk.end(side);
  if (own.is_gone || own.closed != Parting::kNone) return;
  const auto must = [&](bool holds, std::string_view what) {
    if (!holds) fail(fmt::format("{}: ended ({}), {}", of(connection, side), why.to_string(), what));
  };
  if (why.ok()) return must(far.closed == Parting::kOrderly, "and the peer did not close it");
  if (why.code() == Code::kTimedOut) {
    must(!was_up, "though the handshake was through");
    // A Retry holds for the address that asked: who has another since is not let in (RFC 9000, section 8.1.3).
    const bool is_troubled_now = is_troubled(talk, world_.now() - settings_.options.handshake_timeout);
    const bool is_held_up = is_troubled_now || may_queue_for(settings_.options.handshake_timeout / 2);
    return must(is_held_up || talk.has_moved || talk.is_over(other_of(side)), "though nothing was in its way");
  }
  must(why.code() == Code::kDisconnected, "which is no end of a connection");
  if (says(why, "has aborted")) return must(far.closed == Parting::kAborted, "and the peer did not abort it");
  if (says(why, "idle timeout")) return ended_idle(connection, side);
  if (says(why, "new address") || says(why, "error 0x10 ")) {
    return must(talk.has_moved && is_troubled(talk, world_.now() - settings_.options.idle_timeout),
                "and nobody has moved");
  }
  if (says(why, "stands still")) {
    const bool is_troubled_now = is_troubled(talk, world_.now() - settings_.options.idle_timeout);
    return must(talk.has_moved || is_troubled_now, "though nothing was in its way");
  }
  // What an acceptor says in the handshake is of no stream and no user (RFC 9000, section 10.2.3).
  if (says(why, "error 0xc ")) return must(far.closed != Parting::kNone, "and the peer did not close it");
  if (says(why, "does not know")) return must(talk.is_over(other_of(side)), "and the peer knows it well");
  must(false, "for no reason that there is");
}

std::string QuicJudge::stream_work(std::int64_t id, const StreamBook& stream, Side writer) const {
  const HalfBook& from = stream[static_cast<std::size_t>(writer)];
  const HalfBook& to = stream[static_cast<std::size_t>(other_of(writer))];
  const bool is_given_up = from.parting == Parting::kAborted || to.parting == Parting::kAborted || from.was_told_reset;
  const auto waits = [&](std::string_view what) {
    return fmt::format("stream {} from the {}: {} of {} bytes written, {} read, {}", id, to_string(writer),
                       from.written, from.planned, to.read, what);
  };
  const bool is_read_past = to.parting != Parting::kNone;
  if (is_given_up) {
    const bool is_told = to.parting != Parting::kNone || to.was_told_reset || to.was_told_end || to.is_stuck;
    return from.parting == Parting::kAborted && !is_told && to.is_open ? waits("the reader is not told of its abort")
                                                                       : std::string();
  }
  if (!is_read_past && to.is_stuck) return {};
  if (from.is_open && from.parting == Parting::kNone && from.written < from.planned) return waits("the writer waits");
  if (is_read_past || to.was_told_end || to.was_told_reset) return {};
  if (to.read < from.written) return waits("the reader waits");
  if (from.parting == Parting::kOrderly) return waits("the reader waits for the end");
  return {};
}

std::string QuicJudge::has_work(std::size_t connection) const {
  const Talk& talk = talks_[connection];
  if (talk.is_over(Side::kOpener) || talk.is_over(Side::kAcceptor)) return {};
  if (!talk.end(Side::kOpener).is_up) return "the handshake is not through";
  // Where little may be unread, one stream that is not read may fill the window of all.
  const bool is_held = settings_.is_tight && std::ranges::any_of(talk.streams, [](const auto& each) {
                         return each.second[0].is_stuck || each.second[1].is_stuck;
                       });
  if (is_held) return {};
  for (const auto& [id, stream] : talk.streams) {
    for (const Side writer : {Side::kOpener, Side::kAcceptor}) {
      std::string work = stream_work(id, stream, writer);
      if (!work.empty()) return work;
    }
  }
  return {};
}

bool QuicJudge::is_settled() const { return unsettled().empty(); }

std::string QuicJudge::unsettled() const {
  for (std::size_t i = 0; i < talks_.size(); ++i) {
    const Talk& talk = talks_[i];
    std::string work = has_work(i);
    const bool is_opener_over = talk.is_over(Side::kOpener);
    const EndBook& acceptor = talk.end(Side::kAcceptor);
    const bool is_acceptor_over = talk.is_over(Side::kAcceptor) || !acceptor.is_up;
    if (work.empty() && is_opener_over != is_acceptor_over) {
      work = fmt::format("the {} is over, and the other end goes on", is_opener_over ? "opener" : "acceptor");
    }
    if (!work.empty()) return fmt::format("connection {}: {}", i, work);
  }
  return {};
}

}  // namespace hawser::quicsim
