#pragma once

// Listings: the files beneath a folder, found by one walk and told in pages. A client asks for one page after the
// other, so what a walk found is kept for the next of them, and let go of with the last. Without that each page would
// walk the whole tree anew, and a change between two of them would shift what they tell.
//
// Bound: kKept listings; beyond, the one that was asked for longest ago goes, and its next page walks again. Thread
// rule: any thread; a walk is made without the lock.

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <hawser/peer.h>

#include "base/mutex.h"

namespace hawser::cli {

struct ListedFile {
  std::string path;  ///< Within the folder.
  std::uint64_t size = 0;
  friend auto operator<=>(const ListedFile&, const ListedFile&) = default;
};
using Listing = std::shared_ptr<const std::vector<ListedFile>>;

inline constexpr std::size_t kListedMax = 100'000;  ///< Files in one listing.

/// The regular files beneath an open folder, sorted; links are left out, and what goes away meanwhile. A folder in it
/// that cannot be read is an error, which names it. `name` is what errors call the folder itself.
Result<std::vector<ListedFile>> walk_folder(int folder, std::string_view name, std::size_t max = kListedMax);

class Listings {
 public:
  static constexpr std::size_t kKept = 8;
  using Walk = std::function<Result<std::vector<ListedFile>>()>;

  /// The page for the client: files of `path` from the `from`th on. The first page walks; later ones, too, if what the
  /// first found is kept no more.
  Result<Listing> get(const Incarnation& client, const std::string& path, std::size_t from, const Walk& walk);
  /// The client has the last page.
  void drop(const Incarnation& client, const std::string& path);
  /// The client is gone, and asks for no other page of anything.
  void drop(const Incarnation& client);
  std::size_t kept() const;

 private:
  struct Kept {
    Incarnation client;
    std::string path;
    Listing files;
  };

  mutable base::Mutex mutex_;
  std::list<Kept> kept_ HAWSER_GUARDED_BY(mutex_);  ///< The one asked for last is first.
};

}  // namespace hawser::cli
