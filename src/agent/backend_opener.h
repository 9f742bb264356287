#pragma once

// BackendOpener opens an agent's backends: strictly or leniently, each failure kept with its cause. One that is opened
// later is told of the regions that are there, while the agent goes on; it is among the open ones once it knows them
// all.
//
// Thread rule: thread-safe, except where "under the lane" is said.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hawser/agent.h>

#include "agent/backend_reports.h"
#include "agent/engine/open_backend.h"
#include "agent/lane_access.h"
#include "agent/life.h"
#include "agent/own_card.h"
#include "agent/region.h"
#include "agent/region_book.h"
#include "base/log.h"
#include "base/rng.h"
#include "tls/key_pair.h"

namespace hawser::agent {

class BackendOpener {
 public:
  /// What the rest of the agent does for it. All under the lane.
  class Host {
   public:
    /// 64 random bits; repeatable ones where the agent has a seed.
    virtual std::uint64_t draw() HAWSER_REQUIRES(in_lane) = 0;
    /// The lane sleeps on this descriptor, too.
    virtual Status watch_port(int fd) HAWSER_REQUIRES(in_lane) = 0;
    /// From now on the backend is among the open ones.
    virtual void take_in(OpenBackend&& backend) HAWSER_REQUIRES(in_lane) = 0;
    /// One was added to an agent that was open already. It may lead to peers that no other backend leads to.
    virtual void has_more_ways() HAWSER_REQUIRES(in_lane) = 0;

   protected:
    ~Host() = default;
  };

  /// What it works on. All of it outlives the opener.
  struct Parts {
    LaneAccess& lane;
    const Clock& clock;
    const AgentOptions& options;
    const base::Logger& log;
    const Life& life;
    const backend::Identity& identity;
    const std::optional<tls::KeyPair>& keys;
    const std::shared_ptr<identity::Authenticator>& authenticator;
    const std::shared_ptr<backend::PeerGuard>& guard;
    backend::RegionTable& table;
    RegionBook& book;
    OwnCard& card;
    BackendReports& reports;
    const std::vector<OpenBackend>& backends;
    Host& host;
  };
  BackendOpener(const Parts& parts, std::vector<backend::Factory> factories)
      : its_(parts), factories_(std::move(factories)) {}

  /// Those that the options name, else the default ones. An error: the agent cannot be opened.
  Status open_all();
  /// One more. One of the same name that another thread is opening is waited for, up to the default deadline.
  Status add(const BackendSpec& spec);
  /// How many were opened. It only grows.
  std::uint32_t opened() const { return opened_.load(std::memory_order_acquire); }

  /// Under the lane: what the backend says of regions has changed.
  void renew_extras(OpenBackend& open) HAWSER_REQUIRES(in_lane);
  /// Under the lane: the region's close is finished.
  void forget(const backend::RegionEntry& region) HAWSER_REQUIRES(in_lane);
  /// Only system calls: runs in a forked child.
  void disown_after_fork();

 private:
  using Id = std::pair<std::uint32_t, std::uint32_t>;  ///< A region's index and generation.
  /// A backend that is being opened. Its thread has it, and under the lane the others look at it.
  struct Arriving {
    OpenBackend open;
    base::Rng rng{0};
    /// What it said of each region that it was told of.
    std::map<Id, std::string> extras HAWSER_GUARDED_BY(in_lane);
  };
  static Id id_of(const backend::RegionEntry& entry) { return {entry.index, entry.generation}; }

  std::vector<BackendSpec> wanted() const;
  Status open_one(const BackendSpec& spec, BackendReport* report);
  /// Takes its name and number.
  Status announce(Arriving& arriving);
  Status open_announced(const backend::Factory& factory, const BackendSpec& spec, Arriving& arriving,
                        BackendReport* report);
  Params params_of(const BackendSpec& spec, const std::string& name) const;
  Status let_in(Arriving& arriving);
  /// Those in `rest` it has to be told of first; else it is among the open ones now.
  Status seat(Arriving& arriving, RegionBook::Regions* rest) HAWSER_REQUIRES(in_lane);
  RegionBook::Regions untold(const Arriving& arriving) const HAWSER_REQUIRES(in_lane);
  Status tell_of_all(Arriving& arriving, const RegionBook::Regions& all);
  /// One that did not open gives back the regions that it was told of, one by one. False: there are more.
  bool end_arriving(Arriving& arriving);

  const Parts its_;
  const std::vector<backend::Factory> factories_;
  std::uint32_t tried_ HAWSER_GUARDED_BY(in_lane) = 0;
  std::vector<Arriving*> arriving_ HAWSER_GUARDED_BY(in_lane);
  std::atomic<std::uint32_t> arrivals_ended_{0};
  std::atomic<std::uint32_t> opened_{0};
};

}  // namespace hawser::agent
