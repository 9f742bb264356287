#include "runtime/collective_maker.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/copy.h"
#include "base/shown.h"
#include "base/try.h"
#include "reduce/compressor.h"
#include "runtime/digest.h"
#include "runtime/rank_list.h"
#include "schedule/hosts.h"

namespace hawser::runtime {
namespace {

using What = schedule::Operation;

/// Of all ranks together: sums of counts and sizes in bytes do not overflow.
constexpr std::uint64_t kElementsMax = std::uint64_t{1} << 56;

}  // namespace

void CollectiveMaker::know_hosts(const std::vector<std::uint64_t>& ids) {
  std::map<std::uint64_t, std::uint32_t> numbers;
  hosts_.clear();
  for (const std::uint64_t id : ids) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    hosts_.push_back(numbers.try_emplace(id, next).first->second);
  }
  Digest digest;
  for (const std::uint32_t host : hosts_) digest.add(host);
  hosts_digest_ = digest.value();
  several_hosts_ = schedule::Hosts::are_several(hosts_) ? hosts_ : std::vector<std::uint32_t>();
  has_mates_ = numbers.size() == 1 || schedule::Hosts::has_levels(hosts_);
  choices_.forget();
}

Status CollectiveMaker::check(const CollectiveCall& call) const {
  const schedule::Call& what = call.call;
  const std::string_view name = schedule::to_string(what.operation);
  const auto invalid = [&](const std::string& text) { return Status(Code::kInvalid, std::string(name) + ": " + text); };
  HAWSER_TRY(check_rank(name, site_.name, what.root, size()));
  if (size_of(call.type) == 0) return invalid("there is no such type of elements");
  if (call.op && !call.combine && !is_accepted(call.type, *call.op)) {
    return invalid(std::string(to_string(*call.op)) + " of " + std::string(to_string(call.type)) + " is not defined");
  }
  const bool is_scan = what.operation == What::kScan || what.operation == What::kExclusiveScan;
  if (is_scan && *call.op == ReduceOp::kAvg) return invalid("there is no average of a prefix; sum and divide");
  const std::uint64_t words = std::max<std::uint64_t>(what.element_bytes / sizeof(std::uint64_t), 1);
  const std::uint64_t least = kElementsMax / size() / words;
  const auto is_huge = [&](std::uint64_t count) { return count > least; };
  if (is_huge(what.count) || std::ranges::any_of(what.counts, is_huge) ||
      std::ranges::any_of(what.in_counts, is_huge)) {
    return invalid("a count is above " + std::to_string(least));
  }
  const bool has_blocks = !what.counts.empty();
  if (has_blocks && (what.counts.size() != size() || (!what.in_counts.empty() && what.in_counts.size() != size()))) {
    return invalid("there must be a count for each of the " + std::to_string(size()) + " ranks");
  }
  return {};
}

/// The caller combines elements by itself.
Status CollectiveMaker::take_reducer(CollectiveCall& call, const CollectiveOptions& options) const {
  const Reducer& reducer = options.reducer;
  call.call.element_bytes = size_of(call.type);
  if (!reducer.combine) return {};
  const auto invalid = [&](const std::string& text) {
    return Status(Code::kInvalid, std::string(schedule::to_string(call.call.operation)) + ": " + text);
  };
  if (!call.op) return invalid("it combines nothing, and so takes no reducer");
  if (options.compress.valid()) return invalid("a reducer and a compressor do not go together");
  if (reducer.element_bytes > kReducerElementMax) {
    return invalid("the reducer's elements of " + std::to_string(reducer.element_bytes) + " bytes are above " +
                   std::to_string(kReducerElementMax));
  }
  if (reducer.element_bytes != 0) call.call.element_bytes = reducer.element_bytes;
  call.call.commutes = reducer.commutes;
  call.combine = reducer.combine;
  call.op = ReduceOp::kSum;
  Digest how;
  how.add(call.how);
  how.add(call.call.element_bytes);
  how.add(reducer.commutes ? 1 : 0);
  for (const char letter : reducer.name) how.add(static_cast<unsigned char>(letter));
  call.how = how.value();
  return {};
}

Result<schedule::Algorithm> CollectiveMaker::choose(const schedule::Call& call,
                                                    const CollectiveOptions& options) const {
  if (options.algorithm.empty()) return choices_.cheapest(call, site_.model);
  const auto wanted = schedule::algorithm_named(options.algorithm);
  std::string names;
  for (const schedule::Choice& choice : schedule::choices(call, site_.model)) {
    if (wanted == choice.algorithm) return choice.algorithm;
    names.append(names.empty() ? "" : ", ").append(schedule::to_string(choice.algorithm));
  }
  return Status(Code::kInvalid, std::string(schedule::to_string(call.operation)) + ": the algorithm '" +
                                    base::shown(options.algorithm) + "' cannot do this call")
      .with_advice("it may go by " + names);
}

