// What the kernel tells ShmPort: doorbells, sockets, dead peers, and visitors who want to become paths.

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "backend/shm/packet.h"
#include "backend/shm/port.h"
#include "base/format.h"
#include "base/try.h"
#include "proto/detector.h"

namespace hawser::backend::shm {
namespace {

constexpr Duration kListenPause = std::chrono::milliseconds(100);
constexpr Duration kToldEvery = std::chrono::seconds(10);       // That descriptors ran out.
constexpr Duration kVisitorPatience = std::chrono::seconds(5);  // From connecting to a hello.

}  // namespace

std::size_t ShmPort::look(Instant now) {
  looked_at_ = now;
  turns_ = 0;
  has_slept_ = false;
  std::array<epoll_event, kEventsPerLook> events;
  const Result<std::size_t> found = epoll_.wait(events, Duration::zero());
  const std::size_t count = found ? *found : 0;
  for (std::size_t i = 0; i < count; ++i) {
    on_event(*reinterpret_cast<const Watch*>(events[i].data.u64), events[i].events);
  }
  if (!connecting_.empty()) check_deadlines(now);
  if (!visitors_.empty()) dismiss_visitors(now);
  if (!ghosts_.empty()) bury_ghosts();
  if (heartbeat_at_ <= now) watch_peers(now);
  if (listen_at_ <= now && !is_closing_) {
    listen_at_ = Instant::max();
    if (!watch(shared_.place.socket(), EPOLLIN, listener_watch_).ok()) listen_at_ = now + kListenPause;
  }
  return count;
}

void ShmPort::on_event(const Watch& watch, std::uint32_t events) {
  switch (watch.kind) {
    case Watch::Kind::kListener:
      return accept_visitors();
    case Watch::Kind::kVisitor:
      return on_visitor(*static_cast<Visitor*>(watch.owner));
    case Watch::Kind::kSocket:
      return static_cast<ShmPath*>(watch.owner)->on_socket(events);
    case Watch::Kind::kProcess:
      return static_cast<ShmPath*>(watch.owner)->on_process_end();
    case Watch::Kind::kDoor: {
      auto& path = *static_cast<ShmPath*>(watch.owner);
      path.answer_heartbeat();
      if (path.state() == PathState::kUp) make_hot(path);
      return;
    }
  }
}

void ShmPort::check_deadlines(Instant now) {
  for (std::size_t i = 0; i < connecting_.size(); ++i) connecting_[i]->check_deadline(now);
  std::erase_if(connecting_, [](const ShmPath* path) { return path->state() != PathState::kConnecting; });
}

void ShmPort::watch_peers(Instant now) {
  auto asked = static_cast<std::size_t>(
      std::ranges::count_if(paths_, [now](const auto& path) { return path->next_heartbeat() <= now; }));
  const bool is_due = asked > 0;  // Else one that was due was heard meanwhile.
  heartbeat_at_ = Instant::max();
  for (const auto& path : paths_) {
    if (is_due && asked < proto::kHastenedMax && path->hasten_heartbeat(now)) ++asked;
    path->watch_peer(now);
    heartbeat_at(path->next_heartbeat());
  }
}

void ShmPort::bury_ghosts() {
  std::erase_if(ghosts_, [](const auto& path) { return path->is_peer_quiet(); });
}

void ShmPort::accept_visitors() {
  for (std::size_t i = 0; i < kAcceptsPerLook; ++i) {
    base::Fd socket(::accept4(shared_.place.socket(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EMFILE || errno == ENFILE)) return turn_visitors_away(base::errno_status("shm", errno));
    if (!socket) break;
    auto visitor = std::make_unique<Visitor>();
    visitor->deadline = now_ + kVisitorPatience;
    visitor->watch = {Watch::Kind::kVisitor, visitor.get()};
    visitor->socket = ForkFd(std::move(socket), shared_.forks);
    if (!watch(visitor->socket.get(), EPOLLIN | EPOLLRDHUP, visitor->watch).ok()) continue;
    visitors_.push_back(std::move(visitor));
  }
  // The longest silent go first; nobody can keep the others out by saying nothing.
  for (std::size_t i = 0; i + kVisitorsMax < visitors_.size(); ++i) visitors_[i]->is_done = true;
}

/// Who waits is told at once, one after the other, by the descriptor that is held in reserve for this.
void ShmPort::turn_visitors_away(const Status& shortage) {
  std::size_t count = 0;
  reserve_.reset();
  for (; count < kAcceptsPerLook; ++count) {
    const base::Fd socket(::accept4(shared_.place.socket(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) break;
    // Closing with something unread is a reset, of which the peer would hear before the answer.
    Packet unread;
    (void)receive_packet(socket.get(), &unread);
    refuse(socket.get(), shortage);
  }
  hold_reserve();
  if (now_ >= tell_shortage_at_) {
    tell_shortage_at_ = now_ + kToldEvery;
    HAWSER_LOG(shared_.context.log, kWarn, "shm: visitors are turned away: {}", shortage.to_string());
  }
  if (count == 0) pause_listening();
}

void ShmPort::hold_reserve() { reserve_ = ForkFd(base::Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), shared_.forks); }

/// Without any descriptor nobody can be told, and a socket that stays readable would keep the lane awake.
void ShmPort::pause_listening() {
  unwatch(shared_.place.socket());
  listen_at_ = now_ + kListenPause;
}

void ShmPort::on_visitor(Visitor& visitor) {
  Packet packet;
  const Io io = receive_packet(visitor.socket.get(), &packet);
  if (io == Io::kAgain) return;
  visitor.is_done = true;
  if (io == Io::kFailed && errno == EMFILE) refuse(visitor.socket.get(), base::errno_status("shm", EMFILE));
  if (io != Io::kDone) return;
  Status status = welcome(visitor, packet);
  if (status.ok()) return admissions_.let_in();
  admissions_.turned_away(status);
  if (const auto held_back = line_gate_.pass_kind(static_cast<std::uint64_t>(status.code()), now_)) {
    HAWSER_LOG(shared_.context.log, kInfo, "shm: a visitor was turned away: {}{}", status.to_string(),
               base::LineGate::more(*held_back));
  }
  if (visitor.socket) refuse(visitor.socket.get(), status);
}

Status ShmPort::welcome(Visitor& visitor, Packet& packet) {
  HAWSER_TRY_ASSIGN(const Control control, decode_control(packet.bytes(), versions_of(shared_.context.identity)));
  const auto* open = std::get_if<Open>(&control);
  if (open == nullptr) return Status(Code::kCorrupt, "a visitor did not say hello first");
  const Identity& identity = shared_.context.identity;
  if (is_closing_) return Status(Code::kDisconnected, "the agent is closing");
  if (!open->hello.expects.is_zero() && !(open->hello.expects == identity.incarnation)) {
    return Status(Code::kDisconnected, base::format("'{}' restarted: its incarnation is another one", identity.name));
  }
  HAWSER_TRY_ASSIGN(const Credentials credentials, peer_credentials(visitor.socket.get()));
  if (credentials.user != ::geteuid()) {
    return Status(Code::kDenied, base::format("this agent runs as user {}, you as {}", ::geteuid(), credentials.user));
  }
  unwatch(visitor.socket.get());
  auto path = std::make_unique<ShmPath>(*this, std::move(visitor.socket), *open);
  Status status = path->admit(packet, *open);
  if (!status.ok()) {
    visitor.socket = path->take_socket();
    forget(*path);
    return status;
  }
  paths_.push_back(std::move(path));
  return {};
}

void ShmPort::refuse(int socket, const Status& why) {
  Accept accept;
  const Identity& identity = shared_.context.identity;
  accept.hello.version_min = identity.version_min;
  accept.hello.version_max = identity.version_max;
  accept.hello.incarnation = identity.incarnation;
  accept.hello.name = identity.name;
  accept.hello.status = why.code();
  accept.hello.reason = why.message().substr(0, kReasonMax);
  const std::string bytes = encode(accept);
  send_packet(socket, std::as_bytes(std::span<const char>(bytes)), {});
}

void ShmPort::dismiss_visitors(Instant now) {
  std::erase_if(visitors_, [&](const auto& visitor) {
    if (!visitor->is_done && visitor->deadline > now) return false;
    if (visitor->socket) unwatch(visitor->socket.get());
    return true;
  });
}

}  // namespace hawser::backend::shm
