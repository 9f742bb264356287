#pragma once

// What a card says of a region for this backend: its keys, one for each of the agent's RDMA ports.
//
// Grammar (little-endian): keys = version:u8, count:u8, (rkey:u32, iova:u64)[count]
// A port whose device was gone when the region was registered has zeros. Both are masked with the region's own 128-bit
// key, so that a card whose key is wrong opens nothing. That hides no secret: who has the right card has it all.
//
// Thread rule: pure functions.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "backend/verbs/queues/queue_pair.h"
#include "base/id128.h"

namespace hawser::backend::verbs {

std::string encode_region_keys(std::span<const RemoteKey> keys, const base::Id128& region_key);
/// Empty bytes (nothing registered) are kUnsupported, others that are no keys kCorrupt.
Result<std::vector<RemoteKey>> decode_region_keys(std::string_view bytes, const base::Id128& region_key);

}  // namespace hawser::backend::verbs
