// ShmPath's socket: greeting, regions, the end.

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "backend/shm/path.h"
#include "backend/shm/port.h"
#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::backend::shm {
namespace {

constexpr Duration kRetry = std::chrono::milliseconds(1);  // While the peer's queue of connections is full.
constexpr int kPacketsPerLook = 16;

wire::Hello hello_of(const Identity& identity) {
  wire::Hello hello;
  hello.version_min = identity.version_min;
  hello.version_max = identity.version_max;
  hello.driven = identity.driven;
  hello.incarnation = identity.incarnation;
  hello.public_key = identity.public_key;
  hello.name = identity.name;
  return hello;
}

Result<base::Fd> make_door() {
  base::Fd door(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!door) return base::errno_status("making a doorbell", errno);
  return door;
}

Status gone(Code code, std::string text) { return Status(code, std::move(text)).with_scope(Scope::kPeer); }

}  // namespace

ShmPath::ShmPath(ShmPort& port, const PathTarget& target, std::string socket_path)
    : port_(port),
      socket_path_(std::move(socket_path)),
      wanted_peer_(target.peer),
      wanted_incarnation_(target.incarnation),
      supersedes_(target.supersedes),
      session_(base::random_id128()),
      deadline_(target.deadline),
      server_(port.shared().context.regions, port.options()) {}

ShmPath::ShmPath(ShmPort& port, ForkFd socket, const Open& open)
    : port_(port),
      stage_(Stage::kGreeting),
      is_inbound_(true),
      session_(open.hello.session),
      socket_(std::move(socket)),
      server_(port.shared().context.regions, port.options()) {
  learn_peer(open.hello);
}

ShmPath::~ShmPath() {
  for (const ForkFd* fd : {&socket_, &process_fd_, &my_door_}) {
    if (*fd) port_.unwatch(fd->get());
  }
}

void ShmPath::learn_peer(const wire::Hello& hello) {
  peer_.name = hello.name;
  peer_.incarnation = hello.incarnation;
  peer_.public_key = hello.public_key;
  peer_.driven = hello.driven;
  peer_.version_min = hello.version_min;
  peer_.version_max = hello.version_max;
}

void ShmPath::start(Instant now) {
  retry_at_ = Instant::max();
  Result<base::Fd> socket = connect_to(socket_path_);
  if (!socket && socket.error().code() == Code::kBusy && socket.error().scope() == Scope::kPeer) {
    retry_at_ = now + kRetry;
    return;
  }
  if (!socket) return end(socket.error());
  socket_ = ForkFd(std::move(*socket), port_.shared().forks);
  stage_ = step(stage_, StageEvent::kSaidHello).next;
  if (Status status = greet(); !status.ok()) end(std::move(status));
}

/// Makes the link and says hello with it.
Status ShmPath::greet() {
  const Shared& shared = port_.shared();
  HAWSER_TRY(adopt_credentials());
  Open open;
  open.membarrier = shared.gates.has_membarrier();
  open.ring_bytes = shared.options.ring_bytes;
  open.probe = shared.probe;
  open.hello = hello_of(shared.context.identity);
  open.hello.session = session_;
  open.hello.supersedes = supersedes_;
  open.hello.expects = wanted_incarnation_;
  base::Fd link_fd;
  HAWSER_TRY_ASSIGN(link_, Link::make(open.ring_bytes, &link_fd));
  HAWSER_TRY_ASSIGN(base::Fd my_door, make_door());
  HAWSER_TRY_ASSIGN(base::Fd peer_door, make_door());
  const std::array<int, 4> fds = {link_fd.get(), shared.gates.peer_fd(), my_door.get(), peer_door.get()};
  const std::string bytes = encode(open);
  if (send_packet(socket_.get(), std::as_bytes(std::span<const char>(bytes)), fds) != Io::kDone) {
    return refusal_before_hello(base::errno_status(Code::kDisconnected, "saying hello", errno));
  }
  is_peer_quiet_ = false;
  my_door_ = ForkFd(std::move(my_door), shared.forks);
  peer_door_ = ForkFd(std::move(peer_door), shared.forks);
  return watch_all();
}

/// An agent without descriptors answers and closes before it hears anything.
Status ShmPath::refusal_before_hello(const Status& why) {
  Packet packet;
  if (receive_packet(socket_.get(), &packet) != Io::kDone) return why;
  const auto control = decode_control(packet.bytes(), versions_of(port_.shared().context.identity));
  const auto* accept = control ? std::get_if<Accept>(&*control) : nullptr;
  if (accept == nullptr || accept->hello.status == Code::kOk) return why;
  return check_greeting(accept->hello);
}

Status ShmPath::adopt_credentials() {
  HAWSER_TRY_ASSIGN(credentials_, peer_credentials(socket_.get()));
  if (credentials_.user != ::geteuid()) {
    return Status(Code::kDenied, base::format("process {} runs as user {}, this one as {}", credentials_.process,
                                              credentials_.user, ::geteuid()))
        .with_scope(Scope::kPath)
        .with_advice("shm is for processes of one user: run both as one");
  }
  process_fd_ = ForkFd(peer_process(socket_.get(), credentials_.process), port_.shared().forks);
  cross_ = CrossMemory(credentials_.process, process_fd_.get(), socket_.get(), port_.shared().forks);
  return {};
}

