#include "agent/status_desk.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "base/forked_fds.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

constexpr int kBacklog = 16;
constexpr std::uint64_t kListener = 0;  // Callers have the numbers from 1 on.
constexpr int kAcceptsMax = 8;          // In one round.
/// Without descriptors nobody can be accepted, and the listener stays readable.
constexpr Duration kShortagePause = std::chrono::milliseconds(100);

class Refusal final : public StatusAnswer {
 public:
  explicit Refusal(std::string_view why) : why_(why) {}
  Step next(std::string& out, Instant) override {
    out += "{\"error\":\"";
    out += why_;
    out += "\"}\n";
    return Step::kEnd;
  }

 private:
  std::string_view why_;  ///< A literal.
};

}  // namespace

Result<std::unique_ptr<StatusDesk>> StatusDesk::open(const std::string& folder, std::string_view name, Opener opener) {
  HAWSER_TRY_ASSIGN(base::Epoll epoll, base::Epoll::open());
  HAWSER_TRY_ASSIGN(base::UserSocket socket, base::UserSocket::listen(folder, name, ".ask", kBacklog));
  HAWSER_TRY(epoll.add(socket.fd(), EPOLLIN, kListener));
  return std::unique_ptr<StatusDesk>(new StatusDesk(std::move(epoll), std::move(socket), std::move(opener)));
}

StatusDesk::StatusDesk(base::Epoll epoll, base::UserSocket socket, Opener opener)
    : epoll_(std::move(epoll)), socket_(std::move(socket)), opener_(std::move(opener)) {
  base::ForkedFds::add(epoll_.fd());
  base::ForkedFds::add(socket_.fd());
}

StatusDesk::~StatusDesk() {
  for (const Caller& caller : callers_) base::ForkedFds::remove(caller.socket.get());
  base::ForkedFds::remove(socket_.fd());
  base::ForkedFds::remove(epoll_.fd());
}

bool StatusDesk::has_news() const {
  std::array<epoll_event, 1> events;
  const Result<std::size_t> count = epoll_.wait(events, Duration::zero());
  return count && *count > 0;
}

Instant StatusDesk::serve(Instant now) {
  if (is_muted_ && now >= muted_until_) mute(false);
  std::array<epoll_event, kCallersMax + 1> events;
  const Result<std::size_t> count = epoll_.wait(events, Duration::zero());
  const std::span<const epoll_event> news = std::span(events).first(count ? *count : 0);
  const auto has_event = [&](std::uint64_t number) {
    return std::ranges::any_of(news, [&](const epoll_event& each) { return each.data.u64 == number; });
  };
  may_make_piece_ = true;
  Callers served;  // They come after the others in the next round.
  for (auto at = callers_.begin(); at != callers_.end();) {
    const auto caller = at++;
    const bool is_due = has_event(caller->number) || now >= caller->due;
    const bool may_make = may_make_piece_;
    if (is_late(*caller, now) || (is_due && !advance(*caller, now))) {
      drop(caller);
    } else if (may_make != may_make_piece_) {
      served.splice(served.end(), callers_, caller);
    }
  }
  callers_.splice(callers_.end(), served);
  if (has_event(kListener)) accept(now);
  Instant next = is_muted_ ? muted_until_ : Instant::max();
  for (const Caller& caller : callers_) next = std::min({next, caller.due, deadline_of(caller)});
  return next;
}

void StatusDesk::accept(Instant now) {
  for (int i = 0; i < kAcceptsMax; ++i) {
    if (callers_.size() >= kCallersMax && !is_called()) return;
    if (callers_.size() >= kCallersMax) muted_until_ = make_room(now);
    if (callers_.size() >= kCallersMax) return mute(true);
    Result<std::optional<base::UserSocket::Caller>> accepted = socket_.accept();
    if (!accepted) {
      muted_until_ = now + kShortagePause;
      return mute(true);
    }
    if (!accepted->has_value()) return;
    base::Fd socket = std::move((*accepted)->socket);
    if (!socket || !epoll_.add(socket.get(), EPOLLIN, next_number_).ok()) continue;
    base::ForkedFds::add(socket.get());
    Caller& caller = callers_.emplace_back();
    caller.socket = std::move(socket);
    caller.number = next_number_++;
    caller.came = caller.moved = now;
    caller.watched = EPOLLIN;
  }
}

