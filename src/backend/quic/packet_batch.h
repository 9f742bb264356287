#pragma once

// PacketBatch: datagrams of one route, gathered for one call of the kernel. What the kernel does not take now waits
// here.
//
// Thread rule: one thread. Memory: kSendBytesMax, held while there is something to send; then the batches of a thread
// share it.

#include <cstddef>
#include <memory>
#include <span>

#include "backend/quic/route.h"

namespace hawser::backend::quic {

class PacketBatch {
 public:
  using Buffer = std::unique_ptr<std::byte[]>;

  /// Both outlive it. `spare`: of kSendBytesMax, or null; the batches of one thread share it.
  PacketBatch(PacketSender& sender, Buffer& spare) : sender_(sender), spare_(spare) {}

  /// Where the next datagram may be written, with room for `bytes`; empty: the kernel took none of those before.
  std::span<std::byte> room(std::size_t bytes);
  /// It was written there.
  void add(const Route& route, std::size_t bytes);
  /// False: something waits.
  bool flush();
  bool is_blocked() const { return is_blocked_; }

 private:
  bool is_open(std::size_t bytes) const;

  PacketSender& sender_;
  Buffer& spare_;
  Buffer bytes_;
  std::size_t used_ = 0;
  std::size_t segment_ = 0;  ///< The size of the first datagram.
  std::size_t count_ = 0;
  bool is_last_short_ = false;  ///< Nothing may follow it.
  bool is_blocked_ = false;
  Route route_;
};

}  // namespace hawser::backend::quic
