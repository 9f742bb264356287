#pragma once

// GrantEnds ends grants that nobody revokes: those whose time is over, and those for one transfer that a holder had. An
// expired grant is refused from the turn on in which its time is over, before that turn serves any peer; the rest of
// its close is a job, for backends may have to wait for a device. A grant whose only holder has said that its transfer
// is over is mostly closed by the next turn: there is nothing to wait for.
//
// Thread rule: under the lane's lock, but for run_jobs.

#include <cstddef>
#include <memory>

#include <hawser/time.h>

#include "agent/grant_book.h"
#include "agent/lane_access.h"
#include "agent/part.h"
#include "agent/region_closer.h"
#include "backend/region_table.h"

namespace hawser::agent {

class GrantEnds final : public Part {
 public:
  GrantEnds(LaneAccess& lane, backend::RegionTable& table, GrantBook& book, RegionCloser& closer)
      : lane_(lane), table_(table), book_(book), closer_(closer) {}

  /// A grant was added: its time may be over sooner than those before.
  void note_added() HAWSER_REQUIRES(in_lane) { set_due(); }
  /// Ends that grant as if its time was over.
  void end(std::shared_ptr<LocalRegion> grant) HAWSER_REQUIRES(in_lane);
  /// Ends that grant, which is for one transfer, because its only holder has said that the transfer is over.
  void end_used(std::shared_ptr<LocalRegion> grant) HAWSER_REQUIRES(in_lane);
  /// The agent ends.
  void clear() HAWSER_REQUIRES(in_lane) {
    ended_.clear();
    used_.clear();
  }

  // As a part.
  std::size_t turn(Instant now) override;
  void run_jobs(Instant now) override;
  void describe(const Visitor& visitor) const override;

 private:
  void set_due() HAWSER_REQUIRES(in_lane) { set_next(used_.empty() ? book_.next_expiry() : Instant::min()); }
  /// False: it was ended before.
  bool refuse(LocalRegion& grant) HAWSER_REQUIRES(in_lane);
  void leave_to_job(std::shared_ptr<LocalRegion> grant) HAWSER_REQUIRES(in_lane);

  LaneAccess& lane_;
  backend::RegionTable& table_;
  GrantBook& book_;
  RegionCloser& closer_;
  GrantBook::Grants ended_ HAWSER_GUARDED_BY(in_lane);  ///< To be closed by a job.
  GrantBook::Grants used_ HAWSER_GUARDED_BY(in_lane);   ///< To be closed by the next turn.
};

}  // namespace hawser::agent
