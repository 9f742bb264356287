#include "backend/stream/path.h"

#include <algorithm>

#include "base/format.h"
#include "base/planted.h"

namespace hawser::backend::stream {
namespace {

/// How long goodbyes may take to leave.
constexpr Duration kClosePatience = std::chrono::milliseconds(500);

}  // namespace

StreamPath::StreamPath(PortShared& shared) : shared_(shared) {}

StreamPath::~StreamPath() = default;

PathState StreamPath::state() const {
  switch (phase_) {
    case Phase::kOpening:
      return PathState::kConnecting;
    case Phase::kUp:
      return PathState::kUp;
    default:
      return PathState::kDown;
  }
}

Result<Binding*> StreamPath::bind(const RemoteRegionRef& region) {
  if (phase_ != Phase::kUp) {
    return Status(Code::kDisconnected, base::format("the path to {} is not up", name_))
        .with_peer(name_)
        .with_scope(Scope::kPath);
  }
  const bool is_reached = region.device.kind == DeviceKind::kHost || region.device.kind == DeviceKind::kFile;
  if (!is_reached) {
    return Status(Code::kUnsupported,
                  base::format("{} moves host memory and files only; region #{} of {} is on a device",
                               shared_.options.backend, region.index, name_))
        .with_peer(name_);
  }
  return machine_->bind(region);
}

void StreamPath::unbind(std::uint32_t index, std::uint32_t generation) {
  if (phase_ == Phase::kUp) machine_->unbind(index, generation);
}

Submitted StreamPath::submit(std::span<const Chunk> chunks, Instant now) {
  static_cast<void>(now);
  if (phase_ != Phase::kUp) return {};
  activate();
  return {.taken = machine_->submit(chunks), .done = 0};
}

bool StreamPath::send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) {
  if (phase_ != Phase::kUp) return false;
  if (!base::planted(base::Planted::kWakeupLost)) activate();
  return machine_->send(link, head, body);
}

bool StreamPath::send_first(std::span<const std::byte> head, std::span<const std::byte> body) {
  if (phase_ != Phase::kUp) return false;
  if (!base::planted(base::Planted::kWakeupLost)) activate();
  return machine_->send_first(head, body);
}

bool StreamPath::send_last(std::span<const std::byte> head, std::span<const std::byte> body) {
  if (phase_ != Phase::kUp) return false;
  activate();
  return machine_->send_last(head, body);
}

unsigned StreamPath::queue_of(wire::Link link) const {
  return machine_.has_value() ? machine_->stream_for(link) : Path::queue_of(link);
}

void StreamPath::cancel(std::uint64_t transfer) {
  if (phase_ != Phase::kUp && phase_ != Phase::kHearing) return;
  activate();
  machine_->cancel(transfer);
}

void StreamPath::set_awaited(bool awaited, Instant now) {
  awaited_ = awaited;
  if (phase_ != Phase::kUp || base::planted(base::Planted::kWakeupLost)) return;
  detector_->set_busy(awaited_ || machine_->busy(), now);
  // It may be idle and not turn before its next heartbeat, which is due earlier now.
  shared_.next_due = std::min(shared_.next_due, next_deadline());
}

PathCounters StreamPath::counters() const {
  PathCounters counters;
  if (machine_.has_value()) {
    counters = machine_->counts();
    counters.bytes_in = machine_->bytes_in();
    counters.bytes_out = machine_->bytes_out();
  }
  counters.peer = name_;
  counters.backend = shared_.options.backend;
  counters.state = phase_ == Phase::kOpening ? "connecting" : phase_ == Phase::kUp ? "up" : "down";
  return counters;
}

std::string StreamPath::describe() const {
  std::string text = base::format("{} {} {}", shared_.options.backend, inbound_ ? "from" : "to", name_);
  for (unsigned index = 0; index < streams_; ++index) {
    const Lane& lane = lanes_[index];
    if (lane.stream != nullptr) text += base::format(", stream {} {}", index, lane.stream->describe());
  }
  unsigned of_links = 0;
  each_link_lane([&](unsigned, const Lane& lane) { of_links += lane.stream != nullptr ? 1 : 0; });
  if (of_links > 0) text += base::format(", {} streams of messages", of_links);
  if (identity_.is_on()) text += base::format(", {}", identity_.describe());
  if (!places_note_.empty()) text += base::format(", not at {}", places_note_);
  if (machine_.has_value()) {
    text += base::format(", {} chunks, {} bytes out, {} bytes in", machine_->counts().chunks, machine_->bytes_out(),
                         machine_->bytes_in());
  }
  return phase_ == Phase::kDown ? text + ", down" : text;
}

Status StreamPath::condition(Instant now) const {
  if (phase_ == Phase::kOpening) return Status(Code::kTimedOut, base::format("{} is being connected to", name_));
  if (phase_ != Phase::kUp) return Status();
  std::string text = base::format("the path to {} has {} chunks of {} bytes in flight", name_,
                                  machine_->chunks_in_flight(), machine_->bytes_in_flight());
  if (!machine_->last_full().empty()) text += base::format(", and is full: {}", machine_->last_full());
  if (last_heard_ != Instant::min()) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - last_heard_).count();
    text += base::format("; the peer's last word came {} ms ago", ms);
  }
  for (unsigned index = 0; index < streams_; ++index) {
    if (lanes_[index].stream == nullptr) continue;
    const std::string known = lanes_[index].stream->condition();
    if (!known.empty()) text += base::format("; connection {}: {}", index, known);
  }
  return Status(Code::kTimedOut, text).with_peer(name_);
}

