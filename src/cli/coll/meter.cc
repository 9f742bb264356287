#include "cli/coll/meter.h"

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "cli/coll/call.h"

namespace hawser::cli::coll {
namespace {

using What = schedule::Operation;

constexpr auto kType = DataType::kFloat32;
constexpr auto kOp = ReduceOp::kSum;
/// Until ranks see all boards, and have mapped each other's memory.
constexpr std::size_t kWarm = 20, kWarmLarge = 4;
constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;

/// Small integers, other ones for each rank, place and repetition: sums are exact.
float value(std::size_t i, std::size_t rank, std::size_t repetition) {
  return static_cast<float>((i + rank * 7 + repetition * 3) % 61);
}

/// Of a broadcast all is in one buffer, which counts as the input.
std::uint64_t in_count(const schedule::Call& call) {
  return call.operation == What::kBroadcast ? call.count : schedule::input_count(call);
}
std::uint64_t out_count(const schedule::Call& call) {
  return call.operation == What::kBroadcast ? 0 : schedule::output_count(call);
}

}  // namespace

std::size_t Meter::repetitions_of(std::uint64_t bytes, std::size_t least, std::size_t most) {
  constexpr std::uint64_t kFew = 16 * 1024;
  if (bytes <= kFew) return most;
  return std::max<std::size_t>(least, static_cast<std::size_t>(most * kFew / bytes));
}

Status Meter::take(Buffer& buffer, std::size_t count, bool mapped) {
  buffer = {};
  buffer.count = count;
  if (mapped && count > 0) {
    HAWSER_TRY_ASSIGN(buffer.region, world_.allocate({.size = count * sizeof(float)}));
    buffer.data = reinterpret_cast<float*>(buffer.region.bytes().data());
    return {};
  }
  buffer.heap.resize(count);
  buffer.data = buffer.heap.data();
  return {};
}

Status Meter::prepare(const schedule::Call& call, bool mapped) {
  HAWSER_TRY(take(in_, in_count(call), mapped));
  return take(out_, out_count(call), mapped);
}

void Meter::fill(std::size_t repetition) {
  for (std::size_t i = 0; i < in_.count; ++i) in_.data[i] = value(i, world_.rank(), repetition);
  std::fill_n(out_.data, out_.count, -1.0F);  // No right result has it.
}

Request Meter::begin(const schedule::Call& call, std::string_view algorithm) {
  const CollectiveOptions options{.algorithm = algorithm};
  switch (call.operation) {
    case What::kBarrier:
      return world_.ibarrier(options);
    case What::kBroadcast:
      return world_.ibroadcast(in_.data, call.count, kType, call.root, options);
    case What::kReduce:
      return world_.ireduce(in_.data, out_.data, call.count, kType, kOp, call.root, options);
    case What::kAllReduce:
      return world_.iall_reduce(in_.data, out_.data, call.count, kType, kOp, options);
    case What::kAllGather:
      return world_.iall_gather(in_.data, out_.data, call.counts, kType, options);
    case What::kReduceScatter:
      return world_.ireduce_scatter(in_.data, out_.data, call.counts, kType, kOp, options);
    case What::kGather:
      return world_.igather(in_.data, out_.data, call.counts, kType, call.root, options);
    case What::kScatter:
      return world_.iscatter(in_.data, out_.data, call.counts, kType, call.root, options);
    case What::kAllToAll:
      return world_.iall_to_all(in_.data, out_.data, call.counts[0], kType, options);
    case What::kScan:
    case What::kExclusiveScan:
      return world_.iscan(in_.data, out_.data, call.count, kType, kOp, call.operation == What::kExclusiveScan, options);
  }
  return {};
}

float Meter::right(const schedule::Call& call, std::size_t i, std::size_t repetition) const {
  const std::size_t rank = call.rank;
  const auto sum = [&](std::size_t place, std::size_t ranks) {
    float all = 0;
    for (std::size_t each = 0; each < ranks; ++each) all += value(place, each, repetition);
    return all;
  };
  switch (call.operation) {
    case What::kBroadcast:
      return value(i, call.root, repetition);
    case What::kAllGather:
    case What::kGather:
      return value(i % call.counts[0], i / call.counts[0], repetition);
    case What::kReduceScatter:
      return sum(rank * call.counts[0] + i, call.size);
    case What::kScatter:
      return value(rank * call.counts[0] + i, call.root, repetition);
    case What::kAllToAll:
      return value(rank * call.counts[0] + i % call.counts[0], i / call.counts[0], repetition);
    case What::kScan:
      return sum(i, rank + 1);
    case What::kExclusiveScan:
      return sum(i, rank == 0 ? 1 : rank);  // Rank 0 keeps its input.
    default:
      return sum(i, call.size);
  }
}

std::uint64_t Meter::count_wrong(const schedule::Call& call, std::size_t repetition) const {
  const Buffer& got = call.operation == What::kBroadcast ? in_ : out_;
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < got.count; ++i) wrong += got.data[i] != right(call, i, repetition) ? 1 : 0;
  return wrong;
}

Result<Measured> Meter::measure(const Item& item, std::size_t repetitions) {
  std::vector<std::uint32_t> hosts;
  for (std::uint32_t rank = 0; rank < world_.size(); ++rank) hosts.push_back(world_.host(rank));
  schedule::Call call = call_of(item.operation, world_.size(), hosts, item.bytes);
  call.rank = world_.rank();
  HAWSER_TRY(prepare(call, item.mapped));
  const std::size_t warm = item.bytes < kLarge ? kWarm : kWarmLarge;
  std::vector<std::pair<std::string_view, double>> times;
  std::uint64_t wrong = 0;
  for (std::size_t repetition = 0; repetition < warm + repetitions; ++repetition) {
    fill(repetition);
    HAWSER_TRY(world_.barrier());
    const Instant start = Clock::steady().now();
    Request request = begin(call, item.algorithm);
    HAWSER_TRY(request.wait(Duration::max()));
    const auto took = static_cast<double>((Clock::steady().now() - start).count());
    wrong += count_wrong(call, repetition);
    if (repetition >= warm) times.emplace_back(request.algorithm(), took);
  }
  Measured measured{.item = item};
  // The ranks take the same ways. So they leave the same times out, as those before boards were seen.
  const std::string_view last = times.empty() ? "" : times.back().first;
  measured.algorithm = schedule::algorithm_named(last).value_or(schedule::Algorithm::kDirect);
  for (const auto& [algorithm, took] : times) {
    if (algorithm == last) measured.ns.push_back(took);
  }
  HAWSER_TRY(world_.all_reduce(measured.ns.data(), measured.ns.data(), measured.ns.size(), DataType::kFloat64,
                               ReduceOp::kMax));
  HAWSER_TRY(world_.all_reduce(&wrong, &wrong, 1, DataType::kUInt64, ReduceOp::kSum));
  measured.wrong = wrong;
  std::ranges::sort(measured.ns);
  return measured;
}

}  // namespace hawser::cli::coll
