#include "backend/shm/greeting.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>

#include <array>
#include <span>
#include <variant>

#include "backend/hello_identity.h"
#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::backend::shm {
namespace {

Result<base::Fd> make_door() {
  base::Fd door(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!door) return base::errno_status("making a doorbell", errno);
  return door;
}

Status another_peer(Code code, std::string text) { return Status(code, std::move(text)).with_scope(Scope::kPeer); }

}  // namespace

Accept refusal_of(const Identity& identity, const Status& why) {
  Accept accept;
  accept.hello.version_min = identity.version_min;
  accept.hello.version_max = identity.version_max;
  accept.hello.incarnation = identity.incarnation;
  accept.hello.name = identity.name;
  accept.hello.status = why.code();
  accept.hello.reason = why.message().substr(0, kReasonMax);
  return accept;
}

Result<Greeting::Ends> Greeting::say_open(int socket) const {
  Open open;
  open.membarrier = uses_.gates.has_membarrier();
  open.ring_bytes = uses_.ring_bytes;
  open.probe = uses_.probe;
  open.hello = hello_of(uses_.identity);
  open.hello.session = session_;
  open.hello.supersedes = wanted_.supersedes;
  open.hello.expects = wanted_.incarnation;
  Ends ends;
  base::Fd link_fd;
  HAWSER_TRY_ASSIGN(ends.link, Link::make(open.ring_bytes, &link_fd));
  HAWSER_TRY_ASSIGN(ends.my_door, make_door());
  HAWSER_TRY_ASSIGN(ends.peer_door, make_door());
  const std::array<int, 4> fds = {link_fd.get(), uses_.gates.peer_fd(), ends.my_door.get(), ends.peer_door.get()};
  const std::string bytes = encode(open);
  if (send_packet(socket, std::as_bytes(std::span<const char>(bytes)), fds) != Io::kDone) {
    return refusal_before_hello(socket, base::errno_status(Code::kDisconnected, "saying hello", errno));
  }
  return ends;
}

/// An agent without descriptors answers and closes before it hears anything.
Status Greeting::refusal_before_hello(int socket, const Status& why) const {
  Packet packet;
  if (receive_packet(socket, &packet) != Io::kDone) return why;
  const auto control = decode_control(packet.bytes(), {uses_.identity.version_min, uses_.identity.version_max});
  const auto* accept = control ? std::get_if<Accept>(&*control) : nullptr;
  if (accept == nullptr || accept->hello.status == Code::kOk) return why;
  return check(accept->hello);
}

Status Greeting::check(const wire::Hello& hello) const {
  if (hello.status != Code::kOk) {
    const Status refused = another_peer(
        hello.status,
        base::format("the agent at '{}' refused: {}", base::shown(wanted_.socket), base::shown(hello.reason)));
    return hello.status == Code::kBusy ? refused.with_scope(Scope::kPath) : refused;  // For now only.
  }
  if (!(hello.session == session_)) return Status(Code::kCorrupt, "the peer answered another session");
  if (!wanted_.incarnation.is_zero() && !(hello.incarnation == wanted_.incarnation)) {
    return another_peer(Code::kDisconnected,
                        base::format("'{}' restarted: its incarnation is another one", hello.name));
  }
  if (!wanted_.peer.empty() && hello.name != wanted_.peer) {
    return another_peer(Code::kDisconnected,
                        base::format("the agent there is called '{}', not '{}'", hello.name, wanted_.peer));
  }
  return {};
}

Result<PeerGates> Greeting::take_accept(const Packet& packet, const Accept& accept) const {
  HAWSER_TRY(check(accept.hello));
  if (packet.fd_count != 1) return Status(Code::kCorrupt, "an acceptor sent no gates");
  return PeerGates::map(packet.fds[0].get());
}

Result<Greeting::Taken> Greeting::take_open(Packet& packet, const Open& open) {
  if (packet.fd_count != 4) return Status(Code::kCorrupt, "an opener sent no link");
  Taken taken;
  HAWSER_TRY_ASSIGN(taken.ends.link, Link::adopt(packet.fds[0].get(), open.ring_bytes));
  HAWSER_TRY_ASSIGN(taken.gates, PeerGates::map(packet.fds[1].get()));
  for (const int door : {packet.fds[2].get(), packet.fds[3].get()}) {
    if ((::fcntl(door, F_GETFL) & O_NONBLOCK) == 0) return Status(Code::kCorrupt, "an opener sent a blocking doorbell");
  }
  taken.ends.peer_door = std::move(packet.fds[2]);
  taken.ends.my_door = std::move(packet.fds[3]);
  return taken;
}

Status Greeting::say_accept(int socket) const {
  Accept accept;
  accept.membarrier = uses_.gates.has_membarrier();
  accept.probe = uses_.probe;
  accept.hello = hello_of(uses_.identity);
  accept.hello.session = session_;
  const int gate = uses_.gates.peer_fd();
  const std::string bytes = encode(accept);
  if (send_packet(socket, std::as_bytes(std::span<const char>(bytes)), {&gate, 1}) == Io::kDone) return {};
  return base::errno_status(Code::kDisconnected, "answering a hello", errno);
}

}  // namespace hawser::backend::shm