Status ShmPath::watch_all() {
  HAWSER_TRY(port_.watch(socket_.get(), EPOLLIN | EPOLLRDHUP, socket_watch_));
  if (process_fd_) HAWSER_TRY(port_.watch(process_fd_.get(), EPOLLIN, process_watch_));
  // By edges: ringing again tells again, and the counter need not be read.
  return port_.watch(my_door_.get(), EPOLLIN | EPOLLET, door_watch_);
}

Status ShmPath::admit(Packet& packet, const Open& open) {
  const Shared& shared = port_.shared();
  if (packet.fd_count != 4) return Status(Code::kCorrupt, "an opener sent no link");
  HAWSER_TRY_ASSIGN(link_, Link::adopt(packet.fds[0].get(), open.ring_bytes));
  HAWSER_TRY_ASSIGN(gates_, PeerGates::map(packet.fds[1].get()));
  for (const int door : {packet.fds[2].get(), packet.fds[3].get()}) {
    if ((::fcntl(door, F_GETFL) & O_NONBLOCK) == 0) return Status(Code::kCorrupt, "an opener sent a blocking doorbell");
  }
  peer_door_ = ForkFd(std::move(packet.fds[2]), shared.forks);
  my_door_ = ForkFd(std::move(packet.fds[3]), shared.forks);
  HAWSER_TRY(adopt_credentials());
  if (open.membarrier && shared.gates.has_membarrier()) fence_ = PinFence::kLight;
  knows_ends_ = open.ends;
  if (open.views) views_.begin(link_.my_view_pins());
  Accept accept;
  accept.membarrier = shared.gates.has_membarrier();
  accept.probe = shared.probe;
  accept.hello = hello_of(shared.context.identity);
  accept.hello.session = session_;
  HAWSER_TRY(watch_all());
  supersedes_ = open.hello.supersedes;
  if (!supersedes_.is_zero()) port_.supersede(supersedes_, open.hello.incarnation);
  const int gate = shared.gates.peer_fd();
  const std::string bytes = encode(accept);
  if (send_packet(socket_.get(), std::as_bytes(std::span<const char>(bytes)), {&gate, 1}) != Io::kDone) {
    return base::errno_status(Code::kDisconnected, "answering a hello", errno);
  }
  is_peer_quiet_ = false;
  cross_status_ = shared.options.attach ? cross_.try_probe(open.probe) : Status(Code::kUnsupported, "attach=false");
  come_up();
  return {};
}

Status ShmPath::check_greeting(const wire::Hello& hello) const {
  if (hello.status != Code::kOk) {
    const Status refused = gone(hello.status, base::format("the agent at '{}' refused: {}", base::shown(socket_path_),
                                                           base::shown(hello.reason)));
    return hello.status == Code::kBusy ? refused.with_scope(Scope::kPath) : refused;  // For now only.
  }
  if (!(hello.session == session_)) return Status(Code::kCorrupt, "the peer answered another session");
  if (!wanted_incarnation_.is_zero() && !(hello.incarnation == wanted_incarnation_)) {
    return gone(Code::kDisconnected, base::format("'{}' restarted: its incarnation is another one", hello.name));
  }
  if (!wanted_peer_.empty() && hello.name != wanted_peer_) {
    return gone(Code::kDisconnected,
                base::format("the agent there is called '{}', not '{}'", hello.name, wanted_peer_));
  }
  return {};
}

void ShmPath::on_accept(Packet& packet, const Accept& message) {
  const auto accept = [&]() -> Status {
    HAWSER_TRY(check_greeting(message.hello));
    if (packet.fd_count != 1) return Status(Code::kCorrupt, "an acceptor sent no gates");
    HAWSER_TRY_ASSIGN(gates_, PeerGates::map(packet.fds[0].get()));
    return {};
  };
  if (Status status = accept(); !status.ok()) return end(std::move(status));
  learn_peer(message.hello);
  if (message.membarrier && port_.shared().gates.has_membarrier()) fence_ = PinFence::kLight;
  knows_ends_ = message.ends;
  if (message.views) views_.begin(link_.my_view_pins());
  cross_status_ = port_.options().attach ? cross_.try_probe(message.probe) : Status(Code::kUnsupported, "attach=false");
  come_up();
}

void ShmPath::come_up() {
  stage_ = step(stage_, StageEvent::kGreeted).next;
  deadline_ = Instant::max();
  rings_.begin(link_, peer_door_.get());
  ++counts_.epochs;
  PortEvent event;
  event.kind = PortEvent::Kind::kPathUp;
  event.path = this;
  event.inbound = is_inbound_;
  event.peer = &peer_;
  event.session = session_;
  if (is_inbound_) event.supersedes = supersedes_;
  port_.push(std::move(event));
  port_.make_hot(*this);
  begin_heartbeats();
  ask_regions();
}

