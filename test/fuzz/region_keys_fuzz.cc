// RDMA keys of regions in cards from anyone, after the 16 bytes of the region's own key: decoding answers, and what it
// accepts is written the same way again.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backend/verbs/memory/region_keys.h"
#include "base/bytes.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser::backend::verbs;
  hawser::base::ByteReader in(std::as_bytes(std::span(data, size)));
  const hawser::base::Id128 region_key = in.id();
  if (!in.ok()) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 16, size - 16);
  const auto keys = decode_region_keys(input, region_key);
  if (!keys) return 0;
  HAWSER_ASSERT(!keys->empty(), "no keys, and no reason");
  HAWSER_ASSERT(encode_region_keys(*keys, region_key) == input, "keys changed, or more than keys was accepted");
  return 0;
}
