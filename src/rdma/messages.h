#pragma once

// What a holder of a buffer asks of its owner, and the answer, as bytes of one message.
//
// Grammar (little-endian):
//   request = version:u8 1, kind:u8, number:u64, token:id128,
//             [kinds fetch_add and compare_swap: offset:u64, value:u64, expected:u64], [kind handle: name:string]
//   reply   = version:u8 1, kind:u8 3, number:u64, code:u8, value:u64, text:string, advice:string
//   handle  = version:u8 1, kind:u8 6, number:u64, handle:string (grammar in handle.h)
//
// Thread rule: values and pure functions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "base/id128.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

enum class AskKind : std::uint8_t {
  kRelease = 1,
  kFetchAdd = 2,
  kReply = 3,
  kCompareSwap = 4,
  kHandle = 5,
  kHandleReply = 6
};

struct Ask {
  AskKind kind = AskKind::kRelease;
  std::uint64_t number = 0;  ///< The asker's; comes back in the reply.
  base::Id128 token;
  std::uint64_t offset = 0, value = 0, expected = 0;
  std::string name = {};  ///< kHandle: of the buffer.
};

struct Reply {
  std::uint64_t number = 0;
  Status status;
  std::uint64_t value = 0;
  std::string handle = {};  ///< To kHandle, where the status is good.
};

/// One of the two, or neither for bytes that are none of ours.
struct Parsed {
  std::optional<Ask> ask;
  std::optional<Reply> reply;
};

std::string encode(const Ask& ask);
std::string encode(const Reply& reply);
Parsed parse(std::string_view bytes);

}  // namespace rdma
HAWSER_NAMESPACE_END
