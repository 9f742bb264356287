// Metadata made and loaded.

#include <algorithm>

#include "agent/inner.h"
#include "agent/inner_peers.h"
#include "base/bytes.h"
#include "base/format.h"
#include "base/inside.h"
#include "base/try.h"
#include "compat/blob.h"
#include "compat/core.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

/// What each entry is, by the blob's own card: by any other, its index may be another region's.
Result<RemoteCopy> copy_of(std::string_view call, const Blob& blob, const wire::Card& card) {
  RemoteCopy copy{
      .entries = blob.entries, .ids = {}, .revision = card.revision, .is_full = card.kind == wire::CardKind::kFull};
  copy.ids.reserve(blob.entries.size());
  std::size_t next = 0;  // Mostly they stand in the card's order.
  for (const BlobEntry& entry : blob.entries) {
    if (next >= card.regions.size() || card.regions[next].index != entry.region) {
      const auto found = std::ranges::lower_bound(card.regions, entry.region, {}, &wire::CardRegion::index);
      next = static_cast<std::size_t>(found - card.regions.begin());
    }
    const bool is_there = next < card.regions.size() && card.regions[next].index == entry.region &&
                          card.regions[next].size >= entry.desc.len;
    if (!is_there) {
      return refusal(NixlCode::kMismatch, call,
                     base::format("the card does not have what registration {} says", copy.ids.size()));
    }
    const wire::CardRegion& region = card.regions[next++];
    copy.ids.push_back({.index = region.index, .generation = region.generation, .key = region.key});
  }
  return copy;
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
    return encode_blob(name_, true, entries, [&](std::string* out) { return agent::inner::append_card(*agent_, out); });
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
  // As in NIXL: a part of no descriptors is the connection's data; one of some has it where that was asked for.
  const bool introduces = only->empty() || (opt != nullptr && opt->include_connection);
  return encode_blob(name_, introduces, entries,
                     [&](std::string* out) { return agent::inner::append_card(*agent_, indices, out); });
}

Result<std::string> AgentCore::load(std::string_view bytes, const std::function<bool()>* is_wanted,
                                    std::string_view label) {
  constexpr std::string_view kCall = "load_remote_md";
  HAWSER_TRY_ASSIGN(const Blob blob, decode_blob(bytes));
  HAWSER_TRY(need_backend(kCall));
  Result<wire::Card> card = wire::decode_card(base::as_bytes(blob.card));
  if (!card) return refusal(NixlCode::kMismatch, kCall, "the card is refused", card.error());
  if (card->name != blob.agent) {
    return refusal(NixlCode::kMismatch, kCall,
                   base::format("the metadata of agent '{}' holds the card of '{}'", blob.agent, card->name));
  }
  HAWSER_TRY_ASSIGN(const RemoteCopy copy, copy_of(kCall, blob, *card));
  await_end(blob.agent, *card);
  const std::lock_guard lock(mutex_);
  if (is_wanted != nullptr && !(*is_wanted)()) {
    return Status(Code::kCancelled, base::format("{}: agent '{}' was invalidated meanwhile", kCall, blob.agent));
  }
  if (blob.agent == name_) return refusal(NixlCode::kInvalidParam, kCall, "this is the agent's own metadata");
  if (!blob.introduces && !remotes_.contains(blob.agent)) {
    return refusal(NixlCode::kNotFound, kCall,
                   base::format("agent '{}' is not known, and this part has no connection", blob.agent))
        .with_advice("load its metadata first, or have it send this part with the connection's data");
  }
  HAWSER_TRY(agent::inner::usable(*agent_, "add_peer"));
  Result<Peer> peer = agent::inner::take_anew(*agent_, *std::move(card));
  if (!peer) return refusal(NixlCode::kMismatch, kCall, "the card is refused", peer.error());
  HAWSER_TRY_ASSIGN(Remote* const remote, place_of(kCall, blob.agent, *std::move(peer)));
  remote->enter(copy, label);
  Remote& chosen = remotes_.find(blob.agent)->second;
  if (remote != &chosen) return outranked(kCall, chosen.peer);
  return std::string(blob.agent);
}

}  // namespace compat
HAWSER_NAMESPACE_END
