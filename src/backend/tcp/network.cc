#include "backend/tcp/network.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/host_id.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

/// Marks a listener in epoll's cookie; a stream's is its address.
constexpr std::uint64_t kListenerMark = 1;
/// Marks a descriptor that only wakes.
constexpr std::uint64_t kWatchedMark = UINT64_MAX;
constexpr int kBacklog = 1024;
/// Of a candidate that is to be connected to by TLS.
constexpr std::string_view kTlsPrefix = "tls://";
constexpr int kTurnedAwayAtOnce = 64;
constexpr std::size_t kHelloRoom = 1024;  ///< Of what one who is turned away has said.
/// So old may what is known of this host's interfaces be: asking the kernel is a few system calls, within a turn.
constexpr Duration kInterfacesAge = std::chrono::seconds(1);

Status cannot_listen(const base::SocketAddress& address, int error) {
  const std::string where = base::to_string(address);
  if (error == EADDRINUSE) {
    return Status(Code::kBusy, base::format("tcp: port {} of {} is in use", address.port(), where))
        .with_advice("choose another `port`, or 0 for any that is free");
  }
  if (error == EADDRNOTAVAIL) {
    return Status(Code::kInvalid, base::format("tcp: {} is no address of this host", where))
        .with_advice("`ip address` lists them; 0.0.0.0 and :: mean all");
  }
  return base::errno_status(base::format("tcp: listening on {}", where), error);
}

Result<base::Fd> listen_at(base::SocketAddress& address, const TcpOptions& options) {
  base::Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return cannot_listen(address, errno);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  tune_socket(fd.get(), options, base::is_loopback(address));  // Its connections inherit it.
  if (address.family() == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (::bind(fd.get(), address.get(), address.size) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return cannot_listen(address, errno);
  }
  if (::getsockname(fd.get(), address.get(), &address.size) != 0) return cannot_listen(address, errno);
  return fd;
}

Status cannot_prove(const std::string& candidate) {
  return Status(Code::kDenied, base::format("without its card nothing can be proven to an agent at {}", candidate))
      .with_advice(
          "give the address with its ticket (ADDRESS#TICKET, as `hawser serve` prints it), load the peer's card, "
          "find it in a directory, or open both with security `none`")
      .with_scope(Scope::kPath);
}

}  // namespace

Result<TcpListeners> tcp_listen(const TcpOptions& options) {
  const bool is_covered = options.security == Security::kEncrypt;
  return open_listeners<base::Fd>("tcp", options, is_covered,
                                  [&](base::SocketAddress& address) { return listen_at(address, options); });
}

Result<std::unique_ptr<TcpNetwork>> TcpNetwork::open(const TcpOptions& options, std::shared_ptr<FdLedger> ledger,
                                                     std::vector<base::Fd> listeners, std::uint64_t host, OwnTls tls) {
  HAWSER_TRY_ASSIGN(base::Epoll epoll, base::Epoll::open());
  TcpOptions kept = options;  // Thousands of agents share a process: what only opening needs is not kept twice.
  kept.listen = {};
  kept.left_out = {};
  kept.params = {};
  kept.warnings = {};
  auto shared = std::make_shared<TcpShared>(TcpShared{std::move(epoll), std::move(kept), std::move(ledger)});
  shared->ledger->add(shared->epoll.fd());
  std::unique_ptr<TcpNetwork> network(new TcpNetwork(std::move(shared), std::move(listeners), host, std::move(tls)));
  for (std::size_t i = 0; i < network->listeners_.size(); ++i) {
    HAWSER_TRY(network->shared_->epoll.add(network->listeners_[i].get(), EPOLLIN | EPOLLET, i << 1 | kListenerMark));
  }
  network->reserve_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return network;
}

const std::shared_ptr<TlsSource>& TcpNetwork::tls() {
  if (own_tls_.source == nullptr)
    own_tls_.source = std::make_shared<TlsSource>(own_tls_.keys, own_tls_.secret, own_tls_.has_identity);
  return own_tls_.source;
}

