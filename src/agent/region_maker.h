#pragma once

// RegionMaker makes the agent's regions from what its user has: memory, a wish for memory, or a file. It checks them,
// allocates, opens and adopts, and has the registrar register what came of it.
//
// Thread rule: thread-safe.

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <hawser/agent.h>

#include "agent/arena_book.h"
#include "agent/engine/open_backend.h"
#include "agent/lane_access.h"
#include "agent/life.h"
#include "agent/region.h"
#include "agent/region_closer.h"
#include "agent/region_registrar.h"
#include "base/log.h"

namespace hawser::agent {

class RegionMaker {
 public:
  /// What it works on. All of it outlives the maker.
  struct Parts {
    LaneAccess& lane;
    const Life& life;
    const AgentOptions& options;
    const base::Logger& log;
    const std::vector<OpenBackend>& backends;
    ArenaBook& arenas;
    RegionRegistrar& registrar;
    RegionCloser& closer;
    /// Opens one more backend: a file needs that of files.
    std::function<Status(const BackendSpec&)> add_backend;
  };
  explicit RegionMaker(Parts parts) : its_(std::move(parts)) {}

  using Made = Result<std::shared_ptr<LocalRegion>>;

  Made add(const RegionOptions& wanted);
  /// All of them, or none, and `wrong` is the one that the error is about.
  Status add(std::span<const RegionOptions> wanted, std::vector<std::shared_ptr<LocalRegion>>* made,
             std::size_t* wrong);
  Made allocate(const AllocateOptions& wanted);
  Made add_file(const FileOptions& wanted);

 private:
  /// Why these are no bytes that an agent can serve.
  Status check(const RegionOptions& region);
  RegionRegistrar::Entry entry_of(const RegionOptions& region);
  std::shared_ptr<backend::ForeignPages> hold_pages(const RegionOptions& region);
  Status need_file_backend();
  bool has_open(std::string_view backend);
  /// True where some backend here can reach memory of that device.
  bool is_reached(Device device);
  RegionRegistrar::Registered register_all(std::string_view call, RegionRegistrar::Entries entries,
                                           bool has_huge_pages);
  /// The entry outlives the call: see RegionRegistrar::add.
  Made register_one(std::string_view call, const RegionRegistrar::Entry& entry, bool has_huge_pages);

  const Parts its_;
};

}  // namespace hawser::agent
