#pragma once

// CollectiveMaker: makes of what the user of a rank calls a Collective that its world can begin. It checks the call,
// chooses the algorithm and gives what goes together, or is compressed, memory of its own.
//
// All ranks choose alike: a choice depends on the call and on what all ranks know, never on the rank.
//
// Thread rule: `make` and `make_bucket` from any thread, once the ranks are in; what begins before the hosts are known
// goes as if all ranks were on hosts of their own. Lifetime: what the Site names outlives it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/collective.h>
#include <hawser/peer.h>

#include "runtime/board_room.h"
#include "runtime/collective.h"
#include "runtime/collective_call.h"
#include "runtime/mailbox.h"
#include "runtime/mapped_call.h"
#include "schedule/choice_memory.h"
#include "schedule/collective.h"

namespace hawser::runtime {

class CollectiveMaker {
 public:
  struct Site {
    std::uint64_t world = 0;
    std::string name;  ///< Of the world.
    std::uint32_t rank = 0;
    std::span<const Peer> ranks;
    bool is_sparse = false;
    Mailbox* mailbox = nullptr;
    schedule::CostModel model;
    std::uint64_t read_at_once = kReadAtOnce;
    std::uint64_t piece_bytes = schedule::kBoardBytesMax;  ///< See schedule::Call.
    /// How the call reads other ranks' buffers where they lie.
    std::function<std::unique_ptr<MappedCall>(const CollectiveCall&)> map;
    /// The world's boards, with memory for this rank's.
    std::function<BoardRoom*()> room;
  };
  using Made = Result<std::shared_ptr<Collective>>;

  void open(Site site) {
    site_ = std::move(site);
    choices_.forget();
  }
  /// From now on.
  void choose_by(const schedule::CostModel& model) {
    site_.model = model;
    choices_.forget();
  }
  /// By rank: which of them share a host.
  void know_hosts(const std::vector<std::uint64_t>& ids);
  /// By rank, from 0 in the order of the hosts' first ranks. Empty: not known.
  const std::vector<std::uint32_t>& hosts() const { return hosts_; }
  /// As a call says it: empty where all ranks are on one host.
  const std::vector<std::uint32_t>& several_hosts() const { return several_hosts_; }

  /// Makes a call, without a compressor, whole and chooses how it goes. Errors as those of `make`.
  Result<schedule::Algorithm> settle(CollectiveCall& call, const CollectiveOptions& options) const;
  /// How it is written down.
  FlightEntry flight(const CollectiveCall& call, schedule::Algorithm algorithm) const;
  /// Of a settled call.
  std::shared_ptr<Collective> make_settled(const CollectiveCall& call, schedule::Algorithm algorithm) const;
  /// Errors: kInvalid, naming the operation and what is wrong with it.
  Made make(CollectiveCall call, const CollectiveOptions& options) const;
  /// An all_reduce of these, in place. Several go together, by a copy.
  Made make_bucket(std::span<const Tensor> tensors, DataType type, ReduceOp op, const CollectiveOptions& options) const;
  /// How many of the tensors, from the first on, go together in a bucket of so many bytes: at least one.
  static std::size_t bucket_of(std::span<const Tensor> tensors, DataType type, std::size_t bucket_bytes);

 private:
  std::uint32_t size() const { return static_cast<std::uint32_t>(site_.ranks.size()); }
  Status check(const CollectiveCall& call) const;
  Status take_reducer(CollectiveCall& call, const CollectiveOptions& options) const;
  Result<schedule::Algorithm> choose(const schedule::Call& call, const CollectiveOptions& options) const;
  Result<schedule::Algorithm> complete(CollectiveCall& call, const CollectiveOptions& options) const;
  Made build(CollectiveCall call, const CollectiveOptions& options) const;
  Made compress(const CollectiveCall& call, const CollectiveOptions& options) const;
  Made make_together(std::span<const Tensor> tensors, DataType type, ReduceOp op,
                     const CollectiveOptions& options) const;

  Site site_;
  std::vector<std::uint32_t> hosts_, several_hosts_;
  std::uint64_t hosts_digest_ = 0;
  bool has_mates_ = false;  ///< Some rank shares its host with another one.
  mutable schedule::ChoiceMemory choices_;
};

}  // namespace hawser::runtime
