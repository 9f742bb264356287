// Metadata made and loaded.

#include "agent/core.h"
#include "agent/peer_core.h"
#include "agent/session.h"
#include "base/format.h"
#include "base/try.h"
#include "compat/blob.h"
#include "compat/core.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

/// What the newest card of a peer says of its regions, which mostly are asked for in their order.
class CardReader {
 public:
  explicit CardReader(const Peer& peer) {
    const base::MutexLock lock(peer.core()->mutex);
    card_ = peer.core()->card;
  }
  const wire::CardRegion* find(std::uint32_t index) {
    if (!card_) return nullptr;
    const std::vector<wire::CardRegion>& all = card_->regions();
    if (next_ < all.size() && all[next_].index == index) return &all[next_++];
    const wire::CardRegion* const found = card_->find(index);
    if (found != nullptr) next_ = static_cast<std::size_t>(found - all.data()) + 1;
    return found;
  }

 private:
  std::shared_ptr<const agent::CardStore> card_;
  std::size_t next_ = 0;
};

/// What the blob says of the agent's memory, into what is known of it.
Status enter(std::string_view call, const Blob& blob, std::string_view label, Remote& remote) {
  const bool is_main = label.empty();
  if (is_main) remote.has_main = true;
  Remote::Brought* const brought = is_main ? nullptr : &remote.labels[std::string(label)];
  CardReader card(remote.peer);
  std::size_t at = 0;
  for (const BlobEntry& entry : blob.entries) {
    const wire::CardRegion* const region = card.find(entry.region);
    if (region == nullptr || region->size < entry.desc.len) {
      return refusal(NixlCode::kMismatch, call, base::format("the card does not have what registration {} says", at));
    }
    bool stays = is_main;
    std::optional<Book<RemoteSpot>::Entry> old;
    while (remote.book.take(entry.type, entry.desc, kAllBackends, &old)) {  // The newest counts.
      stays = stays || old->range.stays;
    }
    remote.book.add(
        entry.type, entry.desc,
        {.len = entry.desc.len,
         .range = {.index = region->index, .generation = region->generation, .stays = stays, .region = nullptr},
         .backends = kAllBackends});
    if (brought != nullptr) brought->emplace(entry.type, entry.desc.dev, entry.desc.addr, entry.desc.len);
    ++at;
  }
  return {};
}

}  // namespace

Result<std::string> AgentCore::metadata(std::string_view call, const RegDescList* only, const OptArgs* opt) const {
  HAWSER_TRY(need_home(call));
  const std::lock_guard lock(mutex_);
  HAWSER_TRY_ASSIGN(BackendMask mask, mask_of(call, opt));
  mask &= remote_mask_.load(std::memory_order_acquire);
  if (mask == 0) return refusal(NixlCode::kInvalidParam, call, "the agent has no backend that reaches others");
  BlobEntries entries;
  if (only == nullptr) {
    for (const auto& [key, entry] : book_.entries()) {
      const auto& [type, dev, addr] = key;
      if ((entry.backends & mask) == 0 || !entry.range.region) continue;
      entries.add({.type = type, .region = entry.range.index, .desc = {.addr = addr, .len = entry.len, .dev = dev}});
    }
    return encode_blob(name_, entries, [&](std::string* out) { return agent_->core()->append_card(out); });
  }
  std::vector<std::uint32_t> indices;
  indices.reserve(only->size());
  Book<LocalSpot>::Cursor cursor(book_, only->type());
  std::size_t number = 0;
  for (const RegDesc& desc : *only) {
    const std::size_t at = number++;
    std::uint64_t offset = 0;
    const auto* const entry = cursor.find(desc, &offset);
    if (entry == nullptr || (entry->backends & mask) == 0) {
      return refusal(NixlCode::kNotFound, call, base::format("descriptor {} is not registered", at));
    }
    if (!entry->range.region) continue;
    indices.push_back(entry->range.index);
    entries.add({.type = only->type(),
                 .region = indices.back(),
                 .desc = {.addr = desc.addr - offset, .len = entry->len, .dev = desc.dev}});
  }
  return encode_blob(name_, entries,
                     [&](std::string* out) { return agent_->core()->append_partial_card(indices, out); });
}

Result<std::string> AgentCore::load(std::string_view bytes, const std::function<bool()>* is_wanted,
                                    std::string_view label) {
  constexpr std::string_view kCall = "load_remote_md";
  HAWSER_TRY_ASSIGN(const Blob blob, decode_blob(bytes));
  HAWSER_TRY(need_backend(kCall));
  const std::lock_guard lock(mutex_);
  if (is_wanted != nullptr && !(*is_wanted)()) {
    return Status(Code::kCancelled, base::format("{}: agent '{}' was invalidated meanwhile", kCall, blob.agent));
  }
  if (blob.agent == name_) return refusal(NixlCode::kInvalidParam, kCall, "this is the agent's own metadata");
  Result<Peer> peer = agent_->add_peer(blob.card);
  if (!peer) return refusal(NixlCode::kMismatch, kCall, "the card is refused", peer.error());
  Remote next{.peer = *std::move(peer), .book = {}};
  const auto known = remotes_.find(blob.agent);
  // What is known of the same incarnation stays; a restarted agent begins anew.
  if (known != remotes_.end() && known->second.peer.core() == next.peer.core()) next = known->second;
  HAWSER_TRY(enter(kCall, blob, label, next));
  remotes_[std::string(blob.agent)] = std::move(next);
  return std::string(blob.agent);
}

}  // namespace compat
HAWSER_NAMESPACE_END