void StreamPath::say_goodbye(Code code, std::string_view reason) {
  if (phase_ != Phase::kUp) return;
  machine_->bye(code, reason);
  static_cast<void>(send_last_words());
}

void StreamPath::begin_close(Instant now) {
  if (phase_ == Phase::kUp) {
    machine_->bye(Code::kDisconnected, "the agent is closing");
    phase_ = Phase::kClosing;
    deadline_ = now + kClosePatience;
    activate();
  } else if (phase_ == Phase::kHearing) {
    take_goodbye(*machine_->take_news(true).bye);
  } else if (phase_ == Phase::kAsking) {
    go_down(lost_why_);
  } else if (phase_ == Phase::kOpening) {
    go_down(Status(Code::kDisconnected, "this agent is closing").with_peer(name_));
  }
}

void StreamPath::go_down(const Status& why, bool abort) {
  if (phase_ == Phase::kDown) return;
  phase_ = Phase::kDown;
  seat_.end();
  is_held_ = is_held_ && shared_.events.is_held(this);  // What came in this turn may have told of it.
  shared_.lobby.leave(this);
  close_streams(abort);
  question_.reset();
  race_.reset();
  HAWSER_LOG(shared_.context.log, kDebug, "{} path to {} ended: {}", shared_.options.backend, name_, why.to_string());
  if (machine_.has_value()) machine_->fail(why);
  // Of one that is held the queue only forgets that it is there.
  if (told_up_ || !inbound_) shared_.events.path_down(this, why, refused_ && !is_here_ && !told_up_);
  if (!is_known()) shared_.has_silent_dead = true;
}

void StreamPath::close_streams(bool abort) {
  const auto end = [abort](Lane& lane) {
    if (lane.shake != nullptr) lane.shake->stream().close(true);
    if (lane.stream != nullptr) lane.stream->close(abort);
    lane.shake.reset();
    lane.stream.reset();
    lane.owner = StreamOwner{};
  };
  std::ranges::for_each(lanes_, end);
  each_link_lane([&end](unsigned, Lane& lane) { end(lane); });
}

bool StreamPath::region_quiet(std::uint32_t index, std::uint32_t generation) {
  if (!machine_.has_value() || phase_ == Phase::kDown) return true;
  activate();
  return machine_->region_quiet(index, generation);
}

Instant StreamPath::next_deadline() const {
  switch (phase_) {
    case Phase::kOpening:
      return race_ != nullptr ? std::min(lanes_[0].deadline, race_->next_deadline()) : lanes_[0].deadline;
    case Phase::kUp: {
      if (base::planted(base::Planted::kTimerForgotten)) return Instant::max();
      Instant next = std::min({detector_->next_timeout(), quiet_by_, deadline_, identity_.next()});
      for (unsigned index = 1; index < streams_; ++index) {
        if (lanes_[index].shake != nullptr) next = std::min(next, lanes_[index].deadline);
      }
      each_link_lane([&next](unsigned, const Lane& lane) {
        if (lane.shake != nullptr) next = std::min(next, lane.deadline);
      });
      return next;
    }
    case Phase::kHearing:
      return std::min(deadline_, quiet_by_);
    case Phase::kAsking:
      return question_->next();
    case Phase::kClosing:
      return deadline_;
    case Phase::kDown:
      break;
  }
  return Instant::max();
}

bool StreamPath::may_sleep() const {
  if (phase_ == Phase::kDown) return true;
  if (phase_ == Phase::kAsking) return question_->has_asked();  // The port turns it when its next question is due.
  if (phase_ == Phase::kHearing) return hears_nothing();
  if (phase_ == Phase::kUp && (machine_->has_acks() || machine_->awaits_poll() || has_streams_to_open())) return false;
  for (unsigned index = 0; index < streams_; ++index) {
    if (!may_sleep(index, lanes_[index])) return false;
  }
  bool may = true;
  each_link_lane([&](unsigned stream, const Lane& lane) { may = may && may_sleep(stream, lane); });
  return may;
}

bool StreamPath::may_sleep(unsigned stream, const Lane& lane) const {
  if (lane.shake != nullptr) return !lane.owner.readable;
  if (lane.stream == nullptr) return true;
  if (lane.owner.readable && machine_->wants(stream)) return false;
  return lane.owner.blocked || !machine_->has_work(stream);
}

bool StreamPath::hears_nothing() const {
  if (deadline_ == Instant::max() || machine_->awaits_poll()) return false;
  for (unsigned index = 1; index < streams_; ++index) {
    const Lane& lane = lanes_[index];
    if (lane.stream != nullptr && lane.owner.readable && machine_->wants(index)) return false;
  }
  bool is_quiet = true;
  each_link_lane([&](unsigned stream, const Lane& lane) {
    if (lane.stream != nullptr && lane.owner.readable && machine_->wants(stream)) is_quiet = false;
  });
  return is_quiet;
}

bool StreamPath::wants_turns() const {
  if (!may_sleep()) return true;
  for (const Lane& lane : lanes_) {
    if (lane.owner.hot) return true;
  }
  bool is_hot = false;
  each_link_lane([&is_hot](unsigned, const Lane& lane) { is_hot = is_hot || lane.owner.hot; });
  return is_hot;
}

void StreamPath::on_ready(StreamOwner& owner) {
  // Until the hellos are through, being writable is news, too: the stream is connected.
  if (lane(owner.index).shake != nullptr) owner.readable = true;
  activate();
}

void StreamPath::activate() {
  if (is_active) return;
  is_active = true;
  shared_.active.push_back(this);
}

}  // namespace hawser::backend::stream
