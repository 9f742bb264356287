#pragma once

// WorldBoards: what the ranks of one world look at in each other's memory at one rank: their boards, and the buffers of
// collectives that go by mapped memory.
//
// Thread rule: `mapped_call` and `room` from any thread once it is open, the rest under the lane's lock. Lifetime: its
// world's. What the Site names outlives it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/board_room.h"
#include "runtime/board_shelf.h"
#include "runtime/collective_call.h"
#include "runtime/mapped_call.h"
#include "runtime/rank_seat.h"
#include "runtime/roster.h"

namespace hawser::runtime {

class WorldBoards {
 public:
  struct Site {
    std::uint64_t world = 0;
    const Roster* roster = nullptr;  ///< Open.
    RankSeat* seat = nullptr;
    bool is_sparse = false;  ///< It has no boards.
  };
  void open(Site site, const std::vector<std::uint32_t>& several_hosts);
  /// By rank: the number of its host. Empty: all are on one.
  void know_hosts(const std::vector<std::uint32_t>& several_hosts) {
    if (room_ != nullptr) room_->know_hosts(several_hosts);
  }

  /// Null: in a sparse world.
  BoardRoom* room() const { return room_.get(); }
  /// The room, and from the first call on, which a collective makes that may go by boards, memory for this rank's
  /// board. Without memory all go by messages. Any thread.
  BoardRoom* room_with_memory();
  /// The room gets that memory once the collective begins.
  void furnish();
  /// How the call reads other ranks' buffers where they lie. Any thread.
  std::unique_ptr<MappedCall> mapped_call(const CollectiveCall& call);
  /// Nobody looks at boards any more.
  void close() {
    if (room_ != nullptr) room_->close();
  }

 private:
  MappedCall::Uses uses();
  Result<std::unique_ptr<backend::View>> view(const RankRegion& region) const;

  Site site_;
  std::once_flag has_memory_;
  std::optional<BoardShelf::Memory> memory_;  ///< Written before a collective begins, taken under the lane.
  MappedMemory mapped_memory_;
  std::unique_ptr<BoardRoom> room_;
};

}  // namespace hawser::runtime
