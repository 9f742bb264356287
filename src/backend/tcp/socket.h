#pragma once

// TcpStream: a non-blocking TCP socket as a Stream.
//
// Thread rule: confined to the port's lane. Lifetime: its network outlives it and is told when it goes.

#include <array>
#include <memory>
#include <string>

#include "backend/fd_ledger.h"
#include "backend/stream/stream.h"
#include "backend/tcp/options.h"
#include "base/address.h"
#include "base/events.h"
#include "base/fd.h"

namespace hawser::backend {

/// What a network and its sockets share; it lives as long as the last of them.
struct TcpShared {
  static constexpr std::size_t kStashMax = 64;

  base::Epoll epoll;
  TcpOptions options;
  std::shared_ptr<FdLedger> ledger;
  std::array<stream::Readiness, kStashMax> stash = {};  ///< News found before sleeping, not told yet.
  std::size_t stashed = 0;
};

/// Sets what every socket of ours has, as far as the system knows it. Before it connects or listens: what a congestion
/// control once set up (bbr its pacing) stays behind when another takes over.
void tune_socket(int fd, const TcpOptions& options, bool loopback);

/// Whatever their ports.
bool is_same_ip(base::SocketAddress a, base::SocketAddress b);

class TcpStream;

/// A stream of a TcpNetwork, whatever covers it.
class SocketStream : public stream::Stream {
 public:
  virtual const TcpStream& socket() const = 0;
  /// epoll's news of its socket. False: it changes nothing for who uses the stream.
  virtual bool on_events(std::uint32_t events, stream::Readiness* news) = 0;
};

class TcpStream final : public SocketStream {
 public:
  /// A connected socket, or one on its way.
  TcpStream(std::shared_ptr<TcpShared> shared, base::Fd fd, const base::SocketAddress& peer, bool connecting);
  ~TcpStream() override;

  /// From now on the network tells what happens to it.
  Status watch();

  stream::StreamState state() const override { return state_; }
  Status status() const override { return status_; }
  stream::Moved send(std::span<const iovec> parts) override;
  std::uint64_t released() const override { return sent_; }
  stream::Moved receive(std::span<const iovec> parts) override;
  void close(bool abort) override;
  std::string describe() const override;
  base::FarEnd far_end(std::string* why) const override { return base::far_end_of(fd_.get(), why); }
  std::uint64_t source() const override;
  std::string condition() const override;
  stream::Cover cover() const override {
    return base::is_loopback(peer_) ? stream::Cover::kHost : stream::Cover::kNone;
  }
  const TcpStream& socket() const override { return *this; }
  const base::SocketAddress& peer() const { return peer_; }
  /// The next byte, which stays where it is; nothing came yet: bytes is 0.
  stream::Moved peek(std::byte* next);
  /// Whom the network tells of; it outlives this.
  void set_front(SocketStream* front) { front_ = front; }
  /// Whether both ends are in this network namespace.
  bool is_within_host() const;

  bool on_events(std::uint32_t events, stream::Readiness* news) override;
  SocketStream& front() { return *front_; }

 private:
  void finish_connecting();
  bool is_connected_to_itself() const;
  stream::Moved lost(std::string_view doing, int error);

  std::shared_ptr<TcpShared> shared_;
  base::Fd fd_;
  base::SocketAddress peer_;
  SocketStream* front_ = this;
  stream::StreamState state_;
  Status status_;
  std::uint64_t sent_ = 0;
  bool wants_room_ = false;  ///< A send took less than all.
};

}  // namespace hawser::backend