bool StatusDesk::is_called() const {
  pollfd listener{.fd = socket_.fd(), .events = POLLIN, .revents = 0};
  return ::poll(&listener, 1, 0) == 1;
}

/// Those that asked nothing are in the order in which they came.
Instant StatusDesk::make_room(Instant now) {
  const auto silent = std::ranges::find_if(callers_, [](const Caller& each) { return each.answer == nullptr; });
  if (silent == callers_.end()) return Instant::max();
  if (now < silent->came + kGrace) return silent->came + kGrace;
  drop(silent);
  return now;
}

void StatusDesk::mute(bool muted) {
  if (muted == is_muted_) return;
  is_muted_ = muted;
  const std::uint32_t events = muted ? 0 : std::uint32_t{EPOLLIN};
  (void)epoll_.modify(socket_.fd(), events, kListener);
}

bool StatusDesk::advance(Caller& caller, Instant now) {
  if (caller.answer == nullptr) {
    if (!read_request(caller, now)) return false;
    if (caller.answer == nullptr) return true;
  }
  if (caller.sent == caller.out.size() && !caller.has_ended) {
    if (!std::exchange(may_make_piece_, false)) {
      caller.due = now;  // In the next round.
      return true;
    }
    caller.due = Instant::max();
    caller.out.clear();
    caller.sent = 0;
    const StatusAnswer::Step step = caller.answer->next(caller.out, now);
    caller.has_ended = step == StatusAnswer::Step::kEnd;
    if (step == StatusAnswer::Step::kLater && caller.out.empty()) {
      watch(caller, 0);  // Its socket has room all the time, which says nothing.
      caller.due = now + kLookAgain;
      caller.moved = now;  // It is not the caller that keeps us waiting.
      return true;
    }
  }
  return send_piece(caller, now);
}

bool StatusDesk::read_request(Caller& caller, Instant now) {
  std::array<char, kRequestMax> bytes;
  const std::size_t room = kRequestMax - caller.request.size();
  const ssize_t got = ::recv(caller.socket.get(), bytes.data(), room, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  caller.request.append(bytes.data(), static_cast<std::size_t>(got));
  const std::size_t end = caller.request.find('\n');
  if (end == std::string::npos && caller.request.size() < kRequestMax) return true;
  caller.moved = now;
  if (end == std::string::npos) {
    caller.answer = std::make_unique<Refusal>("the request is longer than 256 bytes");
    return true;
  }
  caller.answer = opener_(std::string_view(caller.request).substr(0, end));
  if (caller.answer == nullptr) {
    caller.answer = std::make_unique<Refusal>(
        "no such request; there are: describe, describe INCARNATION, metrics, metrics "
        "INCARNATION");
  }
  return true;
}

bool StatusDesk::send_piece(Caller& caller, Instant now) {
  if (caller.sent < caller.out.size()) {
    const ssize_t sent = ::send(caller.socket.get(), caller.out.data() + caller.sent, caller.out.size() - caller.sent,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (sent > 0) {
      caller.sent += static_cast<std::size_t>(sent);
      caller.moved = now;
    }
  }
  watch(caller, EPOLLOUT);
  return caller.sent < caller.out.size() || !caller.has_ended;
}

Instant StatusDesk::deadline_of(const Caller& caller) const {
  if (caller.answer == nullptr) return caller.came + kRequestTime;
  return std::min(caller.moved + kStallTime, caller.came + kAnswerTime);
}

bool StatusDesk::is_late(const Caller& caller, Instant now) const { return now >= deadline_of(caller); }

void StatusDesk::watch(Caller& caller, std::uint32_t events) {
  if (caller.watched == events) return;
  caller.watched = events;
  (void)epoll_.modify(caller.socket.get(), events, caller.number);
}

void StatusDesk::drop(Callers::iterator caller) {
  base::ForkedFds::remove(caller->socket.get());
  callers_.erase(caller);
  mute(false);
}

}  // namespace hawser::agent
