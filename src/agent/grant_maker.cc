#include "agent/grant_maker.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/try.h"

namespace hawser::agent {
namespace {

/// The expiry as the bytes tell it, rounded up. 0: the grant does not expire.
std::uint64_t lifetime_ms(Duration expiry) {
  constexpr Duration kMillisecond = std::chrono::milliseconds(1);
  if (expiry == Duration::max()) return 0;
  const auto whole = static_cast<std::uint64_t>(expiry / kMillisecond);
  return whole + (expiry % kMillisecond > Duration::zero() ? 1 : 0);
}

Status bad_grant(const LocalRegion& parent, const std::string& what) {
  return Status(Code::kInvalid, "grant: " + what + " (region '" + parent.entry->name + "' of " +
                                    std::to_string(parent.entry->size) + " bytes)");
}

std::string_view name_of(Rights rights) {
  return rights == Rights::kRead ? "read" : rights == Rights::kWrite ? "write" : "read and write";
}

}  // namespace

Status GrantMaker::check(const LocalRegion& parent, const GrantWish& wish) {
  const backend::RegionEntry& entry = *parent.entry;
  if (wish.size == 0 || !backend::in_bounds(wish.offset, wish.size, entry.size)) {
    return bad_grant(parent, "offset " + std::to_string(wish.offset) + " and size " + std::to_string(wish.size) +
                                 (wish.size == 0 ? " are no bytes" : " leave the region"));
  }
  if (entry.device.kind != DeviceKind::kHost && entry.device.kind != DeviceKind::kFile) {
    return Status(Code::kUnsupported,
                  "grant: region '" + entry.name + "' is " + to_string(entry.device) +
                      " memory, for which RDMA has one key for each allocation: it would outlive the "
                      "grant")
        .with_advice("list the region in the card, or grant host memory");
  }
  if (wish.rights == Rights::kNone || wish.rights > Rights::kReadWrite) {
    return bad_grant(parent, "a grant gives the right to read, to write, or both");
  }
  if (!allows(entry.rights, wish.rights)) {
    return Status(Code::kDenied,
                  "grant: region '" + entry.name + "' does not give the right to " + std::string(name_of(wish.rights)))
        .with_advice("register the region with Rights that include it, or grant fewer");
  }
  if (wish.expiry <= Duration::zero()) {
    return bad_grant(parent, "an expiry of " + std::to_string(wish.expiry.count()) + " ns is not positive")
        .with_advice("Duration::max() is until the grant is revoked");
  }
  if (lifetime_ms(wish.expiry) > wire::kGrantLifetimeMax) {
    return bad_grant(parent, "an expiry is 100 years at most").with_advice("Duration::max() is until it is revoked");
  }
  return {};
}

RegionRegistrar::Entry GrantMaker::entry_of(const LocalRegion& parent, const GrantWish& wish) {
  const backend::RegionEntry& its = *parent.entry;
  auto entry = std::make_shared<backend::RegionEntry>();
  entry->base = its.base == nullptr ? nullptr : its.base + wish.offset;
  entry->size = wish.size;
  entry->rights = wish.rights;
  entry->device = its.device;
  entry->name = its.name;
  entry->arena = its.arena;
  entry->file = its.file;  // Foreign pages stay the parent's: it alone gives them back.
  entry->file_offset = its.base == nullptr ? its.file_offset + wish.offset : 0;
  entry->listed = false;
  entry->is_grant = true;
  entry->holder = wish.holder;
  if (wish.single_use) entry->once = std::make_shared<backend::SingleUse>();
  return entry;
}

Result<std::shared_ptr<LocalRegion>> GrantMaker::register_it(const std::shared_ptr<LocalRegion>& parent,
                                                             const GrantWish& wish) {
  {
    const InLaneGuard guard(its_.lane);
    HAWSER_TRY(its_.book.begin(*parent));
  }
  const RegionRegistrar::Entry entry = entry_of(*parent, wish);
  RegionRegistrar::Registered made = its_.registrar.add("grant", std::span(&entry, 1), parent->huge_pages);
  if (made.status.ok()) return std::move(made.regions.front());
  const InLaneGuard guard(its_.lane);
  its_.book.give_up(*parent);
  return std::move(made.status);
}

Result<std::string> GrantMaker::encode(const LocalRegion& grant, Duration expiry) const {
  const backend::RegionEntry& entry = *grant.entry;
  wire::Grant told{.owner_name = its_.identity.name,
                   .owner = its_.identity.incarnation,
                   .holder = entry.holder,
                   .key = entry.key,
                   .index = entry.index,
                   .generation = entry.generation,
                   .size = entry.size,
                   .lifetime_ms = lifetime_ms(expiry),
                   .rights = entry.rights,
                   .single_use = entry.once != nullptr,
                   .device = entry.device,
                   .region_name = entry.name};
  grant.extras.for_each([&](std::uint32_t number, std::string_view bytes) {
    const auto open = std::ranges::find(its_.backends, number, &OpenBackend::number);
    if (open != its_.backends.end()) told.extras.emplace_back(open->name, bytes);
  });
  return wire::encode(told);
}

Result<std::string> GrantMaker::tell_whole(const LocalRegion& region) const {
  const auto refuse = [&](std::string_view why) { return bad_grant(region, std::string(why)); };
  if (region.entry->listed) return refuse("the card lists the region");
  if (region.entry->rights == Rights::kNone) return refuse("the region gives no right");
  const InLaneGuard guard(its_.lane);
  if (region.state.load(std::memory_order_acquire) != RegionState::kOpen) return refuse("the region is closed");
  return encode(region, Duration::max());
}

Result<std::shared_ptr<const GrantCore>> GrantMaker::make(const std::shared_ptr<LocalRegion>& parent,
                                                          const GrantWish& wish) {
  HAWSER_TRY(its_.life.usable("grant"));
  HAWSER_TRY(check(*parent, wish));
  auto core = std::make_shared<GrantCore>();
  HAWSER_TRY_ASSIGN(core->region, register_it(parent, wish));
  Status status;
  {
    const InLaneGuard guard(its_.lane);
    Result<std::string> bytes = encode(*core->region, wish.expiry);
    status = bytes.error();
    if (bytes) core->bytes = std::move(*bytes);
    const bool is_open = its_.book.add(parent, core->region, its_.clock.now() + wish.expiry);
    if (!is_open) status = Status(Code::kInvalid, "grant: region '" + parent->entry->name + "' was closed meanwhile");
    its_.ends.note_added();
  }
  if (status.ok()) {
    if (wish.expiry != Duration::max()) its_.lane.wake();  // A driver that sleeps must wake in time for the expiry.
    return std::shared_ptr<const GrantCore>(std::move(core));
  }
  its_.closer.drop(core->region);
  return status;
}

}  // namespace hawser::agent
