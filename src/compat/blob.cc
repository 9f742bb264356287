#include "compat/blob.h"

#include <array>
#include <span>

#include "base/bytes.h"
#include "base/format.h"
#include "base/try.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::string_view kMagic = "hawser/nixl/4\n";
constexpr std::size_t kTextMax = std::size_t{1} << 32;
constexpr std::size_t kEntriesMax = std::size_t{1} << 32;

// An entry's first byte: its type, and what is as the one before it makes likely. The rest follows as varints.
constexpr unsigned kTypeMask = 7;
constexpr unsigned kSameDev = 8;
constexpr unsigned kSameLen = 16;
constexpr unsigned kNextRegion = 32;  ///< One more.
constexpr unsigned kNextAddr = 64;    ///< Where the one before ends.
constexpr unsigned kHeadMax = 127;

/// What a list begins with.
constexpr BlobEntry kBefore{.type = MemType::kDram, .region = UINT32_MAX, .desc = {}};

void put_entry(base::ByteWriter& out, const BlobEntry& entry, const BlobEntry& last) {
  const bool same_dev = entry.desc.dev == last.desc.dev, same_len = entry.desc.len == last.desc.len;
  const bool next_region = entry.region == last.region + 1;  // Wraps.
  const bool next_addr = entry.desc.addr == last.desc.addr + last.desc.len;
  out.u8(static_cast<std::uint8_t>(static_cast<unsigned>(entry.type) | (same_dev ? kSameDev : 0) |
                                   (same_len ? kSameLen : 0) | (next_region ? kNextRegion : 0) |
                                   (next_addr ? kNextAddr : 0)));
  if (!same_dev) out.varint(entry.desc.dev);
  if (!same_len) out.varint(entry.desc.len);
  if (!next_region) out.varint(entry.region);
  if (!next_addr) out.varint(entry.desc.addr);
}

Status corrupt(std::string text) { return Status(Code::kCorrupt, "load_remote_md: " + std::move(text)); }

/// False: of a type that is unknown. What is cut short sticks in the reader.
bool take_entry(base::ByteReader& in, const BlobEntry& last, BlobEntry& entry) {
  const unsigned head = in.u8();
  const unsigned type = head & kTypeMask;
  if (head > kHeadMax || type > static_cast<unsigned>(MemType::kFile)) return false;
  entry.type = static_cast<MemType>(type);
  entry.desc.dev = (head & kSameDev) != 0 ? last.desc.dev : in.varint();
  entry.desc.len = (head & kSameLen) != 0 ? last.desc.len : in.varint();
  entry.region = (head & kNextRegion) != 0 ? last.region + 1 : static_cast<std::uint32_t>(in.varint(UINT32_MAX));
  entry.desc.addr = (head & kNextAddr) != 0 ? last.desc.addr + last.desc.len : in.varint();
  return true;
}

}  // namespace

void BlobEntries::add(const BlobEntry& entry) {
  std::array<std::byte, 1 + 4 * base::kVarintSizeMax> room;  // Appended at once, which costs less than by the field.
  base::ByteWriter out{std::span(room)};
  put_entry(out, entry, count_ == 0 ? kBefore : last_);
  bytes_.append(base::as_text(out.written()));
  last_ = entry;
  ++count_;
}

Result<std::string> encode_blob(std::string_view agent, bool introduces, const BlobEntries& entries,
                                const PutCard& put_card) {
  std::string bytes(kMagic);
  base::ByteWriter out(&bytes);
  out.string(agent);
  out.u8(introduces ? 1 : 0);
  out.varint(entries.count());
  out.bytes(base::as_bytes(entries.bytes()));
  const std::size_t card = out.open_block();
  HAWSER_TRY(put_card(&bytes));
  out.close_block(card);
  return bytes;
}

std::string encode_blob(const Blob& blob) {
  BlobEntries entries;
  for (const BlobEntry& entry : blob.entries) entries.add(entry);
  const auto put_card = [&](std::string* out) {
    out->append(blob.card);
    return Status();
  };
  return *encode_blob(blob.agent, blob.introduces, entries, put_card);
}

Result<Blob> decode_blob(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return corrupt("this is no metadata of Hawser's");
  base::ByteReader in(bytes.substr(kMagic.size()));
  Blob blob;
  blob.agent = in.string(kTextMax);
  const unsigned introduces = in.u8();
  const std::size_t count = in.count(kEntriesMax, 1);
  if (!in.ok() || blob.agent.empty()) return corrupt("the metadata is cut short");
  if (introduces > 1) return corrupt("a wrong head");
  blob.introduces = introduces == 1;
  blob.entries.resize(count);
  const BlobEntry* last = &kBefore;
  for (BlobEntry& entry : blob.entries) {
    if (!take_entry(in, *last, entry)) return corrupt("a memory type is unknown");
    last = &entry;
  }
  blob.card = base::as_text(in.block(kTextMax).rest());
  if (!in.finished()) {
    return corrupt(base::format("the metadata is cut short or too long for {} registrations", count));
  }
  return blob;
}

}  // namespace compat
HAWSER_NAMESPACE_END
