#pragma once

// The hello: the first message on every connection, in both directions. It binds a connection to a session of two
// incarnations, agrees on the wire's version, and fences what it supersedes.
//
// Grammar (little-endian):
//   hello   = magic:u32 "HWSR", size:u16 (of all that follows), version_min:u16, version_max:u16, body
//   body    = security:u8, flags:u8, stream:u8, streams:u8, incarnation:16, session:16, token:16, supersedes:16,
//             expects:16, nonce:16, born:u64, admission:u8, proof:32, public_key:32, name:string, status:u8,
//             reason:string, listen:string, tail
//   tail    = bytes that a newer minor form may add; skipped
// A hello that refuses carries status != 0 and the reason; the connection closes after it.

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include <hawser/status.h>

#include "base/id128.h"
#include "wire/link.h"

namespace hawser::wire {

inline constexpr std::uint32_t kHelloMagic = 0x52535748;  // "HWSR"
inline constexpr std::uint16_t kVersionMin = 2;
inline constexpr std::uint16_t kVersionMax = 2;
inline constexpr std::size_t kHelloSizeMax = 1024;
inline constexpr std::size_t kHelloPrefix = 6;  // magic and size: what must be there to know how much follows.
inline constexpr std::size_t kHelloReasonMax = 256;
inline constexpr std::size_t kHelloListenMax = 255;
/// Where `proof` stands in an encoded hello of version 2.
inline constexpr std::size_t kHelloProofAt = kHelloPrefix + 4 + 4 + 6 * 16 + 8 + 1;

/// The versions that somebody speaks, both ends included.
struct Versions {
  std::uint16_t min = kVersionMin, max = kVersionMax;
};

/// How an opener proves itself, and how the acceptor let it in: see "Proof" in docs/wire.md.
enum class Admission : std::uint8_t {
  kNotSaid = 0,   ///< In hellos that refuse, and where the connection itself proves the user (shm).
  kCard = 1,      ///< A MAC by the secret in the acceptor's card.
  kUser = 2,      ///< Each side asks its kernel which user owns the other end.
  kNone = 3,      ///< Nothing is proven: both sides were opened with security `none`.
  kCookie = 4,    ///< A MAC by the secret in a file that only the user can read, where the kernel cannot be asked.
  kIdentity = 5,  ///< Each side shows a certificate by an authority and proves to have its key (over TLS only).
};

using Proof = std::array<std::byte, 32>;

/// Streams of links have these numbers: the first one's and its link's index (backend/stream/message_order.h).
inline constexpr std::uint8_t kLinkStreamFirst = 8;

struct Hello {
  std::uint16_t version_min = kVersionMin, version_max = kVersionMax;
  std::uint8_t security = 0;  ///< 0 none, 1 authenticate, 2 encrypt.
  bool driven = false;        ///< Flag bit 0.
  std::uint8_t stream = 0;    ///< Which of the path's connections this is; 0 opens the session.
  std::uint8_t streams = 1;   ///< How many there will be, beside those of links.
  base::Id128 incarnation;
  base::Id128 session;
  base::Id128 token;  ///< Binds further connections (stream > 0) to the session.
  base::Id128 supersedes;
  base::Id128 expects;     ///< Incarnation that the opener wants to reach; zero: any.
  base::Id128 nonce;       ///< Random for each hello, so that no proof fits another connection.
  std::uint64_t born = 0;  ///< As in the card: orders the incarnations of one name.
  Admission admission = Admission::kNotSaid;
  Proof proof{};  ///< An acceptor's, where it names kCard or kCookie.
  std::array<std::byte, 32> public_key{};
  std::string name;
  Code status = Code::kOk;
  std::string reason;
  /// A place where the speaker can be reached, as in its card; may be empty. Only to ask whether it still listens.
  std::string listen;
};

std::string encode(const Hello& hello);
/// Bytes of the whole hello once the prefix is there; kCorrupt when it is no hello or too long.
Result<std::size_t> hello_size(std::span<const std::byte> prefix);
/// kCorrupt, or kUnsupported naming both ranges when the peer shares no version with `ours`.
Result<Hello> decode_hello(std::span<const std::byte> bytes, const Versions& ours = {});
/// The highest version both sides speak; kUnsupported naming both ranges when there is none.
Result<std::uint16_t> agree_version(const Versions& ours, const Versions& theirs);

}  // namespace hawser::wire