TcpNetwork::~TcpNetwork() {
  stop_listening();
  shared_->ledger->remove(shared_->epoll.fd());
}

Result<std::vector<std::string>> TcpNetwork::candidates(std::string_view address, bool is_guarded) const {
  HAWSER_TRY_ASSIGN(const Locator locator, parse_locator(address));
  HAWSER_TRY_ASSIGN(auto places, places_from(locator, host_, shared_->options.beyond_host));
  // A typed address, and one of this very stack, lead where they say.
  if (places.size() > 1 && locator.host != 0 && locator.host != host_) sort_by_nearness(places, interfaces());
  std::vector<std::string> candidates;
  const Security ours = shared_->options.security;
  for (const base::SocketAddress& place : places) {
    const bool leaves_host = !base::is_loopback(place) && (is_guarded || ours != Security::kNone);
    const bool is_covered = leaves_host || locator.is_covered || ours == Security::kEncrypt || own_tls_.has_identity;
    candidates.push_back((is_covered ? std::string(kTlsPrefix) : "") + base::to_string(place));
  }
  return candidates;
}

std::string TcpNetwork::left_out(std::string_view address) const {
  const Result<Locator> locator = parse_locator(address);
  return locator ? left_out_from(*locator, host_) : std::string();
}

const std::vector<InterfaceAddress>& TcpNetwork::interfaces() const {
  const Instant now = Clock::steady().now();
  if (interfaces_.empty() || now - interfaces_at_ > kInterfacesAge) {
    interfaces_ = interfaces_here();
    interfaces_at_ = now;
  }
  return interfaces_;
}

bool TcpNetwork::is_here(std::string_view address) const {
  const Result<Locator> locator = parse_locator(address);
  if (!locator) return false;
  if (locator->host != 0) return locator->host == host_;
  return std::ranges::all_of(locator->places, [](const auto& place) { return base::is_loopback(place); });
}

bool TcpNetwork::is_beside(const stream::Stream& stream, std::string_view place) const {
  const TcpStream& socket = static_cast<const SocketStream&>(stream).socket();
  const base::SocketAddress& end = socket.peer();
  if (place.empty() || !socket.is_within_host()) return false;
  const Result<base::HostPort> parts = base::parse_host_port(place);
  if (!parts) return false;
  const Result<base::SocketAddress> address = base::numeric_address(*parts);
  return address && address->port() != 0 && (base::is_loopback(*address) || is_same_ip(*address, end));
}

Result<std::unique_ptr<stream::Stream>> TcpNetwork::connect(const std::string& candidate, const stream::Known& known) {
  const bool is_covered = candidate.starts_with(kTlsPrefix);
  const std::string_view typed = std::string_view(candidate).substr(is_covered ? kTlsPrefix.size() : 0);
  HAWSER_TRY_ASSIGN(const base::HostPort place, base::parse_host_port(typed));
  HAWSER_TRY_ASSIGN(const base::SocketAddress address, base::numeric_address(place));
  std::unique_ptr<tls::Session> session;
  const bool can_prove = base::is_loopback(address) || known.is_anything() || own_tls_.has_identity;
  if (is_covered && !can_prove) return cannot_prove(candidate);
  if (is_covered) {
    HAWSER_TRY_ASSIGN(session, tls()->open(tls::End::kOpener));
  }
  base::Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return base::errno_status(base::format("a socket to {}", candidate), errno);
  tune_socket(fd.get(), shared_->options, base::is_loopback(address));
  const int result = ::connect(fd.get(), address.get(), address.size);
  if (result != 0 && errno != EINPROGRESS) {
    const int error = errno;
    Status status = base::errno_status(base::format("connecting to {}", candidate), error);
    return error == ECONNREFUSED ? status.with_scope(Scope::kPeer) : status;
  }
  auto stream = std::make_unique<TcpStream>(shared_, std::move(fd), address, true);
  HAWSER_TRY(stream->watch());
  if (!is_covered) return std::unique_ptr<stream::Stream>(std::move(stream));
  return std::unique_ptr<stream::Stream>(
      new CoveredStream(std::move(stream), {.session = std::move(session), .known = known}, tls()));
}

