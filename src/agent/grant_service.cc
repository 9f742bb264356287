#include "agent/grant_service.h"

#include <algorithm>
#include <array>

#include "agent/peer_core.h"
#include "agent/session.h"
#include "base/planted.h"

namespace hawser::agent {
namespace {

constexpr std::array kGrantChannels = {OwnChannel{.id = wire::kGrantChannel, .window = kGrantsWindow}};

}  // namespace

class GrantService::Use final : public OneUse {
 public:
  Use(GrantService& service, std::weak_ptr<PeerCore> owner, const wire::GrantUsed& grant, bool was_used)
      : OneUse(was_used), service_(service), owner_(std::move(owner)), grant_(grant) {}

  void begin() override {
    OneUse::begin();
    const auto owner = owner_.lock();
    if (owner == nullptr) return;
    const base::MutexLock lock(owner->use().mutex);
    owner->use().given(grant_.index).used = grant_.generation;
  }
  void end() override {
    service_.ended_.emplace_back(owner_, grant_);
    service_.carrier_.note_deadline();
  }

 private:
  GrantService& service_;
  const std::weak_ptr<PeerCore> owner_;
  const wire::GrantUsed grant_;
};

std::shared_ptr<OneUse> GrantService::make_use(std::weak_ptr<PeerCore> owner, const wire::GrantUsed& grant,
                                               bool was_used) {
  return std::make_shared<Use>(*this, std::move(owner), grant, was_used);
}

std::span<const OwnChannel> GrantService::channels() const { return kGrantChannels; }

GrantService::Untold* GrantService::known(const Session& session) const {
  return static_cast<Untold*>(session.tenancies[place()].get());
}

std::size_t GrantService::expire(Instant now) {
  const auto ended = std::exchange(ended_, {});
  for (const auto& [peer, grant] : ended) {
    const auto owner = peer.lock();
    Status why;
    Session* const session = owner == nullptr ? nullptr : carrier_.session_with(Peer(owner), &why);
    if (session == nullptr) continue;  // Its grants went with it.
    std::unique_ptr<Tenancy>& its = session->tenancies[place()];
    if (its == nullptr) its = std::make_unique<Untold>();
    session->has_tenancies = true;
    std::vector<wire::GrantUsed>& ends = static_cast<Untold&>(*its).ends;
    if (ends.size() < kGrantEndsMax) ends.push_back(grant);
    carrier_.serve(*session, now);
  }
  return ended.size();
}

bool GrantService::pump(Session& session, std::size_t* work) {
  Untold* const untold = known(session);
  if (untold == nullptr) return true;
  wire::GrantUsedBuffer buffer;
  std::size_t told = 0;
  Sent sent = Sent::kYes;
  for (; told < untold->ends.size(); ++told) {
    sent = carrier_.carry(session, wire::kGrantChannel, wire::encode(untold->ends[told], buffer), {});
    if (sent != Sent::kYes) break;
    ++*work;
  }
  untold->ends.erase(untold->ends.begin(), untold->ends.begin() + static_cast<std::ptrdiff_t>(told));
  return sent != Sent::kNoRoom;
}

Status GrantService::on_message(Session& session, std::uint32_t, std::span<const std::byte> bytes, Instant) {
  const Result<wire::GrantUsed> used = wire::decode_grant_used(bytes);
  if (!used) return used.error();
  carrier_.release_message(session, wire::kGrantChannel, bytes.size());
  assume_in_lane();  // See Service.
  const std::shared_ptr<LocalRegion> grant = book_.find({used->index, used->generation});
  // One that was revoked meanwhile is not there. A peer that has not got the key has no say.
  if (grant == nullptr || grant->entry->once == nullptr || grant->entry->key != used->key) return {};
  const base::Id128& holder = grant->entry->holder;
  if (holder == session.peer->incarnation || base::planted(base::Planted::kReportTrusted)) {
    ends_.end_used(grant);
  } else if (holder.is_zero()) {
    ends_.end(grant);  // Somebody else may have it, too.
  }
  return {};
}

void GrantService::end(Session& session, const Status&) {
  if (Untold* const untold = known(session)) untold->ends.clear();
}

std::size_t GrantService::left(const Session& session) const {
  const Untold* const untold = known(session);
  return untold == nullptr ? 0 : untold->ends.size();
}

void GrantService::describe(const Visitor& visitor) const {
  if (!ended_.empty()) visitor({.who = name(), .what = "owners to be told of an end", .count = ended_.size()});
}

}  // namespace hawser::agent
