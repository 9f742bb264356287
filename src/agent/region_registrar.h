#pragma once

// RegionRegistrar registers regions: it gives them names, places and keys, has every open backend serve them, and then
// tells of them. Several are registered together: all of them, or none.
//
// Backends register memory without the lane's lock, for a NIC takes seconds for much of it, and heartbeats must go on.
// So backends may open meanwhile, or have something new to say; they are asked before the regions are told of.
//
// Of unlisted regions nobody is told: they are in no card, so they cost the same with any number of peers. A region for
// one holder is kept from backends that cannot tell who uses it.
//
// Thread rule: thread-safe.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>

#include "agent/engine/open_backend.h"
#include "agent/lane_access.h"
#include "agent/life.h"
#include "agent/own_card.h"
#include "agent/region.h"
#include "agent/region_book.h"
#include "agent/region_extras.h"
#include "agent/region_names.h"
#include "base/log.h"
#include "base/small_vector.h"

namespace hawser::agent {

class RegionRegistrar {
 public:
  using Entry = std::shared_ptr<backend::RegionEntry>;  ///< Nobody else's until the table has it.
  using Entries = std::span<const Entry>;

  /// What the rest of the agent does for it.
  class Host {
   public:
    virtual std::shared_ptr<LocalRegion> make(const Entry& entry, bool has_huge_pages) = 0;
    /// Under the lane: a key that nobody can guess.
    virtual base::Id128 make_key() HAWSER_REQUIRES(in_lane) = 0;
    virtual void card_changed() HAWSER_REQUIRES(in_lane) = 0;

   protected:
    ~Host() = default;
  };

  /// What it works on. All of it outlives the registrar.
  struct Parts {
    LaneAccess& lane;
    const base::Logger& log;
    const std::string& agent;
    const Life& life;
    backend::RegionTable& table;
    RegionBook& book;
    RegionNames& names;
    OwnCard& card;
    const std::vector<OpenBackend>& backends;
    Host& host;
    /// The user named the backends, so each of them must serve each region. Else the others do, and the log says why.
    bool must_all_serve = false;
  };
  explicit RegionRegistrar(const Parts& parts) : its_(parts) {}

  /// All of the regions, or why there are none and which entry is wrong.
  struct Registered {
    base::SmallVector<std::shared_ptr<LocalRegion>, 1> regions;
    Status status;
    std::size_t wrong = 0;
  };
  /// `call` is what errors name. The entries outlive the call: pages that are given back after an error are moved
  /// without a lock.
  Registered add(std::string_view call, Entries entries, bool has_huge_pages);

 private:
  struct Serving {
    std::string name;
    std::uint32_t number = 0;
    std::shared_ptr<backend::Backend> backend;  ///< Outlives the lane's own if the agent is closed meanwhile.
    std::uint32_t renewals = 0;                 ///< When it was listed: before it was told of the region.
  };
  using Backends = base::SmallVector<Serving, 4>;  ///< Mostly a region is registered alone: no list takes memory.
  /// A region that backends serve, and that is not in the books yet.
  struct Joining {
    std::shared_ptr<LocalRegion> region;
    std::size_t told = 0;  ///< Backends that serve it, or said that they do not: the first so many.
    RegionExtras extras;   ///< What they want in the card.
  };

  /// Gives them keys, indices and generations; `backends` are those that are open now.
  Status enter_table(std::string_view call, Entries entries, Backends* backends, std::size_t* wrong);
  void list_backends(std::size_t from, Backends* backends) const HAWSER_REQUIRES(in_lane);
  /// An error when one refuses that must serve it.
  Status tell(std::span<const Serving> backends, Joining* joining);
  void book(std::span<Joining> joining) HAWSER_REQUIRES(in_lane);
  /// Of backends whose word of regions has changed since they were listed, what they said may be old.
  void ask_again(std::span<Joining> joining, std::span<const Serving> backends) HAWSER_REQUIRES(in_lane);
  /// False: backends opened since `backends` were listed, and are in it now; they have to be told first.
  bool book_if_all_are_told(std::string_view call, std::span<Joining> joining, Backends* backends, Status* status);
  void drop_unbooked(Entries entries, std::span<const Joining> joining, std::span<const Serving> backends);

  const Parts its_;
};

}  // namespace hawser::agent
