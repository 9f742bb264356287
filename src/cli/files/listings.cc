#include "cli/files/listings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/fd.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::cli {

Result<std::vector<ListedFile>> walk_folder(int folder, std::string_view name, std::size_t max) {
  namespace fs = std::filesystem;
  const fs::path root = fmt::format("/proc/self/fd/{}/", folder);
  const auto failed = [&](const fs::path& at, const std::error_code& error) {
    const std::string place = (fs::path(name) / at.lexically_relative(root)).lexically_normal().string();
    return base::errno_status(fmt::format("listing '{}'", base::shown(place)), error.value());
  };
  std::vector<ListedFile> files;
  std::error_code error;
  fs::path last = root;  // The walk enters it next, where it is a folder.
  for (fs::recursive_directory_iterator at(root, error); !error && at != fs::end(at); at.increment(error)) {
    last = at->path();
    std::error_code wrong;
    if (at->is_symlink(wrong) || !at->is_regular_file(wrong)) continue;
    const std::uintmax_t size = at->file_size(wrong);
    if (wrong == std::errc::no_such_file_or_directory) continue;
    if (wrong) return failed(last, wrong);
    if (files.size() == max)
      return Status(Code::kUnsupported, fmt::format("'{}' holds more than {} files", base::shown(name), max));
    files.push_back({last.lexically_relative(root).string(), size});
  }
  if (error) return failed(last, error);
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
