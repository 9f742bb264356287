#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/format.h"
#include "base/try.h"
#include "wire/card.h"
#include "wire/card_format.h"

namespace hawser::wire {
namespace {

using base::ByteReader;
using Bytes = std::span<const std::byte>;
namespace form = card_format;

[[gnu::cold, gnu::noinline]] Status corrupt_at(std::size_t offset, std::string_view what) {
  return Status(Code::kCorrupt, base::format("card: {} at byte {}", what, offset));
}

/// A section, or a hole where there is none, and where it stands in the card.
struct Section {
  Bytes bytes;
  std::size_t offset = 0;
  bool present = false;
};

/// Reads a section and knows where it is in the card.
struct SectionReader {
  explicit SectionReader(const Section& section) : in(section.bytes), end(section.offset + section.bytes.size()) {}
  std::size_t at() const { return end - in.remaining(); }

  ByteReader in;
  std::size_t end;
};

struct Frame {
  std::uint16_t version_min = 0, version_max = 0;
  Section head, backends, regions, text, removed;

  Section* find(std::uint16_t kind) {
    switch (kind) {
      case form::kHead:
        return &head;
      case form::kBackends:
        return &backends;
      case form::kRegions:
        return &regions;
      case form::kText:
        return &text;
      case form::kRemoved:
        return &removed;
      default:
        return nullptr;
    }
  }
};

Status check_frame(Bytes bytes) {
  if (bytes.size() < form::kFrameSize) {
    return Status(Code::kCorrupt,
                  base::format("card: {} bytes are less than the {} of an empty one", bytes.size(), form::kFrameSize));
  }
  if (base::load_little_endian<std::uint32_t>(bytes.data()) != kCardMagic)
    return corrupt_at(0, "this is no card: wrong magic");
  if (bytes.size() > kCardSizeMax) {
    return Status(Code::kCorrupt, base::format("card: {} bytes, the most is {}", bytes.size(), kCardSizeMax));
  }
  const std::uint64_t size = base::load_little_endian<std::uint32_t>(bytes.data() + form::kHeaderSize - 4);
  if (size != bytes.size() - form::kFrameSize) {
    return Status(Code::kCorrupt, base::format("card: {} bytes are there, but it says that it has {}: cut off or glued",
                                               bytes.size(), size + form::kFrameSize));
  }
  const std::size_t covered = bytes.size() - kChecksumSize;
  if (checksum(bytes.first(covered)) != base::load_little_endian<std::uint64_t>(bytes.data() + covered)) {
    return corrupt_at(covered, "the checksum does not match");
  }
  return {};
}

Status check_versions(const Frame& frame) {
  if (frame.version_min == 0 || frame.version_min > frame.version_max)
    return corrupt_at(4, "a senseless range of versions");
  const Status apart = agree_version({}, {frame.version_min, frame.version_max}).error();
  if (apart.ok()) return {};
  return Status(apart.code(), base::format("card: {}", apart.message())).with_advice(apart.advice());
}

Status find_sections(Bytes bytes, Frame& frame) {
  ByteReader in(bytes.subspan(form::kHeaderSize, bytes.size() - form::kFrameSize));
  while (!in.at_end()) {
    const std::size_t at = bytes.size() - kChecksumSize - in.remaining();
    const std::uint16_t kind = in.u16();
    const std::uint32_t size = in.u32();
    const std::size_t offset = bytes.size() - kChecksumSize - in.remaining();
    const Bytes content = in.bytes(size);
    if (!in.ok()) return corrupt_at(at, "a section goes past the end");
    Section* section = frame.find(kind);
    if (section == nullptr) {
      if ((kind & form::kCritical) == 0) continue;
      return Status(Code::kUnsupported,
                    base::format("card: section {:#x} at byte {} must be understood and is not", kind, at));
    }
    if (section->present) return corrupt_at(at, "a section that was there before");
    *section = {content, offset, true};
  }
  return frame.head.present ? Status() : corrupt_at(form::kHeaderSize, "there is no head section");
}

Result<Frame> read_frame(Bytes bytes) {
  HAWSER_TRY(check_frame(bytes));
  Frame frame;
  frame.version_min = base::load_little_endian<std::uint16_t>(bytes.data() + 4);
  frame.version_max = base::load_little_endian<std::uint16_t>(bytes.data() + 6);
  HAWSER_TRY(check_versions(frame));
  HAWSER_TRY(find_sections(bytes, frame));
  return frame;
}

Result<CardSummary> read_head(const Frame& frame) {
  SectionReader reader(frame.head);
  ByteReader& in = reader.in;
  CardSummary head;
  head.version_min = frame.version_min;
  head.version_max = frame.version_max;
  const std::uint8_t kind = in.u8();
  head.driven = (in.u8() & form::kDriven) != 0;  // other flags are for later versions and may be passed over
  head.incarnation = in.id();
  head.revision = in.u64();
  head.base_revision = in.u64();
  const Bytes key = in.bytes(32);
  head.born = in.u64();
  head.admission = in.id();
  head.name = in.string(kNameMax);
  if (!in.ok()) return corrupt_at(frame.head.offset, "the head section is malformed");
  if (kind < 1 || kind > static_cast<std::uint8_t>(CardKind::kDelta))
    return corrupt_at(frame.head.offset, "an unknown kind of card");
  head.kind = static_cast<CardKind>(kind);
  if (!is_agent_name(head.name))
    return corrupt_at(reader.at() - head.name.size(), "the agent's name is empty or holds control characters");
  if (head.base_revision > (head.kind == CardKind::kDelta ? head.revision : 0)) {
    return corrupt_at(frame.head.offset, "a senseless base revision");
  }
  std::copy(key.begin(), key.end(), head.public_key.begin());
  return head;
}

// The readers below fill `card` when there is one and return how many entries there are.

Result<std::size_t> read_backends(const Frame& frame, Card* card) {
  SectionReader reader(frame.backends);
  ByteReader& in = reader.in;
  if (!frame.backends.present) return std::size_t{0};
  const std::size_t count = in.count(kCardBackendsMax, form::kBackendSizeMin);
  if (!in.ok()) return corrupt_at(frame.backends.offset, "a senseless number of backends");
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = reader.at();
    const std::string_view name = in.string(kNameMax);
    const std::string_view address = in.string(kCardAddressMax);
    if (!in.ok() || name.empty()) return corrupt_at(at, base::format("backend {} is malformed", i));
    if (card != nullptr) card->backends.push_back({std::string(name), std::string(address)});
  }
  if (!in.finished()) return corrupt_at(reader.at(), "bytes follow the backends");
  return count;
}

class RegionReader {
 public:
  /// `text` is where names and extras will live; null when nothing is built.
  RegionReader(const Frame& frame, std::size_t backends, const char* text)
      : reader_(frame.regions), text_(text), text_size_(frame.text.bytes.size()), backends_(backends) {}

