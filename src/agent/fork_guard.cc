#include "agent/fork_guard.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "agent/core.h"
#include "base/mutex.h"

namespace hawser::agent {

constinit std::atomic<std::uint32_t> detail::forks{0};

namespace {

struct Registry {
  base::Mutex mutex;
  std::vector<Core*> cores HAWSER_GUARDED_BY(mutex);
};

Registry& registry();

// The three handlers take and leave the lock across a fork, which the checker of lock annotations cannot follow.
void before_fork() HAWSER_NO_THREAD_SAFETY_ANALYSIS { registry().mutex.lock(); }
void after_fork_in_parent() HAWSER_NO_THREAD_SAFETY_ANALYSIS { registry().mutex.unlock(); }
void after_fork_in_child() HAWSER_NO_THREAD_SAFETY_ANALYSIS {
  Registry& its = registry();
  detail::forks.fetch_add(1, std::memory_order_relaxed);
  for (Core* core : its.cores) core->disown_after_fork();
  its.cores.clear();
  its.mutex.unlock();
}

Registry& registry() {
  // Never destroyed: agents may close in static destructors.
  static Registry* const the_registry = [] {
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return new Registry;
  }();
  return *the_registry;
}

}  // namespace

std::uint32_t watch_forks() {
  (void)registry();
  return forks_so_far();
}

void remember_core(Core* core) {
  Registry& its = registry();
  const base::MutexLock lock(its.mutex);
  its.cores.push_back(core);
}

void forget_core(Core* core) {
  Registry& its = registry();
  const base::MutexLock lock(its.mutex);
  std::erase(its.cores, core);
}

}  // namespace hawser::agent
