#include "runtime/collective_call.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "reduce/reduce.h"
#include "runtime/digest.h"

namespace hawser::runtime {
namespace {

std::uint64_t sum_of(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

}  // namespace

std::function<void(void* out, const void* first, const void* second, std::size_t count)> combine_of(
    const CollectiveCall& call) {
  if (call.combine) return call.combine;
  if (call.op) return reduce::combine_for(call.type, *call.op);
  return {};
}

std::uint64_t digest_of(const CollectiveCall& call, schedule::Algorithm algorithm) {
  Digest digest;
  digest.add(static_cast<std::uint64_t>(call.call.operation));
  digest.add(static_cast<std::uint64_t>(algorithm));
  digest.add(static_cast<std::uint64_t>(call.type));
  digest.add(call.op ? static_cast<std::uint64_t>(*call.op) + 1 : 0);
  digest.add(call.call.root);
  digest.add(call.call.count);
  digest.add(call.call.reproducible ? 1 : 0);
  digest.add(call.how);
  digest.add(call.call.is_even ? 1 : 0);
  const bool is_each_its_own = call.call.operation == schedule::Operation::kAllToAll && !call.call.is_even;
  for (const std::uint64_t count : call.call.counts) digest.add(is_each_its_own ? 0 : count);
  return digest.value();
}

FlightEntry flight_of(const CollectiveCall& called, schedule::Algorithm algorithm) {
  using What = schedule::Operation;
  const schedule::Call& call = called.call;
  FlightEntry entry;
  entry.rank = call.rank;
  entry.size = call.size;
  const std::uint64_t own = call.counts.empty() ? call.count : call.counts[call.rank], all = sum_of(call.counts);
  const bool gathers = call.operation == What::kAllGather || call.operation == What::kGather;
  const bool scatters = call.operation == What::kReduceScatter || call.operation == What::kScatter;
  entry.inputs = scatters || call.operation == What::kAllToAll ? all : own;
  entry.outputs = gathers ? all : call.operation == What::kAllToAll ? sum_of(call.in_counts) : own;
  entry.count = std::max(entry.inputs, entry.outputs);
  const bool has_type = call.operation != What::kBarrier;
  entry.type = has_type ? static_cast<std::uint16_t>(static_cast<unsigned>(called.type) + 1) : 0;
  entry.algorithm = static_cast<std::uint32_t>(algorithm) + 1;
  put_text(entry.operation, schedule::to_string(call.operation));
  return entry;
}

bool overlaps(const schedule::Call& call, const void* input, const void* output) {
  const bool is_one = call.has_input_in_output;
  const std::uint64_t read = is_one ? 0 : schedule::input_count(call) * call.element_bytes;
  const std::uint64_t written = schedule::output_count(call) * call.element_bytes;
  const auto in = reinterpret_cast<std::uintptr_t>(input);
  const auto out = reinterpret_cast<std::uintptr_t>(output);
  return read > 0 && written > 0 && in < out + written && out < in + read;
}

bool has_buffers_for_boards(const schedule::Call& call, const void* input, const void* output) {
  const bool writes = schedule::output_count(call) > 0;
  const bool reads = schedule::input_count(call) > 0 && !(call.has_input_in_output && writes);
  return (!reads || input != nullptr) && (!writes || output != nullptr) && !overlaps(call, input, output);
}

}  // namespace hawser::runtime
