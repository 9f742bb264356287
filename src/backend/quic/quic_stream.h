#pragma once

// QuicStream: one stream of a QUIC connection as a stream::Stream.
//
// Thread rule: confined to the port's lane. Lifetime: its network outlives it.

#include <array>
#include <string>

#include "backend/quic/network.h"
#include "backend/stream/stream.h"

namespace hawser::backend::quic {

class QuicStream final : public stream::Stream {
 public:
  /// `flow`: null until the connection's handshake is through.
  QuicStream(QuicNetwork& network, QuicNetwork::Member& member, Flow* flow);
  ~QuicStream() override { close(true); }

  stream::StreamState state() const override { return state_; }
  Status status() const override { return status_; }
  stream::Moved send(std::span<const iovec> parts) override;
  std::uint64_t released() const override;
  stream::Moved receive(std::span<const iovec> parts) override;
  void close(bool abort) override;
  std::string describe() const override;
  std::uint64_t source() const override;
  stream::Cover cover() const override { return stream::Cover::kTls; }
  std::span<const std::byte> peer_key() const override;
  std::span<const std::byte> binding() const override;
  /// The peer has it all.
  bool is_flushed() const override { return flow_ == nullptr || flow_->is_flushed(); }
  std::string condition() const override;

  /// The handshake is through, and this is its stream; null: the peer allows none.
  void begin(Flow* flow);
  /// The handshake failed.
  void fail(const Status& why);

 private:
  friend class QuicNetwork;
  stream::Moved ended(const Status& why);

  QuicNetwork& network_;
  QuicNetwork::Member* member_;  ///< Null once it was closed.
  Flow* flow_ = nullptr;
  stream::StreamState state_ = stream::StreamState::kConnecting;
  Status status_;
  std::array<std::byte, 32> binding_{};
  bool is_readable_ = false, is_writable_ = false;  ///< News that the port was not told.
};

}  // namespace hawser::backend::quic
