#pragma once

// UdpSocket: a non-blocking UDP socket that sends and receives many datagrams by one call (UDP_SEGMENT, UDP_GRO), never
// lets them be fragmented, and knows to which of this host's addresses each one came.
//
// Thread rule: one thread. Lifetime: its ledger outlives it.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <hawser/status.h>

#include "backend/fd_ledger.h"
#include "backend/quic/route.h"
#include "base/fd.h"

namespace hawser::backend::quic {

/// Room for what one `receive` may get: what the kernel puts together at most.
inline constexpr std::size_t kReceiveBytesMax = 65'536;

class UdpSocket final : public PacketSender {
 public:
  struct Buffers {
    int send = 0, receive = 0;  ///< Bytes; 0: as many as the system gives.
  };
  /// At `address`, whose port it fills in. Errors: kBusy (the port is in use), kInvalid (no address of this host).
  static Result<std::unique_ptr<UdpSocket>> listen(base::SocketAddress& address, const Buffers& buffers,
                                                   std::shared_ptr<FdLedger> ledger);
  /// To one peer alone: the kernel tells when nobody listens there.
  static Result<std::unique_ptr<UdpSocket>> connect(const base::SocketAddress& peer, const Buffers& buffers,
                                                    std::shared_ptr<FdLedger> ledger);
  ~UdpSocket() override;

  int fd() const { return fd_.get(); }
  /// Of a connected one: both ends. Of a listener the remote end is empty.
  const Route& route() const { return route_; }
  bool is_connected() const { return route_.remote.size > 0; }
  /// A connected socket gives another one to the same peer, from the address that this host has towards the peer now.
  /// Null: the host has the same address as before, or none.
  std::unique_ptr<UdpSocket> moved() const;
  /// Goes on with the descriptor and the route of `other`, and is still blocked where it was.
  void become(UdpSocket& other);
  /// Bytes of the largest datagram that leaves this host towards the peer in one piece; 0: not known.
  std::size_t datagram_max() const;
  /// Bytes that the kernel keeps for its reader, what it needs itself for them included.
  std::uint64_t receive_buffer() const;

  bool send(const Route& route, std::span<const std::byte> packets, std::size_t segment) override;

  /// Whether a send would have blocked since this was asked last.
  bool take_blocked() { return std::exchange(was_blocked_, false); }

  struct Received {
    Route route;
    std::span<const std::byte> bytes;  ///< In the caller's buffer.
    std::size_t segment = 0;           ///< Of each datagram but the last.
    bool is_all = false;               ///< Nothing is there now.
  };
  /// `buffer` has kReceiveBytesMax. Errors: kDisconnected: the kernel says that nobody is there.
  Result<Received> receive(std::span<std::byte> buffer);
  /// The kernel's next word about what could not be delivered; nothing: it has none.
  struct Undelivered {
    base::SocketAddress to;
    bool is_refused = false;  ///< Nobody listens there.
  };
  std::optional<Undelivered> take_undelivered();

 private:
  UdpSocket(base::Fd fd, std::shared_ptr<FdLedger> ledger);
  void tune(int family, const Buffers& buffers);

  base::Fd fd_;
  const std::shared_ptr<FdLedger> ledger_;
  Buffers buffers_;
  Route route_;
  bool may_segment_ = true;
  bool is_lost_ = false;  ///< What was sent last did not leave this host.
  bool was_blocked_ = false;
};

}  // namespace hawser::backend::quic
