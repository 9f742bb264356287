#include "compat/asks.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/abandon.h"
#include "base/format.h"
#include "base/try.h"
#include "compat/clock.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(20);  ///< Before a second try; doubled for each further one.
constexpr Duration kLongestPause = std::chrono::milliseconds(500);

bool is_same(const base::SocketAddress& a, const base::SocketAddress& b) {
  return a.size == b.size && std::memcmp(&a.storage, &b.storage, a.size) == 0;
}

bool changes(const Frame& frame) { return frame.kind != Frame::Kind::kAsk; }

}  // namespace

Result<std::unique_ptr<Asks>> Asks::open(Trust trust, Done done) {
  HAWSER_TRY_ASSIGN(base::EventFd wake, base::EventFd::open());
  return std::unique_ptr<Asks>(new Asks(std::move(wake), trust, std::move(done)));
}

Asks::Asks(base::EventFd wake, Trust trust, Done done) : wake_(std::move(wake)), trust_(trust), done_(std::move(done)) {
  thread_ = std::thread([this] { run(); });
}

Asks::~Asks() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_release);
  wake_.signal();
  thread_.join();
}

void Asks::disown() { base::abandon(thread_); }

Status Asks::add(AskJob job) {
  const base::MutexLock lock(mutex_);
  std::string question = encode_frame(job.frame);
  if (all_.size() >= kAsksMax || bytes_ + question.size() > kAskBytesMax) {
    return Status(Code::kBusy,
                  base::format("{} exchanges of metadata with {} bytes are under way already", all_.size(), bytes_))
        .with_advice("try again in a moment");
  }
  job.frame.body = {};
  bytes_ += question.size();
  One& one = all_.emplace_back();
  one.job = std::move(job);
  one.question = std::move(question);
  one.pause = kFirstPause;
  wake_.signal();
  return {};
}

void Asks::forget(std::string_view name) {
  const base::MutexLock lock(mutex_);
  for (One& one : all_) one.is_forgotten = one.is_forgotten || (!name.empty() && one.job.name == name);
  wake_.signal();
}

void Asks::run() {
  while (!stop_.load(std::memory_order_acquire)) {
    const std::vector<const One*> ready = await();
    (void)wake_.drain();
    const base::MutexLock lock(mutex_);
    const Instant at = now();
    for (auto next = all_.begin(); next != all_.end();) {
      const auto one = next++;
      if (!step(*one, std::ranges::find(ready, &*one) != ready.end(), at)) continue;
      bytes_ -= one->question.size();
      all_.erase(one);
    }
    bound_answers();
  }
}

std::vector<const Asks::One*> Asks::await() {
  std::vector<pollfd> waiting = {{.fd = wake_.fd(), .events = POLLIN, .revents = 0}};
  std::vector<const One*> ones, ready;
  Instant next = Instant::max();
  {
    const base::MutexLock lock(mutex_);
    for (const One& one : all_) {
      next = std::min(next, next_of(one));
      if (!one.link) continue;
      waiting.push_back({.fd = one.link->fd(), .events = one.link->events(), .revents = 0});
      ones.push_back(&one);
    }
  }
  (void)::poll(waiting.data(), waiting.size(), milliseconds_until(next));
  for (std::size_t i = 0; i < ones.size(); ++i) {
    if (waiting[i + 1].revents != 0) ready.push_back(ones[i]);
  }
  return ready;
}

Instant Asks::next_of(const One& one) const {
  if (one.link) return one.deadline;
  return must_wait(one) ? Instant::max() : std::min(one.deadline, one.retry_at);
}

/// Another one that was handed in before goes first.
bool Asks::must_wait(const One& one) const {
  if (!changes(one.job.frame)) return false;
  for (const One& other : all_) {
    if (&other == &one) return false;
    if (changes(other.job.frame) && is_same(other.job.address, one.job.address)) return true;
  }
  return false;
}

bool Asks::step(One& one, bool is_ready, Instant at) {
  if (one.is_forgotten) return true;
  if (!one.link) {
    if (must_wait(one)) return false;
    if (one.deadline == Instant::max()) one.deadline = at + kAskTime;
    if (at < one.retry_at && at < one.deadline) return false;
    if (at < one.deadline) one.link.emplace(one.job.address, one.job.name, one.question, trust_);
  } else if (is_ready) {
    one.link->move_on();
  }
  if (one.link && one.link->outcome()) {
    Result<Frame>& outcome = *one.link->outcome();
    if (!outcome && outcome.error().code() == Code::kDisconnected && try_again(one, at)) return false;
    done_(one.job, std::move(outcome));
    return true;
  }
  if (at < one.deadline) return false;
  const Status late(Code::kTimedOut,
                    base::format("metadata by address: {} took too long", base::to_string(one.job.address)));
  done_(one.job, one.lost.ok() ? late : late.because(one.lost));
  return true;
}

bool Asks::try_again(One& one, Instant at) {
  if (at + one.pause >= one.deadline) return false;
  one.lost = one.link->outcome()->error();
  one.link.reset();
  one.retry_at = at + one.pause;
  one.pause = std::min(2 * one.pause, kLongestPause);
  return true;
}

/// Answers that are not whole yet: the largest one goes.
void Asks::bound_answers() {
  const auto held = [](const One& one) { return one.link ? one.link->held() : 0; };
  std::size_t all = 0;
  for (const One& one : all_) all += held(one);
  if (all <= kAskBytesMax) return;
  const auto largest = std::ranges::max_element(all_, {}, held);
  done_(largest->job, Status(Code::kBusy, base::format("metadata by address: answers of {} bytes are coming in, which "
                                                       "is more than {}",
                                                       all, kAskBytesMax)));
  bytes_ -= largest->question.size();
  all_.erase(largest);
}

}  // namespace compat
HAWSER_NAMESPACE_END
