#pragma once

// MappedCall: one rank's part in a collective in which ranks of a host may read each other's buffers where they lie.
//
// First all ranks of the host, the mates, tell each other where their buffers lie (wire/buffer_letter.h). If each mate
// has mapped what all the others lend, they read it there. Else all of them move the bytes by messages, and each begins
// to map what it heard of, for the next call with the same memory. All decide by the same letters, so they decide the
// same. Hosts decide each for itself: see schedule/two_levels.h.
//
// A view holds each region open at its owner from the letter to the end of the collective.
//
// Thread rule: under the lane's lock.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <hawser/status.h>

#include "agent/inner_regions.h"
#include "backend/backend.h"
#include "runtime/mapped_memory.h"
#include "schedule/collective.h"
#include "wire/buffer_letter.h"

namespace hawser::runtime {

/// Read of other ranks' memory in one turn, bytes.
inline constexpr std::uint64_t kReadAtOnce = 1u << 20;

class MappedCall {
 public:
  struct Uses {
    MappedMemory& memory;
    /// Where memory of this rank lies.
    std::function<std::optional<agent::inner::MappedPlace>(std::span<const std::byte>)> place;
    /// See Path::view.
    std::function<Result<std::unique_ptr<backend::View>>(const RankRegion&)> view;
  };
  /// `input` and `output` as in the table of schedule::Call, which is that of the world. The mates are those of its
  /// `hosts`.
  MappedCall(Uses uses, const schedule::Call& call, const std::byte* input, const std::byte* output);

  /// How all ranks come to have all letters: elements are bytes, the input is `own_letter`, the output `letters`.
  schedule::Schedule exchange() const;
  /// Also takes views of what is known.
  void write_letter();
  std::span<const std::byte> own_letter() const { return own_; }
  std::span<std::byte> letters() { return letters_; }
  /// How the mates exchange letters on boards: an all_gather of bytes from `own_letter` to `letters`.
  schedule::Call exchange_on_boards() const;
  /// Once all letters are there. True: all mates go by `schedule`.
  Result<bool> decide();
  schedule::Schedule schedule(const schedule::CostModel& model, schedule::Meetings meetings) const {
    const bool is_one_host = call_.hosts.empty();
    return schedule::make_schedule(
        call_, is_one_host ? schedule::Algorithm::kMapped : schedule::Algorithm::kMappedInHosts, model, meetings);
  }
  /// The others' memory is held open no more: see View::let_go.
  void let_go();
  /// Where that buffer of another mate begins here. Null: the path to it has ended, and what was read since the last
  /// look counts for nothing.
  const std::byte* there(std::uint32_t rank, schedule::Buffer buffer) const { return there_at(place_of(rank), buffer); }
  /// The same of the mate at that place, in the order of ranks.
  const std::byte* there_at(std::uint32_t place, schedule::Buffer buffer) const;

 private:
  /// Bytes of a rank's buffer that others read; 0: none.
  std::uint64_t lent_bytes(std::uint32_t rank, schedule::Buffer buffer) const;
  /// Where the mate is among them.
  std::uint32_t place_of(std::uint32_t rank) const;
  bool is_safe() const;
  std::uint64_t own_regions() const;
  void look(const MappedMemory::Known& known);
  const backend::View* view_of(std::uint32_t rank, const agent::RegionId& id) const;
  MappedMemory::Known known_by(std::span<const wire::BufferLetter> letters) const;
  Status resolve(std::span<const wire::BufferLetter> letters);

  /// A buffer of another rank.
  struct There {
    const backend::View* view = nullptr;
    std::uint64_t at = 0;  ///< In its bytes.
  };
  struct Seen {
    std::uint32_t rank = 0;
    agent::RegionId id;
    std::unique_ptr<backend::View> view;
  };

  const Uses uses_;
  const schedule::Call call_;
  const std::vector<std::uint32_t> mates_;  ///< Ranks, in order.
  const std::uint32_t leader_;              ///< Of a broadcast: the mate that the others read.
  const std::byte* const input_;
  const std::byte* const output_;
  wire::BufferLetter letter_;
  std::vector<std::byte> own_, letters_;
  std::vector<Seen> seen_;
  std::vector<There> inputs_, outputs_;  ///< By place.
};

}  // namespace hawser::runtime
