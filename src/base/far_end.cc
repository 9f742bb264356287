#include "base/far_end.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/address.h"
#include "base/fd.h"
#include "base/format.h"

namespace hawser::base {
namespace {

/// One end of a connection as the kernel's tables have it: an IPv4-mapped address is IPv4 there.
struct End {
  std::array<std::uint32_t, 4> address = {};
  std::uint16_t port = 0;  ///< In network order, as the address.

  friend bool operator==(const End&, const End&) = default;
};

/// A connection from one end's point of view.
struct Pair {
  int family = AF_UNSPEC;
  End own, other;

  Pair turned() const { return {.family = family, .own = other, .other = own}; }
};

/// The kernel's word on a socket.
struct Owner {
  bool found = false;
  bool is_established = false;
  std::uint32_t user = 0;
  std::uint32_t inode = 0;  ///< 0: no process holds it.
};

bool is_mapped(const std::array<std::uint32_t, 4>& address) {
  return address[0] == 0 && address[1] == 0 && address[2] == htonl(0xffff);
}

void unmap(End& end) {
  if (is_mapped(end.address)) end.address = {end.address[3], 0, 0, 0};
}

std::optional<End> end_of(const SocketAddress& address) {
  End end;
  if (address.family() == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &address.storage, sizeof in);
    end.address[0] = in.sin_addr.s_addr;
    end.port = in.sin_port;
  } else if (address.family() == AF_INET6) {
    sockaddr_in6 in6;
    std::memcpy(&in6, &address.storage, sizeof in6);
    std::memcpy(end.address.data(), &in6.sin6_addr, sizeof in6.sin6_addr);
    end.port = in6.sin6_port;
  } else {
    return std::nullopt;
  }
  return end;
}

/// False: `fd` is no connected loopback socket.
bool read_pair(int fd, Pair* pair) {
  SocketAddress own, other;
  own.size = other.size = sizeof(own.storage);
  if (::getsockname(fd, own.get(), &own.size) != 0 || ::getpeername(fd, other.get(), &other.size) != 0) return false;
  if (!is_loopback(own) || !is_loopback(other)) return false;
  const auto near = end_of(own), far = end_of(other);
  if (!near || !far) return false;
  *pair = {.family = own.family(), .own = *near, .other = *far};
  if (pair->family == AF_INET6 && is_mapped(pair->own.address)) {
    pair->family = AF_INET;
    unmap(pair->own);
    unmap(pair->other);
  }
  return true;
}

struct Question {
  nlmsghdr head;
  inet_diag_req_v2 ask;
};

bool send_question(int netlink, const Pair& pair) {
  Question question = {};
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.ask.sdiag_family = static_cast<__u8>(pair.family);
  question.ask.sdiag_protocol = IPPROTO_TCP;
  question.ask.idiag_states = 1u << TCP_ESTABLISHED;
  inet_diag_sockid& id = question.ask.id;
  id.idiag_sport = pair.own.port;
  id.idiag_dport = pair.other.port;
  std::memcpy(id.idiag_src, pair.own.address.data(), sizeof id.idiag_src);
  std::memcpy(id.idiag_dst, pair.other.address.data(), sizeof id.idiag_dst);
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  sockaddr_nl kernel = {};
  kernel.nl_family = AF_NETLINK;
  const auto* to = reinterpret_cast<const sockaddr*>(&kernel);
  return ::sendto(netlink, &question, sizeof question, MSG_DONTWAIT, to, sizeof kernel) == sizeof question;
}

/// The kernel looks for a listener where there is no such connection, so what it found is compared.
bool is_about(const inet_diag_msg& found, const Pair& pair) {
  End own, other;
  std::memcpy(own.address.data(), found.id.idiag_src, sizeof own.address);
  std::memcpy(other.address.data(), found.id.idiag_dst, sizeof other.address);
  if (found.idiag_family == AF_INET) {  // The words behind the first are not the address's.
    own.address = {own.address[0], 0, 0, 0};
    other.address = {other.address[0], 0, 0, 0};
  } else if (pair.family == AF_INET) {  // An IPv6 socket that talks IPv4.
    unmap(own);
    unmap(other);
  }
  own.port = found.id.idiag_sport;
  other.port = found.id.idiag_dport;
  return own == pair.own && other == pair.other;
}

/// Nothing: the kernel does not answer.
std::optional<Owner> receive_answer(int netlink, const Pair& pair) {
  pollfd one = {.fd = netlink, .events = POLLIN, .revents = 0};
  const auto patience = static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kAskTime).count());
  if (::poll(&one, 1, patience) <= 0) return std::nullopt;
  alignas(nlmsghdr) std::array<char, 4096> bytes;
  sockaddr_nl from = {};
  socklen_t from_size = sizeof from;
  const ssize_t size =
      ::recvfrom(netlink, bytes.data(), bytes.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &from_size);
  // Port 0 is the kernel; any process may write to a netlink socket.
  if (size < static_cast<ssize_t>(sizeof(nlmsghdr)) || from.nl_pid != 0) return std::nullopt;
  nlmsghdr head;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr error = {};
    if (size < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof error.error)) return std::nullopt;
    std::memcpy(&error.error, bytes.data() + NLMSG_HDRLEN, sizeof error.error);
    return error.error == -ENOENT ? std::optional(Owner{}) : std::nullopt;
  }
  inet_diag_msg found;
  if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || size < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof found)) {
    return std::nullopt;
  }
  std::memcpy(&found, bytes.data() + NLMSG_HDRLEN, sizeof found);
  if (!is_about(found, pair)) return Owner{};
  return Owner{.found = true,
               .is_established = found.idiag_state == TCP_ESTABLISHED,
               .user = found.idiag_uid,
               .inode = found.idiag_inode};
}

