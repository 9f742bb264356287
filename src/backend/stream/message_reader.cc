#include "backend/stream/message_reader.h"

#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/planted.h"

namespace hawser::backend::stream {

bool MessageReader::must_wait(unsigned stream) {
  const bool holds = (holds_frame_ & bit(stream)) != 0;
  const bool awaits = events_.messages_full() && (stream == 0 || holds);
  awaits_poll_ = awaits ? awaits_poll_ | bit(stream) : awaits_poll_ & ~bit(stream);
  const bool waits = awaits || (holds && is_early(stream));
  paused_ = waits ? paused_ | bit(stream) : paused_ & ~bit(stream);
  return waits;
}

/// Whether messages are missing that come before the one that the stream holds.
bool MessageReader::is_early(unsigned stream) {
  base::ByteReader in(streams_.inlet(stream).meta());
  if (!order_.has_urgent(in.u64()) && !base::planted(base::Planted::kBulkOvertakes)) return true;
  awaits_others_ = !in.at_end() && !order_.has_others(in.u64());
  return awaits_others_;
}

bool MessageReader::tells_order(unsigned stream, const wire::FrameHead& head) {
  if (stream == 0 || head.type != wire::FrameType::kMessage) return false;
  const bool is_last = (head.flags & wire::kFlagLastMessage) != 0;
  return head.meta_size == (is_last ? wire::kLastSize : wire::kAheadSize);
}

bool MessageReader::holds(unsigned stream, const wire::FrameHead& head) {
  if (!tells_order(stream, head)) return false;
  holds_frame_ |= bit(stream);
  return true;
}

bool MessageReader::take_held(unsigned stream) {
  const bool was_held = (holds_frame_ & bit(stream)) != 0;
  holds_frame_ &= ~bit(stream);
  return was_held;
}

MessageReader::Incoming& MessageReader::incoming(unsigned stream) {
  if (!is_link_stream(stream)) return incoming_[stream == 0 ? 0 : 1];
  auto& its = link_incoming_[stream - kStreamsMax];
  if (its == nullptr) its = std::make_unique<Incoming>();
  return *its;
}

bool MessageReader::on_message(unsigned stream, Inlet& inlet) {
  const wire::FrameHead& frame = inlet.head();
  constexpr unsigned kKnown = wire::kFlagsLink | wire::kFlagLastMessage | wire::kFlagAside;
  if ((frame.flags & ~kKnown) != 0 || !order_.may_come_on(stream)) return false;
  if (stream == 0 ? frame.meta_size != 0 : !tells_order(stream, frame)) return false;
  const auto link = wire::Link::at(frame.flags & wire::kFlagsLink);
  const bool is_last = (frame.flags & wire::kFlagLastMessage) != 0;
  if (is_link_stream(stream) && !is_last && link != link_of(stream)) return false;
  if (stream == 0) links_.note(link);
  order_.begins(stream);
  ++count_;
  Incoming& next = incoming(stream);
  next.buffer = events_.buffer(frame.payload_size);
  if (frame.payload_size == 0) {
    on_message_end(stream);
  } else {
    next.place = Piece{.local = next.buffer.bytes.get(), .remote = 0, .size = frame.payload_size};
    inlet.land({&next.place, 1});
  }
  return true;
}

void MessageReader::on_message_end(unsigned stream) {
  events_.message(path_, std::move(incoming(stream).buffer));
  order_.came(stream);
}

void MessageReader::clear() {
  incoming_ = {};
  link_incoming_ = {};
}

}  // namespace hawser::backend::stream
