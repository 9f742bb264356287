#pragma once

// What stands behind RemoteBuffer: the handle's content, and what this process found out about it.
//
// A handle is a short head, the owner's card without regions (its name, incarnation, the address of each backend), by
// which a holder reaches an owner that it does not know, and a grant of the buffer's region, which no card lists.
// Backends that a reader does not know are passed over with the card's.
//
// Grammar (little-endian; varint is LEB128, string has a varint length before it):
//   handle = magic:u32 "HWRB", version:u8 3, id:u64, token:id128, offset:varint, size:varint, card:string,
//            grant:string (wire/grant.h), name:string (empty: none)
//   Versions 1 and 2 named a region of the owner's card.
//
// Thread rule: immutable but for `found`, which its mutex guards.

#include <cstdint>
#include <memory>
#include <string>

#include <hawser/memory.h>
#include <hawser/peer.h>
#include <hawser/rdma.h>

#include "base/id128.h"
#include "base/mutex.h"
#include "wire/grant.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

inline constexpr std::uint32_t kHandleMagic = 0x42525748;  // "HWRB"
inline constexpr std::size_t kHandleCardMax = 64 * 1024;
inline constexpr std::size_t kBufferNameMax = 255;
inline constexpr std::size_t kHandleMax = kHandleCardMax + wire::kGrantSizeMax + 1024;

/// The owner and its region, as an agent of this process knows them.
struct Found {
  std::uint64_t engine = 0;  ///< Whose; engines of one process have numbers of their own. 0: nothing was found yet.
  Peer peer;
  RemoteRange whole;     ///< What the grant gives.
  bool is_near = false;  ///< By what was known then, bytes go through shared memory.
};

struct BufferCore {
  std::uint64_t id = 0;
  base::Id128 token;        ///< Names the buffer for ever; whoever shows it may release it.
  std::uint64_t whole = 0;  ///< Bytes of the whole buffer, as the grant says.
  std::string card;         ///< The owner's, of no regions.
  std::string grant;        ///< Gives the buffer's region.
  std::string name = {};    ///< By which its owner lends it, and its owner's next incarnation again; or empty.
  std::string owner;
  Incarnation incarnation;

  base::Mutex mutex;
  Found found HAWSER_GUARDED_BY(mutex);
};

/// Whose a handle or a piece of memory is.
struct EngineId {
  std::uint64_t number = 0;  ///< Engines of one process have numbers of their own.
  Incarnation incarnation;   ///< Its agent's.
  bool owns(const BufferCore& buffer) const { return buffer.incarnation == incarnation; }
};

}  // namespace rdma
HAWSER_NAMESPACE_END
