#include "backend/verbs/memory/region_keys.h"

#include "base/bytes.h"
#include "base/format.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kKeySize = 4 + 8;

/// Applied once it masks, applied again it unmasks.
RemoteKey masked(const RemoteKey& key, const base::Id128& region_key) {
  return {.iova = key.iova ^ region_key.lo, .rkey = key.rkey ^ static_cast<std::uint32_t>(region_key.hi)};
}

}  // namespace

std::string encode_region_keys(std::span<const RemoteKey> keys, const base::Id128& region_key) {
  std::string text;
  base::ByteWriter out(&text);
  out.u8(kVersion);
  out.u8(static_cast<std::uint8_t>(keys.size()));
  for (const RemoteKey& key : keys) {
    const RemoteKey told = masked(key, region_key);
    out.u32(told.rkey);
    out.u64(told.iova);
  }
  return text;
}

Result<std::vector<RemoteKey>> decode_region_keys(std::string_view bytes, const base::Id128& region_key) {
  if (bytes.empty()) return Status(Code::kUnsupported, "its agent did not register it with an RDMA device");
  base::ByteReader in(bytes);
  const std::uint8_t version = in.u8();
  const std::size_t count = in.u8();
  if (in.ok() && version != kVersion) {
    return Status(Code::kUnsupported,
                  base::format("its keys are of version {}, this build knows {}", version, kVersion));
  }
  if (!in.ok() || count == 0 || count > wire::kPortsMax || in.remaining() != count * kKeySize) {
    return Status(Code::kCorrupt, "the card's keys of the region are malformed");
  }
  std::vector<RemoteKey> keys(count);
  for (RemoteKey& key : keys) {
    key.rkey = in.u32();
    key.iova = in.u64();
    key = masked(key, region_key);
  }
  return keys;
}

}  // namespace hawser::backend::verbs
