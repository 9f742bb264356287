#pragma once

// Grants: the right to a part of a region, as bytes that any message may carry. The owner makes a grant, a holder
// imports it and uses its ranges in plans, and the owner ends it: at its expiry, by revoking it, or by closing the
// region. The region need not be listed in the owner's card.
//
//   owner:   Result<Grant> grant = region.grant(0, 4096, Rights::kWrite, 5s, {.peer = holder});
//            holder.send(kChannel, grant->bytes(), 1s);
//   holder:  Result<GrantedRegion> target = owner.import_grant(message.bytes);
//            agent.plan_write(owner, {&local, 1}, {&target->range(0, 4096), 1});
//
// A grant has a key of its own, which nobody can guess, and ends with the owner's incarnation. Ending one ends no other
// grant of the same bytes. docs/grants.md says what each backend checks.
//
// Thread rule: handles are values, thread-safe.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <hawser/export.h>
#include <hawser/memory.h>
#include <hawser/peer.h>
#include <hawser/status.h>
#include <hawser/time.h>

namespace hawser::agent {
struct GrantCore;
}

HAWSER_NAMESPACE_BEGIN

struct GrantOptions {
  /// The only peer that may use the grant: this incarnation, and no other agent that gets hold of the bytes. Such a
  /// grant is offered by those backends alone that know which peer an access comes from: not over RDMA, and not by
  /// plug-ins. Empty: whoever has the bytes, and a session with the owner, may use it.
  Peer peer = {};
  /// The grant is for one transfer, which may have any number of ranges. It ends once that is final, however it ended.
  /// Signals and atomic operations do not go with it.
  bool single_use = false;
};

/// Bytes of an encoded grant, at most, so it fits into a message.
inline constexpr std::size_t kGrantBytesMax = 16 * 1024;

/// A grant as its owner has it. Dropping the handle does not end the grant.
///
/// Made by Region::grant(offset, size, rights, expiry, options). `expiry` counts on the owner's clock from now on;
/// Duration::max() is until it is revoked. Errors: kInvalid (no bytes, beyond the region, no rights, an expiry that is
/// not positive, a closed region, a peer of another agent), kDenied (rights that the region does not give), kBusy
/// (AgentLimits::grants or regions), kUnsupported (memory of a GPU; no open backend can keep it for `peer`).
class HAWSER_API Grant {
 public:
  Grant() = default;
  explicit Grant(std::shared_ptr<const agent::GrantCore> core) : core_(std::move(core)) {}

  /// The holder imports these. Everybody who has them may use the grant, unless it is bound to a peer: treat them as a
  /// password. Empty for an empty handle. Lives as long as a copy of this handle.
  std::string_view bytes() const;
  /// Whether it has ended, and nobody touches the memory by it any more. Only looks.
  bool ended() const;
  /// Ends it, and waits until nobody touches the memory by it any more. Only kOk means that. kTimedOut names who still
  /// does; call again to wait further. One that has ended may be revoked, to wait likewise.
  Status revoke(Duration timeout) const;

 private:
  friend struct Inside;
  std::shared_ptr<const agent::GrantCore> core_;
};

/// The part of a peer's memory that a grant gives, as its holder has it. Offsets count from the grant's first byte.
///
/// Made by Peer::import_grant and Agent::import_grant, which ask nobody: that a grant has ended is found out when it is
/// used (kDenied). Errors: kCorrupt (no grant, or damaged), kUnsupported (a newer version), kNotFound (made by another
/// agent or incarnation), kDenied (bound to another peer), kDisconnected (the peer is down).
class HAWSER_API GrantedRegion {
 public:
  GrantedRegion() = default;
  explicit GrantedRegion(std::shared_ptr<const agent::RemoteRegion> region) : region_(std::move(region)) {}

  Peer peer() const;  ///< The owner. Empty for an empty handle, or once this agent has forgotten the owner.
  std::uint64_t size() const;
  Rights rights() const;
  Device device() const;
  std::string_view name() const;  ///< The region's, for people.
  bool single_use() const;

  RemoteRange range(std::uint64_t offset, std::uint64_t size) const;
  RemoteRange whole() const { return range(0, size()); }
  RangeTable table(std::uint64_t block_bytes) const;
  RangeTable table(std::span<const StridedRange> ranges) const;
  RangeTable table(StridedRange ranges) const { return table(std::span<const StridedRange>(&ranges, 1)); }

 private:
  friend struct Inside;
  std::shared_ptr<const agent::RemoteRegion> region_;
};

HAWSER_NAMESPACE_END
