// A path at work: bytes in bounded steps, stream 0 first.

#include <algorithm>
#include <utility>

#include "backend/stream/path.h"
#include "base/bytes.h"
#include "base/format.h"
#include "base/planted.h"
#include "base/shown.h"

namespace hawser::backend::stream {
namespace {

/// A stream that moved bytes is tried again in every turn for so long, without waiting to be reported.
constexpr Duration kHot = std::chrono::microseconds(200);
/// How long messages may come after the goodbye that they were sent before, and how often each turn reads.
constexpr Duration kHearPatience = std::chrono::milliseconds(500);
constexpr int kHearSteps = 4;
/// Turns after which acknowledgements stop waiting for company.
constexpr unsigned kAckTurns = 8;

std::uint64_t sum(std::span<const iovec> parts) {
  std::uint64_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

}  // namespace

std::size_t StreamPath::turn(Instant now, Share& share) {
  switch (phase_) {
    case Phase::kOpening:
      return turn_opening(now);
    case Phase::kUp:
      return turn_up(now, share);
    case Phase::kHearing:
      return turn_hearing(now);
    case Phase::kAsking:
      return turn_asking(now);
    case Phase::kClosing:
      return turn_closing(now);
    case Phase::kDown:
      break;
  }
  return 0;
}

std::size_t StreamPath::turn_up(Instant now, Share& share) {
  heard_ = spoken_ = false;
  if (Status status = machine_->begin_turn(); !status.ok()) {
    go_down(status);
    return 1;
  }
  std::size_t work = move_control(now, share);
  for (unsigned index = 1; index < streams_ && phase_ == Phase::kUp; ++index) {
    if (lanes_[index].shake != nullptr) turn_shake(index, now);
  }
  if (phase_ == Phase::kUp && has_streams_to_open()) open_link_streams(now);
  if (phase_ == Phase::kUp && link_lanes_ != nullptr) work += move_links(now, share, true);
  if (phase_ != Phase::kUp) return work + 1;
  const bool small = machine_->take_small();
  if (small) shared_.pace.note_small(now);
  // What a small operation brought is answered first; but not for ever.
  skipped_bulk_ = small && !shared_.events.empty() && !skipped_bulk_;
  if (!skipped_bulk_) work += move_bulk(now, share);
  if (!skipped_bulk_ && phase_ == Phase::kUp && link_lanes_ != nullptr) work += move_links(now, share, false);
  if (phase_ == Phase::kUp && machine_->has_news()) answer_news(now);
  if (phase_ == Phase::kUp && machine_->awaits_words()) begin_hearing();
  if (phase_ == Phase::kUp && is_held_) watch_opener(now);
  if (phase_ == Phase::kUp && now >= identity_.next()) watch_identity(now);
  if (phase_ == Phase::kUp) watch_peer(now);
  if (phase_ == Phase::kUp) watch_memory(now);
  return work;
}

std::size_t StreamPath::move_control(Instant now, Share& share) {
  const std::uint64_t step = streams_ == 1 ? std::min(share.step, kControlStep) : kControlStep;
  if (machine_->has_acks() && ++ack_turns_ >= kAckTurns) machine_->flush();
  const std::size_t sent = send_on(0, step);
  if (phase_ != Phase::kUp) return sent;
  const std::size_t got = receive_on(0, step);
  note_progress(0, sent + got, now);
  if (phase_ != Phase::kUp || got > 0) return sent + got;
  std::size_t acked = 0;
  if (machine_->has_acks()) {  // Nothing else to do: acknowledgements go out alone.
    machine_->flush();
    acked = send_on(0, step);
  }
  return sent + acked;
}

/// Urgent links move as much as stream 0 may, those of bulk have their part in the share of it.
std::size_t StreamPath::move_links(Instant now, Share& share, bool is_urgent) {
  std::size_t work = 0;
  each_link_lane([&](unsigned stream, Lane& lane) {
    if ((link_of(stream).priority() != Priority::kBulk) != is_urgent || phase_ != Phase::kUp) return;
    if (lane.shake != nullptr) return turn_shake(stream, now);
    const std::uint64_t step = is_urgent ? kControlStep : std::min(share.step, share.left);
    if (step == 0) return;
    std::size_t moved = send_on(stream, step);
    if (phase_ == Phase::kUp) moved += receive_on(stream, step);
    if (!is_urgent) share.left -= std::min<std::uint64_t>(share.left, moved);
    note_progress(stream, moved, now);
    work += moved;
  });
  return work;
}

std::size_t StreamPath::move_bulk(Instant now, Share& share) {
  std::size_t work = 0;
  for (unsigned i = 1; i < streams_ && phase_ == Phase::kUp && share.left > 0; ++i) {
    const unsigned index = 1 + (next_bulk_ + i) % (streams_ - 1);
    if (lanes_[index].stream == nullptr) continue;
    std::size_t moved = send_on(index, std::min(share.step, share.left));
    if (phase_ == Phase::kUp) moved += receive_on(index, std::min(share.step, share.left));
    share.left -= std::min<std::uint64_t>(share.left, moved);
    note_progress(index, moved, now);
    work += moved;
  }
  ++next_bulk_;
  return work;
}

void StreamPath::note_progress(unsigned index, std::size_t bytes, Instant now) {
  Lane& its = lane(index);
  if (bytes > 0) its.hot_until = now + kHot;
  its.owner.hot = now < its.hot_until;
}

std::size_t StreamPath::send_on(unsigned index, std::uint64_t bytes_max) {
  Lane& lane = this->lane(index);
  if (machine_->has_unreleased(index)) machine_->sent(index, 0, lane.released());
  if (lane.owner.blocked && !lane.owner.hot) return 0;
  if (!machine_->fill(index, bytes_max)) return 0;
  // Room for heads beyond the limit, so that a chunk of just that size goes in one call.
  const std::size_t count = machine_->gather(index, shared_.parts, bytes_max + kFrameRoom);
  const std::span<const iovec> parts(shared_.parts.data(), count);
  const Moved moved = lane.stream->send(parts);
  shared_.watch.count(moved.bytes);
  if (moved.closed) {
    lose(index, ended(moved, *lane.stream));
    return 1;
  }
  lane.owner.blocked = moved.bytes < sum(parts);
  machine_->sent(index, moved.bytes, lane.released());
  spoken_ = spoken_ || moved.bytes > 0;
  if (index == 0 && moved.bytes > 0) ack_turns_ = 0;
  return moved.bytes;
}

std::size_t StreamPath::receive_on(unsigned index, std::uint64_t bytes_max) {
  Lane& lane = this->lane(index);
  if (!(lane.owner.readable || lane.owner.hot) || !machine_->wants(index)) return 0;
  const std::size_t count = machine_->landing(index, shared_.parts, bytes_max);
  const Moved moved = lane.stream->receive({shared_.parts.data(), count});
  shared_.watch.count(moved.bytes);
  if (moved.closed) {
    lose(index, ended(moved, *lane.stream));
    return 1;
  }
  lane.owner.readable = moved.bytes > 0;
  if (moved.bytes == 0) return 0;
  heard_ = true;
  if (Status status = machine_->received(index, moved.bytes); !status.ok()) go_down(status);
  return moved.bytes;
}

void StreamPath::answer_news(Instant now) {
  const ControlNews news = machine_->take_news();
  if (news.ping) static_cast<void>(machine_->pong(news.ping_nonce));
  if (news.pong) static_cast<void>(detector_->on_pong(news.pong_nonce, now));
  if (news.renewal) take_identity(news.identity);
  if (news.bye && phase_ == Phase::kUp) take_goodbye(*news.bye);
}

// A path lasts as long as its peer's certificate. What the peer did before stays valid.
void StreamPath::watch_identity(Instant now) {
  if (Status status = identity_.turn(now, name_); !status.ok()) {
    HAWSER_LOG(shared_.context.log, kWarn, "{}: the path to {} ends: {}", shared_.options.backend, name_,
               status.to_string());
    machine_->bye(Code::kOk, "its identity does not hold any more");
    static_cast<void>(send_last_words());
    go_down(status.with_scope(Scope::kPath).with_peer(name_), false);
    return;
  }
  const std::optional<std::string> renewal = identity_.renewal();
  if (!renewal || !machine_->tell_identity(base::as_bytes(*renewal))) return;  // Without room: at the next look.
  identity_.note_told();
  static_cast<void>(send_on(0, kControlStep));
}

void StreamPath::take_identity(const std::string& proof) {
  if (Status status = identity_.renewed(base::as_bytes(proof), name_); !status.ok()) {
    go_down(status.with_scope(Scope::kPath).with_peer(name_));
    return;
  }
  HAWSER_LOG(shared_.context.log, kInfo, "{}: {} renewed its certificate: {}", shared_.options.backend, name_,
             identity_.describe());
}

void StreamPath::take_goodbye(const wire::PathBye& bye) {
  // An agent that closes is gone; one that only drops this path is not.
  const Scope scope = bye.code == Code::kOk ? Scope::kPath : Scope::kPeer;
  go_down(Status(Code::kDisconnected, base::format("{} said goodbye: {}", name_, base::shown(bye.reason)))
              .with_scope(scope)
              .with_peer(name_));
}

// A hello, and even a proof, costs nothing: whoever does not go on gives its place and its descriptors back. Nobody was
// told of it, so no peer is blamed.
void StreamPath::watch_opener(Instant now) {
  is_held_ = shared_.events.is_held(this);
  if (!is_held_) {
    deadline_ = Instant::max();
    shared_.lobby.leave(this);
  } else if (now >= deadline_) {
    go_down(lost(Status(Code::kTimedOut, "it said nothing after its hello")));
  }
}

void StreamPath::watch_peer(Instant now) {
  detector_->set_busy(awaited_ || machine_->busy(), now);
  if (heard_) {
    last_heard_ = now;
    if (detector_->on_heard(now) && std::exchange(is_silent_, false)) shared_.events.path_heard(this);
  }
  show_life(now);
  const proto::DetectorAction action = detector_->poll(now);
  if (action.kind == proto::DetectorAction::Kind::kNone) return;
  const bool ends = action.kind == proto::DetectorAction::Kind::kSuspect && base::planted(base::Planted::kSilenceEnds);
  if (action.kind == proto::DetectorAction::Kind::kFailed || ends) {
    go_down(silence(action.silent).with_scope(Scope::kPeer));
    return;
  }
  // What waits to be sent asks as well, and more questions would only pile up behind it.
  if (!detector_->suspect() || !machine_->has_unsent(0)) static_cast<void>(machine_->ping(action.nonce));
  static_cast<void>(send_on(0, kControlStep));
  if (phase_ != Phase::kUp || action.kind != proto::DetectorAction::Kind::kSuspect || is_held_) return;
  is_silent_ = true;
  shared_.events.path_silent(this, silence(action.silent).with_scope(Scope::kPath));
}

/// No proof of death, and so no kDisconnected.
Status StreamPath::silence(Duration time) const {
  const auto silent_ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  return Status(Code::kTimedOut, base::format("{} has been silent for {} ms", name_, silent_ms))
      .with_peer(name_)
      .with_advice(
          "its process is stopped or overloaded, or the network to it is cut; AgentOptions::peer_timeout of "
          "this agent says how long silence may last");
}

// The answer to no ping. What waits to be sent is a sign, too, and this one would only wait behind it.
void StreamPath::show_life(Instant now) {
  if (spoken_ || machine_->has_unsent(0)) return sign_of_life_->on_spoken(now);
  if (!heard_ || !sign_of_life_->on_heard(now)) return;
  static_cast<void>(machine_->pong(0));
  static_cast<void>(send_on(0, kControlStep));
}

void StreamPath::watch_memory(Instant now) {
  if (!machine_->awaits_memory()) {
    quiet_by_ = Instant::max();
  } else if (quiet_by_ == Instant::max()) {
    quiet_by_ = now + kAnswerPeriod;
  } else if (now >= quiet_by_) {
    quiet_by_ = now + kAnswerPeriod;
    if (machine_->next_memory_period()) return;
    go_down(
        Status(Code::kDisconnected,
               base::format("{} did not take in time what was sent of memory that was then cancelled or closed", name_))
            .with_scope(Scope::kPath)
            .with_peer(name_));
  }
}

std::size_t StreamPath::turn_closing(Instant now) {
  const std::size_t sent = send_last_words();
  if (phase_ != Phase::kClosing) return sent;
  const unsigned bulk = machine_->bulk_messages_out();
  bool done = !machine_->has_last_words() && lanes_[0].stream->is_flushed() && lanes_[bulk].stream->is_flushed();
  each_link_lane(
      [&done](unsigned, const Lane& lane) { done = done && (lane.stream == nullptr || lane.stream->is_flushed()); });
  if (done || now >= deadline_) {
    go_down(Status(Code::kDisconnected, "this agent closed the path").with_peer(name_), !done);
  }
  return sent + 1;
}

std::size_t StreamPath::send_last_words() {
  std::size_t sent = send_on(0, kControlStep);
  const unsigned bulk = machine_->bulk_messages_out();
  if (bulk != 0 && lanes_[bulk].stream != nullptr) sent += send_on(bulk, kControlStep);
  each_link_lane([&](unsigned stream, const Lane& lane) {
    if (lane.stream != nullptr) sent += send_on(stream, kControlStep);
  });
  return sent;
}

// A peer that goes closes all its streams, and this may be the first whose end is seen. What it said before, its
// goodbye last, is on stream 0 by now, or behind it on those of messages.
void StreamPath::lose(unsigned index, const Status& why) {
  if (index != 0) hear_last_words(0, kLastWordsSteps);
  if (phase_ == Phase::kUp && machine_->has_news()) {
    if (const ControlNews news = machine_->take_news(); news.bye) take_goodbye(*news.bye);
  }
  if (phase_ == Phase::kUp && machine_->awaits_words()) {
    lane(index).stream->close(true);
    lane(index).stream.reset();
    return begin_hearing();
  }
  for (unsigned other = 1; other < streams_; ++other) {
    if (other != index && machine_->may_carry_messages(other)) hear_last_words(other, kLastWordsSteps / kStreamsMax);
  }
  each_link_lane([&](unsigned other, const Lane&) {
    if (other != index) hear_last_words(other, kLastWordsSteps / kStreamsMax);
  });
  if (phase_ == Phase::kUp && !asks_at_.empty() && is_known()) return begin_asking(lost(why));
  go_down(lost(why));  // If it is not down already.
}

std::size_t StreamPath::hear_last_words(unsigned index, int steps) {
  Lane& lane = this->lane(index);
  std::size_t bytes = 0;
  for (int step = 0; step < steps && (phase_ == Phase::kUp || phase_ == Phase::kHearing); ++step) {
    if (lane.stream == nullptr || !machine_->wants(index)) break;
    const std::size_t count = machine_->landing(index, shared_.parts, kControlStep);
    const Moved moved = lane.stream->receive({shared_.parts.data(), count});
    shared_.watch.count(moved.bytes);
    bytes += moved.bytes;
    lane.owner.readable = moved.bytes > 0;
    if (moved.closed && index != 0) lane.stream.reset();
    if (moved.bytes == 0) break;
    if (Status status = machine_->received(index, moved.bytes); !status.ok()) go_down(status);
  }
  return bytes;
}

// The peer said goodbye, and messages that it sent before are still on their way on another stream.
void StreamPath::begin_hearing() {
  phase_ = Phase::kHearing;
  deadline_ = Instant::max();
  activate();
}

std::size_t StreamPath::turn_hearing(Instant now) {
  if (deadline_ == Instant::max()) deadline_ = now + kHearPatience;
  if (Status status = machine_->begin_turn(); !status.ok()) {
    go_down(status);
    return 1;
  }
  std::size_t work = 0;
  bool may_come = false;
  for (unsigned index = 1; index < streams_ && phase_ == Phase::kHearing; ++index) {
    if (!machine_->may_carry_messages(index)) continue;
    work += hear_last_words(index, kHearSteps);
    may_come = may_come || lanes_[index].stream != nullptr;
  }
  each_link_lane([&](unsigned stream, const Lane& lane) {
    if (phase_ == Phase::kHearing) work += hear_last_words(stream, kHearSteps);
    may_come = may_come || lane.stream != nullptr;
  });
  if (phase_ == Phase::kHearing) watch_memory(now);
  if (phase_ != Phase::kHearing || (machine_->awaits_words() && may_come && now < deadline_)) return work;
  take_goodbye(*machine_->take_news(true).bye);
  return work + 1;
}

/// Whether its opener still listens: see OpenerQuestion.
void StreamPath::begin_asking(const Status& why) {
  phase_ = Phase::kAsking;
  lost_why_ = why;
  close_streams(true);
  lanes_[0].owner = StreamOwner{.path = this};
  question_.emplace(shared_.network, asks_at_, &lanes_[0].owner);
  activate();
}

std::size_t StreamPath::turn_asking(Instant now) {
  if (!question_->is_due(now)) return 0;
  const OpenerQuestion::Answer answer = question_->turn(now);
  if (answer == OpenerQuestion::Answer::kEnded) go_down(opener_ended());
  if (answer == OpenerQuestion::Answer::kLives) go_down(lost_why_);
  return 1;
}

Status StreamPath::opener_ended() const {
  return Status(Code::kDisconnected,
                base::format("the process of {} ended: nobody listens at {} any more", name_, asks_at_))
      .with_scope(Scope::kPeer)
      .with_peer(name_)
      .because(lost_why_);
}

Status StreamPath::lost(const Status& why) const {
  return Status(Code::kDisconnected, base::format("the connection to {} was lost", name_))
      .with_scope(Scope::kPath)
      .with_peer(name_)
      .because(why);
}

}  // namespace hawser::backend::stream
