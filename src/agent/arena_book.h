#pragma once

// ArenaBook: memory that this agent allocated, so that a region which is registered anywhere in it can be mapped by
// peers, too.
//
// Thread rule: thread-safe. Lifetime: it keeps no arena alive. Memory: at most twice the arenas that live, and 64.

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "backend/arena.h"
#include "base/mutex.h"

namespace hawser::agent {

class ArenaBook {
 public:
  void note(const std::shared_ptr<backend::Arena>& arena);
  /// The arena that these bytes lie in, where peers may map it with these rights. Null: there is none.
  std::shared_ptr<backend::Arena> find(std::span<const std::byte> bytes, Rights rights);
  std::size_t size() const;

 private:
  static constexpr std::size_t kFew = 64;

  mutable base::Mutex mutex_;
  /// By the first byte. Some may be gone.
  std::map<std::uintptr_t, std::weak_ptr<backend::Arena>> arenas_ HAWSER_GUARDED_BY(mutex_);
  std::size_t most_ HAWSER_GUARDED_BY(mutex_) = kFew;  ///< Beyond, those that are gone are taken out.
};

}  // namespace hawser::agent