/// All that it holds but the digest of hosts is known without the algorithm.
Result<schedule::Algorithm> CollectiveMaker::complete(CollectiveCall& call, const CollectiveOptions& options) const {
  schedule::Call& what = call.call;
  what.reproducible = options.reproducible;
  if (!site_.is_sparse) what.hosts = several_hosts_;
  const bool is_packed = call.how != 0 && !call.combine;  // In memory of this library's own.
  what.piece_bytes = site_.piece_bytes;
  what.may_use_boards = has_mates_ && !site_.is_sparse;
  what.may_be_mapped = what.may_use_boards && !is_packed;
  HAWSER_TRY_ASSIGN(const schedule::Algorithm algorithm, choose(what, options));
  if (schedule::is_by_hosts(algorithm)) call.how += hosts_digest_;
  return algorithm;
}

CollectiveMaker::Made CollectiveMaker::build(CollectiveCall call, const CollectiveOptions& options) const {
  HAWSER_TRY_ASSIGN(const schedule::Algorithm algorithm, complete(call, options));
  return make_settled(call, algorithm);
}

FlightEntry CollectiveMaker::flight(const CollectiveCall& call, schedule::Algorithm algorithm) const {
  FlightEntry entry = flight_of(call, algorithm);
  put_text(entry.world_name, site_.name);
  return entry;
}

std::shared_ptr<Collective> CollectiveMaker::make_settled(const CollectiveCall& call,
                                                          schedule::Algorithm algorithm) const {
  const schedule::Call& what = call.call;
  auto made = std::make_shared<Collective>();
  made->algorithm = made->taken = algorithm;
  made->model = site_.model;
  if (schedule::is_on_boards(algorithm)) {
    made->room = site_.room();
    made->on_boards = algorithm;
    made->call = what;
    made->read_at_once = site_.read_at_once;
  } else if (schedule::is_by_memory(algorithm)) {
    schedule::ByMessages otherwise = schedule::by_messages(what, algorithm, site_.model);
    made->algorithm = otherwise.algorithm;
    made->schedule = std::move(otherwise.schedule);
    made->on_boards = otherwise.on_boards;
    made->mapped = site_.map(call);
    made->room = site_.room();
    made->call = what;
    made->read_at_once = site_.read_at_once;
  } else {
    made->schedule = schedule::make_schedule(what, algorithm, site_.model);
  }
  made->name = schedule::to_string(what.operation);
  made->world = site_.world;
  made->flight = flight(call, algorithm);
  made->digest = digest_of(call, algorithm);
  made->ranks = site_.ranks;
  made->mailbox = site_.mailbox;
  made->elements.input = static_cast<const std::byte*>(call.input);
  made->elements.output = static_cast<std::byte*>(call.output);
  made->elements.bytes = what.element_bytes;
  made->elements.combine = combine_of(call);
  if (call.op == ReduceOp::kAvg) {
    const std::uint64_t count = schedule::output_count(what);
    made->elements.finish = [call, count, ranks = size()] {
      reduce::finish(call.type, *call.op, call.output, count, ranks);
      return Status();
    };
  }
  return made;
}

Result<schedule::Algorithm> CollectiveMaker::settle(CollectiveCall& call, const CollectiveOptions& options) const {
  call.call.rank = site_.rank;
  call.call.size = size();
  HAWSER_TRY(take_reducer(call, options));
  HAWSER_TRY(check(call));
  return complete(call, options);
}

CollectiveMaker::Made CollectiveMaker::make(CollectiveCall call, const CollectiveOptions& options) const {
  call.call.rank = site_.rank;
  call.call.size = size();
  HAWSER_TRY(take_reducer(call, options));
  HAWSER_TRY(check(call));
  if (options.compress.valid()) return compress(call, options);
  return build(std::move(call), options);
}

std::size_t CollectiveMaker::bucket_of(std::span<const Tensor> tensors, DataType type, std::size_t bucket_bytes) {
  const std::size_t most = bucket_bytes / std::max<std::size_t>(size_of(type), 1);
  std::size_t taken = 1, count = tensors[0].count;
  while (taken < tensors.size() && count < most && tensors[taken].count <= most - count) {
    count += tensors[taken++].count;
  }
  return taken;
}

CollectiveMaker::Made CollectiveMaker::make_bucket(std::span<const Tensor> tensors, DataType type, ReduceOp op,
                                                   const CollectiveOptions& options) const {
  if (options.reducer.combine) return Status(Code::kInvalid, "all_reduce_bucketed: it takes no reducer");
  if (tensors.size() > 1) return make_together(tensors, type, op, options);
  // Where it lies: another rank may call it as an all_reduce of one tensor.
  return make({.call = {.operation = What::kAllReduce, .count = tensors[0].count, .has_input_in_output = true},
               .input = tensors[0].data,
               .output = tensors[0].data,
               .type = type,
               .op = op},
              options);
}

