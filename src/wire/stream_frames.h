#pragma once

// Frames of the remote-memory protocol over byte streams, and their bytes. Their meaning is told in
// docs/wire-stream.md; who sends them when, in backend/stream/machine.h.
//
// Grammar (little-endian):
//   frame   = head, meta[meta_size], pad, payload[payload_size], pad, trailer (with flag bit 2 of WRITE and DATA)
//   head    = type:u8, flags:u8, meta_size:u16, payload_size:u32
//   pad     = zeros up to the next multiple of 16 bytes of the frame; none after SKIP's payload
//   trailer = outcome:u8, zeros:15. The payload's outcome, which its head could not know.
//   WRITE   : meta = chunk, pieces; payload = the pieces' bytes in order. Flag bit 0: covered,
//             bit 1: durable (regions in files: acknowledged once it is on the device), bit 2: has a trailer.
//   READ    : meta = chunk, total:u32, pieces; no payload. Flag bit 0: covered.
//   DATA    : meta = tag:u32; payload = the next of the bytes that READ asked for, at most kDataMax.
//             Flag bit 0: the last of this READ, bit 2: has a trailer.
//   ACK     : meta = (tag:u24, outcome:u8) 1..kAcksMax times.
//   VOID    : meta = tag:u32, stream:u32, frame:u64: nothing of the WRITE that is that frame (counted from 0) of that
//             stream may land from now on. The answer is an ACK with kVoidedClean or kVoidedMidway, or the WRITE's own.
//   MESSAGE : no meta on stream 0, else meta = ahead:u64: it is to be read after so many that went on stream 0.
//             Payload = the message. Flags: its link; bit 3: the last message of the session, which is to be read
//             after all others. That has meta = ahead:u64, others:u64: so many went on the other streams, if any did.
//             Bit 4: nobody waits for it by itself, so bulk need not step aside for it.
//   BIND    : meta = binding:u32, index:u32, generation:u32, key:16
//   UNBIND  : meta = binding:u32
//   LANDED  : meta = (transfer:u64, chunk:u32) 1..kLandedMax times: covered reads whose bytes are at their reader.
//   PING    : meta = number:u64. PONG: the same number.
//   BYE     : meta = code:u8, reason:string, messages:u64: so many went on other streams before it, and it is to be
//             acted on after them.
//   IDENTITY: no meta; payload = an identity's proof (identity/proof.h): the speaker's certificate was renewed.
//   QUOTAS  : meta = operations:u32, bytes:u64: what the speaker lets its peer have under way there; ahead of the first
//             ACK with kTooManyOperations or kTooManyBytes.
//   SKIP    : a frame that was withdrawn; meta and payload mean nothing.
//   chunk   = transfer:u64, index:u32, tag:u32, binding:u32
//   pieces  = form:u8, count:u16, list. form 0: offset:u64 each, all of the same size (total / count);
//             form 1: (offset:u64, size:u32) each, sizes adding up to the total.
//
// The padding keeps payload at multiples of 16 in the kernel's buffers: copies to and from other places take up to
// three times as long (backend/tcp/NOTES.md).
//
// Decoders are total: any bytes give a value within the bounds below or `false`.
//
// Thread rule: values and pure functions.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <hawser/peer.h>
#include <hawser/status.h>

#include "base/bytes.h"
#include "base/id128.h"