  SectionReader& reader() { return reader_; }
  std::size_t text_used() const { return text_used_; }

  /// False: the entry is malformed.
  bool next(CardRegion& region, std::vector<CardExtra>* extras) {
    ByteReader& in = reader_.in;
    const std::uint64_t index = next_index_ + in.varint(kCardRegionsMax);
    region.index = static_cast<std::uint32_t>(index);
    region.generation = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
    const std::uint8_t flags = in.u8();
    region.rights = static_cast<Rights>(flags & form::kRightsMask);
    region.size = in.varint();
    region.key = in.id();
    if ((flags & ~form::kRightsMask) != 0 && !read_rare(region, flags, extras)) return false;
    next_index_ = index + 1;
    return in.ok() && index < kCardRegionsMax;
  }

 private:
  bool read_rare(CardRegion& region, std::uint8_t flags, std::vector<CardExtra>* extras) {
    ByteReader& in = reader_.in;
    if ((flags & ~form::kRegionFlags) != 0) return false;
    if ((flags & form::kDevice) != 0) {
      region.device.kind = static_cast<DeviceKind>(in.varint(UINT16_MAX));
      region.device.ordinal = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
    }
    const auto name_size = (flags & form::kNamed) != 0 ? static_cast<std::size_t>(in.varint(kNameMax)) : 0;
    const std::size_t extra_count = (flags & form::kExtras) != 0 ? in.count(kCardBackendsMax, 2) : 0;
    if (!take_text(name_size, region.name)) return false;
    region.extra_first = extras != nullptr ? static_cast<std::uint32_t>(extras->size()) : 0;
    region.extra_count = static_cast<std::uint16_t>(extra_count);
    for (std::size_t i = 0; i < extra_count; ++i) {
      CardExtra extra;
      extra.backend = static_cast<std::uint32_t>(in.varint(kCardBackendsMax));
      const auto size = static_cast<std::size_t>(in.varint(kCardExtraMax));
      if (!in.ok() || extra.backend >= backends_ || !take_text(size, extra.bytes)) return false;
      if (++extras_used_ > kCardExtrasMax) return false;
      if (extras != nullptr) extras->push_back(extra);
    }
    return true;
  }

  bool take_text(std::size_t size, std::string_view& view) {
    if (size > text_size_ - text_used_) return false;
    if (text_ != nullptr) view = {text_ + text_used_, size};
    text_used_ += size;
    return true;
  }

