#include "runtime/board_room.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "base/planted.h"
#include "base/try.h"
#include "schedule/hosts.h"

namespace hawser::runtime {

void BoardRoom::know_hosts(std::vector<std::uint32_t> hosts) {
  hosts_ = std::move(hosts);
  mates_ = schedule::Hosts::sharing(hosts_, site_.rank, static_cast<std::uint32_t>(site_.ranks.size()));
}

bool BoardRoom::is_crowded() const {
  static const auto cores = static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  return size() > cores;
}

std::uint64_t BoardRoom::take_turns(std::uint64_t count) {
  ++begun_;
  board_->stand_on(::sched_getcpu());
  return std::exchange(turns_, turns_ + count);
}

void BoardRoom::enter(BoardUser& user, Instant now) {
  if (state_ == State::kUndecided || !held_.empty()) {
    held_.push_back(&user);
    return;
  }
  begin(user, now);
}

void BoardRoom::begin(BoardUser& user, Instant now) {
  ++begun_;
  if (state_ == State::kOpen) {
    board_->stand_on(::sched_getcpu());
    return user.begin_on_board(*board_, std::exchange(turns_, turns_ + user.turns()), now);
  }
  if (!std::has_single_bit(begun_)) return user.begin_by_messages(now);
  state_ = State::kUndecided;
  teller_ = &user;
  const auto ranks = static_cast<std::uint32_t>(site_.ranks.size());
  std::vector<std::uint64_t> lent(ranks);
  lent[0] = kBoardBytes;  // In all: each rank lends so much.
  letters_ =
      std::make_unique<MappedCall>(MappedCall::Uses{.memory = *site_.memory, .place = site_.place, .view = site_.view},
                                   schedule::Call{.operation = schedule::Operation::kReduceScatter,
                                                  .rank = site_.rank,
                                                  .size = ranks,
                                                  .counts = std::move(lent),
                                                  .hosts = hosts_},
                                   memory_.data(), nullptr);
  if (board_ == nullptr && !memory_.empty()) {  // From now on the others may look at it.
    const auto own = static_cast<std::uint32_t>(std::ranges::lower_bound(mates_, site_.rank) - mates_.begin());
    board_ = std::make_unique<Board>(site_.world, own, size(), memory_, [this](std::uint32_t place) {
      return letters_->there_at(place, schedule::Buffer::kInput);
    });
  }
  letters_->write_letter();
  user.begin_to_tell(*letters_, now);
}

Result<bool> BoardRoom::decide(std::uint64_t* turn) {
  HAWSER_TRY_ASSIGN(const bool are_seen, letters_->decide());
  state_ = State::kShut;
  if (!held_.empty()) site_.mailbox->run_soon([this](Instant now) { begin_held(now); });
  if (!are_seen) return false;
  for (const std::uint32_t rank : mates_) {
    const std::byte* const its = rank == site_.rank ? nullptr : letters_->there(rank, schedule::Buffer::kInput);
    if (reinterpret_cast<std::uintptr_t>(its) % kBoardLine == 0) continue;
    return Status(Code::kCorrupt, "the board of rank " + std::to_string(rank) + " does not begin where a line does");
  }
  letters_->let_go();
  state_ = State::kOpen;
  *turn = std::exchange(turns_, turns_ + teller_->turns());
  return true;
}

void BoardRoom::forget(const BoardUser& user) {
  std::erase(held_, &user);
  if (teller_ == &user && state_ != State::kOpen) letters_.reset();  // It may hold others' memory open.
}

/// Until one of them is a try.
void BoardRoom::begin_held(Instant now) {
  while (!held_.empty() && state_ != State::kUndecided) {
    BoardUser& next = *held_.front();
    held_.pop_front();
    begin(next, now);
  }
}

void BoardRoom::ring(Instant now) {
  for (const std::uint32_t place : board_->to_ring()) {
    has_messages_ = true;
    site_.mailbox->tell(site_.ranks[mates_[place]], bell_word(site_.world), now);
  }
}

void BoardRoom::wait_for(BoardUser& user) {
  users_.push_back(&user);
  wake();
}

void BoardRoom::wake() {
  if (std::exchange(has_asked_, false)) board_->stop_asking();
  if (!std::exchange(is_looking_, true)) site_.mailbox->watch(*this);
}

void BoardRoom::end_well(std::uint64_t turn, std::uint64_t count, Instant now) {
  good_turns_ = std::max(good_turns_, turn + count);
  board_->finish(turn, count);
  ring(now);
}

void BoardRoom::finish(std::uint64_t turn, Instant now) {
  if (board_ == nullptr) return;
  board_->finish(turn);
  ring(now);
}

void BoardRoom::rest(BoardUser& user) {
  std::erase(users_, &user);
  sleep_if_idle();
}

void BoardRoom::leave(BoardUser& user, std::uint64_t turn, bool is_good, Instant now) {
  if (is_good) good_turns_ = std::max(good_turns_, turn + user.turns());
  if (board_ != nullptr) {
    board_->finish(turn, user.turns());
    ring(now);
  }
  rest(user);
}

void BoardRoom::sleep_if_idle() {
  if (!users_.empty() || board_ == nullptr) return;
  if (std::exchange(has_asked_, false)) board_->stop_asking();
  if (std::exchange(is_looking_, false)) site_.mailbox->unwatch(*this);
}

std::size_t BoardRoom::look(Instant now) {
  std::size_t work = 0;
  for (std::size_t i = 0; i < users_.size();) {
    BoardUser* const next = users_[i];
    work += next->look(now) ? 1 : 0;  // It may go, and others with it.
    if (i < users_.size() && users_[i] == next) ++i;
  }
  return work;
}

bool BoardRoom::wait_on(int core) {
  if (board_ == nullptr) return false;
  board_->stand_on(core);
  return std::ranges::any_of(users_, [core](const BoardUser* user) { return user->awaits_one_on(core); });
}

bool BoardRoom::ask() {
  if (!base::planted(base::Planted::kBoardAsksOnce) || !was_woken_) board_->ask();
  has_asked_ = true;
  if (std::ranges::any_of(users_, [](const BoardUser* user) { return user->has_news(); })) {
    board_->stop_asking();
    has_asked_ = false;
    return false;
  }
  is_looking_ = false;
  return true;
}

void BoardRoom::on_bell(Instant now) {
  if (users_.empty()) return;
  was_woken_ = true;
  wake();
  look(now);
}

std::vector<std::uint32_t> BoardRoom::unread_before(std::uint64_t turn) const {
  std::vector<std::uint32_t> by;
  if (state_ != State::kOpen || board_ == nullptr) return by;
  for (std::uint32_t place = 0; place < board_->size(); ++place) {
    const std::uint32_t rank = mates_[place];
    const bool is_gone = rank != site_.rank && letters_->there_at(place, schedule::Buffer::kInput) == nullptr;
    if (!is_gone && turn > 0 && !board_->has_finished(place, turn - 1)) by.push_back(rank);
  }
  return by;
}

void BoardRoom::close() {
  if (std::exchange(is_looking_, false)) site_.mailbox->unwatch(*this);
  if (has_asked_ && board_ != nullptr) board_->stop_asking();
  has_asked_ = false;
  users_.clear();
  held_.clear();
  board_.reset();
  letters_.reset();
}

}  // namespace hawser::runtime
