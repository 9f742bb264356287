// Writes with immediate: how the target of a covered write learns by itself that it landed (proto/immediate.h).

#include <utility>

#include "backend/verbs/path/path.h"
#include "base/format.h"

namespace hawser::backend::verbs {

/// The receives are there before the peer can hear of the queue pair. Where messages have theirs on it, those were
/// posted together.
Status VerbsPath::open_immediates(Pair& pair) {
  if (credits_ == 0) return {};
  pair.qp.begin_immediates(receives(), credits_);
  if (messages_ != nullptr && is_first(pair)) return {};
  for (std::uint32_t i = 0; i < receives(); ++i) {
    if (Status status = pair.qp.post_receive(0, {}); !status.ok()) return status;
  }
  return {};
}

void VerbsPath::on_immediate(Pair& pair, const Completed& completed, Instant now) {
  Status failed;
  if (credits_ == 0) {
    failed = Status(Code::kCorrupt, "an immediate, though none were agreed on").with_scope(Scope::kPath);
  } else if (const auto read = pair.qp.words_in().on_word(completed.word); !read) {
    failed = read.error();
  } else if (*read) {
    arrived_.push_back(**read);
    ++counted_in_;
  }
  if (failed.ok() && arrived_.size() > std::size_t{wire::kPairsMax} * receives()) {
    failed = Status(Code::kCorrupt, "more immediates than there are receives").with_scope(Scope::kPath);
  }
  if (!failed.ok()) return go_down(failed);
  tell_arrivals();
  // The receive is back before the sender hears of it.
  if (messages_ != nullptr && is_first(pair)) {
    failed = messages_->on_immediate(completed.place);
    if (!failed.ok()) return go_down(failed);
    repost(now);
  } else if (failed = pair.qp.post_receive(0, {}); !failed.ok()) {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (pairs_[i].get() == &pair) fault(i, failed, now);
    }
    return;
  }
  if (is_down() || state_ != PathState::kUp || !pair.qp.words_in().is_word_due()) return;
  words_due_ = shared_.attention = true;
}

/// The agent hears of nothing before it hears of the path.
void VerbsPath::tell_arrivals() {
  if (state_ != PathState::kUp) return;
  for (const auto& [transfer, chunk] : arrived_) shared_.events.arrival(this, transfer, chunk);
  arrived_.clear();
}

wire::ImmediatesCounted VerbsPath::counted(Pair& pair) const {
  std::uint8_t number = 0;
  while (pairs_[number].get() != &pair) ++number;
  return {.pair = number, .epoch = pair.qp.epoch(), .counted = pair.qp.words_in().counted()};
}

void VerbsPath::tell_counted() {
  if (control_ == nullptr || state_ != PathState::kUp || !outgoing_.empty()) return;
  for (const auto& pair : pairs_) {
    if (!pair->qp.words_in().is_word_due()) continue;
    const std::string word = wire::encode(counted(*pair));
    if (!control_->send(Priority::kCritical, std::as_bytes(std::span(word)), {})) return;
    pair->qp.words_in().told();
  }
  words_due_ = false;
}

/// The queue pair is about to go, and with it what its completion queues still hold.
void VerbsPath::settle_immediates(Pair& pair) {
  // Told before the queue pair's end is, in whatever way that will be: what landed must not be written again.
  if (state_ == PathState::kUp && pair.qp.words_in().is_news()) {
    say(counted(pair));
    pair.qp.words_in().told();
  }
  // Some of these were acknowledged, and the peer has not seen their words: the agent has to tell it.
  std::uint64_t last = 0;
  for (const std::uint64_t transfer : pair.qp.words_out().uncounted()) {
    if (transfer != last) shared_.events.uncounted(this, transfer);
    last = transfer;
  }
  pair.qp.words_out().forget_uncounted();
}

void VerbsPath::on_counted(const wire::ImmediatesCounted& told) {
  if (told.pair >= pairs_.size()) return;
  Pair& pair = *pairs_[told.pair];
  if (told.epoch == pair.qp.epoch()) {
    if (Status status = pair.qp.words_out().on_counted(told.counted); !status.ok()) return go_down(status);
  }
  if (told.epoch == pair.lost_epoch) end_counted(pair, told.counted);
}

/// What the target has told of has landed, though its acknowledgement was lost with the queue pair.
void VerbsPath::end_counted(Pair& pair, std::uint64_t counted) {
  std::erase_if(pair.lost, [&](const Flight& flight) {
    const bool landed = flight.immediate != 0 && flight.immediate <= counted;
    if (landed) end(flight, Status());
    return landed;
  });
}

}  // namespace hawser::backend::verbs
