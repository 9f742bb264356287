#include "agent/region_registrar.h"

#include <algorithm>
#include <utility>

#include "base/small_vector.h"

namespace hawser::agent {

void RegionRegistrar::list_backends(std::size_t from, Backends* backends) const {
  for (const OpenBackend& open : std::span(its_.backends).subspan(from)) {
    backends->push_back({open.name, open.number, open.backend, open.renewals});
  }
}

Status RegionRegistrar::enter_table(std::string_view call, Entries entries, Backends* backends, std::size_t* wrong) {
  Status added;
  {
    const InLaneGuard guard(its_.lane);
    for (const Entry& entry : entries) entry->key = its_.host.make_key();
    added = its_.table.add(entries);
    backends->reserve(its_.backends.size());
    list_backends(0, backends);
  }
  if (added.ok()) return added;
  *wrong = std::min<std::size_t>(its_.table.room(), entries.size() - 1);  // The first that had no place.
  its_.names.give_back(entries);
  return Status(added.code(), std::string(call) + ": " + std::string(added.message())).with_advice(added.advice());
}

Status RegionRegistrar::tell(std::span<const Serving> backends, Joining* joining) {
  const backend::RegionEntry& entry = *joining->region->entry;
  const auto keeps_others_away = [](const Serving& each) {
    return each.backend->traits().checks_holder && !each.backend->traits().self_only;
  };
  if (!entry.holder.is_zero() && std::ranges::none_of(backends, keeps_others_away)) {
    return Status(Code::kUnsupported, "no backend here knows which peer uses a grant, so none can keep it for one")
        .with_advice("open tcp, quic or shm beside, or make the grant without a peer");
  }
  for (const Serving& each : backends.subspan(joining->told)) {
    if (!may_serve(each.backend->traits(), entry)) {
      ++joining->told;
      continue;
    }
    Result<std::string> extra = each.backend->add_region(entry);
    if (!extra && its_.must_all_serve) return extra.error();
    ++joining->told;
    if (!extra) {
      HAWSER_LOG(its_.log, kWarn, "{}: region '{}' is not reached by {}: {}", its_.agent, entry.name, each.name,
                 extra.error().to_string());
    } else if (!extra->empty()) {
      joining->extras.add(each.number, *extra);
    }
  }
  return {};
}

void RegionRegistrar::book(std::span<Joining> joining) {
  base::SmallVector<OwnCard::Told, 4> told;
  told.reserve(joining.size());
  for (Joining& each : joining) {
    its_.book.add(each.region);
    if (each.region->entry->listed) {
      told.push_back({.entry = each.region->entry, .extras = std::move(each.extras)});
    } else {
      each.region->extras = std::move(each.extras);
    }
  }
  if (told.empty()) return;
  its_.card.add_regions(told);
  its_.host.card_changed();
}

void RegionRegistrar::ask_again(std::span<Joining> joining, std::span<const Serving> backends) {
  for (std::size_t i = 0; i < backends.size(); ++i) {
    const Serving& its = backends[i];
    if (its_.backends[i].renewals == its.renewals) continue;
    for (Joining& each : joining) each.extras.replace(its.number, its.backend->told(*each.region->entry));
  }
}

bool RegionRegistrar::book_if_all_are_told(std::string_view call, std::span<Joining> joining, Backends* backends,
                                           Status* status) {
  const InLaneGuard guard(its_.lane);
  if (status->ok()) *status = its_.life.usable(call);  // The agent may have been closed meanwhile.
  if (!status->ok()) return true;
  if (its_.backends.size() > backends->size()) {
    list_backends(backends->size(), backends);
    return false;
  }
  ask_again(joining, *backends);
  book(joining);
  return true;
}

void RegionRegistrar::drop_unbooked(Entries entries, std::span<const Joining> joining,
                                    std::span<const Serving> backends) {
  for (const Joining& each : joining) {
    for (std::size_t i = 0; i < each.told; ++i) backends[i].backend->remove_region(*each.region->entry);
  }
  const InLaneGuard guard(its_.lane);
  its_.names.give_back(entries);
  for (const Entry& entry : entries) {
    its_.table.close(entry->index, entry->generation);
    its_.table.remove(entry->index, entry->generation);
  }
}

RegionRegistrar::Registered RegionRegistrar::add(std::string_view call, Entries entries, bool has_huge_pages) {
  Registered made;
  made.status = its_.names.take(call, entries, &made.wrong);
  if (!made.status.ok()) return made;
  Backends backends;
  made.status = enter_table(call, entries, &backends, &made.wrong);
  if (!made.status.ok()) return made;
  base::SmallVector<Joining, 1> joining;
  joining.reserve(entries.size());
  for (const Entry& entry : entries) {
    joining.push_back({.region = its_.host.make(entry, has_huge_pages), .told = 0, .extras = {}});
  }
  do {  // Once more for each backend that opens meanwhile.
    for (std::size_t i = 0; i < entries.size() && made.status.ok(); ++i) {
      made.status = tell(backends, &joining[i]);
      made.wrong = i;
    }
  } while (!book_if_all_are_told(call, joining, &backends, &made.status));
  if (!made.status.ok()) {
    drop_unbooked(entries, joining, backends);
    return made;
  }
  const bool any_listed = std::ranges::any_of(entries, [](const Entry& entry) { return entry->listed; });
  if (any_listed) its_.lane.wake();  // Sessions are to be told.
  made.regions.reserve(joining.size());
  for (Joining& each : joining) made.regions.push_back(std::move(each.region));
  return made;
}

}  // namespace hawser::agent