Instant ShmPath::next_deadline() const {
  if (stage_ != Stage::kConnecting && stage_ != Stage::kGreeting) return Instant::max();
  return std::min(deadline_, retry_at_);
}

void ShmPath::check_deadline(Instant now) {
  if (next_deadline() > now) return;
  if (now < deadline_) return start(now);
  end(Status(Code::kTimedOut, base::format("no answer from '{}' before the deadline", base::shown(socket_path_))));
}

void ShmPath::on_socket(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) send_reply();
  Packet packet;
  for (int i = 0; i < kPacketsPerLook && socket_ && !server_.has_reply(); ++i) {
    const Io io = receive_packet(socket_.get(), &packet);
    if (io == Io::kAgain) return;
    if (io == Io::kDone) {
      handle(packet);
      continue;
    }
    if (io == Io::kFailed) end(base::errno_status(Code::kCorrupt, "reading the peer's socket", errno));
    return on_peer_left();
  }
  // What waits behind an answer that cannot be sent is not read, but the end is noticed.
  if (socket_ && (events & (EPOLLHUP | EPOLLERR)) != 0) on_peer_left();
}

void ShmPath::handle(Packet& packet) {
  Result<Control> control = decode_control(packet.bytes(), versions_of(port_.shared().context.identity));
  if (!control) return end(control.error());
  const Reading how = reading(stage_, static_cast<PacketKind>(control->index()));
  if (how == Reading::kCorrupt) return end(Status(Code::kCorrupt, "the peer greeted twice"));
  if (how == Reading::kPassOver) return;
  if (auto* bye = std::get_if<Bye>(&*control)) {
    bye_ = std::move(*bye);
  } else if (auto* accept = std::get_if<Accept>(&*control)) {
    on_accept(packet, *accept);
  } else if (auto* bind = std::get_if<Bind>(&*control)) {
    on_bind(*bind);
  } else if (auto* bound = std::get_if<Bound>(&*control)) {
    on_bound(packet, *bound);
  }
}

void ShmPath::on_process_end() {
  port_.unwatch(process_fd_.get());
  on_socket(EPOLLIN);  // its last words
  if (!is_peer_quiet_) on_peer_left();
}

/// The peer will not copy any more: it closed its end, or it died.
void ShmPath::on_peer_left() {
  is_peer_quiet_ = true;
  if (bye_) {
    Status status(bye_->code, base::format("the peer closed: {}", base::shown(bye_->reason)));
    end(bye_->gone ? status.with_scope(Scope::kPeer) : status.with_scope(Scope::kPath));
  } else {
    end(gone(Code::kDisconnected, base::format("process {} exited without closing", credentials_.process)));
  }
  close_socket();
}

void ShmPath::close_socket() {
  if (socket_) port_.unwatch(socket_.get());
  cross_ = {};  // Its look at a socket that is closed would find nothing wrong.
  socket_.reset();
}

void ShmPath::end(Status why) {
  const StageStep& taken = step(stage_, StageEvent::kEnded);
  if (taken.action == StageAction::kNone) return;
  end_status_ = named(std::move(why));
  stage_ = taken.next;
  views_.end_all();  // Before the peer hears that nobody here is in its memory any more.
  rings_.drain();
  rings_.drop_outbox();
  end_jobs(end_status_);
  if (socket_ && !is_peer_quiet_) {
    Bye bye{end_status_.code(), port_.is_closing(), std::string(end_status_.message())};
    const std::string bytes = encode(bye);
    send_packet(socket_.get(), std::as_bytes(std::span<const char>(bytes)), {});
    ::shutdown(socket_.get(), SHUT_WR);
  }
  if (taken.action == StageAction::kReportDown) return report_down();
  port_.note_draining(*this);
}

bool ShmPath::release() {
  end(Status(Code::kDisconnected, "released by this agent"));
  stage_ = step(stage_, StageEvent::kReleased).next;
  for (Mapping& mapping : regions_.forget_all()) port_.unmap_later(std::move(mapping));
  return !is_peer_quiet_ && socket_;
}

bool ShmPath::holds(std::uint32_t index, std::uint32_t generation, std::string* holder) const {
  if (is_peer_quiet_ || !link_) return false;
  const auto is_it = [&](const Atomics::Word& pin) { return is_inside<Atomics>(pin, index, generation); };
  if (!is_it(link_.their_pin()) && std::ranges::none_of(link_.their_view_pins(), is_it)) return false;
  if (holder != nullptr) *holder = base::format("{} (process {})", peer_.name, credentials_.process);
  return true;
}

void ShmPath::finish_draining() {
  const StageStep& taken = step(stage_, StageEvent::kDrained);
  stage_ = taken.next;
  if (taken.action == StageAction::kReportDown) report_down();
}

void ShmPath::report_down() {
  PortEvent event;
  event.kind = PortEvent::Kind::kPathDown;
  event.path = this;
  event.inbound = is_inbound_;
  event.peer = &peer_;
  event.session = session_;
  event.status = end_status_;
  port_.push(std::move(event));
}

}  // namespace hawser::backend::shm
