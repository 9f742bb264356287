#pragma once

// FileMaps: memory files of one peer that are mapped here, each once for all regions that lie in it: a peer may lend
// thousands of buffers in one allocation, and a process has 65,530 mappings.
//
// Thread rule: confined to its path's lane. Lifetime: mappings live as long as a binding holds them.

#include <sys/types.h>

#include <map>
#include <memory>
#include <tuple>

#include <hawser/status.h>

#include "backend/shm/mapping.h"

namespace hawser::backend::shm {

class FileMaps {
 public:
  /// The file's first `size` bytes, mapped now or before.
  Result<std::shared_ptr<Mapping>> map(int fd, std::size_t size, Mapping::Access access);
  /// Ends a binding's part. The mapping itself, where nobody else has it; else none.
  static Mapping let_go(std::shared_ptr<Mapping> mapping);
  std::size_t count() const;

 private:
  static constexpr std::size_t kSweepLeast = 64;
  /// Device, number and access: one opened for reading must not serve who writes.
  using Key = std::tuple<dev_t, ino_t, Mapping::Access>;
  std::map<Key, std::weak_ptr<Mapping>> files_;  ///< Some may be gone: then their number may be another file's.
  std::size_t sweep_at_ = kSweepLeast;
};

}  // namespace hawser::backend::shm
