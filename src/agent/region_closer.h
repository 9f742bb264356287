#pragma once

// RegionCloser closes regions: nobody begins to use a region from then on, and once nobody uses it any more its
// registration ends. A region that its user dropped while somebody used it is looked at from time to time, as a part of
// the lane. Grants of a region are closed with it, and before it.
//
// Thread rule: thread-safe, except where "under the lane" is said.

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hawser/status.h>

#include "agent/engine/open_backend.h"
#include "agent/grant_book.h"
#include "agent/lane_access.h"
#include "agent/life.h"
#include "agent/own_card.h"
#include "agent/part.h"
#include "agent/region.h"
#include "agent/region_book.h"
#include "agent/region_names.h"
#include "base/log.h"

namespace hawser::agent {

class RegionCloser final : public Part {
 public:
  using Regions = std::span<const std::shared_ptr<LocalRegion>>;

  /// Those of the agent, beside its open backends, that use regions. All under the lane.
  class Users {
   public:
    /// Takes in what was submitted before, so that `end_use` finds it.
    virtual void take_submissions(Instant now) HAWSER_REQUIRES(in_lane) = 0;
    /// Ends transfers of this agent that touch the region, and its bindings.
    virtual void end_use(const LocalRegion& region, Instant now) HAWSER_REQUIRES(in_lane) = 0;
    /// Backends that are being opened forget the region if they were told of it.
    virtual void forget(const backend::RegionEntry& region) HAWSER_REQUIRES(in_lane) = 0;
    virtual void card_changed() HAWSER_REQUIRES(in_lane) = 0;

   protected:
    ~Users() = default;
  };

  /// What it works on. All of it outlives the closer.
  struct Parts {
    LaneAccess& lane;
    const Clock& clock;
    const base::Logger& log;
    const std::string& agent;
    const Life& life;
    backend::RegionTable& table;
    RegionBook& book;
    RegionNames& names;
    OwnCard& card;
    GrantBook& grants;
    const std::vector<OpenBackend>& backends;
    Users& users;
  };
  explicit RegionCloser(const Parts& parts) : its_(parts) {}

  /// Waits until nobody uses them. Gives the first error, after all that can be closed are; the others may be closed
  /// again.
  Status close(Regions regions, Duration timeout);
  /// Under the lane: closes it if nobody uses it, and no backend takes long to let it go. False: call `drop`.
  bool close_now(const std::shared_ptr<LocalRegion>& region) HAWSER_REQUIRES(in_lane);
  /// The user's last handle is gone: it is closed now if that takes no time, else later.
  void drop(std::shared_ptr<LocalRegion> region);
  /// Ends the close of those dropped regions that nobody uses any more. May wait for a device, but not under the lane.
  void sweep();
  bool has_dropped() const { return next_deadline() != Instant::max(); }

  /// What the end of an agent leaves.
  struct Abandoned {
    RegionBook::Regions quiet;  ///< Closed.
    RegionBook::Regions left;   ///< Somebody uses them, and nobody will know when that ends.
  };
  /// Under the lane: closes what nobody uses of the book, and gives the rest up. No region is swept any more.
  Abandoned abandon() HAWSER_REQUIRES(in_lane);
  /// After it, without the lane's lock: their memory.
  void release(const Abandoned& abandoned);

  // As a part.
  std::size_t turn(Instant) override {
    set_jobs(true);  // It stays due until somebody has done them.
    return 0;
  }
  void run_jobs(Instant) override {
    if (take_jobs()) sweep();
  }
  void describe(const Visitor& visitor) const override;

 private:
  /// Nobody begins to use them any more.
  void begin(Regions closing) HAWSER_REQUIRES(in_lane);
  /// Begins to close them, and ends it for those that nobody uses. Adds their grants to `granted`, unless it is null.
  void close_the_quiet(Regions closing, RegionBook::Regions* granted);
  /// Ends the close of the quiet ones in `all`, and gives the rest up.
  void part_quiet(Regions all, Abandoned* parted) HAWSER_REQUIRES(in_lane);
  /// Has those of them that no transfer uses let go by backends to which that takes long, without the lane's lock
  /// meanwhile.
  void let_go(Regions closing) HAWSER_REQUIRES(in_lane);
  /// Waits until nobody uses the region.
  Status finish(const std::shared_ptr<LocalRegion>& region, Instant deadline);
  void finish_quiet(Regions quiet) HAWSER_REQUIRES(in_lane);
  bool is_quiet(const LocalRegion& region, std::string* holder) const HAWSER_REQUIRES(in_lane);
  /// Nobody touches this memory any more. It may move pages, so no lock is held.
  void release_pages(const LocalRegion& region) const;

  const Parts its_;
  RegionBook::Regions dropped_ HAWSER_GUARDED_BY(in_lane);  ///< And somebody used them when they were looked at.
  Duration pause_ HAWSER_GUARDED_BY(in_lane){};             ///< Until they are looked at again.
};

}  // namespace hawser::agent
