// The bytes that NIXL calls metadata, and notifications.

#include "api/nixl/agent.h"

namespace hawser::nixl {
namespace {

// magic; u32 length, agent name; u32 length, card; u32 count, then for each registration: u32 type, u32 region, u64
// dev, u64 addr, u64 len. Little-endian. What a card says of regions is checked by the card's own decoder.
constexpr std::string_view kMagic = "hawser/nixl/1\n";

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
    for (std::size_t i = 0; i < taken.size(); ++i)
      value |= std::uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
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
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool good_ = true;
};

}  // namespace

nixl_capi_status_t AgentCore::metadata(const char* call, const RegDlist* only, std::string* out) {
  const std::lock_guard lock(mutex_);
  if (!ucx_) return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "the agent has no backend yet");
  std::string entries;
  std::vector<std::uint32_t> indices;
  const auto add = [&](int type, std::uint64_t dev, std::uint64_t addr, const Book<LocalRange>::Entry& entry) {
    const std::uint32_t region = regions_.find(entry.id)->second.index();
    indices.push_back(region);
    put(entries, static_cast<std::uint64_t>(type), 4);
    put(entries, region, 4);
    put(entries, dev, 8);
    put(entries, addr, 8);
    put(entries, entry.len, 8);
  };
  if (only == nullptr) {
    for (const auto& [key, entry] : book_.entries()) add(std::get<0>(key), std::get<1>(key), std::get<2>(key), entry);
  } else {
    for (const RegDesc& desc : only->all) {
      std::uint64_t offset = 0;
      const auto* const entry = book_.covering(only->type, desc, &offset);
      if (entry == nullptr) return refuse(call, NIXL_CAPI_ERROR_NOT_FOUND, "a descriptor is not registered");
      add(only->type, desc.dev, desc.addr - offset, *entry);
    }
  }
  const Result<std::string> card = only == nullptr ? agent_.card() : agent_.partial_card(indices);
  if (!card) return refuse(call, card.error());
  out->assign(kMagic);
  put(*out, name_);
  put(*out, *card);
  put(*out, indices.size(), 4);
  *out += entries;
  return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t AgentCore::load(const char* call, std::string_view blob, std::string* name) {
  Reader in(blob);
  if (in.take(kMagic.size()) != kMagic) return refuse(call, NIXL_CAPI_ERROR_BACKEND, "this is no metadata of Hawser's");
  const std::string from(in.text());
  const std::string_view card = in.text();
  const std::uint64_t count = in.number(4);
  constexpr std::uint64_t kEntryBytes = 32;
  if (!in.good() || from.empty() || count > blob.size() / kEntryBytes) {
    return refuse(call, NIXL_CAPI_ERROR_BACKEND, "the metadata is cut short");
  }
  const std::lock_guard lock(mutex_);
  if (!ucx_) return refuse(call, NIXL_CAPI_ERROR_BACKEND, "the agent has no backend yet");
  if (from == name_) return refuse(call, NIXL_CAPI_ERROR_INVALID_PARAM, "this is the agent's own metadata");
  Result<Peer> peer = agent_.add_peer(card);
  if (!peer) return refuse(call, NIXL_CAPI_ERROR_BACKEND, peer.error().to_string());
  Book<RemoteRange> book;
  const auto known = remotes_.find(from);
  // What is known of the same incarnation stays; a restarted agent begins anew.
  if (known != remotes_.end() && known->second.peer.core() == peer->core()) book = known->second.book;
  for (std::uint64_t i = 0; i < count; ++i) {
    const int type = static_cast<int>(in.number(4));
    const auto region = static_cast<std::uint32_t>(in.number(4));
    const std::uint64_t dev = in.number(8), addr = in.number(8), len = in.number(8);
    const Result<RemoteRange> range = peer->region(region);
    if (!in.good() || !range || region_info(*range).size < len) {
      return refuse(call, NIXL_CAPI_ERROR_BACKEND, "the metadata's entry " + std::to_string(i) + " is wrong");
    }
    while (book.take(type, dev, addr, len)) {  // The newest counts.
    }
    book.add(type, dev, addr, {.len = len, .range = *range});
  }
  if (!in.at_end()) return refuse(call, NIXL_CAPI_ERROR_BACKEND, "the metadata has bytes left over");
  remotes_[from] = {.peer = std::move(*peer), .book = std::move(book)};
  *name = from;
  return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t AgentCore::notify(const char* call, std::string_view name, std::string_view text) {
  std::optional<Peer> peer;
  {
    const std::lock_guard lock(mutex_);
    if (!ucx_) return refuse(call, NIXL_CAPI_ERROR_BACKEND, "the agent has no backend yet");
    peer = find_peer(name);
  }
  if (!peer) {
    return refuse(call, NIXL_CAPI_ERROR_NOT_FOUND, "no metadata of agent '" + std::string(name) + "' is loaded");
  }
  const Status status = peer->notify(text);
  return status.ok() ? NIXL_CAPI_SUCCESS : refuse(call, NIXL_CAPI_ERROR_BACKEND, status.to_string());
}

void AgentCore::take_notifications(NotifMap* out) {
  poll();
  while (auto one = agent_.take_notification()) {
    out->all[std::string(one->peer.name())].push_back(std::move(one->text));
  }
}

}  // namespace hawser::nixl
