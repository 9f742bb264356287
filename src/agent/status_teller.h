#pragma once

// StatusTeller: shows on a status page (base/status_page.h) what its agent does, once a second while the lane turns:
// totals, the peers that moved most and their paths, why no better path leads to them, and who waits for whom since
// when. `hawser top` and `hawser explain` read it.
//
// It also keeps the agent's place at the status socket of its process, which tells all that a page has no room for.
//
// The text is made in a turn, so it is short: kRowsMax peers, kRowsMax rows of those that wait. Where it would not fit
// the page, peers that moved less have no reasons. While nothing changes, a new text comes every kQuietPeriod only: a
// hundred idle agents would else take a percent of a core.
//
// Thread rule: under the lane's lock, but for disown_after_fork. Lifetime: a part of its Core.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/part.h"
#include "agent/status_seat.h"
#include "base/status_page.h"

namespace hawser::agent {

class Core;

class StatusTeller final : public Part {
 public:
  static constexpr std::size_t kRowsMax = 16;
  static constexpr Duration kPeriod = std::chrono::seconds(1);
  static constexpr Duration kQuietPeriod = std::chrono::seconds(10);
  static constexpr std::int64_t kPeriodNs = std::chrono::nanoseconds(kPeriod).count();

  explicit StatusTeller(Core& core) : core_(core), seat_(core) {}

  /// Before the first turn, by the thread that opens the agent. Where there can be no page, the log says why, and there
  /// is none.
  void open();
  /// The page goes, and the place at the process's status socket. The lane may show its turns on.
  void close();
  std::size_t turn(Instant now) override HAWSER_REQUIRES(in_lane);
  void run_jobs(Instant) override {}
  void describe(const Visitor&) const override {}
  /// The path of the page; empty: there is none.
  std::string path() const { return page_ ? page_->path() : std::string(); }
  std::int64_t opened_at_ns() const { return opened_at_ns_; }
  StatusSeat& seat() { return seat_; }
  /// All agents of a process tell at the same moments, so that a driver with many of them wakes once for all.
  static Instant next_beat(Instant now) { return Instant::from_ns((now.ns() / kPeriodNs + 1) * kPeriodNs); }
  void disown_after_fork() {
    if (page_) page_->disown_after_fork();
  }

 private:
  /// A number that stays while counters, sessions and paths do. Nothing while somebody waits for something. Reasons why
  /// no better path leads to a peer are not in it: they may be kQuietPeriod old.
  std::optional<std::uint64_t> stamp() const HAWSER_REQUIRES(in_lane);
  std::string text(Instant now) const HAWSER_REQUIRES(in_lane);
  std::string text(Instant now, std::size_t explained) const HAWSER_REQUIRES(in_lane);
  void open_socket(const std::string& folder);

  Core& core_;
  StatusSeat seat_;
  std::optional<base::StatusPage> page_;
  std::int64_t opened_at_ns_ = 0;       ///< Since 1970.
  std::optional<std::uint64_t> stamp_;  ///< At the last text,
  Instant told_at_ = Instant::min();    ///< and its time.
  bool has_failed_ = false;             ///< The last text could not be published, and the log says so.
};

}  // namespace hawser::agent
