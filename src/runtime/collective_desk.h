#pragma once

// CollectiveDesk: the collectives of one world at one rank: it makes of a user's call what its book begins, and has a
// call that somebody waits for carried through at once where the other ranks are there.
//
// Thread rule: what gives a Request or a Status from any thread, the rest under the lane's lock. Lifetime: its world's.
// What the Site names outlives it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hawser/world.h>

#include "runtime/collective.h"
#include "runtime/collective_book.h"
#include "runtime/collective_call.h"
#include "runtime/collective_maker.h"
#include "runtime/failure_desk.h"
#include "runtime/requests.h"
#include "runtime/roster.h"
#include "runtime/world_boards.h"

namespace hawser::runtime {

class CollectiveDesk {
 public:
  struct Site {
    std::uint64_t world = 0;
    std::string name;
    const Requests* requests = nullptr;
    const Roster* roster = nullptr;  ///< Open.
    RankSeat* seat = nullptr;
    FailureDesk* failures = nullptr;
  };
  /// The number of the first one. At first 1. Before `open`.
  void begin_with(std::uint64_t number) { book_.begin_with(number); }
  void open(Site site);

  /// Before `open`, or under the lane: by rank, which of them share a host.
  void know_hosts(const std::vector<std::uint64_t>& ids);
  /// By rank, from 0 in the order of the hosts' first ranks. Empty: not known.
  const std::vector<std::uint32_t>& hosts() const { return maker_.hosts(); }
  /// From now on.
  void choose_by(const schedule::CostModel& model) { maker_.choose_by(model); }

  Request begin(CollectiveCall call, const CollectiveOptions& options);
  /// The same, and waits for it: the agent's driver need not run it meanwhile.
  Status carry_out(CollectiveCall call, const CollectiveOptions& options);
  std::vector<Request> all_reduce_bucketed(std::span<const Tensor> tensors, DataType type, ReduceOp op,
                                           std::size_t bucket_bytes, const CollectiveOptions& options);
  /// One of the world's own. `adapt` sees it before it begins.
  Request begin_own(CollectiveCall call, const CollectiveOptions& options,
                    const std::function<void(Collective& made)>& adapt);
  /// Whether the operation has ended by then. Looks at boards where it may go by them.
  bool ends_within(const Operation& operation, Duration timeout) const;

  /// Null: in a sparse world, which has no boards.
  BoardRoom* room() const { return boards_.room(); }
  CollectiveBook& book() { return book_; }
  const CollectiveBook& book() const { return book_; }
  void on_check(const Peer& by, const Question& question, Instant now);
  void on_bell(const Peer& by, Instant now);
  /// This rank closes the world.
  void close(const Status& why, Instant now);

 private:
  Request begin_made(const CollectiveMaker::Made& made, const CollectiveOptions& options, bool waits = false);
  std::optional<Request> begin_waited(CollectiveCall call, const CollectiveOptions& options);
  Status begin_at_once(const CollectiveCall& call, schedule::Algorithm algorithm, const CollectiveOptions& options,
                       std::shared_ptr<Collective>* rest);
  bool end_out_of_sight(Collective& waiting, std::uint32_t rank, Instant now);

  Site site_;
  CollectiveMaker maker_;
  CollectiveBook book_;
  WorldBoards boards_;
};

}  // namespace hawser::runtime
