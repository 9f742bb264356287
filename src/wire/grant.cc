#include "wire/grant.h"

#include <string_view>

#include "base/bytes.h"
#include "base/format.h"
#include "base/try.h"
#include "wire/checksum.h"
#include "wire/limits.h"

namespace hawser::wire {
namespace {

using base::ByteReader;
using base::ByteWriter;
using Bytes = std::span<const std::byte>;

constexpr std::uint8_t kGrantVersion = 1;
enum GrantFlag : std::uint8_t { kGrantRights = 3, kGrantOnce = 4, kGrantDevice = 8, kGrantHolder = 16 };
constexpr std::uint8_t kGrantFlags = 31;
constexpr std::size_t kGrantHead = 5;  // Magic and version.
constexpr std::size_t kGrantSizeMin = kGrantHead + 1 + 16 + 16 + 4 + 1 + 1 + 1 + kChecksumSize;

Status corrupt_grant(std::string_view what) { return Status(Code::kCorrupt, base::format("grant: {}", what)); }

std::uint8_t flags_of(const Grant& grant) {
  const unsigned flags = static_cast<unsigned>(grant.rights) | (grant.single_use ? kGrantOnce : 0) |
                         (grant.device != Device{} ? kGrantDevice : 0) | (grant.holder.is_zero() ? 0 : kGrantHolder);
  return static_cast<std::uint8_t>(flags);
}

/// The same rules for what is written and what is read.
std::string_view fault_of(const Grant& grant) {
  if (!is_agent_name(grant.owner_name)) return "the owner's name is none";
  if (grant.owner.is_zero() || grant.key.is_zero()) return "the owner or the key is zero";
  if (grant.size == 0 || grant.generation == 0) return "it is of no bytes or of no region";
  if (grant.rights == Rights::kNone || grant.rights > Rights::kReadWrite) return "it gives no right";
  if (grant.region_name.size() > kNameMax) return "the region's name is too long";
  if (grant.lifetime_ms > kGrantLifetimeMax) return "it lives too long";
  if (grant.extras.size() > kGrantExtrasMax) return "there are too many backends";
  for (const auto& [backend, bytes] : grant.extras) {
    if (backend.empty() || backend.size() > kNameMax) return "a backend's name is empty or too long";
    if (bytes.size() > kGrantExtraMax) return "a backend's part is too long";
  }
  return {};
}

Status check_grant_frame(Bytes bytes) {
  if (bytes.size() < kGrantSizeMin || bytes.size() > kGrantSizeMax) {
    return corrupt_grant(
        base::format("{} bytes are too {}", bytes.size(), bytes.size() < kGrantSizeMin ? "few" : "many"));
  }
  if (base::load_little_endian<std::uint32_t>(bytes.data()) != kGrantMagic) {
    return corrupt_grant("this is no grant: wrong magic");
  }
  const std::size_t covered = bytes.size() - kChecksumSize;
  if (checksum(bytes.first(covered)) != base::load_little_endian<std::uint64_t>(bytes.data() + covered)) {
    return corrupt_grant("the checksum does not match (cut off or changed)");
  }
  const auto version = std::to_integer<unsigned>(bytes[4]);
  if (version == kGrantVersion) return {};
  return Status(Code::kUnsupported, base::format("grant: version {}, this agent reads {}", version, kGrantVersion));
}

/// False: its flags, its holder or its device are senseless.
bool read_terms(ByteReader& in, Grant& grant) {
  const std::uint8_t flags = in.u8();
  if (flags > kGrantFlags) return false;
  grant.rights = static_cast<Rights>(flags & kGrantRights);
  grant.single_use = (flags & kGrantOnce) != 0;
  grant.owner = in.id();
  if ((flags & kGrantHolder) != 0) {
    grant.holder = in.id();
    if (grant.holder.is_zero()) return false;  // Anybody is said by the flag alone: a grant has one form.
  }
  grant.key = in.id();
  grant.index = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
  grant.generation = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
  grant.size = in.varint();
  grant.lifetime_ms = in.varint(kGrantLifetimeMax);
  if ((flags & kGrantDevice) == 0) return true;
  grant.device.kind = static_cast<DeviceKind>(in.varint(UINT16_MAX));
  grant.device.ordinal = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
  return grant.device != Device{};
}

}  // namespace

Result<std::string> encode(const Grant& grant) {
  if (const std::string_view fault = fault_of(grant); !fault.empty()) {
    return Status(Code::kInvalid, base::format("grant: {}", fault));
  }
  std::string out;
  ByteWriter writer(&out);
  writer.u32(kGrantMagic);
  writer.u8(kGrantVersion);
  writer.u8(flags_of(grant));
  writer.id(grant.owner);
  if (!grant.holder.is_zero()) writer.id(grant.holder);
  writer.id(grant.key);
  writer.varint(grant.index);
  writer.varint(grant.generation);
  writer.varint(grant.size);
  writer.varint(grant.lifetime_ms);
  if (grant.device != Device{}) {
    writer.varint(static_cast<std::uint64_t>(grant.device.kind));
    writer.varint(grant.device.ordinal);
  }
  writer.string(grant.owner_name);
  writer.string(grant.region_name);
  writer.varint(grant.extras.size());
  for (const auto& [backend, bytes] : grant.extras) {
    writer.string(backend);
    writer.string(bytes);
  }
  writer.u64(checksum(base::as_bytes(out)));
  if (out.size() <= kGrantSizeMax) return out;
  return Status(Code::kInvalid, base::format("grant: {} bytes, the most is {}", out.size(), kGrantSizeMax));
}

Result<Grant> decode_grant(Bytes bytes) {
  HAWSER_TRY(check_grant_frame(bytes));
  ByteReader in(bytes.first(bytes.size() - kChecksumSize));
  in.skip(kGrantHead);
  Grant grant;
  if (!read_terms(in, grant)) return corrupt_grant("its flags, its holder or its device are senseless");
  grant.owner_name = in.string(kNameMax);
  grant.region_name = in.string(kNameMax);
  const std::size_t count = in.count(kGrantExtrasMax, 2);
  grant.extras.reserve(count);
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const std::string_view backend = in.string(kNameMax);
    grant.extras.emplace_back(backend, in.string(kGrantExtraMax));
  }
  if (!in.finished()) return corrupt_grant("it is malformed");
  if (const std::string_view fault = fault_of(grant); !fault.empty()) return corrupt_grant(fault);
  return grant;
}

std::span<const std::byte> encode(const GrantUsed& used, GrantUsedBuffer& buffer) {
  ByteWriter out{std::span<std::byte>(buffer)};
  out.u32(used.index);
  out.u32(used.generation);
  out.id(used.key);
  return out.written();
}

Result<GrantUsed> decode_grant_used(Bytes bytes) {
  ByteReader in(bytes);
  GrantUsed used{.index = in.u32(), .generation = in.u32()};
  used.key = in.id();
  if (!in.finished()) return corrupt_grant("what is told of its end is malformed");
  return used;
}

}  // namespace hawser::wire
