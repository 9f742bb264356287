#pragma once

// Packets: messages with descriptors over a connected SOCK_SEQPACKET unix socket. Nothing here blocks.
//
// Thread rule: one thread per socket. Lifetime: received descriptors belong to the Packet and close with it.

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include <hawser/status.h>

#include "base/fd.h"

namespace hawser::backend::shm {

inline constexpr std::size_t kPacketMax = 2048;  ///< Bytes.
inline constexpr std::size_t kPacketFdsMax = 4;

struct Packet {
  std::array<std::byte, kPacketMax> buffer;
  std::size_t size = 0;
  std::array<base::Fd, kPacketFdsMax> fds;
  std::size_t fd_count = 0;

  std::span<const std::byte> bytes() const { return {buffer.data(), size}; }
};

enum class Io : std::uint8_t {
  kDone,
  kAgain,   ///< It would block.
  kEnd,     ///< The peer will send nothing more (receive), or the connection is gone (send).
  kFailed,  ///< errno tells; the connection cannot be used.
};

Io send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> fds);
/// A packet that is too long, or came with more descriptors than fit, is kFailed with EMSGSIZE.
Io receive_packet(int socket, Packet* packet);

}  // namespace hawser::backend::shm
