#include "backend/shm/visitors.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "backend/shm/greeting.h"
#include "backend/shm/place.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::shm {
namespace {

constexpr Duration kListenPause = std::chrono::milliseconds(100);
constexpr Duration kToldEvery = std::chrono::seconds(10);       // That descriptors ran out.
constexpr Duration kVisitorPatience = std::chrono::seconds(5);  // From connecting to a hello.

}  // namespace

Status Visitors::listen(int socket) {
  listener_ = socket;
  HAWSER_TRY(uses_.watches.add(listener_, EPOLLIN, listener_watch_));
  hold_reserve();
  return {};
}

void Visitors::turn(Instant now) {
  std::erase_if(visitors_, [&](const auto& visitor) {
    if (!visitor->is_done && visitor->deadline > now) return false;
    if (visitor->socket) uses_.watches.remove(visitor->socket.get());
    return true;
  });
  if (listen_at_ > now || is_closed_) return;
  listen_at_ = Instant::max();
  if (!uses_.watches.add(listener_, EPOLLIN, listener_watch_).ok()) listen_at_ = now + kListenPause;
}

Instant Visitors::next_deadline() const {
  Instant next = listen_at_;
  for (const auto& visitor : visitors_) next = std::min(next, visitor->deadline);
  return next;
}

void Visitors::close() {
  is_closed_ = true;
  listen_at_ = Instant::max();
  uses_.watches.remove(listener_);
  for (auto& visitor : visitors_) visitor->is_done = true;
}

void Visitors::on_listener(Instant now) {
  for (std::size_t i = 0; i < kAcceptsPerLook; ++i) {
    base::Fd socket(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EMFILE || errno == ENFILE)) return turn_away(base::errno_status("shm", errno), now);
    if (!socket) break;
    auto visitor = std::make_unique<Visitor>();
    visitor->deadline = now + kVisitorPatience;
    visitor->watch = {Watch::Kind::kVisitor, visitor.get()};
    visitor->socket = ForkFd(std::move(socket), uses_.forks);
    if (!uses_.watches.add(visitor->socket.get(), EPOLLIN | EPOLLRDHUP, visitor->watch).ok()) continue;
    visitors_.push_back(std::move(visitor));
  }
  // The longest silent go first; nobody can keep the others out by saying nothing.
  for (std::size_t i = 0; i + kMax < visitors_.size(); ++i) visitors_[i]->is_done = true;
}

/// No descriptor is free for a visitor. The port gives up the one that it holds in reserve, takes one visitor after the
/// other with it, and tells each why it is refused.
void Visitors::turn_away(const Status& shortage, Instant now) {
  std::size_t count = 0;
  reserve_.reset();
  for (; count < kAcceptsPerLook; ++count) {
    const base::Fd socket(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) break;
    // Closing with something unread is a reset, of which the peer would hear before the answer.
    Packet unread;
    (void)receive_packet(socket.get(), &unread);
    refuse(socket.get(), shortage);
  }
  hold_reserve();
  if (now >= tell_shortage_at_) {
    tell_shortage_at_ = now + kToldEvery;
    HAWSER_LOG(uses_.log, kWarn, "shm: visitors are turned away: {}", shortage.to_string());
  }
  if (count == 0) pause_listening(now);
}

void Visitors::hold_reserve() { reserve_ = ForkFd(base::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), uses_.forks); }

/// Without any descriptor nobody can be told, and a socket that stays readable would keep the lane awake.
void Visitors::pause_listening(Instant now) {
  uses_.watches.remove(listener_);
  listen_at_ = now + kListenPause;
}

void Visitors::on_visitor(Visitor& visitor, Instant now) {
  Packet packet;
  const Io io = receive_packet(visitor.socket.get(), &packet);
  if (io == Io::kAgain) return;
  visitor.is_done = true;
  if (io == Io::kFailed && errno == EMFILE) refuse(visitor.socket.get(), base::errno_status("shm", EMFILE));
  if (io != Io::kDone) return;
  Status status = welcome(visitor, packet);
  if (status.ok()) return admissions_.let_in();
  admissions_.turned_away(status);
  if (const auto held_back = line_gate_.pass_kind(static_cast<std::uint64_t>(status.code()), now)) {
    HAWSER_LOG(uses_.log, kInfo, "shm: a visitor was turned away: {}{}", status.to_string(),
               base::LineGate::more(*held_back));
  }
  if (visitor.socket) refuse(visitor.socket.get(), status);
}

Status Visitors::welcome(Visitor& visitor, Packet& packet) {
  HAWSER_TRY_ASSIGN(const Control control, decode_control(packet.bytes(), versions_of(uses_.identity)));
  const auto* open = std::get_if<Open>(&control);
  if (open == nullptr) return Status(Code::kCorrupt, "a visitor did not say hello first");
  const Identity& identity = uses_.identity;
  if (is_closed_) return Status(Code::kDisconnected, "the agent is closing");
  if (!open->hello.expects.is_zero() && !(open->hello.expects == identity.incarnation)) {
    return Status(Code::kDisconnected, base::format("'{}' restarted: its incarnation is another one", identity.name));
  }
  HAWSER_TRY_ASSIGN(const Credentials credentials, peer_credentials(visitor.socket.get()));
  if (credentials.user != ::geteuid()) {
    return Status(Code::kDenied, base::format("this agent runs as user {}, you as {}", ::geteuid(), credentials.user));
  }
  uses_.watches.remove(visitor.socket.get());
  return uses_.admit(visitor.socket, packet, *open);
}

void Visitors::refuse(int socket, const Status& why) const {
  const std::string bytes = encode(refusal_of(uses_.identity, why));
  send_packet(socket, std::as_bytes(std::span<const char>(bytes)), {});
}

}  // namespace hawser::backend::shm
