#include "runtime/collective_desk.h"

#include <utility>

#include "agent/inner.h"
#include "base/spin_credit.h"
#include "reduce/compressor.h"
#include "runtime/board_wait.h"
#include "runtime/digest.h"
#include "runtime/prompt_call.h"

namespace hawser::runtime {

using agent::inner::Need;
using What = schedule::Operation;

void CollectiveDesk::open(Site site) {
  site_ = std::move(site);
  RankSeat& seat = *site_.seat;
  const bool is_sparse = seat.relay != nullptr;
  maker_.open({.world = site_.world,
               .name = site_.name,
               .rank = site_.roster->own(),
               .ranks = site_.roster->peers(),
               .is_sparse = is_sparse,
               .mailbox = seat.mailbox.get(),
               .model = seat.costs().model,
               .read_at_once = seat.read_at_once(),
               .piece_bytes = seat.piece_bytes(),
               .map = [this](const CollectiveCall& call) { return boards_.mapped_call(call); },
               .room = [this] { return boards_.room_with_memory(); }});
  book_.open({.world = site_.world, .name = site_.name, .ranks = site_.roster->peers(), .mailbox = seat.mailbox.get()},
             {.why_not = [this] { return site_.failures->fates().why_not(); },
              .rank_of = [this](const Peer& peer) { return site_.roster->rank_of(peer); },
              .revoke = [this](const Status& why, Instant now) { site_.failures->revoke(why, true, now); },
              .out_of_sight = [this](Collective& waiting, std::uint32_t rank,
                                     Instant now) { return end_out_of_sight(waiting, rank, now); },
              .explained = [this](const Status& status) { return site_.failures->fates().explained(status); },
              .warn =
                  [this](const std::string& text) {
                    agent::inner::log_of(site_.seat->agent).write(LogLevel::kWarn, "{}", text);
                  },
              .recorder = [its = &seat] { return its->recorder(); }});
  boards_.open({.world = site_.world, .roster = site_.roster, .seat = &seat, .is_sparse = is_sparse},
               maker_.several_hosts());  // A group has them now, a world once all have entered.
}

void CollectiveDesk::know_hosts(const std::vector<std::uint64_t>& ids) {
  maker_.know_hosts(ids);
  boards_.know_hosts(maker_.several_hosts());
}

void CollectiveDesk::close(const Status& why, Instant now) {
  book_.end_all(why, now);
  boards_.close();
}

// ---- Calls.

Request CollectiveDesk::begin(CollectiveCall call, const CollectiveOptions& options) {
  if (!options.is_waited_for) return begin_made(maker_.make(std::move(call), options), options);
  const bool is_exchange = call.call.operation == What::kAllToAll;
  std::optional<Request> rest = begin_waited(std::move(call), options);
  if (rest) return std::move(*rest);
  // Nothing changes them any more.
  static const auto by_boards = std::make_shared<PromptEnd>(schedule::Algorithm::kBoards);
  static const auto by_exchange = std::make_shared<PromptEnd>(schedule::Algorithm::kStaged);
  return site_.requests->request(is_exchange ? by_exchange : by_boards, {});
}

Status CollectiveDesk::carry_out(CollectiveCall call, const CollectiveOptions& options) {
  std::optional<Request> rest = begin_waited(std::move(call), options);
  return rest ? rest->wait(Duration::max()) : Status();
}

Request CollectiveDesk::begin_own(CollectiveCall call, const CollectiveOptions& options,
                                  const std::function<void(Collective& made)>& adapt) {
  const CollectiveMaker::Made made = maker_.make(std::move(call), options);
  if (made) adapt(**made);
  return begin_made(made, options);
}

std::vector<Request> CollectiveDesk::all_reduce_bucketed(std::span<const Tensor> tensors, DataType type, ReduceOp op,
                                                         std::size_t bucket_bytes, const CollectiveOptions& options) {
  std::vector<Request> requests;
  if (options.compress.valid()) {
    const Status why(Code::kInvalid, "all_reduce: a compressor is of one tensor, and there is a list of them");
    requests.push_back(begin_made(why, options));
    return requests;
  }
  while (!tensors.empty()) {
    const std::size_t taken = CollectiveMaker::bucket_of(tensors, type, bucket_bytes);
    requests.push_back(begin_made(maker_.make_bucket(tensors.first(taken), type, op, options), options));
    tensors = tensors.subspan(taken);
  }
  return requests;
}

Request CollectiveDesk::begin_made(const CollectiveMaker::Made& made, const CollectiveOptions& options, bool waits) {
  if (!made) return site_.requests->request(std::make_shared<Collective>(), made.error());
  const std::shared_ptr<Collective>& its = *made;
  if (Status bad = its->check_buffers(); !bad.ok()) {
    its->elements = {};
    return site_.requests->request(its, bad);
  }
  its->is_waited = waits && site_.seat->has_threads();
  const auto start = [this, its, timeout = options.timeout](Instant now) {
    if (its->room != nullptr) boards_.furnish();
    book_.begin(its, site_.requests->deadline(timeout, now), now);
    site_.seat->mailbox->run_jobs(now);
    const bool is_good = site_.failures->fates().why_not().ok();
    const bool is_written = its->room != nullptr && is_good && (its->is_on_board() || its->is_over());
    if (!is_written || its->room->take_messages()) return Need::kTurn;
    return its->is_over() || its->is_waited ? Need::kNothing : Need::kDriver;
  };
  if (!waits) return site_.requests->begin(its, its->name, start);
  // By reference: no memory is allocated for the function.
  return site_.requests->request(its, agent::inner::under_lane_lightly(site_.seat->agent, its->name, std::cref(start)));
}

// ---- Calls that somebody waits for.

/// None: it has ended, and well.
std::optional<Request> CollectiveDesk::begin_waited(CollectiveCall call, const CollectiveOptions& options) {
  if (options.compress.valid()) return begin_made(maker_.make(std::move(call), options), options, true);
  const Result<schedule::Algorithm> algorithm = maker_.settle(call, options);
  if (!algorithm) return begin_made(algorithm.error(), options, true);
  if (PromptCall::can_be(call, *algorithm)) {
    std::shared_ptr<Collective> rest;
    const Status status = begin_at_once(call, *algorithm, options, &rest);
    if (rest != nullptr) return site_.requests->request(std::move(rest), status);
    if (status.ok()) return std::nullopt;
  }
  return begin_made(maker_.make_settled(call, *algorithm), options, true);
}

/// Ok, and no `rest`: it has ended, and well. Not ok: nothing has begun. Else it goes on as `rest`.
Status CollectiveDesk::begin_at_once(const CollectiveCall& call, schedule::Algorithm algorithm,
                                     const CollectiveOptions& options, std::shared_ptr<Collective>* rest) {
  const std::uint64_t digest = digest_of(call, algorithm), turns = Collective::turns_of(call.call, algorithm);
  BoardRoom* const room = boards_.room();
  Mailbox& mailbox = *site_.seat->mailbox;
  bool is_over = false;
  const auto begin = [&](Instant now) {
    // Nothing is taken unless all of it can be had.
    if (room == nullptr || !room->is_open()) return Need::kNothing;
    const auto ticket = book_.take_ticket(digest, maker_.flight(call, algorithm), now);
    if (!ticket) return Need::kNothing;
    const std::uint64_t turn = room->take_turns(turns);
    PromptCall prompt(room->board(), call, turn, ticket->number, digest);
    const bool is_written = prompt.write();
    if (is_written) room->ring(now);
    base::SpinCredit& spins = agent::inner::spins(site_.seat->agent);
    is_over = is_written && prompt.carry_through(room->is_crowded() || !spins.may_spin(now));
    if (is_over) {
      spins.found();
      room->end_well(turn, turns, now);
      book_.end_well(*ticket, mailbox.now());
    } else {
      *rest = maker_.make_settled(call, algorithm);
      (*rest)->is_waited = site_.seat->has_threads();
      book_.take_over(*rest, *ticket, site_.requests->deadline(options.timeout, now), now);
      (*rest)->take_over(turn, is_written, now);
    }
    mailbox.run_jobs(now);
    if (room->take_messages() || !site_.failures->fates().why_not().ok()) return Need::kTurn;
    return is_over || (*rest)->is_over() || (*rest)->is_waited ? Need::kNothing : Need::kDriver;
  };
  const Status status = agent::inner::under_lane_lightly(site_.seat->agent, "collective", std::cref(begin));
  if (!status.ok() || is_over || *rest != nullptr) return status;
  return Status(Code::kBusy, "boards are not open");
}

bool CollectiveDesk::ends_within(const Operation& operation, Duration timeout) const {
  const auto over = [&] { return operation.final.load(std::memory_order_acquire); };
  if (over()) return true;
  RankSeat& seat = *site_.seat;
  BoardRoom* const room = boards_.room();
  const bool looks = operation.kind == OperationKind::kSeveral && room != nullptr && seat.has_threads();
  const auto look = [&] {
    if (looks) look_at_boards(seat, *room, operation, [this] { return !site_.failures->fates().why_not().ok(); });
    return over();
  };
  if (look()) return true;
  for (const Instant deadline = agent::inner::now(seat.agent) + timeout;;) {
    // What goes on in pieces waits for others in each. Once they have come, the next ones come soon.
    const std::uint32_t moves = operation.moves.load(std::memory_order_relaxed);
    const auto reached = [&] { return over() || (looks && operation.moves.load(std::memory_order_relaxed) != moves); };
    if (!agent::inner::wait_until(seat.agent, reached, deadline) || over()) return over();
    if (look()) return true;
  }
}

// ---- What peers say.

void CollectiveDesk::on_check(const Peer& by, const Question& question, Instant now) {
  if (!site_.roster->rank_of(by)) return;
  Mailbox& mailbox = *site_.seat->mailbox;
  switch (book_.on_check(by, question, now)) {
    case CollectiveBook::Answer::kNone:
      return;
    case CollectiveBook::Answer::kNotYet:
      return mailbox.tell_if_room(by, checked_word(site_.world, question.number, Code::kBusy), now);
    case CollectiveBook::Answer::kOver:
      return mailbox.tell(by, checked_word(site_.world, question.number, Code::kInvalid), now);
    case CollectiveBook::Answer::kEnded:
      return site_.failures->tell_why_not(by, now);
  }
}

void CollectiveDesk::on_bell(const Peer& by, Instant now) {
  if (site_.roster->rank_of(by) && boards_.room() != nullptr) boards_.room()->on_bell(now);
}

/// False: it will be decided what became of that rank.
bool CollectiveDesk::end_out_of_sight(Collective& waiting, std::uint32_t rank, Instant now) {
  const RankFates& fates = site_.failures->fates();
  if (site_.failures->is_undecided()) return false;
  if (fates.has_left(rank)) {
    waiting.fail(fates.departure_of(rank), now);
    return true;
  }
  constexpr Duration kUnseenMax = std::chrono::milliseconds(500);  // The news why may be on its way.
  if (!waiting.unseen_since) waiting.unseen_since = now;
  if (now - *waiting.unseen_since < kUnseenMax) return false;
  site_.failures->revoke(
      Status(Code::kDisconnected,
             waiting.title() + ": the path has ended by which the board of rank " + std::to_string(rank) + " was read")
          .with_peer(site_.roster->peer(rank).name()),
      true, now);
  return true;
}

}  // namespace hawser::runtime
