#include "backend/quic/quic_stream.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace hawser::backend::quic {

QuicStream::QuicStream(QuicNetwork& network, QuicNetwork::Member& member, Flow* flow)
    : network_(network), member_(&member) {
  ++member.streams;
  if (flow != nullptr) begin(flow);
}

void QuicStream::begin(Flow* flow) {
  if (flow == nullptr) {
    return fail(Status(Code::kBusy, "the peer takes no further stream in this connection").with_scope(Scope::kPath));
  }
  auto number = member_->connection->handshake().binding(flow->id);
  if (!number) return fail(number.error().with_scope(Scope::kPath));
  binding_ = *number;
  flow_ = flow;
  flow_->user = this;
  state_ = stream::StreamState::kOpen;
}

void QuicStream::fail(const Status& why) {
  state_ = stream::StreamState::kClosed;
  status_ = why;
}

stream::Moved QuicStream::ended(const Status& why) {
  state_ = stream::StreamState::kClosed;
  status_ = why;
  return {.bytes = 0, .closed = true, .status = why};
}

stream::Moved QuicStream::send(std::span<const iovec> parts) {
  if (state_ != stream::StreamState::kOpen) return {.bytes = 0, .closed = true, .status = status_};
  if (!flow_->reset.ok()) return ended(flow_->reset);
  const std::size_t bytes = member_->connection->write(*flow_, parts, Clock::steady().now());
  network_.touch(*member_);
  return {.bytes = bytes, .closed = false, .status = Status()};
}

std::uint64_t QuicStream::released() const { return flow_ == nullptr ? 0 : member_->connection->released(*flow_); }

stream::Moved QuicStream::receive(std::span<const iovec> parts) {
  if (state_ != stream::StreamState::kOpen) return {.bytes = 0, .closed = true, .status = status_};
  const std::size_t placed = std::exchange(flow_->placed, 0);
  const std::size_t bytes = member_->connection->read(*flow_, parts);
  if (bytes > 0) network_.touch(*member_);
  if (bytes + placed > 0) return {.bytes = bytes, .closed = false, .status = Status(), .placed = placed};
  if (!flow_->in.empty()) return {};
  if (!flow_->reset.ok()) return ended(flow_->reset);
  if (flow_->has_ended) return ended(Status());
  return {};
}

void QuicStream::close(bool abort) {
  if (member_ == nullptr) return;
  QuicNetwork::Member& member = *std::exchange(member_, nullptr);
  std::erase(network_.news_, this);
  const Instant now = Clock::steady().now();
  if (member.first == this) member.first = nullptr;
  if (flow_ != nullptr) member.connection->leave(*std::exchange(flow_, nullptr), abort, now);
  --member.streams;
  state_ = stream::StreamState::kClosed;
  network_.left(member, abort, now);
}

std::string QuicStream::describe() const {
  if (member_ == nullptr) return "closed";
  if (flow_ == nullptr || flow_->id == 0) return member_->connection->describe();
  return base::format("{} of the same connection", flow_->id);
}

std::uint64_t QuicStream::source() const { return member_ == nullptr ? 0 : member_->source; }

std::span<const std::byte> QuicStream::peer_key() const {
  if (member_ == nullptr || flow_ == nullptr) return {};
  return member_->connection->handshake().peer_key();
}

std::span<const std::byte> QuicStream::binding() const {
  return flow_ == nullptr ? std::span<const std::byte>() : std::span<const std::byte>(binding_);
}

std::string QuicStream::condition() const { return member_ == nullptr ? "" : member_->connection->condition(); }

}  // namespace hawser::backend::quic
