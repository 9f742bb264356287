#include <array>

#include "base/bytes.h"
#include "base/format.h"
#include "base/try.h"
#include "wire/card.h"
#include "wire/card_format.h"
#include "wire/card_source.h"

namespace hawser::wire {
namespace {

using base::ByteWriter;
namespace form = card_format;

template <typename... Values>
Status invalid(fmt::format_string<Values...> text, Values&&... values) {
  return Status(Code::kInvalid, "card: " + base::format(text, std::forward<Values>(values)...));
}

Status check_counts(const Card& card, std::size_t regions) {
  if (!is_agent_name(card.name)) return invalid("the name must be 1 to {} bytes without control characters", kNameMax);
  if (regions > kCardRegionsMax) return invalid("{} regions, the most is {}", regions, kCardRegionsMax);
  if (card.removed.size() > kCardRemovedMax)
    return invalid("{} removals, the most is {}", card.removed.size(), kCardRemovedMax);
  if (card.backends.size() > kCardBackendsMax)
    return invalid("{} backends, the most is {}", card.backends.size(), kCardBackendsMax);
  const bool delta = card.kind == CardKind::kDelta;
  if (!delta && (!card.removed.empty() || card.base_revision != 0))
    return invalid("only a delta removes or builds on another");
  if (card.base_revision > card.revision)
    return invalid("revision {} is older than its base {}", card.revision, card.base_revision);
  for (const CardBackend& backend : card.backends) {
    if (backend.name.empty() || backend.name.size() > kNameMax)
      return invalid("a backend's name has {} bytes", backend.name.size());
    if (backend.address.size() > kCardAddressMax) {
      return invalid("the address of '{}' has {} bytes, the most is {}", backend.name, backend.address.size(),
                     kCardAddressMax);
    }
  }
  return {};
}

Status check_extras(const Card& card, const CardRegion& region, std::span<const CardExtra> extras) {
  if (extras.size() > kCardBackendsMax || extras.size() != region.extra_count)
    return invalid("region {} names extras that are not there", region.index);
  for (const CardExtra& extra : extras) {
    if (extra.backend >= card.backends.size()) return invalid("region {} has an extra of no backend", region.index);
    if (extra.bytes.size() > kCardExtraMax)
      return invalid("region {} has an extra of {} bytes", region.index, extra.bytes.size());
  }
  return {};
}

// `next` is the smallest index that may come.
Status check_region(const Card& card, const CardRegion& region, std::span<const CardExtra> extras, std::uint64_t next) {
  if (region.index < next) return invalid("region {} is out of order", region.index);
  if (region.index >= kCardRegionsMax) return invalid("region index {} is too large", region.index);
  if (region.name.size() > kNameMax)
    return invalid("the name of region {} has {} bytes", region.index, region.name.size());
  if (region.rights > Rights::kReadWrite) return invalid("region {} has unknown rights", region.index);
  return region.extra_count == 0 ? Status() : check_extras(card, region, extras);
}

std::uint8_t flags_of(const CardRegion& region) {
  return static_cast<std::uint8_t>(static_cast<std::uint8_t>(region.rights) | (region.name.empty() ? 0 : form::kNamed) |
                                   (region.device == Device{} ? 0 : form::kDevice) |
                                   (region.extra_count == 0 ? 0 : form::kExtras));
}

// A section's kind and size are written around what `fill` appends.
template <typename Fill>
Status section(ByteWriter& card, std::uint16_t kind, Fill fill) {
  card.u16(kind);
  const std::size_t at = card.open_block();
  HAWSER_TRY(fill(card));
  if (card.size() > kCardSizeMax - kChecksumSize) return invalid("more than {} bytes", kCardSizeMax);
  card.close_block(at);
  return {};
}

Status put_head(const Card& card, ByteWriter& out) {
  out.u8(static_cast<std::uint8_t>(card.kind));
  out.u8(card.driven ? form::kDriven : 0);
  out.id(card.incarnation);
  out.u64(card.revision);
  out.u64(card.base_revision);
  out.bytes(card.public_key);
  out.u64(card.born);
  out.id(card.admission);
  out.string(card.name);
  return {};
}

Status put_backends(const Card& card, ByteWriter& out) {
  out.varint(card.backends.size());
  for (const CardBackend& backend : card.backends) {
    out.string(backend.name);
    out.string(backend.address);
  }
  return {};
}

// Filled on the stack and appended at once: appending each field would cost more than all else.
void put_region(const CardRegion& region, std::span<const CardExtra> extras, std::uint64_t next, ByteWriter& out) {
  constexpr std::size_t kExtrasAtOnce = 4;
  std::array<std::byte, form::kRegionFixedMax + kExtrasAtOnce * 2 * base::kVarintSizeMax> fixed;
  ByteWriter entry{std::span(fixed)};
  entry.varint(region.index - next);
  entry.varint(region.generation);
  entry.u8(flags_of(region));
  entry.varint(region.size);
  entry.id(region.key);
  if (region.device != Device{}) {
    entry.varint(static_cast<std::uint16_t>(region.device.kind));
    entry.varint(region.device.ordinal);
  }
  if (!region.name.empty()) entry.varint(region.name.size());
  if (region.extra_count != 0) entry.varint(region.extra_count);
  const auto put_extras = [](std::span<const CardExtra> some, ByteWriter& to) {
    for (const CardExtra& extra : some) {
      to.varint(extra.backend);
      to.varint(extra.bytes.size());
    }
  };
  const std::size_t first = std::min(extras.size(), kExtrasAtOnce);
  put_extras(extras.first(first), entry);
  out.bytes(entry.written());
  put_extras(extras.subspan(first), out);
}

/// `text` is what the section of that name will hold.
Status put_regions(const Card& card, CardSource& source, ByteWriter& out, std::string* text) {
  const std::size_t count = source.count();
  out.varint(count);
  std::uint64_t next = 0;
  std::size_t extras_seen = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::span<const CardExtra> extras;
    const CardRegion& region = source.next(&extras);
    HAWSER_TRY(check_region(card, region, extras, next));
    put_region(region, extras, next, out);
    next = std::uint64_t{region.index} + 1;
    if (!region.name.empty()) text->append(region.name);
    extras_seen += extras.size();
    if (extras_seen > kCardExtrasMax) return invalid("more than {} extras", kCardExtrasMax);
    for (const CardExtra& extra : extras) text->append(extra.bytes);
  }
  return {};
}

/// The regions of a card itself.
class OwnRegions final : public CardSource {
 public:
  explicit OwnRegions(const Card& card) : card_(card) {}
  std::size_t count() const override { return card_.regions.size(); }
  const CardRegion& next(std::span<const CardExtra>* extras) override {
    const CardRegion& region = card_.regions[at_++];
    // Extras that are missing are left out, and the card says so.
    const std::size_t end = std::size_t{region.extra_first} + region.extra_count;
    *extras = end > card_.extras.size() ? std::span<const CardExtra>() : card_.extras_of(region);
    return region;
  }

