// After a loss: does the opener still listen? The side that accepted has nobody to connect to, and would wait for the
// whole of peer_timeout for a process that is dead. On the same host a refused connection proves that it is dead. All
// sockets of a process go with it, though not at the same instant, so it is asked a few times.

#include "backend/stream/path.h"
#include "base/format.h"

namespace hawser::backend::stream {
namespace {

constexpr unsigned kAsksMax = 5;
/// Before the second question; it doubles. In all less than the 50 ms in which a death is to be reported.
constexpr Duration kFirstPause = std::chrono::milliseconds(1);
/// A connection within a host needs microseconds, unless the listener's queue is full: then somebody lives.
constexpr Duration kAnswerMax = std::chrono::milliseconds(10);

}  // namespace

void StreamPath::begin_asking(const Status& why) {
  phase_ = Phase::kAsking;
  lost_why_ = why;
  close_streams(true);
  ask_at_ = Instant::min();
  activate();
}

std::size_t StreamPath::turn_asking(Instant now) {
  if (question_ == nullptr) {
    if (now < ask_at_) return 0;
    if (asked_ == kAsksMax) {
      go_down(lost_why_);
      return 1;
    }
    ++asked_;
    auto stream = shared_.network.connect(asks_at_, {});
    if (!stream) {
      go_down(stream.error().scope() == Scope::kPeer ? opener_ended() : lost_why_);
      return 1;
    }
    question_ = *std::move(stream);
    lanes_[0].owner = StreamOwner{.path = this};
    question_->owner = &lanes_[0].owner;
    ask_at_ = now + kAnswerMax;
  }
  if (question_->state() == StreamState::kConnecting && now < ask_at_) return 0;
  take_answer(now);
  return 1;
}

void StreamPath::take_answer(Instant now) {
  const bool is_closed = question_->state() == StreamState::kClosed;
  const bool is_refused = is_closed && question_->status().scope() == Scope::kPeer;
  question_->close(true);
  question_.reset();
  lanes_[0].owner = StreamOwner{};
  if (is_closed) return go_down(is_refused ? opener_ended() : lost_why_);
  ask_at_ = now + kFirstPause * (1 << (asked_ - 1));
}

Status StreamPath::opener_ended() const {
  return Status(Code::kDisconnected,
                base::format("the process of {} ended: nobody listens at {} any more", name_, asks_at_))
      .with_scope(Scope::kPeer)
      .with_peer(name_)
      .because(lost_why_);
}

}  // namespace hawser::backend::stream
