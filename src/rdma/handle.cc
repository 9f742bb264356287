#include "rdma/handle.h"

#include "base/bytes.h"
#include "wire/card.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kNamedVersion = 2;

Status bad_handle(const std::string& what) {
  return Status(Code::kCorrupt, "RemoteBuffer::decode: " + what)
      .with_advice("give the bytes that encode() made, whole");
}

Incarnation incarnation_of(const base::Id128& id) {
  Incarnation made;
  for (std::size_t i = 0; i < 8; ++i) {
    made.bytes[i] = static_cast<std::byte>(id.hi >> (56 - 8 * i));
    made.bytes[8 + i] = static_cast<std::byte>(id.lo >> (56 - 8 * i));
  }
  return made;
}

}  // namespace

std::string region_name_of(const base::Id128& token) { return "rdma/" + base::to_hex(token); }

std::uint64_t RemoteBuffer::id() const { return core_ ? core_->id : 0; }
std::string_view RemoteBuffer::name() const { return core_ ? std::string_view(core_->name) : std::string_view(); }
std::string_view RemoteBuffer::owner() const { return core_ ? std::string_view(core_->owner) : std::string_view(); }
Incarnation RemoteBuffer::owner_incarnation() const { return core_ ? core_->incarnation : Incarnation{}; }

std::vector<std::string> RemoteBuffer::contexts() const {
  std::vector<std::string> names;
  if (!core_) return names;
  const Result<wire::Card> card = wire::decode_card(base::as_bytes(core_->card));
  if (!card) return names;
  for (const wire::CardBackend& backend : card->backends) names.emplace_back(backend.name);
  return names;
}

Result<RemoteBuffer> RemoteBuffer::slice(std::uint64_t offset, std::uint64_t size) const {
  if (!core_) return Status(Code::kInvalid, "RemoteBuffer::slice: this handle is empty");
  if (offset > size_ || size > size_ - offset) {
    return Status(Code::kInvalid, "RemoteBuffer::slice: offset " + std::to_string(offset) + " and size " +
                                      std::to_string(size) + " leave the buffer of " + std::to_string(size_) +
                                      " bytes");
  }
  return RemoteBuffer(core_, offset_ + offset, size);
}

std::string RemoteBuffer::encode() const {
  std::string bytes;
  if (!core_) return bytes;
  base::ByteWriter out(&bytes);
  out.u32(kHandleMagic);
  out.u8(core_->name.empty() ? kVersion : kNamedVersion);
  out.u64(core_->id);
  out.id(core_->token);
  out.varint(offset_);
  out.varint(size_);
  out.varint(core_->whole);
  out.string(core_->card);
  if (!core_->name.empty()) out.string(core_->name);
  return bytes;
}

Result<RemoteBuffer> RemoteBuffer::decode(std::span<const std::byte> bytes) {
  base::ByteReader in(bytes);
  if (in.u32() != kHandleMagic || !in.ok()) return bad_handle("these are not the bytes of a handle");
  const std::uint8_t version = in.u8();
  if (in.ok() && version != kVersion && version != kNamedVersion) {
    return Status(Code::kUnsupported, "RemoteBuffer::decode: a handle of version " + std::to_string(version) +
                                          "; this library knows versions 1 and 2")
        .with_advice("use libraries of one release at both sides");
  }
  auto core = std::make_shared<BufferCore>();
  core->id = in.u64();
  core->token = in.id();
  const std::uint64_t offset = in.varint();
  const std::uint64_t size = in.varint();
  core->whole = in.varint();
  core->card = in.string(kHandleCardMax);
  if (version == kNamedVersion) core->name = in.string(kBufferNameMax);
  if (!in.finished()) return bad_handle("a handle of " + std::to_string(bytes.size()) + " bytes, cut or with a tail");
  if (offset > core->whole || size > core->whole - offset) return bad_handle("its part leaves the buffer");
  const Result<wire::CardSummary> card = wire::check_card(base::as_bytes(core->card));
  if (!card) return bad_handle("its card cannot be read").because(card.error());
  core->owner = card->name;
  core->incarnation = incarnation_of(card->incarnation);
  return RemoteBuffer(std::move(core), offset, size);
}

}  // namespace rdma
HAWSER_NAMESPACE_END