namespace hawser::wire {

enum class FrameType : std::uint8_t {
  kWrite = 1,
  kRead = 2,
  kData = 3,
  kAck = 4,
  kMessage = 5,
  kBind = 6,
  kUnbind = 7,
  kLanded = 8,
  kPing = 9,
  kPong = 10,
  kBye = 11,
  kSkip = 12,
  kVoid = 13,
  kIdentity = 14,
  kQuotas = 15,
};

/// How a chunk fared at its target.
enum class Outcome : std::uint8_t {
  kOk = 0,
  kDenied = 1,        ///< Key, generation or right. Nothing was touched.
  kOutOfBounds = 2,   ///< A piece lies outside the region. Nothing was touched.
  kClosed = 3,        ///< The region closed before any byte landed.
  kClosedMidway = 4,  ///< The region closed while bytes landed: partly written.
  // For regions in files:
  kNoRoom = 5,      ///< No memory to stage it in. Nothing was touched.
  kFileFull = 6,    ///< Disk full, a quota, or RLIMIT_FSIZE. A write may have got some of its bytes into the file.
  kFileFailed = 7,  ///< Shorter than the read, or an error of the device. A write may have left some of its bytes.
  // For chunks that their initiator gave up:
  kVoid = 8,           ///< The end of a void write: it did not arrive; what of it landed is unknown.
  kVoidedClean = 9,    ///< Answers VOID: nothing has landed, and nothing will. The chunk's own ACK is still to come.
  kVoidedMidway = 10,  ///< Answers VOID: something has landed, and nothing more will. Its own ACK is still to come.
  // Beyond what the target lets one peer have under way (QUOTAS). Nothing was touched.
  kTooManyOperations = 11,
  kTooManyBytes = 12,
};
inline constexpr std::uint8_t kOutcomeLast = 12;

inline constexpr std::size_t kFrameHeadSize = 8;
inline constexpr std::size_t kFrameAlign = 16;
/// Bytes that `size` takes with its padding.
constexpr std::uint64_t padded(std::uint64_t size) { return (size + kFrameAlign - 1) & ~(kFrameAlign - 1); }
/// Bytes in front of a frame's payload.
constexpr std::size_t lead_size(std::size_t meta_size) {
  return static_cast<std::size_t>(padded(kFrameHeadSize + meta_size));
}
inline constexpr std::uint8_t kFlagCovered = 1;
inline constexpr std::uint8_t kFlagDurable = 2;
inline constexpr std::uint8_t kFlagLast = 1;     ///< In DATA.
inline constexpr std::uint8_t kFlagTrailer = 4;  ///< In WRITE and DATA.
inline constexpr std::size_t kTrailerSize = 16;
inline constexpr std::uint32_t kPiecesMax = 256;         ///< Pieces in one WRITE or READ.
inline constexpr std::uint32_t kPayloadMax = 16u << 20;  ///< Bytes of one WRITE or READ.
/// Bytes of one DATA frame: what has begun must be completed, and a region that closes waits for no more than this.
inline constexpr std::uint32_t kDataMax = 256u << 10;
inline constexpr std::uint32_t kMessagePayloadMax = kMessageMax + 1024;
inline constexpr std::uint32_t kIdentityPayloadMax = 16 * 1024;
inline constexpr std::uint32_t kTagMax = (1u << 24) - 1;
inline constexpr std::size_t kByeReasonMax = 200;
inline constexpr std::size_t kAheadSize = 8;  ///< Meta of a MESSAGE that is not on stream 0,
inline constexpr std::size_t kLastSize = 16;  ///< and of the last one.
inline constexpr std::uint8_t kFlagsLink = 7;
inline constexpr std::uint8_t kFlagLastMessage = 8;
inline constexpr std::uint8_t kFlagAside = 16;  ///< In MESSAGE: bulk need not step aside for it.
inline constexpr std::size_t kChunkHeadSize = 20;
/// The largest meta: a READ with kPiecesMax pieces of different sizes.
inline constexpr std::size_t kMetaMax = kChunkHeadSize + 4 + 3 + kPiecesMax * 12;
inline constexpr std::size_t kAcksMax = 512;
inline constexpr std::size_t kLandedMax = 64;

struct FrameHead {
  FrameType type = FrameType::kSkip;
  std::uint8_t flags = 0;
  std::uint16_t meta_size = 0;
  std::uint32_t payload_size = 0;
};

struct ChunkHead {
  std::uint64_t transfer = 0;
  std::uint32_t index = 0;
  std::uint32_t tag = 0;
  std::uint32_t binding = 0;
};

/// A range of the target's region. Not initialised: arrays of it are filled by decode_pieces.
struct RemotePiece {
  std::uint64_t remote;
  std::uint64_t size;
};

struct Bind {
  std::uint32_t binding = 0;
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  base::Id128 key;
};

struct Landed {
  std::uint64_t transfer = 0;
  std::uint32_t chunk = 0;
};

/// Which WRITE is void: its tag, and its place among the frames of its stream.
struct VoidWrite {
  std::uint32_t tag = 0;
  std::uint32_t stream = 0;
  std::uint64_t frame = 0;
};
inline constexpr std::size_t kVoidSize = 16;

/// The last word on a path.
struct PathBye {
  Code code = Code::kOk;
  std::string reason;
  std::uint64_t messages = 0;  ///< That went on other streams than this before it.
};

/// What its speaker lets the peer have under way there.
struct Quotas {
  std::uint32_t operations = 0;
  std::uint64_t bytes = 0;
};
inline constexpr std::size_t kQuotasSize = 12;

void encode_head(base::ByteWriter& out, const FrameHead& head);
/// A frame of which nothing was sent says nothing any more; `following` bytes are still behind its meta's pad.
void make_skip(std::byte* head, std::uint32_t following);
/// True where a trailer behind such a frame may say so.
bool is_trailer_of(FrameType type, std::uint8_t outcome);
/// False: no frame may look like this (type, sizes).
bool decode_head(std::span<const std::byte, kFrameHeadSize> bytes, FrameHead* head);

void encode_chunk(base::ByteWriter& out, const ChunkHead& chunk);
bool decode_chunk(base::ByteReader& in, ChunkHead* chunk);

void encode_bind(base::ByteWriter& out, const Bind& bind);
bool decode_bind(base::ByteReader& in, Bind* bind);

void encode_void(base::ByteWriter& out, const VoidWrite& write);
bool decode_void(base::ByteReader& in, VoidWrite* write);
void encode_quotas(base::ByteWriter& out, const Quotas& quotas);
bool decode_quotas(base::ByteReader& in, Quotas* quotas);

constexpr std::uint32_t ack_entry(std::uint32_t tag, Outcome outcome) {
  return tag | static_cast<std::uint32_t>(outcome) << 24;
}
bool decode_ack(std::uint32_t entry, std::uint32_t* tag, Outcome* outcome);

void encode_bye(base::ByteWriter& out, const PathBye& bye);
bool decode_bye(base::ByteReader& in, PathBye* bye);

/// `Piece` has `remote` and `size`; 1..kPiecesMax of them, sizes below 4 GiB.
template <typename Piece>
std::size_t pieces_size(std::span<const Piece> pieces, bool* equal) {
  *equal = true;
  for (const Piece& piece : pieces) *equal = *equal && piece.size == pieces[0].size;
  return 3 + pieces.size() * (*equal ? 8 : 12);
}
template <typename Piece>
void encode_pieces(base::ByteWriter& out, std::span<const Piece> pieces, bool equal) {
  out.u8(equal ? 0 : 1);
  out.u16(static_cast<std::uint16_t>(pieces.size()));
  for (const Piece& piece : pieces) {
    out.u64(piece.remote);
    if (!equal) out.u32(static_cast<std::uint32_t>(piece.size));
  }
}
/// Number of pieces put into `out` (of kPiecesMax); 0 when they are malformed or do not add up to `total`. The caller
/// checks that they lie in the region.
std::size_t decode_pieces(base::ByteReader& in, std::uint64_t total, std::span<RemotePiece, kPiecesMax> out);

}  // namespace hawser::wire
