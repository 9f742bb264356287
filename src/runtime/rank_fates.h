#pragma once

// RankFates: what this rank knows of the others of one world: who failed, who is lost, who left, whose end is proven;
// whether this rank itself is excluded, or the world revoked. And why nothing can be done together any more.
//
// A rank that is *lost* has no session with this one, and nobody has decided yet which of the two fails. What is once
// noted stands.
//
// Thread rule: under the lane's lock, but for `failures_so_far`.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <hawser/status.h>

namespace hawser::runtime {

class RankFates {
 public:
  struct Site {
    std::string world;
    std::uint32_t size = 0;
    /// Names the agent of a rank.
    std::function<std::string(std::uint32_t)> name_of;
  };

  /// Before all else.
  void open(Site site) { site_ = std::move(site); }

  // ---- What happens. Each answers false where nothing is new by it.

  /// Not of one that has left.
  bool note_failed(std::uint32_t rank, const Status& cause);
  /// Not of one that has failed or left, and not once this rank is excluded.
  bool note_lost(std::uint32_t rank, const Status& cause);
  bool note_left(std::uint32_t rank) { return left_.insert(rank).second; }
  /// Its end is proven, or it left.
  bool note_dead(std::uint32_t rank) { return dead_.insert(rank).second; }
  /// The others hold this rank for failed.
  bool exclude(const Status& why);
  bool revoke(const Status& why);
  /// The user knows of all failures so far.
  void acknowledge() { unacknowledged_ = {}; }

  // ---- What is known.

  bool has_failed(std::uint32_t rank) const { return failed_.contains(rank); }
  bool has_any_failed() const { return !failed_.empty(); }
  bool has_left(std::uint32_t rank) const { return left_.contains(rank); }
  bool is_dead(std::uint32_t rank) const { return dead_.contains(rank); }
  bool is_excluded() const { return !excluded_.ok(); }
  bool is_revoked() const { return !revoked_.ok(); }
  /// Good where that rank has not failed, or is not lost.
  Status failure(std::uint32_t rank) const;
  Status loss(std::uint32_t rank) const;
  const Status& excluded() const { return excluded_; }
  const Status& revoked() const { return revoked_; }
  const Status& first_failure() const { return first_failure_; }
  /// The first failure since `acknowledge`.
  const Status& unacknowledged() const { return unacknowledged_; }
  /// Ranks that failed, in their order,
  std::vector<std::uint32_t> failed() const;
  /// in the order in which it was found,
  const std::vector<std::uint32_t>& failures() const { return failures_; }
  /// and how many. Any thread.
  std::size_t failures_so_far() const { return failures_so_far_.load(std::memory_order_acquire); }
  /// Ranks with which nothing can be done any more: they failed, or are lost and have not left.
  std::vector<std::uint32_t> unusable() const;
  /// By rank.
  std::vector<bool> dead() const;
  std::uint32_t count_dead() const { return static_cast<std::uint32_t>(dead_.size()); }
  /// How many neither failed nor left, once `without` have failed, too.
  std::uint32_t count_left_without(const std::vector<std::uint32_t>& without) const;

  /// Ranks have left, and nothing else happened: what the others began together with them ended well there, and may
  /// still end well here.
  bool have_only_left() const;
  /// Why nothing can be done together any more. Good: it can.
  Status why_not() const;
  /// What operations with that rank end with, where it failed for `cause`, or left.
  Status failure_of(std::uint32_t rank, const Status& cause) const;
  Status departure_of(std::uint32_t rank) const;
  /// The end of an operation as the user sees it. A peer may have been found gone before its session told so.
  Status explained(const Status& end) const;

 private:
  Site site_;
  std::map<std::uint32_t, Status> failed_, lost_;
  std::set<std::uint32_t> dead_, left_;
  std::vector<std::uint32_t> failures_;
  std::atomic<std::size_t> failures_so_far_{0};
  Status excluded_, revoked_, first_failure_, unacknowledged_;
};

}  // namespace hawser::runtime
