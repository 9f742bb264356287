// The door's grants: made by their owner, imported by their holder.

#include <hawser/grant.h>

#include <hawser/agent.h>

#include <string>

#include "agent/core.h"
#include "agent/grant_maker.h"
#include "agent/peer_core.h"
#include "base/bytes.h"
#include "base/inside.h"
#include "base/shown.h"
#include "base/try.h"
#include "wire/grant.h"

namespace hawser::agent {
namespace {

static_assert(kGrantBytesMax == wire::kGrantSizeMax);

Result<Grant> make_grant(const std::shared_ptr<LocalRegion>& region, GrantWish wish, const GrantOptions& options) {
  Core& core = *region->core;
  wish.single_use = options.single_use;
  if (options.peer.valid()) {
    const std::shared_ptr<PeerCore>& peer = core_of(options.peer);
    if (peer->core.lock().get() != &core) {
      return Status(Code::kInvalid,
                    "grant: peer '" + peer->name + "' is known to another agent, not to '" + core.options.name + "'")
          .with_advice("give a peer that this agent's add_peer or find_peer gave");
    }
    wish.holder = peer->incarnation;
  }
  HAWSER_TRY_ASSIGN(auto made, core.grant_maker.make(region, wish));
  return Grant(std::move(made));
}

/// Good, or why this peer's grants do not hold for this agent.
Status check_terms(const Core& core, const PeerCore& owner, const wire::Grant& grant) {
  const std::string whose = "import_grant: the grant of region '" + base::shown(grant.region_name) + "' was made by ";
  if (grant.owner != owner.incarnation) {
    const bool is_namesake = grant.owner_name == owner.name;
    return Status(Code::kNotFound, whose + (is_namesake ? "another incarnation of '" : "agent '") +
                                       base::shown(grant.owner_name) + "'" +
                                       (is_namesake ? "" : ", not by '" + owner.name + "'"))
        .with_peer(owner.name)
        .with_advice(is_namesake ? "grants end with their agent: ask the one that runs now for another"
                                 : "import it by the peer that made it");
  }
  if (grant.holder.is_zero() || grant.holder == core.identity.incarnation) return {};
  return Status(Code::kDenied, whose + "'" + owner.name + "' for another agent than '" + core.options.name + "'")
      .with_peer(owner.name)
      .with_advice("ask its owner for a grant of your own; a restarted agent needs new ones");
}

std::shared_ptr<const RemoteRegion> granted_region(Core& core, const std::shared_ptr<PeerCore>& owner,
                                                   wire::Grant&& grant) {
  const base::MutexLock lock(owner->use().mutex);
  PeerUse::Given& known = owner->use().given(grant.index);
  const auto same = known.handle.lock();
  const bool is_same = same != nullptr && same->generation == grant.generation && same->key == grant.key;
  if (is_same && same->grant.has_value()) return same;
  auto made = remote_region(owner, grant, std::move(grant.region_name));
  made->extras = std::move(grant.extras);
  const Duration lifetime = std::chrono::milliseconds(grant.lifetime_ms);
  made->grant =
      GrantTerms{.lifetime = lifetime, .expired_by = grant.lifetime_ms == 0 ? Instant::max() : core.now() + lifetime};
  if (grant.single_use) {
    const wire::GrantUsed use{.index = grant.index, .generation = grant.generation, .key = grant.key};
    made->once = core.grant_service.make_use(owner, use, known.used == grant.generation);
  }
  known.handle = made;
  return made;
}

Result<GrantedRegion> import_from(const std::shared_ptr<PeerCore>& owner, Core& core, wire::Grant&& grant) {
  HAWSER_TRY(check_terms(core, *owner, grant));
  if (Peer(owner).state() == PeerState::kDown) return down_status(*owner);
  return GrantedRegion(granted_region(core, owner, std::move(grant)));
}

std::string_view ending_of(const RemoteRegion& region, Instant now) {
  return now >= region.grant->expired_by ? "its time is over"
                                         : "its owner revoked it, its time is over, or its region was closed";
}

}  // namespace

Status grant_ended(const RemoteRegion& region, std::string_view call, Instant now) {
  const auto owner = region.peer.lock();
  const std::string whose = owner == nullptr ? std::string() : " of peer '" + owner->name + "'";
  const auto lifetime = std::chrono::duration_cast<std::chrono::milliseconds>(region.grant->lifetime).count();
  const std::string given = lifetime == 0 ? std::string() : "; it was for " + std::to_string(lifetime) + " ms";
  return Status(Code::kDenied, std::string(call) + ": the grant of region '" + base::shown(region.name) + "'" + whose +
                                   " has ended: " + std::string(ending_of(region, now)) + given)
      .with_advice("ask its owner for another grant");
}

}  // namespace hawser::agent

