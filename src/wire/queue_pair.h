#pragma once

// Messages of the two ends of an RDMA path on its control stream: the ports that they have, and the handshake
// of each queue pair (proto/queue_pair.h).
//
// Grammar (little-endian):
//   message  = kind:u8, body. Kind 0 is a message of the agents themselves: its body is all that follows.
//   ports    (1) = version:u8, count:u8, port[count]
//     port     = device:string, number:u8, transport:u8, layer:u8, mtu:u8, lid:u16, gid:16, gid_type:u8,
//                gid_prefix:u8, mbit_per_s:u64
//     after the ports: receives:u16, receive_bytes:u32; absent (earlier builds): 0. Where both ends told more than 0,
//     messages of the agents go numbered (6), and those that fit into `receive_bytes` may go by the first queue pair's
//     sends.
//     after these: immediates:u16; absent (earlier builds): 0. Receives on each queue pair for writes with immediate
//     (proto/immediate.h), which are used where both ends told more than 0. The first queue pair has them beside those
//     for messages, and of the same size.
//     after these: host:u64; absent (earlier builds): 0. The sender's host (one boot of one machine); 0: not told.
//     after these, for each port: gids:u8, gid[gids]; absent (earlier builds): none.
//     gid = bytes:16, type:u8, prefix:u8. All that the port may be reached by, best first; the first is the one above.
//     Each end takes of its own the one that suits the other's best, and tells it in the endpoint.
//     Ports are told again when their addresses change; then nothing else of them counts, and earlier builds pass over
//     it.
//   connect  (2) = pair:u8, epoch:u32, local:u8, remote:u8, pairs:u8, endpoint
//   accept   (3) = pair:u8, epoch:u32, endpoint
//     endpoint = number:u32, psn:u32, lid:u16, gid:16, mtu:u8, reads_in:u8, reads_out:u8
//     after the endpoint of a datagram queue pair (EFA's SRD): qkey:u32, proof_address:u64, proof_key:u32. Absent or
//     qkey 0: a reliable connection. Datagrams with another qkey are dropped; the proof is 8 bytes of memory that the
//     peer may write, by which it sees that the way carries.
//   ready    (4) = pair:u8, epoch:u32. By the end that did not open the path: its user asks for another attempt at
//     once; it means something while the opener waits to make one, and earlier builds pass over it.
//   broken   (5) = pair:u8, epoch:u32, code:u8, reason:string
//   numbered (6) = sequence:u64, received:u64; then a message of the agents: all that follows. A send carries the same.
//   received (7) = received:u64
//   counted  (8) = pair:u8, epoch:u32, counted:u64
// `sequence` counts the sender's messages from 1, over both carriers; `received` is the last one that it delivered.
// `counted` is how many immediates of that epoch were read; it is told once more before that queue pair's end is.
// `local` and `remote` are places in the sender's and the receiver's list of ports. mtu is its code: 1 (256 bytes) to 5
// (4096). Bytes behind a body are a newer form's and are skipped.
//
// Thread rule: values and pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <hawser/status.h>

