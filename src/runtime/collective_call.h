#pragma once

// CollectiveCall: what all ranks are to do together, as one of them calls it; and what is made of that: the number by
// which ranks find out whether they mean the same, and the entry in the flight recorder.
//
// Thread rule: values and pure functions.

#include <cstdint>
#include <functional>
#include <optional>

#include <hawser/datatype.h>

#include "runtime/flight_file.h"
#include "schedule/collective.h"

namespace hawser::runtime {

struct CollectiveCall {
  schedule::Call call;
  const void* input = nullptr;
  void* output = nullptr;
  DataType type = DataType::kUInt8;
  std::optional<ReduceOp> op;  ///< Of those that combine.
  /// The caller's own, in the place of `op`.
  std::function<void(void* out, const void* first, const void* second, std::size_t count)> combine = {};
  /// What else the ranks must agree upon, as a number: how elements are packed.
  std::uint64_t how = 0;
};

/// How two elements are combined. Empty where nothing is.
std::function<void(void* out, const void* first, const void* second, std::size_t count)> combine_of(
    const CollectiveCall& call);
/// Of all that the ranks must agree upon.
std::uint64_t digest_of(const CollectiveCall& call, schedule::Algorithm algorithm);
/// How it is written down: without its world and number. A barrier has no type.
FlightEntry flight_of(const CollectiveCall& call, schedule::Algorithm algorithm);
/// Whether the output shares bytes with the input, so that a store into the one changes the other.
bool overlaps(const schedule::Call& call, const void* input, const void* output);
/// The call can go by boards with these buffers. False: it takes the schedule by messages to tell whether they are
/// right. Mostly they are not.
bool has_buffers_for_boards(const schedule::Call& call, const void* input, const void* output);

}  // namespace hawser::runtime