HAWSER_NAMESPACE_BEGIN

Result<Grant> Region::grant(std::uint64_t offset, std::uint64_t size, Rights rights, Duration expiry) const {
  return grant(offset, size, rights, expiry, {});
}

Result<Grant> Region::grant(std::uint64_t offset, std::uint64_t size, Rights rights, Duration expiry,
                            const GrantOptions& options) const {
  if (!core_) return Status(Code::kInvalid, "Region::grant: this handle is empty");
  return agent::make_grant(core_, {.offset = offset, .size = size, .rights = rights, .expiry = expiry}, options);
}

std::string_view Grant::bytes() const { return core_ ? std::string_view(core_->bytes) : std::string_view(); }

bool Grant::ended() const {
  if (!core_) return true;
  return core_->region->state.load(std::memory_order_acquire) == agent::RegionState::kClosed;
}

Status Grant::revoke(Duration timeout) const {
  if (!core_) return Status(Code::kInvalid, "Grant::revoke: this handle is empty");
  agent::Core& core = *core_->region->core;
  if (core.disowned()) return core.usable("Grant::revoke");
  HAWSER_TRY(core.not_inline("Grant::revoke"));
  return core.region_closer.close(std::span(&core_->region, 1), timeout);
}

Result<GrantedRegion> Peer::import_grant(std::span<const std::byte> bytes) const {
  const auto core = core_ ? core_->core.lock() : nullptr;
  if (!core) return Status(Code::kInvalid, "Peer::import_grant: this handle is empty or its agent is gone");
  HAWSER_TRY(core->usable("Peer::import_grant"));
  HAWSER_TRY_ASSIGN(wire::Grant grant, wire::decode_grant(bytes));
  return agent::import_from(core_, *core, std::move(grant));
}

Result<GrantedRegion> Peer::import_grant(std::string_view bytes) const { return import_grant(base::as_bytes(bytes)); }

Result<GrantedRegion> Agent::import_grant(std::span<const std::byte> bytes) const {
  if (!core_) return Status(Code::kInvalid, "Agent::import_grant: this handle is empty");
  HAWSER_TRY(core_->usable("Agent::import_grant"));
  HAWSER_TRY_ASSIGN(wire::Grant grant, wire::decode_grant(bytes));
  const bool is_own = grant.owner == core_->identity.incarnation;
  const std::shared_ptr<agent::PeerCore> owner = is_own ? core_->peer_book.self() : core_->peer_book.known(grant.owner);
  if (owner != nullptr) return agent::import_from(owner, *core_, std::move(grant));
  return Status(Code::kNotFound, "import_grant: the grant of region '" + base::shown(grant.region_name) +
                                     "' was made by an incarnation of agent '" + base::shown(grant.owner_name) +
                                     "' that this agent does not know")
      .with_peer(grant.owner_name)
      .with_advice("find or add that peer first; grants end with their agent");
}

Result<GrantedRegion> Agent::import_grant(std::string_view bytes) const { return import_grant(base::as_bytes(bytes)); }

Peer GrantedRegion::peer() const { return region_ ? Peer(region_->peer.lock()) : Peer(); }
std::uint64_t GrantedRegion::size() const { return region_ ? region_->size : 0; }
Rights GrantedRegion::rights() const { return region_ ? region_->rights : Rights::kNone; }
Device GrantedRegion::device() const { return region_ ? region_->device : Device(); }
std::string_view GrantedRegion::name() const { return region_ ? std::string_view(region_->name) : std::string_view(); }
bool GrantedRegion::single_use() const { return region_ && region_->once != nullptr; }

RemoteRange GrantedRegion::range(std::uint64_t offset, std::uint64_t size) const {
  return {.region = region_, .offset = offset, .size = size};
}

RangeTable GrantedRegion::table(std::uint64_t block_bytes) const {
  if (!region_) return agent::failed_table(Status(Code::kInvalid, "GrantedRegion::table: this handle is empty"));
  return agent::make_block_table(region_, block_bytes);
}

RangeTable GrantedRegion::table(std::span<const StridedRange> ranges) const {
  if (!region_) return agent::failed_table(Status(Code::kInvalid, "GrantedRegion::table: this handle is empty"));
  return agent::make_table(region_, ranges);
}

HAWSER_NAMESPACE_END