std::unique_ptr<stream::Stream> TcpNetwork::accept() {
  for (const base::Fd& listener : listeners_) {
    base::SocketAddress peer;
    peer.size = sizeof(peer.storage);
    base::Fd fd(::accept4(listener.get(), peer.get(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd && (errno == EMFILE || errno == ENFILE)) {
      int count = 0;
      while (count < kTurnedAwayAtOnce && turn_one_away(listener.get())) ++count;
      acceptable_ = acceptable_ || count == kTurnedAwayAtOnce;  // There may be more, and no edge tells of them.
    }
    if (!fd) continue;
    tune_socket(fd.get(), shared_->options, base::is_loopback(peer));
    auto stream = std::make_unique<TcpStream>(shared_, std::move(fd), peer, false);
    if (stream->watch().ok())
      return std::make_unique<CoveredStream>(std::move(stream), CoveredStream::Opening{}, tls());
  }
  return nullptr;
}

// Out of descriptors: who waits would wait for ever, and the listener would never be quiet. Who is turned away is told.
// What it said is read before: closing with bytes unread would be a reset, which may overtake the answer.
bool TcpNetwork::turn_one_away(int listener) {
  reserve_.reset();
  base::Fd fd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const bool was_one = fd.valid();
  if (was_one) {
    std::array<char, kHelloRoom> said;
    static_cast<void>(::recv(fd.get(), said.data(), said.size(), MSG_DONTWAIT));
    static_cast<void>(::send(fd.get(), refusal_.data(), refusal_.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
    ++turned_away_;
  }
  fd.reset();
  reserve_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return was_one;
}

void TcpNetwork::stop_listening() {
  for (base::Fd& listener : listeners_) {
    static_cast<void>(shared_->epoll.remove(listener.get()));
    shared_->ledger->remove(listener.get());
  }
  listeners_.clear();
  acceptable_ = false;
}

// Asks epoll once. Returns the number of news put in `out`, which has room for kEventsMax.
std::size_t TcpNetwork::look(std::span<stream::Readiness> out) {
  std::array<epoll_event, kEventsMax> events;
  const auto count = shared_->epoll.wait(events, Duration::zero());
  std::size_t told = 0;
  for (std::size_t i = 0; count && i < *count; ++i) {
    if (events[i].data.u64 == kWatchedMark) continue;
    if ((events[i].data.u64 & kListenerMark) != 0) {
      acceptable_ = true;
      continue;
    }
    auto* stream = reinterpret_cast<TcpStream*>(static_cast<std::uintptr_t>(events[i].data.u64));
    if (stream->front().on_events(events[i].events, &out[told])) ++told;
  }
  while (told < out.size() && awaits_handshake()) {
    void* const waiting = own_tls_.source->share().next(Clock::steady().now());
    if (waiting == nullptr) break;
    if (static_cast<CoveredStream*>(waiting)->on_turn(&out[told])) ++told;
  }
  return told;
}

std::size_t TcpNetwork::ready(std::span<stream::Readiness> out, bool* acceptable) {
  std::size_t count = 0;
  if (out.size() < kEventsMax) return 0;
  if (shared_->stashed > 0) {
    count = std::exchange(shared_->stashed, 0);
    std::copy_n(shared_->stash.begin(), count, out.begin());
  } else {
    count = look(out);
  }
  *acceptable = *acceptable || acceptable_;
  acceptable_ = false;
  return count;
}

Status TcpNetwork::watch(int fd) { return shared_->epoll.add(fd, EPOLLIN, kWatchedMark); }

bool TcpNetwork::arm() {
  if (shared_->stashed == 0) shared_->stashed = look(shared_->stash);
  return shared_->stashed == 0 && !acceptable_ && !awaits_handshake();
}

}  // namespace hawser::backend
