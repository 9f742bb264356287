#include "compat/listener.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/abandon.h"
#include "base/address.h"
#include "base/format.h"
#include "base/try.h"
#include "compat/clock.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

/// Connections under TLS of one address that have not proven who they are. One more, and the oldest gives way: so who
/// floods from one address keeps nobody else out.
constexpr std::size_t kUnprovenOfAddress = 16;
constexpr Duration kShortagePause = std::chrono::milliseconds(50);
constexpr int kAcceptsMax = 16;  ///< In one turn.

/// An untrusted one is told so, and not a byte of what it says is read.
void turn_away(int fd, const std::string& why) {
  const std::string answer = encode_frame({.kind = Frame::Kind::kRefused, .body = not_trusted(why).to_string()});
  (void)::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool is_same_host(base::SocketAddress one, base::SocketAddress other) {
  one.set_port(0);
  other.set_port(0);
  return base::to_string(one) == base::to_string(other);
}

bool is_shortage(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(const std::string& host, std::uint16_t port, Trust trust,
                                                 Answer answer, Refused refused) {
  HAWSER_TRY_ASSIGN(base::SocketAddress address, base::numeric_address({.host = host, .port = port}));
  base::Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return base::errno_status("metadata by address: socket", errno);
  const int on = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const std::string what = base::format("metadata by address: listening at {}", base::to_string(address));
  if (::bind(fd.get(), address.get(), address.size) != 0 || ::listen(fd.get(), 64) != 0) {
    return base::errno_status(what, errno).with_advice("give another listen_port, or 0 for any");
  }
  socklen_t size = sizeof address.storage;
  if (::getsockname(fd.get(), address.get(), &size) != 0) return base::errno_status(what, errno);
  HAWSER_TRY_ASSIGN(base::EventFd wake, base::EventFd::open());
  return std::unique_ptr<Listener>(
      new Listener(std::move(fd), std::move(wake), address.port(), trust, std::move(answer), std::move(refused)));
}

Listener::Listener(base::Fd socket, base::EventFd wake, std::uint16_t port, Trust trust, Answer answer, Refused refused)
    : socket_(std::move(socket)),
      wake_(std::move(wake)),
      port_(port),
      trust_(trust),
      answer_(std::move(answer)),
      refused_(std::move(refused)) {
  thread_ = std::thread([this] { run(); });
}

Listener::~Listener() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_release);
  wake_.signal();
  thread_.join();
}

void Listener::disown() { base::abandon(thread_); }

void Listener::run() {
  std::vector<pollfd> waiting;
  while (!stop_.load(std::memory_order_acquire)) {
    const Instant begin = now(), accepts = accepts_at(begin);
    const bool accepting = accepts <= begin;
    waiting.clear();
    waiting.push_back({.fd = wake_.fd(), .events = POLLIN, .revents = 0});
    waiting.push_back({.fd = accepting ? socket_.get() : -1, .events = POLLIN, .revents = 0});
    Instant next = begin + std::chrono::seconds(60);
    if (!accepting) next = std::min(next, accepts);
    for (const auto& link : links_) {
      waiting.push_back({.fd = link->fd(), .events = link->events(), .revents = 0});
      next = std::min(next, link->end());
    }
    (void)::poll(waiting.data(), waiting.size(), milliseconds_until(next));
    std::size_t at = 2;
    std::erase_if(links_, [&](const auto& link) {
      const bool is_ready = waiting[at++].revents != 0;
      return (is_ready && !move_on(*link)) || now() >= link->end();
    });
    bound_bytes();
    if (waiting[1].revents != 0) accept_some(now());
  }
}

const ServedLink* Listener::victim(Instant at) const {
  const ServedLink* asking = nullptr;
  for (const auto& link : links_) {
    if (!link->is_asking() || at < link->kept_until()) continue;
    if (link->is_silent()) return link.get();
    if (asking == nullptr) asking = link.get();
  }
  return asking;
}

Instant Listener::accepts_at(Instant at) const {
  Instant free = Instant::max();
  if (links_.size() < kLinksMax || victim(at) != nullptr) free = at;
  for (const auto& link : links_) {
    if (free != at && link->is_asking()) free = std::min(free, link->kept_until());
  }
  return std::max(free, accept_after_);
}

void Listener::accept_some(Instant at) {
  for (int i = 0; i < kAcceptsMax; ++i) {
    const ServedLink* gone = links_.size() < kLinksMax ? nullptr : victim(at);
    if (links_.size() >= kLinksMax && gone == nullptr) return;
    base::SocketAddress address;
    address.size = sizeof address.storage;
    base::Fd fd(::accept4(socket_.get(), address.get(), &address.size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      // The socket stays ready: without a pause this thread would turn for nothing.
      if (is_shortage(errno)) accept_after_ = at + kShortagePause;
      return;
    }
    std::string why;
    const bool is_secured = trust_.is_secured(address);
    const base::FarEnd far_end = is_secured ? base::FarEnd::kSameUser : trust_.ask(fd.get(), &why);
    const bool is_known = far_end == base::FarEnd::kSameUser;  // Or will be, before anything else is said.
    if (!is_known && far_end != base::FarEnd::kCannotAsk) {
      turn_away(fd.get(), why);
      tell(base::to_string(address), not_trusted(why));
      continue;
    }
    if (const ServedLink* const its = is_secured ? too_many_of(address) : nullptr) gone = its;
    if (gone != nullptr) std::erase_if(links_, [gone](const auto& link) { return link.get() == gone; });
    Channel channel =
        is_secured ? Channel(std::move(fd), *trust_.desk, identity::Speaker::kAcceptor) : Channel(std::move(fd));
    links_.push_back(std::make_unique<ServedLink>(std::move(channel), address, at, is_known, trust_));
  }
}

/// The oldest of its unproven connections, if it has as many as it may.
const ServedLink* Listener::too_many_of(const base::SocketAddress& address) const {
  const ServedLink* oldest = nullptr;
  std::size_t count = 0;
  for (const auto& link : links_) {
    if (!link->is_unproven() || !is_same_host(link->address(), address)) continue;
    if (count++ == 0) oldest = link.get();
  }
  return count < kUnprovenOfAddress ? nullptr : oldest;
}

bool Listener::move_on(ServedLink& link) {
  const bool goes_on = link.move_on(answer_);
  if (const Status why = link.take_refusal(); !why.ok()) tell(base::to_string(link.address()), why);
  return goes_on;
}

void Listener::tell(const std::string& address, const Status& why) {
  if (refused_) refused_(address, why);
}

/// The one that holds most gives way.
void Listener::bound_bytes() {
  std::size_t all = 0;
  for (const auto& link : links_) all += link->held();
  if (all <= kLinkBytesMax) return;
  links_.erase(std::ranges::max_element(links_, {}, [](const auto& link) { return link->held(); }));
}

}  // namespace compat
HAWSER_NAMESPACE_END