/// An all_reduce of several tensors, by a copy of them.
CollectiveMaker::Made CollectiveMaker::make_together(std::span<const Tensor> tensors, DataType type, ReduceOp op,
                                                     const CollectiveOptions& options) const {
  Digest how;
  CollectiveCall call = {
      .call = {.operation = What::kAllReduce, .rank = site_.rank, .size = size()}, .type = type, .op = op};
  for (const Tensor& tensor : tensors) {
    how.add(tensor.count);
    const bool is_bad = tensor.data == nullptr && tensor.count > 0;
    call.call.count = is_bad || tensor.count > kElementsMax ? kElementsMax + 1 : call.call.count + tensor.count;
    if (is_bad) return Status(Code::kInvalid, "all_reduce: a tensor is null");
  }
  HAWSER_TRY(check(call));
  const std::size_t bytes = call.call.element_bytes = size_of(type);
  const auto all = std::make_shared<std::vector<std::byte>>(call.call.count * bytes);
  std::byte* at = all->data();
  for (const Tensor& tensor : tensors) {
    if (tensor.count > 0) base::copy_cached(at, tensor.data, tensor.count * bytes);
    at += tensor.count * bytes;
  }
  call.call.has_input_in_output = true;
  call.input = call.output = all->data();
  call.how = how.value();
  HAWSER_TRY_ASSIGN(std::shared_ptr<Collective> made, build(std::move(call), options));
  made->elements.finish = [all, bytes, own = std::vector<Tensor>(tensors.begin(), tensors.end()),
                           average = std::move(made->elements.finish)]() -> Status {
    if (average) {
      HAWSER_TRY(average());
    }
    const std::byte* from = all->data();
    for (const Tensor& tensor : own) {
      if (tensor.count > 0) base::copy_cached(tensor.data, from, tensor.count * bytes);
      from += tensor.count * bytes;
    }
    return {};
  };
  return made;
}

/// An all_gather of packed parts, which are added up at its end.
CollectiveMaker::Made CollectiveMaker::compress(const CollectiveCall& call, const CollectiveOptions& options) const {
  const std::string name(schedule::to_string(call.call.operation));
  const auto invalid = [&](const std::string& text) { return Status(Code::kInvalid, name + ": " + text); };
  if (call.call.operation != What::kAllReduce) return invalid("only an all_reduce compresses");
  if (*call.op != ReduceOp::kSum && *call.op != ReduceOp::kAvg) {
    return invalid(std::string(to_string(*call.op)) + " is not compressed, sum and avg are");
  }
  if (call.call.count > 0 && (call.input == nullptr || call.output == nullptr)) return invalid("a buffer is null");
  Result<std::unique_ptr<reduce::Packing>> begun = reduce::Packing::begin(options.compress, call.call.count, call.type);
  if (!begun) return Status(begun.error().code(), name).because(begun.error());
  const std::shared_ptr<reduce::Packing> packing = std::move(*begun);
  const std::uint64_t bytes = packing->bytes();
  if (bytes > kElementsMax / size())
    return invalid("the packed elements are above " + std::to_string(kElementsMax / size()) + " bytes");
  const auto parts = std::make_shared<std::vector<std::byte>>(bytes * size());
  std::byte* const own = parts->data() + bytes * site_.rank;
  HAWSER_TRY(packing->pack(call.input, {own, static_cast<std::size_t>(bytes)}));
  Digest how;
  how.add(static_cast<std::uint64_t>(call.type));
  how.add(call.call.count);
  how.add(packing->number());
  for (const char letter : options.compress.name()) how.add(static_cast<unsigned char>(letter));
  const bool averages = *call.op == ReduceOp::kAvg;
  how.add(averages ? 1 : 0);
  Made built = build({.call = {.operation = What::kAllGather,
                               .rank = site_.rank,
                               .size = size(),
                               .counts = std::vector<std::uint64_t>(size(), bytes),
                               .has_input_in_output = true},
                      .input = own,
                      .output = parts->data(),
                      .how = how.value()},
                     {});
  if (!built) return built;
  const std::shared_ptr<Collective>& made = *built;
  made->name = name;
  put_text(made->flight.operation, name);
  made->elements.finish = [packing, parts, averages, out = call.output, ranks = size()]() -> Status {
    HAWSER_TRY(packing->unpack(*parts, ranks, averages, out));
    packing->commit();
    return {};
  };
  return made;
}

}  // namespace hawser::runtime
