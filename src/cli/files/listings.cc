#include "cli/files/listings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/try.h"

namespace hawser::cli {

Result<std::vector<ListedFile>> walk_folder(int folder, std::string_view name) {
  const std::filesystem::path root = fmt::format("/proc/self/fd/{}/", folder);
  std::vector<ListedFile> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.is_symlink() || !entry.is_regular_file()) continue;
    if (files.size() == kListedMax) {
      return Status(Code::kUnsupported, fmt::format("'{}' holds more than {} files", name, kListedMax));
    }
    files.push_back({entry.path().lexically_relative(root).string(), entry.file_size()});
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<Listing> Listings::get(const Incarnation& client, const std::string& path, std::size_t from, const Walk& walk) {
  if (from > 0) {
    const base::MutexLock lock(mutex_);
    const auto found =
        std::ranges::find_if(kept_, [&](const Kept& each) { return each.client == client && each.path == path; });
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return found->files;
    }
  }
  HAWSER_TRY_ASSIGN(std::vector<ListedFile> files, walk());
  const auto listing = std::make_shared<const std::vector<ListedFile>>(std::move(files));
  drop(client, path);
  const base::MutexLock lock(mutex_);
  kept_.push_front({client, path, listing});
  if (kept_.size() > kKept) kept_.pop_back();
  return Listing(listing);
}

void Listings::drop(const Incarnation& client, const std::string& path) {
  const base::MutexLock lock(mutex_);
  kept_.remove_if([&](const Kept& each) { return each.client == client && each.path == path; });
}

void Listings::drop(const Incarnation& client) {
  const base::MutexLock lock(mutex_);
  kept_.remove_if([&](const Kept& each) { return each.client == client; });
}

std::size_t Listings::kept() const {
  const base::MutexLock lock(mutex_);
  return kept_.size();
}

}  // namespace hawser::cli
