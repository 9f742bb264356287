#pragma once

// Messages between neighbours of a sparse world, as bytes. Each is the body of a session message Send on one of three
// channels, one for each class. A message to a rank that is no neighbour (a message of wire/runtime.h) goes in frames,
// one or several, from neighbour to neighbour, all in its class; the other kinds go from each rank that hears them
// first to all its neighbours. `gone`, `lost` and `graph` go on all three channels: no frame may overtake them.
//
// Grammar (little-endian; varint is LEB128; ranks are those of the world that was opened):
//   message = kind:u8, ...
//   frame   (1) flags:u8, source:varint, target:varint, hops:varint, sequence:varint, acknowledged:varint, piece
//                                                the piece of that number of what the source says to the target; number
//                                                0 has no piece. `hops`: relays that it has passed. `acknowledged`:
//                                                all pieces of the other direction up to that one came. Each class
//                                                has numbers of its own
//   gone    (2) rank:varint                      its session with a neighbour has ended, or it is left out
//   leaving (3) rank:varint                      it has said all that it will say, and relays until all leave
//   graph   (4) generation:varint, bitmap        the world was shrunk to these ranks, and has the graph of them
//   card    (5) rank:varint, card                the card of a rank, before the world is entered
//   lost    (6) rank:varint, other:varint        the rank hears nothing any more of the other, a neighbour
//   flags   = 1: more pieces of the message follow; 2: acknowledge at once
//
// Thread rule: values and pure functions. Lifetime: what is decoded views the bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <hawser/status.h>
#include <hawser/transfer.h>

namespace hawser::wire {

inline constexpr std::uint32_t kRelayChannel = 5;          ///< Class realtime.
inline constexpr std::uint32_t kRelayCriticalChannel = 9;  ///< Frames, gone, lost, graph.
inline constexpr std::uint32_t kRelayBulkChannel = 10;     ///< The same.
inline constexpr std::size_t kRelayPieceMax = 32 * 1024;
inline constexpr std::size_t kRelayHeadMax = 64;  ///< All but a piece, a bitmap or a card.
inline constexpr std::size_t kRelayCardMax = 60 * 1024;
inline constexpr std::size_t kRelayBitmapMax = 8 * 1024;  ///< Bytes: worlds of 65,536 ranks.
inline constexpr std::uint32_t kRelayRankMax = kRelayBitmapMax * 8 - 1;
inline constexpr std::uint64_t kRelayHopsMax = UINT32_MAX;

enum class RelayKind : std::uint8_t { kFrame = 1, kGone = 2, kLeaving = 3, kGraph = 4, kCard = 5, kLost = 6 };

/// By class.
constexpr std::uint32_t relay_channel_of(Priority priority) {
  if (priority == Priority::kCritical) return kRelayCriticalChannel;
  return priority == Priority::kBulk ? kRelayBulkChannel : kRelayChannel;
}
constexpr bool is_relay_channel(std::uint32_t channel) {
  return channel == kRelayChannel || channel == kRelayCriticalChannel || channel == kRelayBulkChannel;
}
/// Of one of the relay's channels.
constexpr Priority class_of_relay(std::uint32_t channel) {
  if (channel == kRelayCriticalChannel) return Priority::kCritical;
  return channel == kRelayBulkChannel ? Priority::kBulk : Priority::kRealtime;
}

/// Fields that the kind does not have are 0.
struct RelayMessage {
  RelayKind kind = RelayKind::kFrame;
  bool has_more = false, asks_at_once = false;
  std::uint32_t source = 0, target = 0;
  std::uint64_t hops = 0;
  std::uint64_t sequence = 0, acknowledged = 0;
  std::uint32_t rank = 0, other = 0;
  std::uint64_t generation = 0;
  std::span<const std::byte> body;  ///< A piece, a bitmap, or a card.
};

/// All but the body, which follows it.
std::string encode(const RelayMessage& message);
/// kCorrupt for all that encode does not write.
Result<RelayMessage> decode_relay(std::span<const std::byte> bytes);

}  // namespace hawser::wire
