#include "backend/shm/file_maps.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/fd.h"
#include "base/try.h"

namespace hawser::backend::shm {

Result<std::shared_ptr<Mapping>> FileMaps::map(int fd, std::size_t size, Mapping::Access access) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return base::errno_status("looking at a peer's memory file", errno);
  const Key key(status.st_dev, status.st_ino, access);
  if (const auto known = files_.find(key); known != files_.end()) {
    std::shared_ptr<Mapping> mapping = known->second.lock();
    if (mapping && mapping->size() >= size) return mapping;
  }
  HAWSER_TRY_ASSIGN(Mapping fresh, Mapping::map(fd, size, access));
  auto mapping = std::make_shared<Mapping>(std::move(fresh));
  if (files_.size() >= sweep_at_) {
    std::erase_if(files_, [](const auto& each) { return each.second.expired(); });
    sweep_at_ = std::max(kSweepLeast, 2 * files_.size());
  }
  files_.insert_or_assign(key, mapping);
  return mapping;
}

Mapping FileMaps::let_go(std::shared_ptr<Mapping> mapping) {
  if (!mapping || mapping.use_count() > 1) return {};
  return std::move(*mapping);
}

std::size_t FileMaps::count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(files_, [](const auto& each) { return !each.second.expired(); }));
}

}  // namespace hawser::backend::shm