 private:
  const Card& card_;
  std::size_t at_ = 0;
};

Status put_removed(const Card& card, ByteWriter& out) {
  out.varint(card.removed.size());
  CardRemoval last;
  for (const CardRemoval& removal : card.removed) {
    const bool first = &removal == card.removed.data();
    const bool later =
        removal.index > last.index || (removal.index == last.index && removal.generation > last.generation);
    if (!first && !later) return invalid("removal of region {} is out of order", removal.index);
    if (removal.index >= kCardRegionsMax) return invalid("region index {} is too large", removal.index);
    out.varint(removal.index - last.index);
    out.varint(removal.generation);
    last = removal;
  }
  return {};
}

}  // namespace

Result<std::string> encode(const Card& card) {
  OwnRegions regions(card);
  std::string out;
  HAWSER_TRY(encode(card, regions, &out));
  return out;
}

Status encode(const Card& card, CardSource& regions, std::string* out) {
  HAWSER_TRY(check_counts(card, regions.count()));
  std::string text;
  constexpr std::size_t kHeadRoom = 512, kRegionRoom = 32;
  out->reserve(out->size() + kHeadRoom + regions.count() * kRegionRoom);
  ByteWriter frame(out);
  frame.u32(kCardMagic);
  frame.u16(card.version_min);
  frame.u16(card.version_max);
  const std::size_t size = frame.open_block();
  HAWSER_TRY(section(frame, form::kHead, [&](ByteWriter& to) { return put_head(card, to); }));
  HAWSER_TRY(section(frame, form::kBackends, [&](ByteWriter& to) { return put_backends(card, to); }));
  if (regions.count() != 0) {
    HAWSER_TRY(section(frame, form::kRegions, [&](ByteWriter& to) { return put_regions(card, regions, to, &text); }));
    HAWSER_TRY(section(frame, form::kText, [&](ByteWriter& to) {
      to.bytes(base::as_bytes(text));
      return Status();
    }));
  }
  if (!card.removed.empty()) {
    HAWSER_TRY(section(frame, form::kRemoved, [&](ByteWriter& to) { return put_removed(card, to); }));
  }
  frame.close_block(size);
  frame.u64(checksum(frame.written()));
  return {};
}

}  // namespace hawser::wire
