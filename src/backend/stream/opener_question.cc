#include "backend/stream/opener_question.h"

namespace hawser::backend::stream {

bool OpenerQuestion::is_due(Instant now) const {
  return now >= at_ || (stream_ != nullptr && stream_->state() != StreamState::kConnecting);
}

OpenerQuestion::Answer OpenerQuestion::turn(Instant now) {
  if (stream_ == nullptr) {
    if (now < at_) return Answer::kNone;
    if (const Answer answer = ask(now); answer != Answer::kNone) return answer;
  }
  return is_due(now) ? take_answer(now) : Answer::kNone;
}

OpenerQuestion::Answer OpenerQuestion::ask(Instant now) {
  if (asked_ == kAsksMax) return Answer::kLives;
  ++asked_;
  auto stream = network_.connect(place_, {});
  if (!stream) return stream.error().scope() == Scope::kPeer ? Answer::kEnded : Answer::kLives;
  stream_ = *std::move(stream);
  stream_->owner = owner_;
  at_ = now + kAnswerMax;
  return Answer::kNone;
}

OpenerQuestion::Answer OpenerQuestion::take_answer(Instant now) {
  const bool is_closed = stream_->state() == StreamState::kClosed;
  const bool is_refused = is_closed && stream_->status().scope() == Scope::kPeer;
  stream_->close(true);
  stream_.reset();
  if (is_closed) return is_refused ? Answer::kEnded : Answer::kLives;
  at_ = now + kFirstPause * (1 << (asked_ - 1));
  return Answer::kNone;
}

}  // namespace hawser::backend::stream