/// The socket whose own end is `pair.own`.
std::optional<Owner> ask(const Pair& pair) {
  const Fd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
  if (!netlink || !send_question(netlink.get(), pair)) return std::nullopt;
  return receive_answer(netlink.get(), pair);
}

/// The number that users of other user namespaces have here. All such users look alike.
std::uint32_t overflow_user() {
  constexpr std::uint32_t kUsual = 65534;
  const Fd fd(::open("/proc/sys/kernel/overflowuid", O_RDONLY | O_CLOEXEC));
  std::array<char, 16> text = {};
  const ssize_t size = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  std::uint32_t user = kUsual;
  if (size > 0) std::from_chars(text.data(), text.data() + size, user);
  return user;
}

/// True where the kernel tells the truth of our own end. Else its word on the other end means nothing.
bool is_trusted(int fd, const Pair& pair) {
  struct stat status = {};
  const auto own = ask(pair);
  return own && own->found && ::fstat(fd, &status) == 0 && own->inode == static_cast<std::uint32_t>(status.st_ino);
}

FarEnd judge(const Owner& owner, std::string* why) {
  if (!owner.found || !owner.is_established || owner.inode == 0) {
    if (why != nullptr) *why = "no process holds the other end";
    return FarEnd::kNobody;
  }
  const std::uint32_t nobody = overflow_user();
  if (owner.user == ::geteuid() && owner.user != nobody) return FarEnd::kSameUser;
  if (why != nullptr) {
    *why = owner.user == nobody
               ? base::format("the other end is of user {}, which stands for all users of other namespaces", owner.user)
               : base::format("the other end is of user {}, this process runs as {}", owner.user, ::geteuid());
  }
  return FarEnd::kOtherUser;
}

}  // namespace

FarEnd far_end_of(int fd, std::string* why) {
  Pair pair;
  if (!read_pair(fd, &pair)) {
    if (why != nullptr) *why = "the connection leaves this host's loopback";
    return FarEnd::kElsewhere;
  }
  const auto owner = ask(pair.turned());
  const bool is_answer = owner && (owner->found || is_trusted(fd, pair));
  if (is_answer) return judge(*owner, why);
  if (why != nullptr) *why = "the kernel does not tell who owns sockets (NETLINK_SOCK_DIAG)";
  return FarEnd::kCannotAsk;
}

}  // namespace hawser::base
