#pragma once

// BoundRegions: which regions of a peer the paths of its session know, so that they forget those that are gone.
//
// A path keeps a binding of each region that a plan ever took it for: memory, and with some backends a mapping, which
// holds the owner's pages. A binding may go once the peer's card no longer names the region and no handle of it is
// left: plans and transfers hold handles, so nothing can use it then, and no new handle can be had.
//
// A region that came by a grant is named by no card: its binding goes with its last handle, and is looked at from time
// to time. A card costs the same however many of these there are.
//
// Thread rule: under the lane's lock. Memory: as many entries as regions in the card, and those whose handles are kept.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "agent/region.h"

namespace hawser::agent {

class BoundRegions {
 public:
  /// A region's index and generation.
  using Id = std::pair<std::uint32_t, std::uint32_t>;

  void add(const std::shared_ptr<const RemoteRegion>& region) {
    Handles& handles = (region->grant ? granted_ : bound_)[{region->index, region->generation}];
    std::erase_if(handles, [](const auto& handle) { return handle.expired(); });
    const auto is_it = [&](const auto& handle) { return !handle.owner_before(region) && !region.owner_before(handle); };
    if (std::ranges::none_of(handles, is_it)) handles.push_back(region);
  }

  /// The owner has closed it.
  void condemn(Id id) {
    const auto found = bound_.find(id);
    if (found != bound_.end()) condemn(found);
  }

  /// Whether to look at all of them, once cards brought news of as many since the last look.
  bool is_look_due(std::size_t news) {
    news_ += news;
    if (news_ < bound_.size()) return false;
    news_ = 0;
    return true;
  }

  /// A new card is there: `is_named(id)` says whether it names the region.
  template <typename IsNamed>
  void condemn_unless(IsNamed&& is_named) {
    for (auto at = bound_.begin(); at != bound_.end();) {
      const auto each = at++;
      if (!is_named(each->first)) condemn(each);
    }
  }

  /// Calls `unbind(id)` for each that is condemned and of which no handle is left.
  template <typename Unbind>
  void let_go(Unbind&& unbind) {
    let_go_of(condemned_, granted_, unbind);
  }
  /// Calls `unbind(id)` for each that came by a grant and of which no handle is left.
  template <typename Unbind>
  void let_go_granted(Unbind&& unbind) {
    let_go_of(granted_, condemned_, unbind);
  }

  /// Whether handles are left of some that are condemned, or came by grants.
  bool is_waiting() const { return !condemned_.empty() || !granted_.empty(); }
  std::size_t size() const { return bound_.size() + condemned_.size() + granted_.size(); }

 private:
  /// Mostly one. Two only when a peer's cards gave one generation of a region two keys.
  using Handles = std::vector<std::weak_ptr<const RemoteRegion>>;

  template <typename Unbind>
  void let_go_of(std::map<Id, Handles>& some, const std::map<Id, Handles>& others, Unbind& unbind) {
    std::erase_if(some, [&](const auto& each) {
      const auto& [id, handles] = each;
      if (!std::ranges::all_of(handles, [](const auto& handle) { return handle.expired(); })) return false;
      // Else a forged card named it again: the end of that one is the binding's.
      if (!bound_.contains(id) && !others.contains(id)) unbind(id);
      return true;
    });
  }
  void condemn(std::map<Id, Handles>::iterator at) {
    Handles& handles = condemned_[at->first];
    handles.insert(handles.end(), at->second.begin(), at->second.end());
    bound_.erase(at);
  }

  std::map<Id, Handles> bound_;
  std::map<Id, Handles> condemned_;
  std::map<Id, Handles> granted_;
  std::size_t news_ = 0;
};

}  // namespace hawser::agent
