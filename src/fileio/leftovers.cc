#include "fileio/leftovers.h"

#include <utility>

#include "base/mutex.h"

namespace hawser::fileio {
namespace {

struct Leftover {
  std::vector<Pages> used;
  std::unique_ptr<Mover> mover;  ///< Goes first.
};

struct Leftovers {
  base::Mutex mutex;
  std::vector<Leftover> all HAWSER_GUARDED_BY(mutex);
};

Leftovers& leftovers() {
  static Leftovers& kept = *new Leftovers;  // Never destroyed: at exit the kernel still writes.
  return kept;
}

}  // namespace

void keep_until_ended(std::unique_ptr<Mover> mover, std::vector<Pages> used) {
  Leftover leftover{.used = std::move(used), .mover = std::move(mover)};
  if (sweep_leftovers() >= kLeftoversMax) return;  // Its mover waits.
  Leftovers& kept = leftovers();
  const base::MutexLock lock(kept.mutex);
  kept.all.push_back(std::move(leftover));
}

std::size_t sweep_leftovers() {
  Leftovers& kept = leftovers();
  const base::MutexLock lock(kept.mutex);
  std::erase_if(kept.all, [](Leftover& one) { return one.mover->quiet_within(Duration::zero()); });
  return kept.all.size();
}

}  // namespace hawser::fileio
