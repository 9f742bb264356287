#include "backend/stream/path_streams.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace hawser::backend::stream {

void PathStreams::adopt(unsigned stream, std::unique_ptr<Handshake> shake, Instant deadline) {
  if (is_link_stream(stream) && link_lanes_ == nullptr) link_lanes_ = std::make_unique<LinkLanes>();
  Lane& lane = (*this)[stream];
  lane.owner = StreamOwner{.path = path_, .index = stream, .readable = true, .blocked = false};
  shake->stream().owner = &lane.owner;
  lane.shake = std::move(shake);
  lane.deadline = deadline;
}

void PathStreams::settle(unsigned stream) {
  Lane& lane = (*this)[stream];
  lane.stream = lane.shake->take_stream();
  lane.said = lane.shake->take_said();
  lane.shake.reset();
  lane.owner.readable = true;
}

void PathStreams::land(unsigned stream, Machine& machine) {
  Lane& lane = (*this)[stream];
  lane.stream->landing = &lane.landing.emplace(machine, stream);
}

void PathStreams::stop_landing() {
  const auto stop = [](Lane& lane) {
    if (lane.stream != nullptr) lane.stream->landing = nullptr;
  };
  std::ranges::for_each(lanes_, stop);
  each_link([&stop](unsigned, Lane& lane) { stop(lane); });
}

Status PathStreams::landed(unsigned stream) const {
  const std::optional<MachineLanding>& landing = (*this)[stream].landing;
  return landing.has_value() ? landing->status() : Status();
}

void PathStreams::close_all(bool abort) {
  const auto end = [abort](Lane& lane) {
    if (lane.shake != nullptr) lane.shake->stream().close(true);
    if (lane.stream != nullptr) lane.stream->close(abort);
    lane.shake.reset();
    lane.stream.reset();
    lane.owner = StreamOwner{};
  };
  std::ranges::for_each(lanes_, end);
  each_link([&end](unsigned, Lane& lane) { end(lane); });
}

StreamOwner* PathStreams::owner_of_question() {
  lanes_[0].owner = StreamOwner{.path = path_};
  return &lanes_[0].owner;
}

Instant PathStreams::next_deadline() const {
  Instant next = Instant::max();
  for (unsigned index = 1; index < count_; ++index) {
    if (lanes_[index].shake != nullptr) next = std::min(next, lanes_[index].deadline);
  }
  each_link([&next](unsigned, const Lane& lane) {
    if (lane.shake != nullptr) next = std::min(next, lane.deadline);
  });
  return next;
}

bool PathStreams::may_sleep(const Machine* machine) const {
  for (unsigned index = 0; index < count_; ++index) {
    if (!may_sleep(machine, index, lanes_[index])) return false;
  }
  bool may = true;
  each_link([&](unsigned stream, const Lane& lane) { may = may && may_sleep(machine, stream, lane); });
  return may;
}

bool PathStreams::may_sleep(const Machine* machine, unsigned stream, const Lane& lane) {
  if (lane.shake != nullptr) return !lane.owner.readable;
  if (lane.stream == nullptr) return true;
  if (lane.owner.readable && machine->wants(stream)) return false;
  return lane.owner.blocked || !machine->has_work(stream);
}

bool PathStreams::hears_nothing(const Machine& machine) const {
  for (unsigned index = 1; index < count_; ++index) {
    const Lane& lane = lanes_[index];
    if (lane.stream != nullptr && lane.owner.readable && machine.wants(index)) return false;
  }
  bool is_quiet = true;
  each_link([&](unsigned stream, const Lane& lane) {
    if (lane.stream != nullptr && lane.owner.readable && machine.wants(stream)) is_quiet = false;
  });
  return is_quiet;
}

bool PathStreams::is_hot() const {
  for (const Lane& lane : lanes_) {
    if (lane.owner.hot) return true;
  }
  bool is_hot = false;
  each_link([&is_hot](unsigned, const Lane& lane) { is_hot = is_hot || lane.owner.hot; });
  return is_hot;
}

bool PathStreams::is_flushed(unsigned control, unsigned bulk) const {
  bool done = lanes_[control].stream->is_flushed() && lanes_[bulk].stream->is_flushed();
  each_link(
      [&done](unsigned, const Lane& lane) { done = done && (lane.stream == nullptr || lane.stream->is_flushed()); });
  return done;
}

std::string PathStreams::describe() const {
  std::string text;
  for (unsigned index = 0; index < count_; ++index) {
    const Lane& lane = lanes_[index];
    if (lane.stream != nullptr) text += base::format(", stream {} {}", index, lane.stream->describe());
  }
  unsigned of_links = 0;
  each_link([&of_links](unsigned, const Lane& lane) { of_links += lane.stream != nullptr ? 1 : 0; });
  if (of_links > 0) text += base::format(", {} streams of messages", of_links);
  return text;
}

std::string PathStreams::condition() const {
  std::string text;
  for (unsigned index = 0; index < count_; ++index) {
    if (lanes_[index].stream == nullptr) continue;
    const std::string known = lanes_[index].stream->condition();
    if (!known.empty()) text += base::format("; connection {}: {}", index, known);
  }
  return text;
}

}  // namespace hawser::backend::stream
