#include "compat/outgoing.h"

#include <algorithm>

#include "base/format.h"
#include "base/inside.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

std::uint64_t Outgoing::begin(const Peer& peer, std::size_t bytes) {
  const base::MutexLock lock(mutex_);
  std::erase_if(flows_, [](const auto& each) {
    const Flow& old = each.second;
    return old.peer.state() == PeerState::kDown && old.owed.size() == old.bodies.size();
  });
  Flow& flow = flows_.try_emplace(core_of(peer).get(), Flow{.peer = peer}).first->second;
  if (bytes > kBytesMax - flow.bytes) return 0;
  flow.bytes += bytes;
  flow.bodies.emplace(next_, bytes);
  return next_++;
}

void Outgoing::end(const Peer& peer, std::uint64_t id) {
  const base::MutexLock lock(mutex_);
  const auto found = flows_.find(core_of(peer).get());
  if (found == flows_.end()) return;
  const auto body = found->second.bodies.find(id);
  if (body == found->second.bodies.end()) return;
  found->second.bytes -= body->second;
  found->second.bodies.erase(body);
  if (found->second.bodies.empty()) flows_.erase(found);
}

void Outgoing::drop(const Peer& peer, std::uint64_t id) {
  const Status status = peer.notify(encode_part({.kind = NotificationPart::Kind::kDrop, .id = id}));
  if (status.code() != Code::kBusy) return end(peer, id);
  const base::MutexLock lock(mutex_);
  if (const auto found = flows_.find(core_of(peer).get()); found != flows_.end()) found->second.owed.push_back(id);
}

void Outgoing::pay(const Peer& peer) {
  std::vector<std::uint64_t> owed;
  {
    const base::MutexLock lock(mutex_);
    const auto found = flows_.find(core_of(peer).get());
    if (found == flows_.end()) return;
    owed.swap(found->second.owed);
  }
  for (const std::uint64_t id : owed) drop(peer, id);
}

LongNotification::~LongNotification() {
  if (id_ == 0) return;
  if (told_ || sent_ == 0) {
    all_.end(peer_, id_);
  } else {
    all_.drop(peer_, id_);
  }
}

Status LongNotification::pump() {
  all_.pay(peer_);
  if (id_ == 0) id_ = all_.begin(peer_, text_.size());
  if (id_ == 0) {
    return Status(Code::kBusy,
                  base::format("{} bytes of notifications are under way to {}", Outgoing::kBytesMax, peer_.name()))
        .with_peer(peer_.name());
  }
  while (sent_ < text_.size()) {
    const std::string_view bytes = text_.substr(sent_, kPartBytesMax);
    const Status status = peer_.notify(encode_part({.kind = NotificationPart::Kind::kPart,
                                                    .id = id_,
                                                    .total = static_cast<std::uint32_t>(text_.size()),
                                                    .offset = static_cast<std::uint32_t>(sent_),
                                                    .bytes = bytes}));
    if (!status.ok()) return status;
    sent_ += bytes.size();
  }
  return {};
}

std::string LongNotification::reference() const {
  return encode_part(
      {.kind = NotificationPart::Kind::kWhole, .id = id_, .total = static_cast<std::uint32_t>(text_.size())});
}

}  // namespace compat
HAWSER_NAMESPACE_END