namespace hawser::wire {

inline constexpr std::uint8_t kAgentMessage = 0;  ///< First byte of what is not for the queue pairs.
inline constexpr std::uint8_t kNumberedMessage = 6;
inline constexpr std::size_t kMessageHeadSize = 1 + 8 + 8;  ///< The head of a numbered message.
inline constexpr std::uint32_t kReceivesMax = 1024;
inline constexpr std::uint32_t kReceiveBytesMax = 128 * 1024;
inline constexpr std::uint8_t kPortsVersion = 1;
inline constexpr std::size_t kPortsMax = 16;   ///< Ports of one agent.
inline constexpr std::uint8_t kPairsMax = 64;  ///< Queue pairs of one path.
inline constexpr std::size_t kDeviceNameMax = 64;
inline constexpr std::size_t kGidsMax = 8;  ///< A port's GIDs that are told.
inline constexpr std::uint8_t kMtuCodeMax = 5;
inline constexpr std::uint32_t k24BitMax = (1u << 24) - 1;

using GidBytes = std::array<std::byte, 16>;

/// An address of a port.
struct RdmaGid {
  GidBytes bytes{};
  std::uint8_t type = 0;    ///< As RdmaPort::gid_type.
  std::uint8_t prefix = 0;  ///< As RdmaPort::gid_prefix.
};

/// A port as its agent tells of it. The codes mean something to the backend, not here.
struct RdmaPort {
  std::string device;
  std::uint8_t number = 1;     ///< The port's, on its device.
  std::uint8_t transport = 0;  ///< 0 unknown, 1 InfiniBand and RoCE, 2 iWARP, 3 EFA.
  std::uint8_t layer = 0;      ///< 0 unknown, 1 InfiniBand, 2 Ethernet.
  std::uint8_t mtu = 0;
  std::uint16_t lid = 0;
  GidBytes gid{};
  std::uint8_t gid_type = 0;    ///< 0 unknown, 1 InfiniBand, 2 RoCE v1, 3 RoCE v2.
  std::uint8_t gid_prefix = 0;  ///< Bits that name the subnet; 0: unknown.
  std::uint64_t mbit_per_s = 0;
  std::vector<RdmaGid> gids = {};  ///< At most kGidsMax; empty: `gid` alone is known.
};

struct RdmaPorts {
  std::vector<RdmaPort> ports;
  std::uint32_t receives = 0;       ///< Receives posted on the first queue pair; 0: none, and no numbered messages.
  std::uint32_t receive_bytes = 0;  ///< Size of each, the message's head included.
  std::uint32_t immediates = 0;     ///< Receives for writes with immediate, on each queue pair; 0: it takes none.
  std::uint64_t host = 0;           ///< 0: not told.
};

/// The beginning of a numbered message.
struct MessageHead {
  std::uint64_t sequence = 0;
  std::uint64_t received = 0;
};

/// The sender may forget its messages up to this one, and send as many more.
struct MessagesReceived {
  std::uint64_t received = 0;
};

/// One end of a queue pair, as the other must know it.
struct QueuePairEndpoint {
  std::uint32_t number = 0;  ///< 24 bits.
  std::uint32_t psn = 0;     ///< First packet that it sends; 24 bits.
  std::uint16_t lid = 0;
  GidBytes gid{};
  std::uint8_t mtu = 0;
  std::uint8_t reads_in = 0;   ///< Reads and atomics that it answers at a time.
  std::uint8_t reads_out = 0;  ///< Those that it would like to have under way.
  std::uint32_t qkey = 0;      ///< For datagrams; 0: a reliable connection.
  std::uint64_t proof_address = 0;
  std::uint32_t proof_key = 0;
};

struct QueuePairConnect {
  std::uint8_t pair = 0;
  std::uint32_t epoch = 0;
  std::uint8_t local = 0, remote = 0;
  std::uint8_t pairs = 1;  ///< How many the path will have.
  QueuePairEndpoint endpoint;
};

struct QueuePairAccept {
  std::uint8_t pair = 0;
  std::uint32_t epoch = 0;
  QueuePairEndpoint endpoint;
};

struct QueuePairReady {
  std::uint8_t pair = 0;
  std::uint32_t epoch = 0;
};

struct QueuePairBroken {
  std::uint8_t pair = 0;
  std::uint32_t epoch = 0;
  Code code = Code::kFailed;
  std::string reason;
};

/// So many immediates were read on this queue pair: as many receives are there again, and their chunks have landed.
struct ImmediatesCounted {
  std::uint8_t pair = 0;
  std::uint32_t epoch = 0;
  std::uint64_t counted = 0;
};

using QueuePairMessage = std::variant<RdmaPorts, QueuePairConnect, QueuePairAccept, QueuePairReady, QueuePairBroken,
                                      MessagesReceived, ImmediatesCounted>;

std::string encode(const QueuePairMessage& message);
/// kCorrupt for what is no message of the queue pairs; kUnsupported for a kind or version that this build lacks.
Result<QueuePairMessage> decode_queue_pair(std::span<const std::byte> bytes);

std::array<std::byte, kMessageHeadSize> encode_head(const MessageHead& head);
/// kCorrupt for what does not begin with one; the message is behind its kMessageHeadSize bytes.
Result<MessageHead> decode_head(std::span<const std::byte> bytes);

}  // namespace hawser::wire
