#include "runtime/collective_call.h"

#include "runtime/digest.h"

namespace hawser::runtime {

std::uint64_t digest_of(const CollectiveCall& call, schedule::Algorithm algorithm) {
  Digest digest;
  digest.add(static_cast<std::uint64_t>(call.call.operation));
  digest.add(static_cast<std::uint64_t>(algorithm));
  digest.add(static_cast<std::uint64_t>(call.type));
  digest.add(call.op ? static_cast<std::uint64_t>(*call.op) + 1 : 0);
  digest.add(call.call.root);
  digest.add(call.call.count);
  digest.add(call.call.reproducible ? 1 : 0);
  const bool is_each_its_own = call.call.operation == schedule::Operation::kAllToAll;
  for (const std::uint64_t count : call.call.counts) digest.add(is_each_its_own ? 0 : count);
  return digest.value();
}

FlightEntry flight_of(const CollectiveCall& called, schedule::Algorithm algorithm) {
  const schedule::Call& call = called.call;
  FlightEntry entry;
  entry.rank = call.rank;
  entry.size = call.size;
  entry.count = call.count;
  for (const std::uint64_t count : call.counts) entry.count += count;
  const bool has_type = call.operation != schedule::Operation::kBarrier;
  entry.type = has_type ? static_cast<std::uint16_t>(static_cast<unsigned>(called.type) + 1) : 0;
  entry.algorithm = static_cast<std::uint32_t>(algorithm) + 1;
  put_text(entry.operation, schedule::to_string(call.operation));
  return entry;
}

std::uint64_t output_count(const schedule::Call& call) {
  if (call.operation == schedule::Operation::kReduceScatter) return call.counts[call.rank];
  const bool has_output = call.operation != schedule::Operation::kReduce || call.rank == call.root;
  return has_output ? call.count : 0;
}

}  // namespace hawser::runtime
