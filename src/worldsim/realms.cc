#include "worldsim/realms.h"

#include <utility>

namespace hawser::worldsim {

Realm& Realms::open(std::vector<std::size_t> actors, std::uint64_t seed) {
  Realm& realm = *all_.emplace_back(std::make_unique<Realm>());
  realm.uid = new_uid();
  realm.seed = seed;
  realm.actors = std::move(actors);
  realm.parts.resize(realm.actors.size());
  return realm;
}

Realm& Realms::derive(Realm& parent, bool is_group, const std::vector<std::size_t>& actors,
                      const std::function<bool(std::size_t)>& is_gone) {
  for (const auto& realm : all_) {
    if (realm->parent == &parent && realm->is_group == is_group && realm->actors == actors) return *realm;
  }
  Realm& realm = open(actors, parent.seed * 31 + actors.size() * 7 + (is_group ? 3 : 5));
  realm.parent = &parent;
  realm.is_group = is_group;
  realm.epoch = parent.epoch + (is_group ? 0 : 1);
  realm.acts = realm.seed % (is_group ? 4 : 6);
  for (const std::size_t actor : realm.actors) {
    if (!is_gone(actor)) continue;
    doom(realm);
    realm.bereft = realm.doomed;
  }
  return realm;
}

void Realms::doom(Realm& realm) {
  if (!realm.doomed) realm.doomed = universe_.world.now();
}

}  // namespace hawser::worldsim