  SectionReader reader_;
  const char* text_;
  std::size_t text_size_;
  std::size_t text_used_ = 0;
  std::size_t extras_used_ = 0;
  std::size_t backends_;
  std::uint64_t next_index_ = 0;
};

Result<std::size_t> read_regions(const Frame& frame, std::size_t backends, Card* card) {
  if (card != nullptr && !frame.text.bytes.empty()) {
    card->text = std::make_unique_for_overwrite<char[]>(frame.text.bytes.size());
    std::memcpy(card->text.get(), frame.text.bytes.data(), frame.text.bytes.size());
  }
  RegionReader regions(frame, backends, card != nullptr ? card->text.get() : nullptr);
  ByteReader& in = regions.reader().in;
  const std::size_t count = frame.regions.present ? in.count(kCardRegionsMax, form::kRegionSizeMin) : 0;
  if (!in.ok()) return corrupt_at(frame.regions.offset, "a senseless number of regions");
  if (card != nullptr) card->regions.reserve(count);
  CardRegion unused;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = regions.reader().at();
    CardRegion& region = card != nullptr ? card->regions.emplace_back() : unused;
    if (!regions.next(region, card != nullptr ? &card->extras : nullptr)) {
      return corrupt_at(at, base::format("region entry {} is malformed", i));
    }
  }
  if (!in.finished() && frame.regions.present) return corrupt_at(regions.reader().at(), "bytes follow the regions");
  if (regions.text_used() != frame.text.bytes.size()) {
    return corrupt_at(frame.text.offset + regions.text_used(), "text that belongs to no region");
  }
  return count;
}

Result<std::size_t> read_removed(const Frame& frame, CardKind kind, Card* card) {
  if (!frame.removed.present) return std::size_t{0};
  if (kind != CardKind::kDelta) return corrupt_at(frame.removed.offset, "removals in a card that is no delta");
  SectionReader reader(frame.removed);
  ByteReader& in = reader.in;
  const std::size_t count = in.count(kCardRemovedMax, form::kRemovalSizeMin);
  if (!in.ok()) return corrupt_at(frame.removed.offset, "a senseless number of removals");
  if (card != nullptr) card->removed.reserve(count);
  CardRemoval last;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = reader.at();
    const std::uint64_t step = in.varint(kCardRegionsMax);
    const auto generation = static_cast<std::uint32_t>(in.varint(UINT32_MAX));
    const bool out_of_order = i != 0 && step == 0 && generation <= last.generation;
    if (!in.ok() || last.index + step >= kCardRegionsMax || out_of_order) {
      return corrupt_at(at, base::format("removal {} is malformed", i));
    }
    last = {static_cast<std::uint32_t>(last.index + step), generation};
    if (card != nullptr) card->removed.push_back(last);
  }
  if (!in.finished()) return corrupt_at(reader.at(), "bytes follow the removals");
  return count;
}

Result<CardSummary> read_card(Bytes bytes, Card* card) {
  HAWSER_TRY_ASSIGN(const Frame frame, read_frame(bytes));
  HAWSER_TRY_ASSIGN(CardSummary summary, read_head(frame));
  HAWSER_TRY_ASSIGN(summary.backends, read_backends(frame, card));
  HAWSER_TRY_ASSIGN(summary.regions, read_regions(frame, summary.backends, card));
  HAWSER_TRY_ASSIGN(summary.removed, read_removed(frame, summary.kind, card));
  return summary;
}

}  // namespace

Result<Card> decode_card(Bytes bytes) {
  Card card;
  HAWSER_TRY_ASSIGN(CardSummary summary, read_card(bytes, &card));
  card.version_min = summary.version_min;
  card.version_max = summary.version_max;
  card.kind = summary.kind;
  card.driven = summary.driven;
  card.name = std::move(summary.name);
  card.incarnation = summary.incarnation;
  card.revision = summary.revision;
  card.base_revision = summary.base_revision;
  card.public_key = summary.public_key;
  card.born = summary.born;
  card.admission = summary.admission;
  return card;
}

Result<CardSummary> check_card(Bytes bytes) { return read_card(bytes, nullptr); }

std::string_view Card::extra_of(const CardRegion& region, std::uint32_t backend) const {
  for (const CardExtra& extra : extras_of(region)) {
    if (extra.backend == backend) return extra.bytes;
  }
  return {};
}

int Card::find_backend(std::string_view backend_name) const {
  for (std::size_t i = 0; i < backends.size(); ++i) {
    if (backends[i].name == backend_name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace hawser::wire
