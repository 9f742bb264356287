#pragma once

// What the two ends of a path tell each other over their unix socket: the handshake, requests for regions, the end.
// docs/wire-shm.md has the same with the layout of the shared segment.
//
// Grammar (little-endian; one packet each; descriptors ride along as SCM_RIGHTS):
//   open   (1) = flags:u8, ring_bytes:u32, probe_address:u64, probe_value:16, hello
//                descriptors: link segment, gate, the opener's doorbell, the acceptor's doorbell
//   accept (2) = flags:u8, probe_address:u64, probe_value:16, hello       descriptors: gate; none when hello refuses
//                flags: 1 this process is registered for membarrier and calls it before it looks at pins
//                       2 this process knows kind 3
//                       4 this process looks at the pins of views, too
//   bind   (3) = request:u32, index:u32, generation:u32, key:16
//   bound  (4) = request:u32, code:u8, kind:u8, rights:u8, size:u64, place:u64, reason:string
//                kind: 1 mapped (place: offset in the file that comes as the descriptor), 2 foreign (place: address),
//                3 adopted: as 1, and after the reason address:u64, head:u64, tail:u64: so many bytes at the two ends
//                are not in the file but at the address
//   bye    (5) = code:u8, gone:u8, reason:string
// Bytes after these are skipped: a newer minor form may have added them.
//
// Thread rule: values and pure functions. Lifetime: a decoded message owns its strings.

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include <hawser/memory.h>
#include <hawser/status.h>

#include "backend/backend.h"
#include "base/id128.h"
#include "wire/hello.h"

namespace hawser::backend::shm {

inline constexpr std::size_t kReasonMax = 512;
inline constexpr std::uint32_t kRingBytesMin = 4096;
inline constexpr std::uint32_t kRingBytesMax = 16u << 20;

/// A word in the sender's own memory that the receiver tries to read by cross-memory attach.
struct Probe {
  std::uint64_t address = 0;
  base::Id128 value;
};

struct Open {
  bool membarrier = false;
  bool ends = true;   ///< Of memory that is mapped but for its ends: kind 3.
  bool views = true;  ///< It looks at the pins of views.
  std::uint32_t ring_bytes = 0;
  Probe probe;
  wire::Hello hello;
};

struct Accept {
  bool membarrier = false;
  bool ends = true;
  bool views = true;
  Probe probe;
  wire::Hello hello;
};

struct Bind {
  std::uint32_t request = 0;
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  base::Id128 key;
};

enum class MemoryKind : std::uint8_t { kMapped = 1, kForeign = 2, kAdopted = 3 };

struct Bound {
  std::uint32_t request = 0;
  Code code = Code::kOk;
  MemoryKind kind = MemoryKind::kMapped;
  Rights rights = Rights::kNone;
  std::uint64_t size = 0;
  std::uint64_t place = 0;
  std::string reason;
  std::uint64_t address = 0, head = 0, tail = 0;  ///< Of kAdopted.
};

struct Bye {
  Code code = Code::kDisconnected;
  bool gone = false;  ///< The whole agent closes, not only this path.
  std::string reason;
};

using Control = std::variant<Open, Accept, Bind, Bound, Bye>;

std::string encode(const Open& message);
std::string encode(const Accept& message);
std::string encode(const Bind& message);
std::string encode(const Bound& message);
std::string encode(const Bye& message);
inline wire::Versions versions_of(const Identity& us) { return {us.version_min, us.version_max}; }

/// kCorrupt for anything that no encode() could have made; kUnsupported naming both ranges for a hello that shares no
/// version with `ours`.
Result<Control> decode_control(std::span<const std::byte> bytes, const wire::Versions& ours = {});

}  // namespace hawser::backend::shm
