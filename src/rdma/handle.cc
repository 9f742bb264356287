#include "rdma/handle.h"

#include "base/bytes.h"
#include "base/try.h"
#include "wire/card.h"
#include "wire/grant.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

constexpr std::uint8_t kVersion = 3;

Status bad_handle(const std::string& what) {
  return Status(Code::kCorrupt, "RemoteBuffer::decode: " + what)
      .with_advice("give the bytes that encode() made, whole");
}

/// Good, or why the card and the grant of a handle do not belong together.
Status check_pair(const wire::CardSummary& card, const wire::Grant& grant) {
  if (grant.owner != card.incarnation) return bad_handle("its grant is of another agent than its card");
  if (!grant.holder.is_zero() || grant.single_use) return bad_handle("its grant is not for every holder");
  return {};
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
  out.u8(kVersion);
  out.u64(core_->id);
  out.id(core_->token);
  out.varint(offset_);
  out.varint(size_);
  out.string(core_->card);
  out.string(core_->grant);
  out.string(core_->name);
  return bytes;
}

Result<RemoteBuffer> RemoteBuffer::decode(std::span<const std::byte> bytes) {
  base::ByteReader in(bytes);
  if (in.u32() != kHandleMagic || !in.ok()) return bad_handle("these are not the bytes of a handle");
  const std::uint8_t version = in.u8();
  if (in.ok() && version != kVersion) {
    const std::string_view whose = version < kVersion ? "an earlier" : "a later";
    return Status(Code::kUnsupported, "RemoteBuffer::decode: the handle is of version " + std::to_string(version) +
                                          ", by " + std::string(whose) + " release; this library reads version " +
                                          std::to_string(kVersion))
        .with_advice("use libraries of one release at both sides, and ask the owner for the handle anew");
  }
  auto core = std::make_shared<BufferCore>();
  core->id = in.u64();
  core->token = in.id();
  const std::uint64_t offset = in.varint();
  const std::uint64_t size = in.varint();
  core->card = in.string(kHandleCardMax);
  core->grant = in.string(wire::kGrantSizeMax);
  core->name = in.string(kBufferNameMax);
  if (!in.finished()) return bad_handle("a handle of " + std::to_string(bytes.size()) + " bytes, cut or with a tail");
  const Result<wire::Grant> grant = wire::decode_grant(base::as_bytes(core->grant));
  if (!grant) return bad_handle("its grant cannot be read").because(grant.error());
  core->whole = grant->size;
  if (offset > core->whole || size > core->whole - offset) return bad_handle("its part leaves the buffer");
  const Result<wire::CardSummary> card = wire::check_card(base::as_bytes(core->card));
  if (!card) return bad_handle("its card cannot be read").because(card.error());
  HAWSER_TRY(check_pair(*card, *grant));
  core->owner = card->name;
  core->incarnation = incarnation_of(card->incarnation);
  return RemoteBuffer(std::move(core), offset, size);
}

}  // namespace rdma
HAWSER_NAMESPACE_END
