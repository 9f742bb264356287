#include "agent/engine/lent_memory.h"

#include <memory>
#include <utility>

#include "agent/peer_core.h"
#include "base/try.h"

namespace hawser::agent {

bool LentMemory::lends(Session& session) const {
  const PathEntry* const control = session.control();
  return control != nullptr && ports_.traits(control->backend).quits_at_once;
}

Result<wire::Lent> LentMemory::lend(const Session& session, std::span<std::byte> bytes) {
  auto entry = std::make_shared<backend::RegionEntry>();
  entry->base = bytes.data();
  entry->size = bytes.size();
  entry->rights = Rights::kWrite;
  entry->key = keys_.make_key();
  entry->listed = false;
  entry->holder = session.peer->incarnation;
  HAWSER_TRY(table_.add(std::span(&entry, 1)));
  return wire::Lent{.index = entry->index, .generation = entry->generation, .key = entry->key};
}

void LentMemory::take_back(const wire::Lent& lent) {
  table_.close(lent.index, lent.generation);
  // Streams write there no more from here on. A process of the same user could have mapped it over shm, by the key that
  // it was given; but whoever runs as this user may write all of this process's memory.
  for (OpenBackend& backend : ports_.all()) {
    static_cast<void>(backend.port->region_quiet(lent.index, lent.generation, nullptr));
  }
  table_.remove(lent.index, lent.generation);
}

}  // namespace hawser::agent
