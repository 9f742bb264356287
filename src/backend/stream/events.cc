#include "backend/stream/events.h"

#include <algorithm>

namespace hawser::backend::stream {

void EventQueue::message(Path* path, MessageBuffer message) {
  ++messages_;
  message_bytes_ += message.size;
  add(PortEvent::Kind::kMessage, path).message = std::move(message);
}

void EventQueue::path_up(Path* path, const Identity* peer, const base::Id128& session, bool inbound,
                         const base::Id128& supersedes, bool held) {
  Event event;
  event.kind = PortEvent::Kind::kPathUp;
  event.path = path;
  event.inbound = inbound;
  event.peer = peer;
  event.session = session;
  if (inbound) event.supersedes = supersedes;
  if (held) {
    held_.push_back(std::move(event));
  } else {
    events_.add() = std::move(event);
  }
}

void EventQueue::path_down(Path* path, Status status, bool refused) {
  if (std::erase_if(held_, [path](const Event& event) { return event.path == path; }) > 0) return;
  Event& event = add(PortEvent::Kind::kPathDown, path);
  event.status = std::move(status);
  event.refused = refused;
}

bool EventQueue::is_held(const Path* path) const {
  return std::ranges::any_of(held_, [path](const Event& event) { return event.path == path; });
}

void EventQueue::tell_held(const Path* path) {
  const auto found = std::ranges::find_if(held_, [path](const Event& event) { return event.path == path; });
  if (found == held_.end()) return;
  events_.add() = std::move(*found);
  held_.erase(found);
}

MessageBuffer EventQueue::buffer(std::size_t size) {
  MessageBuffer buffer;
  if (size <= kSpareSize && !spares_.empty()) {
    buffer = std::move(spares_.back());
    spares_.pop_back();
  } else {
    buffer.capacity = std::max(size, kSpareSize);
    buffer.bytes = std::make_unique_for_overwrite<std::byte[]>(buffer.capacity);
  }
  buffer.size = size;
  return buffer;
}

void EventQueue::recycle_shown() {
  for (MessageBuffer& buffer : shown_) {
    if (buffer.capacity == kSpareSize && spares_.size() < kSparesMax) spares_.push_back(std::move(buffer));
  }
  shown_.clear();
}

void EventQueue::show(Event& event, PortEvent& out) {
  out.kind = event.kind;
  out.inbound = event.inbound;
  out.uncounted = event.uncounted;
  out.unsettled = event.unsettled;
  out.refused = event.refused;
  out.path = event.path;
  out.cookie = event.cookie;
  out.transfer = event.transfer;
  out.chunk = event.chunk;
  out.peer = event.peer;
  out.session = event.session;
  out.supersedes = event.supersedes;
  out.status = std::move(event.status);
  out.bytes = {};
  if (event.kind != PortEvent::Kind::kMessage) return;
  out.bytes = {event.message.bytes.get(), event.message.size};
  --messages_;
  message_bytes_ -= event.message.size;
  shown_.push_back(std::move(event.message));
}

std::size_t EventQueue::poll(std::span<PortEvent> out) {
  recycle();
  return poll_more(out);
}

std::size_t EventQueue::poll_more(std::span<PortEvent> out) {
  std::size_t count = 0;
  for (; count < out.size() && !events_.empty(); ++count) {
    show(events_.front(), out[count]);
    events_.drop();
  }
  return count;
}

void EventQueue::forget(const Path* path) {
  std::erase_if(held_, [path](const Event& event) { return event.path == path; });
  events_.filter([this, path](const Event& event) {
    if (event.path != path) return true;
    if (event.kind == PortEvent::Kind::kMessage) {
      --messages_;
      message_bytes_ -= event.message.size;
    }
    return false;
  });
}

}  // namespace hawser::backend::stream
