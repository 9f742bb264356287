#include "runtime/collective.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "base/copy.h"
#include "base/planted.h"
#include "runtime/collective_call.h"

namespace hawser::runtime {

using schedule::Action;
using schedule::Buffer;

std::byte* Collective::place(const schedule::Slice& slice) {
  if (is_telling_) {
    const bool is_own = slice.buffer == Buffer::kInput;
    return (is_own ? const_cast<std::byte*>(letters_->own_letter().data()) : letters_->letters().data()) + slice.at;
  }
  const std::uint64_t at = slice.at * elements.bytes;
  switch (slice.buffer) {
    case Buffer::kInput:  // It is only read, and written where it is the output.
      return const_cast<std::byte*>(elements.input) + at;
    case Buffer::kOutput:
      return elements.output + at;
    case Buffer::kScratch:
      return scratch_.get() + at;
    case Buffer::kBoard:  // Of no schedule.
      break;
  }
  return nullptr;
}

void Collective::make_schedule() {
  const bool is_alone = base::planted(base::Planted::kHostsOwnWay);
  schedule::ByMessages made = schedule::by_messages(call, is_alone ? schedule::Algorithm::kBoards : algorithm, model);
  algorithm = made.algorithm;
  schedule = std::move(made.schedule);
}

Status Collective::check_buffers() {
  if (room != nullptr && mapped == nullptr) {
    if (has_buffers_for_boards(call, elements.input, elements.output)) return {};
    make_schedule();
  }
  const auto in = reinterpret_cast<std::uintptr_t>(elements.input);
  const auto out = reinterpret_cast<std::uintptr_t>(elements.output);
  std::uint64_t read = 0, written = 0;  // The ends of what is used.
  bool overlap_matters = false;         // Something is received before all of the input has been read.
  bool has_received = false;
  for (std::size_t i = 0; i < schedule.rounds(); ++i) {
    for (const schedule::Step& step : schedule.round(i)) {
      for (const schedule::Slice* const slice : {&step.from, &step.to}) {
        if (slice->count == 0) continue;
        if (slice->buffer == Buffer::kInput) read = std::max(read, slice->at + slice->count);
        if (slice->buffer == Buffer::kOutput) written = std::max(written, slice->at + slice->count);
      }
      const bool lands = step.action == Action::kReceive && step.to.buffer == Buffer::kOutput;
      has_received = has_received || (lands && step.to.count > 0);
    }
    for (const schedule::Step& step : schedule.round(i)) {
      const bool reads = step.action != Action::kReceive && step.from.buffer == Buffer::kInput && step.from.count > 0;
      // By numbers: there is no scratch yet, and a buffer may be null.
      const bool is_in_place = step.action == Action::kCopy && step.to.buffer == Buffer::kOutput &&
                               in + step.from.at * elements.bytes == out + step.to.at * elements.bytes;
      overlap_matters = overlap_matters || (reads && has_received && !is_in_place);
    }
  }
  const auto refuse = [&](const char* text) { return Status(Code::kInvalid, title() + ": " + text); };
  if (read > 0 && elements.input == nullptr) return refuse("the input is null");
  if (written > 0 && elements.output == nullptr) return refuse("the output is null");
  if (!overlap_matters || read == 0 || written == 0) return {};
  const bool overlap = in < out + written * elements.bytes && out < in + read * elements.bytes;
  return overlap ? refuse("the input and the output overlap") : Status();
}

std::string Collective::title() const {
  if (number == 0) return name;
  return name + " number " + std::to_string(number) + " of world '" + std::string(world_name) + "'";
}

void Collective::set_deadline(Instant deadline, Instant now) {
  roll.begin(now, deadline);
  mailbox->set_deadline(*this, roll.next(now));
}

void Collective::on_late(Operation&, Instant now) {
  if (roll.is_late(now)) return late(*this, now);
  const std::shared_ptr<Operation> keep = self;  // What is found out may end it.
  checking(*this, now);
  if (!is_over_) mailbox->set_deadline(*this, roll.next(now));
}

std::uint64_t Collective::turns_of(const schedule::Call& call, schedule::Algorithm on_boards) {
  if (on_boards != schedule::Algorithm::kStaged) return 1;
  return schedule::turns_of_staging(call) - (base::planted(base::Planted::kTurnMiscounted) ? 1 : 0);
}

void Collective::begin(Instant now) {
  turns_ = on_boards ? turns_of(call, *on_boards) : 1;
  if (on_boards && schedule::has_phases(*on_boards) && room->size() > 1) {
    phases_ = schedule::host_phases(call, *on_boards, model);
    turns_ = schedule::turns_of(phases_.before, model) + schedule::turns_of(phases_.after, model);
  }
  if (mapped != nullptr) turns_ = 1 + std::max(schedule::kMeetingsMax, turns_);
  if (room != nullptr && room->size() > 1 && room->size() <= schedule::kBoardRanksMax) return room->enter(*this, now);
  if (room != nullptr || mapped != nullptr) return begin_by_messages(now);
  if (take_scratch(now)) go_on(now);
}

void Collective::tell(MappedCall& letters) {
  letters_ = &letters;
  exchange_ = letters.exchange();
  is_telling_ = true;
}

void Collective::begin_to_tell(MappedCall& letters, Instant now) {
  tell(letters);
  go_on(now);
}

void Collective::begin_by_messages(Instant now) {
  if (mapped != nullptr) {
    mapped->write_letter();
    return begin_to_tell(*mapped, now);
  }
  if (goes_by_schedule(now)) go_on(now);
}

bool Collective::goes_by_schedule(Instant now) {
  if (room != nullptr && schedule.rounds() == 0 && schedule::is_by_memory(algorithm)) make_schedule();
  note_algorithm(algorithm);
  return take_scratch(now);
}

void Collective::note_algorithm(schedule::Algorithm its) {
  taken = its;
  if (rerouted) rerouted(*this);
}

void Collective::begin_on_board(Board& board, std::uint64_t turn, Instant now) {
  turn_ = turn;
  if (mapped != nullptr) return tell_on_board(board, now);
  if (on_boards == schedule::Algorithm::kStaged) {
    if (!is_exchange()) return stage(board, turn, {}, now);
    exchange(board, turn);
    return sit_down(now);
  }
  if (call.hosts.empty()) {
    schedule = {};  // That by messages, if `check_buffers` needed it.
    write_on_board(board, call, turn, elements.output);
    return sit_down(now);
  }
  schedule = std::move(phases_.between);
  if (!take_scratch(now) || !keep_input_aside(now)) return;
  if (!phases_.before) return go_on(now);
  begin_phase(*phases_.before, turn);
  sit_down(now);
}

/// Where the output overlaps the input, the first pieces of the result would change later ones of the input. False: it
/// has failed.
bool Collective::keep_input_aside(Instant now) {
  if (!overlaps(call, elements.input, elements.output)) return true;
  const std::uint64_t bytes = schedule::input_count(call) * call.element_bytes;
  input_aside_.reset(new (std::nothrow) std::byte[bytes]);
  if (input_aside_ == nullptr) {
    fail(Status(Code::kBusy, title() + ": there is no memory for a copy of the input, " + std::to_string(bytes) +
                                 " bytes, which the output overlaps"),
         now);
    return false;
  }
  held_bytes_ += bytes;
  base::copy_cached(input_aside_.get(), elements.input, bytes);
  elements.input = input_aside_.get();
  return true;
}

void Collective::begin_phase(const schedule::HostPhase& phase, std::uint64_t turn) {
  BoardPhase::Buffers buffers = {
      .input = place(phase.input.slice(0)), .output = place(phase.output.slice(0)), .combine = elements.combine};
  if (schedule::kind_of(phase, model) == schedule::PhaseKind::kBoards) {
    staged_call_.reset();
    on_board_ = &board_call_.emplace(room->board(), phase.call, std::move(buffers), turn, number, digest);
    return;
  }
  staged_call_ = std::make_unique<StagedCall>(room->board(), phase.call, schedule::AllCounts(), std::move(buffers),
                                              turn, number, digest);
  on_board_ = staged_call_.get();
}

/// False: there is no phase after the messages, or it was begun.
bool Collective::begin_after() {
  if (!turn_ || !phases_.after || std::exchange(is_after_, true)) return false;
  const std::uint64_t before = schedule::turns_of(phases_.before, model);
  const bool is_early = base::planted(base::Planted::kTurnMiscounted) && before > 1;
  begin_phase(*phases_.after, *turn_ + before - (is_early ? 1 : 0));
  return true;
}

/// False: nothing is left to do after the phases.
bool Collective::begin_last() {
  if (!turn_ || phases_.last.rounds() == 0) return false;
  schedule = std::exchange(phases_.last, schedule::Schedule());
  round_ = 0;
  return true;
}

/// The ranks of an all_to_all do not know each other's counts.
void Collective::exchange(Board& board, std::uint64_t turn) {
  schedule = {};
  on_board_ = &exchange_call_.emplace(
      board, call, BoardPhase::Buffers{.input = elements.input, .output = elements.output, .combine = {}}, turn, number,
      digest);
}

/// All ranks know what all others told.
void Collective::go_on_from_exchange(Instant now) {
  if (const auto pair = exchange_call_->counts().first_difference()) {
    const auto [from, to] = *pair;
    const schedule::AllCounts& counts = exchange_call_->counts();
    return fail(Status(Code::kInvalid,
                       title() + ": rank " + std::to_string(from) + " sends " + std::to_string(counts.sent(from, to)) +
                           " elements to rank " + std::to_string(to) + ", which wants " +
                           std::to_string(counts.wanted(from, to)) + ": the ranks differ in what they call")
                    .with_peer(ranks[to == call.rank ? from : to].name()),
                now);
  }
  if (exchange_call_->has_all()) return end_well(now);
  schedule::AllCounts counts = std::move(exchange_call_->counts());
  room->finish(*turn_, now);
  stand_up();
  if (!schedule::has_turns_for(call, counts)) {
    return fail(Status(Code::kInvalid, title() + ": a block of " + std::to_string(counts.most()) +
                                           " elements is more than ranks of one host exchange at once"),
                now);
  }
  stage(room->board(), *turn_ + 1, std::move(counts), now);
}

void Collective::stage(Board& board, std::uint64_t turn, schedule::AllCounts counts, Instant now) {
  schedule = {};
  if (!keep_input_aside(now)) return;
  BoardPhase::Buffers buffers = {.input = elements.input, .output = elements.output, .combine = elements.combine};
  staged_call_ = std::make_unique<StagedCall>(board, call, std::move(counts), std::move(buffers), turn, number, digest);
  on_board_ = staged_call_.get();
  sit_down(now);
}

void Collective::write_on_board(Board& board, const schedule::Call& phase, std::uint64_t turn, std::byte* output) {
  on_board_ = &board_call_.emplace(
      board, phase, BoardCall::Buffers{.input = elements.input, .output = output, .combine = elements.combine}, turn,
      number, digest);
}

void Collective::take_over(std::uint64_t turn, bool is_written, Instant now) {
  turns_ = turns_of(call, *on_boards);
  turn_ = turn;
  if (on_boards == schedule::Algorithm::kStaged) {
    exchange(room->board(), turn);
    if (is_written) exchange_call_->note_written();
  } else {
    write_on_board(room->board(), call, turn, elements.output);
    if (is_written) board_call_->note_written();
  }
  sit_down(now);
}

/// Where its buffers lie.
void Collective::tell_on_board(Board& board, Instant now) {
  mapped->write_letter();
  meeting_ = mapped->exchange_on_boards();
  on_board_ = &board_call_.emplace(
      board, meeting_, BoardCall::Buffers{.input = mapped->own_letter().data(), .output = mapped->letters().data()},
      *turn_, number, digest);
  sit_down(now);
}

/// True: the round is a meeting on boards, and it has come there.
bool Collective::begin_meeting(Instant now) {
  if (is_telling_ || schedule.round(round_)[0].action != Action::kMeet) return false;
  if (base::planted(base::Planted::kMeetingMissed)) return false;
  meeting_ = {.rank = meeting_.rank, .size = meeting_.size};
  on_board_ = &board_call_.emplace(room->board(), meeting_, BoardCall::Buffers(), *turn_ + met_, number, digest);
  sit_down(now);
  return true;
}

/// It is in a phase on boards. The room looks at it until that is over.
void Collective::sit_down(Instant now) {
  look(now);
  if (!is_over_ && on_board_ != nullptr && !std::exchange(is_seated_, true)) room->wait_for(*this);
}

/// The phase is over.
void Collective::stand_up() {
  on_board_ = nullptr;
  board_call_.reset();
  exchange_call_.reset();
  staged_call_.reset();
  if (std::exchange(is_seated_, false)) room->rest(*this);
}

/// All mates have told where their buffers lie, or met.
void Collective::go_on_from_meeting(Instant now) {
  room->finish(*turn_ + met_, now);
  stand_up();
  if (met_++ > 0) {
    ++round_;
  } else if (!decide_mapped(now)) {
    return;
  }
  go_on(now);
}

/// The phase is over. True: the next one is on boards, too. False: it has gone on, mostly by messages, or has ended.
bool Collective::go_on_from_board(Instant now) {
  if (exchange_call_) {
    go_on_from_exchange(now);
    return false;
  }
  if (meeting_.size > 1) {
    go_on_from_meeting(now);
    return false;
  }
  if (call.hosts.empty()) {
    end_well(now);
    return false;
  }
  if (!is_after_) room->finish(*turn_, now);
  const bool has_messages = !is_after_ && schedule.rounds() > 0 && !base::planted(base::Planted::kHostAlone);
  if (!has_messages && begin_after()) return true;
  if (!has_messages && !begin_last()) {
    end_well(now);
    return false;
  }
  stand_up();
  go_on(now);
  return false;
}

bool Collective::look(Instant now) {
  const std::shared_ptr<Operation> keep = self;
  std::uint64_t before = staged_call_ == nullptr ? 0 : staged_call_->moved();
  for (bool has_moved = false;; has_moved = true) {
    switch (on_board_->go_on()) {
      case BoardPhase::Step::kWaits:
        return has_moved;
      case BoardPhase::Step::kMoved:
        moves.store(moves.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // Under the lane's lock.
        room->ring(now);
        // The lane has other work, too.
        if (staged_call_ != nullptr && staged_call_->moved() - before >= read_at_once) return true;
        break;
      case BoardPhase::Step::kOver:
        if (!go_on_from_board(now)) return true;
        before = 0;  // Of the next phase.
        break;
      case BoardPhase::Step::kDiffers:
        fail(differs_at(room->rank_at(on_board_->culprit())), now);
        return true;
      case BoardPhase::Step::kBad: {
        const std::uint32_t culprit = room->rank_at(on_board_->culprit());
        fail(Status(Code::kCorrupt, title() + ": what rank " + std::to_string(culprit) +
                                        " has on its board is of no collective of this world")
                 .with_peer(ranks[culprit].name()),
             now);
        return true;
      }
    }
  }
}

bool Collective::take_scratch(Instant now) { return take_scratch(schedule.scratch() * elements.bytes, now); }

bool Collective::take_scratch(std::uint64_t size, Instant now) {
  if (size == 0) return true;
  scratch_.reset(new (std::nothrow) std::byte[size]);
  if (scratch_ != nullptr) held_bytes_ += size;
  if (scratch_ != nullptr) return true;
  fail(Status(Code::kBusy, title() + ": there is no memory for " + std::to_string(size) + " bytes of scratch"), now);
  return false;
}

/// All mates have told, by messages, where their buffers or boards lie. False: it has failed, or goes by boards.
bool Collective::decide(Instant now) {
  const bool are_own = letters_ == mapped.get();
  is_telling_ = false;
  round_ = 0;
  exchange_ = {};
  return are_own ? decide_mapped(now) : decide_boards(now);
}

bool Collective::decide_boards(Instant now) {
  std::uint64_t turn = 0;
  const Result<bool> decided = room->decide(&turn);
  if (!decided) {
    fail(Status(decided.error().code(), title() + ": " + std::string(decided.error().message())), now);
    return false;
  }
  if (*decided) {
    begin_on_board(room->board(), turn, now);
    return false;
  }
  if (mapped == nullptr) return goes_by_schedule(now);
  mapped->write_letter();
  tell(*mapped);
  return true;
}

bool Collective::decide_mapped(Instant now) {
  const Result<bool> decided = mapped->decide();
  if (!decided) {
    fail(Status(decided.error().code(), title() + ": " + std::string(decided.error().message())), now);
    return false;
  }
  if (*decided) {
    phases_ = {};
    schedule = mapped->schedule(model, turn_ ? schedule::Meetings::kBySteps : schedule::Meetings::kByMessages);
    return take_scratch(now);
  }
  mapped.reset();
  if (!turn_ || !on_boards) return goes_by_schedule(now);
  // Boards take any memory. The turn of the letters is over.
  ++*turn_;
  --turns_;
  meeting_ = {};
  note_algorithm(*on_boards);
  begin_on_board(room->board(), *turn_, now);
  return false;
}

void Collective::begin_round(Instant now) {
  sends_.clear();
  receives_.clear();
  const std::span<const schedule::Step> steps = (is_telling_ ? exchange_ : schedule).round(round_);
  for (const schedule::Step& step : steps) {
    if (step.action == Action::kReceive) {
      Receive& receive = receives_.emplace_back();
      receive.listener = this;
      receive.pattern = {
          .world = world, .use = wire::MessageUse::kCollective, .source = source_of(ranks[step.peer]), .tag = number};
      receive.data = place(step.to);
      receive.capacity = bytes(step.to);
      receive.is_exact = true;
      receive.digest = digest;
    } else if (step.action == Action::kSend) {
      Send& send = sends_.emplace_back();
      send.listener = this;
      send.to = ranks[step.peer];
      send.envelope = {.world = world,
                       .use = wire::MessageUse::kCollective,
                       .tag = number,
                       .digest = digest,
                       .bytes = bytes(step.from)};
      send.data = place(step.from);
    }
  }
  pending_ = sends_.size() + receives_.size();
  if (turn_ && pending_ > 0) room->note_messages();
  is_begun_ = true;
  // The ends of these are noted, and acted upon by `go_on`: nothing here is begun anew meanwhile.
  for (Receive& receive : receives_) mailbox->start(receive, Instant::max(), now);
  for (Send& send : sends_) mailbox->start(send, Instant::max(), now);
}

/// A message that a receive refuses is of another call, or of another size.
Status Collective::error_of(const Operation& operation) const {
  const Status& its_end = operation.status;
  if (operation.kind != OperationKind::kReceive || its_end.code() != Code::kInvalid) return its_end;
  std::uint32_t its = 0;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const bool is_it = source_of(ranks[rank]) == static_cast<const Receive&>(operation).pattern.source;
    if (is_it) its = rank;
  }
  return differs_at(its).because(its_end);
}

Status Collective::differs_at(std::uint32_t rank) const {
  return Status(Code::kInvalid, title() + " is another operation at rank " + std::to_string(rank) +
                                    ": the ranks differ in what they call")
      .with_peer(ranks[rank].name());
}

void Collective::on_end(Operation& operation) {
  const bool was_stopped =
      operation.kind == OperationKind::kReceive && operation.status.code() == Code::kCancelled && !is_over_;
  if (was_stopped) return;  // The sender's collective has ended. Why is on its way: the rank still awaits that.
  operation.final.store(true, std::memory_order_relaxed);
  --pending_;
  if (!operation.status.ok() && first_error_.ok()) first_error_ = error_of(operation);
  const bool has_news = pending_ == 0 || !first_error_.ok();
  if (!has_news || is_over_ || std::exchange(is_waiting_, true)) return;
  mailbox->run_soon([this, keep = self](Instant now) {
    is_waiting_ = false;
    go_on(now);
  });
}

void Collective::act(const schedule::Step& step) {
  std::byte* const to = place(step.to);
  const std::byte* const from = place(step.from);
  switch (step.action) {
    case Action::kCopy:
      if (to != from) std::memmove(to, from, bytes(step.from));
      break;
    case Action::kCombine:
      elements.combine(to, to, from, step.from.count);
      break;
    case Action::kCombineBefore:
      elements.combine(to, from, to, step.from.count);
      break;
    case Action::kSend:
    case Action::kReceive:
    case Action::kRead:
    case Action::kCombineRead:
    case Action::kMeet:
      break;
  }
}

/// What follows the round's messages. False: it goes on in a later turn, or has failed.
bool Collective::act_on_round(Instant now) {
  const std::span<const schedule::Step> steps = (is_telling_ ? exchange_ : schedule).round(round_);
  std::uint64_t budget = read_at_once;
  while (acted_ < steps.size()) {
    const Action action = steps[acted_].action;
    if (action != Action::kRead && action != Action::kCombineRead) {
      act(steps[acted_++]);
      continue;
    }
    if (budget == 0) {
      go_on_later();
      return false;
    }
    if (!read_some(steps.subspan(acted_), &budget, now)) return false;
  }
  acted_ = 0;
  return true;
}

const std::byte* Collective::there(const schedule::Step& step) const {
  const std::byte* const begin = mapped->there(step.peer, step.there.buffer);
  return begin == nullptr ? nullptr : begin + step.there.at * elements.bytes;
}

/// The first of these steps, with those behind it that combine into the same place. False: it has failed.
bool Collective::read_some(std::span<const schedule::Step> steps, std::uint64_t* budget, Instant now) {
  const schedule::Step& first = steps[0];
  std::size_t together = 1;
  const auto joins = [&](const schedule::Step& step) {
    return step.action == Action::kCombineRead && step.to.at == first.to.at && step.to.buffer == first.to.buffer;
  };
  while (first.action == Action::kCombineRead && together < steps.size() && joins(steps[together])) ++together;
  for (const schedule::Step& step : steps.first(together)) {
    if (there(step) != nullptr) continue;
    const Peer& peer = ranks[step.peer];
    fail(Status(Code::kDisconnected,
                title() + ": the path has ended by which the memory of rank " + std::to_string(step.peer) + " was read")
             .with_peer(peer.name()),
         now);
    return false;
  }
  const std::uint64_t block = together == 1 ? *budget : std::min(*budget, kReadBlock);
  const std::uint64_t count = std::min(first.to.count - done_, std::max<std::uint64_t>(block / elements.bytes, 1));
  const std::uint64_t at = done_ * elements.bytes;
  for (const schedule::Step& step : steps.first(together)) {
    std::byte* const to = place(step.to) + at;
    if (step.action == Action::kCombineRead) {
      elements.combine(to, place(step.from) + at, there(step) + at, count);
    } else if (base::copy_bytes(to, there(step) + at, count * elements.bytes, {.total_bytes = bytes(step.to)})) {
      base::stream_fence();
    }
  }
  *budget -= std::min(*budget, count * elements.bytes * together);
  done_ += count;
  if (done_ < first.to.count) return true;
  done_ = 0;
  acted_ += together;
  return true;
}

void Collective::go_on_later() {
  is_waiting_ = true;
  if (turn_) room->note_messages();  // A thread that looks at boards turns the lane then.
  mailbox->run_later([this, keep = self](Instant now) {
    is_waiting_ = false;
    go_on(now);
  });
}

std::size_t Collective::rounds() const {
  if (is_telling_) return exchange_.rounds();
  const bool has_word = mapped == nullptr || !base::planted(base::Planted::kMappedUnconfirmed);
  return schedule.rounds() - (has_word ? 0 : 1);
}

void Collective::go_on(Instant now) {
  while (!is_over_ && on_board_ == nullptr) {
    if (!first_error_.ok()) return fail(first_error_, now);
    if (is_begun_) {
      if (pending_ > 0) return;
      if (!act_on_round(now)) return;
      is_begun_ = false;
      ++round_;
    }
    if (round_ == rounds()) {
      if (is_telling_) {
        if (!decide(now)) return;
        continue;
      }
      if (begin_after()) return sit_down(now);
      if (begin_last()) continue;
      return end_well(now);
    }
    if (begin_meeting(now)) return;
    begin_round(now);
  }
}

void Collective::end_well(Instant now) {
  const Status last = elements.finish ? elements.finish() : Status();
  if (!last.ok()) return fail(Status(last.code(), title() + ": " + std::string(last.message())), now);
  finish({}, now);
}

void Collective::fail(const Status& why, Instant now) {
  if (std::exchange(is_over_, true)) return;
  hook.unlink();  // It is none of those that are under way for whoever hears of it now.
  if (failing) failing(why, now);
  for (Receive& receive : receives_) mailbox->stop(receive, why, now);
  for (Send& send : sends_) mailbox->stop(send, why, now);
  finish(why, now);
}

std::optional<std::uint32_t> Collective::out_of_sight() const {
  const std::optional<std::uint32_t> place = on_board_ != nullptr ? on_board_->out_of_sight() : std::nullopt;
  return place ? std::optional(room->rank_at(*place)) : std::nullopt;
}

std::vector<std::uint32_t> Collective::awaited() const {
  std::vector<std::uint32_t> all;
  if (on_board_ != nullptr) {
    all = on_board_->awaited();
    for (std::uint32_t& each : all) each = room->rank_at(each);
    return all;
  }
  for (const Receive& receive : receives_) {
    if (receive.final.load(std::memory_order_relaxed)) continue;
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
      if (source_of(ranks[rank]) == receive.pattern.source) all.push_back(rank);
    }
  }
  return all;
}

void Collective::finish(Status result, Instant now) {
  is_over_ = true;
  mailbox->clear_deadline(*this);
  status = std::move(result);
  const std::shared_ptr<Operation> keep = std::move(self);
  hook.unlink();
  mapped.reset();  // The others' memory, too.
  on_board_ = nullptr;
  board_call_.reset();
  exchange_call_.reset();
  staged_call_.reset();
  if (turn_) {
    room->leave(*this, *turn_, status.ok(), now);
  } else if (room != nullptr) {
    room->forget(*this);
  }
  elements = {};  // What it holds for the time of the collective goes now, not with the user's handle.
  if (ended) ended(*this, now);
  final.store(true, std::memory_order_release);
  mailbox->note_end();
}

}  // namespace hawser::runtime
