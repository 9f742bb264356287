// WorldCore: collectives, from the call to their end.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/planted.h"
#include "base/try.h"
#include "reduce/compressor.h"
#include "runtime/digest.h"
#include "runtime/world_core.h"

namespace hawser::runtime {
namespace {

using base::planted;
using base::Planted;
using What = schedule::Operation;

/// Of all ranks together: sums of counts and sizes in bytes do not overflow.
constexpr std::uint64_t kElementsMax = std::uint64_t{1} << 56;

}  // namespace

Status WorldCore::check_collective(const CollectiveCall& call) const {
  const schedule::Call& what = call.call;
  const std::string name(schedule::to_string(what.operation));
  const auto invalid = [&](const std::string& text) { return Status(Code::kInvalid, name + ": " + text); };
  HAWSER_TRY(check_rank(name, what.root));
  if (size_of(call.type) == 0) return invalid("there is no such type of elements");
  if (call.op && !is_accepted(call.type, *call.op)) {
    return invalid(std::string(to_string(*call.op)) + " of " + std::string(to_string(call.type)) + " is not defined");
  }
  const bool is_scan = what.operation == What::kScan || what.operation == What::kExclusiveScan;
  if (is_scan && *call.op == ReduceOp::kAvg) return invalid("there is no average of a prefix; sum and divide");
  const std::uint64_t least = kElementsMax / size();
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

std::shared_ptr<Collective> WorldCore::make_collective(CollectiveCall call, const CollectiveOptions& options) {
  schedule::Call& what = call.call;
  const std::uint64_t bytes = size_of(call.type);
  what.element_bytes = bytes;
  what.reproducible = options.reproducible;
  if (!is_sparse() && !is_one_host_) what.hosts = hosts_;
  const bool is_packed = call.how != 0;  // In memory of this library's own.
  what.may_be_mapped = what.may_use_boards = is_one_host_ && !is_sparse() && !is_packed;
  const schedule::CostModel model = seat_->model();
  const schedule::Algorithm algorithm = schedule::cheapest(what, model);
  if (algorithm == schedule::Algorithm::kTwoLevels) call.how += hosts_digest_;
  auto made = std::make_shared<Collective>();
  made->algorithm = algorithm;
  if (algorithm == schedule::Algorithm::kMapped) {
    made->algorithm = schedule::unmapped_choices(what, model)[0].algorithm;
    made->mapped = mapped_call(call);
    made->read_at_once = seat_->read_at_once();
  }
  if (algorithm == schedule::Algorithm::kBoards) {
    made->room = board_room();
    made->call = what;
    made->model = model;
  }
  made->name = schedule::to_string(what.operation);
  made->world = nonce_;
  made->flight = flight_of(call, algorithm);
  put_text(made->flight.world_name, options_.name);
  made->digest = digest_of(call, algorithm);
  if (made->room == nullptr) made->schedule = schedule::make_schedule(what, made->algorithm);
  made->ranks = ranks_;
  made->mailbox = seat_->mailbox.get();
  made->elements.input = static_cast<const std::byte*>(call.input);
  made->elements.output = static_cast<std::byte*>(call.output);
  made->elements.bytes = bytes;
  if (call.op) {
    made->elements.combine = reduce::combine_for(call.type, *call.op);
  }
  if (call.op == ReduceOp::kAvg) {
    const std::uint64_t count = output_count(what);
    made->elements.finish = [call, count, ranks = size()] {
      reduce::finish(call.type, *call.op, call.output, count, ranks);
      return Status();
    };
  }
  return made;
}

/// With memory for this rank's board from the first collective on that may go by boards. Without, all go by messages.
BoardRoom* WorldCore::board_room() {
  std::call_once(has_board_, [this] {
    Result<Region> made =
        seat_->agent.allocate({.size = kBoardBytes, .rights = Rights::kRead, .huge_pages = HugePages::kOff});
    if (!made) return;
    const auto memory = std::make_shared<Region>(std::move(*made));
    static_cast<void>(agent::inner::under_lane(
        seat_->agent, "World", [&](Instant) { room_->give_memory(memory->bytes().first(kBoardBytes), memory); }));
  });
  return room_.get();
}

void WorldCore::on_bell(const Peer& by, Instant now) {
  if (rank_of(by) && room_ != nullptr) room_->on_bell(now);
}

Result<std::unique_ptr<backend::View>> WorldCore::view(const RankRegion& region) const {
  const Peer& peer = ranks_[region.rank];
  return seat_->mailbox->view(peer, agent::inner::told_region(peer, region.id, region.size));
}

std::unique_ptr<MappedCall> WorldCore::mapped_call(const CollectiveCall& call) {
  MappedCall::Uses uses{
      .memory = mapped_memory_,
      .place = [this](std::span<const std::byte> bytes) { return agent::inner::mapped_place(seat_->agent, bytes); },
      .view = [this](const RankRegion& region) { return view(region); },
  };
  return std::make_unique<MappedCall>(std::move(uses), call.call, static_cast<const std::byte*>(call.input),
                                      static_cast<const std::byte*>(call.output));
}

Request WorldCore::collective(CollectiveCall call, const CollectiveOptions& options) {
  call.call.rank = rank_;
  call.call.size = size();
  if (Status bad = check_collective(call); !bad.ok()) return request(std::make_shared<Collective>(), bad);
  if (options.compress.valid()) return compressed(call, options);
  return begin_collective(make_collective(std::move(call), options), options);
}

/// An all_reduce of several tensors, by a copy of them.
Request WorldCore::all_reduce_together(std::span<const Tensor> tensors, DataType type, ReduceOp op,
                                       const CollectiveOptions& options) {
  Digest how;
  CollectiveCall call = {
      .call = {.operation = What::kAllReduce, .rank = rank_, .size = size()}, .type = type, .op = op};
  for (const Tensor& tensor : tensors) {
    how.add(tensor.count);
    const bool is_bad = tensor.data == nullptr && tensor.count > 0;
    call.call.count = is_bad || tensor.count > kElementsMax ? kElementsMax + 1 : call.call.count + tensor.count;
    if (is_bad) return request(std::make_shared<Collective>(), Status(Code::kInvalid, "all_reduce: a tensor is null"));
  }
  if (Status bad = check_collective(call); !bad.ok()) return request(std::make_shared<Collective>(), bad);
  const std::size_t bytes = size_of(type);
  const auto all = std::make_shared<std::vector<std::byte>>(call.call.count * bytes);
  std::byte* at = all->data();
  for (const Tensor& tensor : tensors) {
    if (tensor.count > 0) std::memcpy(at, tensor.data, tensor.count * bytes);
    at += tensor.count * bytes;
  }
  call.call.has_input_in_output = true;
  call.input = call.output = all->data();
  call.how = how.value();
  const std::shared_ptr<Collective> made = make_collective(std::move(call), options);
  made->elements.finish = [all, bytes, own = std::vector<Tensor>(tensors.begin(), tensors.end()),
                           average = std::move(made->elements.finish)]() -> Status {
    if (average) {
      HAWSER_TRY(average());
    }
    const std::byte* from = all->data();
    for (const Tensor& tensor : own) {
      if (tensor.count > 0) std::memcpy(tensor.data, from, tensor.count * bytes);
      from += tensor.count * bytes;
    }
    return {};
  };
  return begin_collective(made, options);
}

/// Where it lies: another rank may call it as an all_reduce of one tensor.
Request WorldCore::all_reduce_alone(const Tensor& tensor, DataType type, ReduceOp op,
                                    const CollectiveOptions& options) {
  return collective({.call = {.operation = What::kAllReduce, .count = tensor.count, .has_input_in_output = true},
                     .input = tensor.data,
                     .output = tensor.data,
                     .type = type,
                     .op = op},
                    options);
}

std::vector<Request> WorldCore::all_reduce_bucketed(std::span<const Tensor> tensors, DataType type, ReduceOp op,
                                                    std::size_t bucket_bytes, const CollectiveOptions& options) {
  std::vector<Request> requests;
  if (options.compress.valid()) {
    const Status why(Code::kInvalid, "all_reduce: a compressor is of one tensor, and there is a list of them");
    requests.push_back(request(std::make_shared<Collective>(), why));
    return requests;
  }
  const std::size_t bytes = std::max<std::size_t>(size_of(type), 1);
  while (!tensors.empty()) {
    std::size_t taken = 1;
    std::size_t size = tensors[0].count;
    while (taken < tensors.size() && size < bucket_bytes / bytes &&
           tensors[taken].count <= bucket_bytes / bytes - size) {
      size += tensors[taken++].count;
    }
    if (taken > 1) {
      requests.push_back(all_reduce_together(tensors.first(taken), type, op, options));
    } else {
      requests.push_back(all_reduce_alone(tensors[0], type, op, options));
    }
    tensors = tensors.subspan(taken);
  }
  return requests;
}

/// An all_gather of packed parts, which are added up at its end.
Request WorldCore::compressed(const CollectiveCall& call, const CollectiveOptions& options) {
  const auto refuse = [&](const Status& why) { return request(std::make_shared<Collective>(), why); };
  const std::string name(schedule::to_string(call.call.operation));
  const auto invalid = [&](const std::string& text) { return refuse(Status(Code::kInvalid, name + ": " + text)); };
  if (call.call.operation != What::kAllReduce) return invalid("only an all_reduce compresses");
  if (*call.op != ReduceOp::kSum && *call.op != ReduceOp::kAvg) {
    return invalid(std::string(to_string(*call.op)) + " is not compressed, sum and avg are");
  }
  if (call.call.count > 0 && (call.input == nullptr || call.output == nullptr)) return invalid("a buffer is null");
  Result<std::unique_ptr<reduce::Packing>> begun = reduce::Packing::begin(options.compress, call.call.count, call.type);
  if (!begun) return refuse(Status(begun.error().code(), name).because(begun.error()));
  const std::shared_ptr<reduce::Packing> packing = std::move(*begun);
  const std::uint64_t bytes = packing->bytes();
  if (bytes > kElementsMax / size())
    return invalid("the packed elements are above " + std::to_string(kElementsMax / size()) + " bytes");
  const auto parts = std::make_shared<std::vector<std::byte>>(bytes * size());
  std::byte* const own = parts->data() + bytes * rank_;
  if (Status bad = packing->pack(call.input, {own, static_cast<std::size_t>(bytes)}); !bad.ok()) return refuse(bad);
  Digest how;
  how.add(static_cast<std::uint64_t>(call.type));
  how.add(call.call.count);
  how.add(packing->number());
  for (const char letter : options.compress.name()) how.add(static_cast<unsigned char>(letter));
  const bool averages = *call.op == ReduceOp::kAvg;
  how.add(averages ? 1 : 0);
  const std::shared_ptr<Collective> made =
      make_collective({.call = {.operation = What::kAllGather,
                                .rank = rank_,
                                .size = size(),
                                .counts = std::vector<std::uint64_t>(size(), bytes),
                                .has_input_in_output = true},
                       .input = own,
                       .output = parts->data(),
                       .how = how.value()},
                      {});
  made->name = name;
  put_text(made->flight.operation, name);
  made->elements.finish = [packing, parts, averages, out = call.output, ranks = size()]() -> Status {
    HAWSER_TRY(packing->unpack(*parts, ranks, averages, out));
    packing->commit();
    return {};
  };
  return begin_collective(made, options);
}

Request WorldCore::begin_collective(const std::shared_ptr<Collective>& made, const CollectiveOptions& options) {
  if (Status bad = made->check_buffers(); !bad.ok()) {
    made->elements = {};
    return request(made, bad);
  }
  const Status status = agent::inner::under_lane_lightly(seat_->agent, made->name, [&](Instant now) {
    begin(made, options.timeout, now);
    seat_->mailbox->run_jobs(now);
    const bool is_written = made->room != nullptr && why_not().ok() && (made->is_on_board() || made->is_over());
    return !is_written || made->room->take_rung();
  });
  return request(made, status);
}

void WorldCore::begin(const std::shared_ptr<Collective>& collective, Duration timeout, Instant now) {
  collective->number = next_number_++;
  collective->name += " number " + std::to_string(collective->number) + " of world '" + options_.name + "'";
  collective->ended = [this](Collective& over, Instant at) { on_ended(over, at); };
  collective->failing = [this](const Status& why, Instant at) { on_failing(why, at); };
  collective->late = [](Collective& over, Instant at) {
    std::string missing;
    for (const std::uint32_t rank : over.awaited()) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    over.fail(Status(Code::kTimedOut, over.name + " did not end by its deadline; it waits for rank " + missing), at);
  };
  collective->checking = [this](Collective& waiting, Instant at) { check_awaited(waiting, at); };
  collective->self = collective;
  if (Recorder* const recorder = seat_->mailbox->recorder()) {
    collective->flight.world = nonce_;
    collective->flight.number = collective->number;
    collective->recorded = recorder->begin(collective->flight, now);
  }
  under_way_.push_back(*collective);
  if (Status status = why_not(); !status.ok()) return collective->fail(status, now);
  collective->set_deadline(deadline(timeout, now), now);
  if (!planted(Planted::kLedgerForgets)) ledger_.note(collective->number, collective->digest);
  const Arrived* const misfit =
      seat_->mailbox->find_misfit(nonce_, collective->number, collective->digest);  // It came before.
  if (misfit != nullptr) return collective->fail(not_the_same(misfit->from, collective->number), now);
  collective->begin(now);
}

Status WorldCore::not_the_same(const Peer& by, std::uint64_t number) const {
  const std::optional<std::uint32_t> rank = rank_of(by);
  return Status(Code::kInvalid, "number " + std::to_string(number) + " of world '" + options_.name +
                                    "' is another operation at rank " + (rank ? std::to_string(*rank) : "?") +
                                    ": the ranks differ in what they call")
      .with_peer(by.name());
}

Collective* WorldCore::under_way(std::uint64_t number) {
  for (Collective& each : under_way_) {
    if (each.number == number) return &each;
  }
  return nullptr;
}

bool WorldCore::is_past(std::uint64_t number) { return number < next_number_ && under_way(number) == nullptr; }

bool WorldCore::is_misfit(const wire::MessageEnvelope& envelope) {
  if (planted(Planted::kLedgerForgets)) return false;
  return ledger_.differs(envelope.tag, envelope.digest) || is_past(envelope.tag);
}

void WorldCore::on_misfit(const Peer& by, const wire::MessageEnvelope& envelope, Instant now) {
  if (why_not().ok()) end_misfit(by, envelope.tag, now);
}

/// This rank's call may be under way or have ended. Either way its result is not what the ranks meant.
void WorldCore::end_misfit(const Peer& by, std::uint64_t number, Instant now) {
  const Status why = not_the_same(by, number);
  if (Collective* const its = under_way(number)) return its->fail(why, now);
  revoke_under_lane(why, true, now);
}

/// Ranks that differ in what they call may each wait for a message that nobody sends.
void WorldCore::check_awaited(Collective& collective, Instant now) {
  if (const std::optional<std::uint32_t> rank = collective.out_of_sight(); rank && !is_undecided()) {
    if (left_.contains(*rank)) return collective.fail(departed(*rank), now);
    return revoke_under_lane(
        Status(Code::kDisconnected, collective.name + ": the path has ended by which the board of " + "rank " +
                                        std::to_string(*rank) + " was read")
            .with_peer(ranks_[*rank].name()),
        true, now);
  }
  if (planted(Planted::kNeverChecks)) return;
  for (const std::uint32_t rank : collective.awaited()) {
    seat_->mailbox->check(ranks_[rank], nonce_, collective.number, collective.digest, now);
  }
}

/// What this rank sent for the number is on its way before the answer. So a rank that still waits then waits in vain.
void WorldCore::on_check(const Peer& by, std::uint64_t number, std::uint64_t digest, Instant now) {
  if (!rank_of(by) || number >= next_number_) return;  // It may still call the same.
  const Status why = why_not();
  if (why.ok() && ledger_.differs(number, digest)) return end_misfit(by, number, now);
  const Collective* const its = under_way(number);
  if (its != nullptr && its->digest != digest) return end_misfit(by, number, now);  // It is no more in the ledger.
  if (its != nullptr) return;
  if (why.ok()) return seat_->mailbox->tell(by, over_word(nonce_, number, Code::kInvalid), now);
  if (is_undecided()) return;  // It will hear who failed.
  for (const auto& [rank, status] : failed_) {
    seat_->mailbox->tell(by, failed_word(nonce_, rank, dead_.contains(rank)), now);
  }
  if (failed_.empty()) seat_->mailbox->tell(by, revoke_word(nonce_, why), now);
}

void WorldCore::on_over(const Peer& by, std::uint64_t number, Code code, Instant now) {
  const std::optional<std::uint32_t> rank = rank_of(by);
  Collective* const its = under_way(number);
  const std::vector<std::uint32_t> awaited = its == nullptr ? std::vector<std::uint32_t>() : its->awaited();
  if (!rank || std::ranges::find(awaited, *rank) == awaited.end()) return;
  const bool has_closed = code == Code::kDisconnected;
  const Status gone = Status(Code::kDisconnected,
                             its->name + " waits for rank " + std::to_string(*rank) + ", which has closed the world")
                          .with_peer(by.name());
  its->fail(has_closed ? gone : not_the_same(by, number), now);
  if (has_closed) revoke_under_lane(gone, true, now);
}
/// The others wait for what this rank will not send any more, unless they found out by themselves. Of a peer that is
/// gone they hear from its session.
void WorldCore::on_failing(const Status& why, Instant now) {
  if (why.code() != Code::kDisconnected && why_not().ok()) revoke_under_lane(why, true, now);
}

void WorldCore::on_ended(Collective& collective, Instant now) {
  if (collective.recorded != 0) {
    if (Recorder* const recorder = seat_->mailbox->recorder()) {
      recorder->end(collective.recorded, collective.status.code(), now);
    }
  }
  if (collective.status.ok()) {
    good_ahead_.insert(collective.number);
    while (good_ahead_.erase(last_good_ + 1) != 0) ++last_good_;
    if (planted(Planted::kLastGoodClaimed)) last_good_ = std::max(last_good_, collective.number);
    // Each rank has counts of its own for an all_to_all: the digest does not hold them.
    const Arrived* const left =
        planted(Planted::kLedgerForgets) ? nullptr : seat_->mailbox->find_any(nonce_, collective.number);
    if (left != nullptr && why_not().ok()) end_misfit(left->from, collective.number, now);
    return;
  }
  for (const std::uint32_t rank : left_) {
    const bool is_its = collective.status.code() == Code::kDisconnected;
    if (is_its && ranks_[rank].name() == collective.status.peer()) collective.status = departed(rank);
  }
  if (!why_not().ok()) return;
  if (collective.status.code() == Code::kDisconnected) {  // A peer was found gone before its session told so.
    for (std::uint32_t rank = 0; rank < size(); ++rank) {
      if (ranks_[rank].name() == collective.status.peer()) collective.status = failure_of(rank, collective.status);
    }
    return;
  }
  revoke_under_lane(collective.status, true, now);
}
}  // namespace hawser::runtime
