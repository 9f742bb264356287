#include "compat/blob.h"

#include "base/format.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::string_view kMagic = "hawser/nixl/1\n";
constexpr std::uint64_t kEntryBytes = 32;

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

void put(std::string& out, std::string_view text) {
  put(out, text.size(), 4);
  out += text;
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t number(int bytes) {
    const std::string_view taken = take(static_cast<std::size_t>(bytes));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    }
    return value;
  }
  std::string_view text() { return take(number(4)); }
  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) {
      good_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  bool good() const { return good_; }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

Status corrupt(std::string text) { return Status(Code::kCorrupt, "load_remote_md: " + std::move(text)); }

}  // namespace

std::string encode_blob(const Blob& blob) {
  std::string out(kMagic);
  out.reserve(out.size() + blob.agent.size() + blob.card.size() + 12 + blob.entries.size() * kEntryBytes);
  put(out, blob.agent);
  put(out, blob.card);
  put(out, blob.entries.size(), 4);
  for (const BlobEntry& entry : blob.entries) {
    put(out, static_cast<std::uint64_t>(entry.type), 4);
    put(out, entry.region, 4);
    put(out, entry.desc.dev, 8);
    put(out, entry.desc.addr, 8);
    put(out, entry.desc.len, 8);
  }
  return out;
}

Result<Blob> decode_blob(std::string_view bytes) {
  Reader in(bytes);
  if (in.take(kMagic.size()) != kMagic) return corrupt("this is no metadata of Hawser's");
  Blob blob;
  blob.agent = in.text();
  blob.card = in.text();
  const std::uint64_t count = in.number(4);
  if (!in.good() || blob.agent.empty()) return corrupt("the metadata is cut short");
  if (in.left() != count * kEntryBytes) {
    return corrupt(base::format("the metadata has {} bytes for {} registrations", in.left(), count));
  }
  blob.entries.resize(count);
  for (BlobEntry& entry : blob.entries) {
    const std::uint64_t type = in.number(4);
    if (type > static_cast<std::uint64_t>(MemType::kFile)) {
      return corrupt(base::format("memory type {} is unknown", type));
    }
    entry.type = static_cast<MemType>(type);
    entry.region = static_cast<std::uint32_t>(in.number(4));
    entry.desc.dev = in.number(8);
    entry.desc.addr = in.number(8);
    entry.desc.len = in.number(8);
  }
  return blob;
}

}  // namespace compat
HAWSER_NAMESPACE_END
