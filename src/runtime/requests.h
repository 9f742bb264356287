#pragma once

// Requests: how the calls of one world enter its rank's lane, and what the user gets of them: a Request that has ended
// at once, or ends later.
//
// Thread rule: any thread, but for `end_unbegun`. Lifetime: its world's. An operation outlives its Request's begin.

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/time.h>
#include <hawser/world.h>

#include "agent/inner.h"
#include "runtime/operation.h"
#include "runtime/rank_seat.h"

namespace hawser::runtime {

class Requests {
 public:
  struct Site {
    RankSeat* seat = nullptr;
    Duration patience{};  ///< Of operations without a timeout of their own.
    /// A handle of the operation, which keeps the world.
    std::function<Request(std::shared_ptr<Operation>)> handle;
  };
  void open(Site site) { site_ = std::move(site); }

  /// Its operation has ended before it began, if it was refused.
  Request request(std::shared_ptr<Operation> operation, const Status& refused) const;
  /// Calls `begin` in the lane: at once where the lane is free, else soon, by the driver. A caller never waits for what
  /// other threads do in the lane. The world outlives what it leaves to the driver: it enters the lane when it ends,
  /// which takes in what was left.
  template <typename Begin>
  Request begin(const std::shared_ptr<Operation>& operation, std::string_view what, const Begin& begin) const {
    const auto later = [&]() -> agent::Beginning {
      return [operation, begin](Instant now, const Status& refused) {
        if (!refused.ok()) return refuse(*operation, refused);
        static_cast<void>(begin(now));  // It is the driver's turn.
      };
    };
    // By reference: no memory is allocated for the functions.
    return request(operation, agent::inner::begin_in_lane(site_.seat->agent, what, std::cref(begin), std::cref(later)));
  }
  /// The same for several, in one step: `begin` begins those that have not ended before it.
  template <typename Begin>
  std::vector<Request> begin_several(const std::vector<std::shared_ptr<Operation>>& operations, std::string_view what,
                                     const Begin& begin) const {
    const auto later = [&]() -> agent::Beginning {
      return [operations, begin](Instant now, const Status& refused) {
        if (!refused.ok()) return refuse_all(operations, refused);
        static_cast<void>(begin(now));
      };
    };
    const Status refused = agent::inner::begin_in_lane(site_.seat->agent, what, std::cref(begin), std::cref(later));
    if (!refused.ok()) refuse_all(operations, refused);
    std::vector<Request> requests;
    for (const std::shared_ptr<Operation>& each : operations) requests.push_back(site_.handle(each));
    return requests;
  }
  /// Runs `call` under the lane, where an inline handler of this rank is already.
  Status in_lane(std::string_view what, const std::function<void(Instant now)>& call) const;
  /// Under the lane: a call that was refused. A thread may wait for it already, if it was left to the driver.
  agent::inner::Need end_unbegun(Operation& operation, const Status& why) const;
  Instant deadline(Duration timeout, Instant now) const { return now + patience(timeout); }
  /// 0: as the world has it.
  Duration patience(Duration timeout) const { return timeout == Duration::zero() ? site_.patience : timeout; }

  /// It ends before it begins. No thread waits for it yet.
  static void refuse(Operation& operation, const Status& why);

 private:
  /// Those that have not ended.
  static void refuse_all(const std::vector<std::shared_ptr<Operation>>& operations, const Status& why);

  Site site_;
};

}  // namespace hawser::runtime
