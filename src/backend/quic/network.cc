#include "backend/quic/network.h"

#include <algorithm>
#include <array>

#include "backend/places/source.h"
#include "backend/quic/quic_stream.h"
#include "base/format.h"
#include "base/host_id.h"
#include "base/try.h"
#include "base/user_cookie.h"

namespace hawser::backend::quic {
namespace {

/// In epoll's cookie: this descriptor only wakes. A socket's cookie is the address of its endpoint.
constexpr std::uint64_t kWatchedMark = 0;
constexpr std::size_t kEventsMax = 64;
/// What one look reads of one socket before others have their turn.
constexpr int kReceivesPerLook = 32;
constexpr int kUndeliveredPerLook = 16;
/// From so many on an opener has to prove its address.
constexpr std::size_t kCrowd = 16;
/// For a peer that is connected to open its first stream, and for the last bytes to be acknowledged.
constexpr Duration kStrangerPatience = std::chrono::seconds(10);
constexpr Duration kLastBytesPatience = std::chrono::seconds(3);
constexpr std::size_t kFirstDatagramMin = 1200;  // RFC 9000, section 14.1.
/// On loopback all that is under way lies in the receiver's buffer, in which each datagram takes more than its bytes.
constexpr std::uint64_t kLoopbackShare = 3;
constexpr std::uint64_t kLoopbackWindowMin = 128 * 1024;
constexpr Duration kInterfacesAge = std::chrono::seconds(1);
/// A connection that nobody answers looks so often whether this host has another address.
constexpr Duration kLookEvery = std::chrono::milliseconds(50);

Status cannot_prove(const std::string& candidate) {
  return Status(Code::kDenied, base::format("without its card nothing can be proven to an agent at {}", candidate))
      .with_advice(
          "give the address with its ticket (ADDRESS#TICKET, as `hawser serve` prints it), load the peer's card, or "
          "find "
          "it in a directory")
      .with_scope(Scope::kPath);
}

}  // namespace

Result<QuicListeners> quic_listen(const QuicOptions& options, const std::shared_ptr<FdLedger>& ledger) {
  const UdpSocket::Buffers buffers = {.send = options.sndbuf, .receive = options.rcvbuf};
  return open_listeners<std::unique_ptr<UdpSocket>>("quic", options, false, [&](base::SocketAddress& address) {
    return UdpSocket::listen(address, buffers, ledger);
  });
}

// ---- Life.

QuicNetwork::QuicNetwork(const QuicOptions& options, std::shared_ptr<FdLedger> ledger, base::Epoll epoll,
                         Locator locator, std::shared_ptr<const TlsCredentials> credentials,
                         const Doorkeeper::Rules& rules)
    : options_(options),
      ledger_(std::move(ledger)),
      epoll_(std::move(epoll)),
      locator_(std::move(locator)),
      rules_(rules),
      set_{.library = credentials->library(), .handshakes = credentials, .user = *this},
      doorkeeper_(credentials->library(), rules),
      strangers_budget_(base::random_id128().lo),
      forgotten_budget_(base::random_id128().lo),
      crowd_budget_(base::random_id128().lo),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(kReceiveBytesMax)) {}

Result<std::unique_ptr<QuicNetwork>> QuicNetwork::open(const QuicOptions& options, std::shared_ptr<FdLedger> ledger,
                                                       QuicListeners listeners,
                                                       std::shared_ptr<const TlsCredentials> credentials,
                                                       const Doorkeeper::Rules& rules) {
  HAWSER_TRY_ASSIGN(base::Epoll epoll, base::Epoll::open());
  ledger->add(epoll.fd());
  std::unique_ptr<QuicNetwork> network(new QuicNetwork(options, std::move(ledger), std::move(epoll),
                                                       std::move(listeners.locator), std::move(credentials), rules));
  for (auto& socket : listeners.sockets) {
    network->listeners_.push_back(std::make_unique<Endpoint>(Endpoint{.socket = std::move(socket)}));
    HAWSER_TRY(network->add_endpoint(*network->listeners_.back()));
  }
  return network;
}

QuicNetwork::~QuicNetwork() {
  const Instant now = Clock::steady().now();
  for (auto& [member, owned] : members_) member->connection->close(now, false);
  members_.clear();
  ledger_->remove(epoll_.fd());
}

Status QuicNetwork::add_endpoint(Endpoint& endpoint) {
  return epoll_.add(endpoint.socket->fd(), EPOLLIN | EPOLLOUT | EPOLLET, reinterpret_cast<std::uintptr_t>(&endpoint));
}

Status QuicNetwork::watch(int fd) { return epoll_.add(fd, EPOLLIN, kWatchedMark); }

Result<base::Id128> QuicNetwork::cookie() { return base::user_cookie(); }

void QuicNetwork::stop_listening() { is_listening_ = false; }

// ---- Places.

Result<std::vector<std::string>> QuicNetwork::candidates(std::string_view address, bool) const {
  HAWSER_TRY_ASSIGN(const Locator locator, parse_locator(address));
  HAWSER_TRY_ASSIGN(auto places, places_from(locator, locator_.host, true));
  if (places.size() > 1 && locator.host != 0 && locator.host != locator_.host) sort_by_nearness(places, interfaces());
  std::vector<std::string> candidates;
  for (const base::SocketAddress& place : places) candidates.push_back(base::to_string(place));
  return candidates;
}

bool QuicNetwork::is_here(std::string_view address) const {
  const Result<Locator> locator = parse_locator(address);
  return locator && locator->host == locator_.host;
}

bool QuicNetwork::is_beside(const stream::Stream& stream, std::string_view place) const {
  const Member* const member = static_cast<const QuicStream&>(stream).member_;
  if (member == nullptr || place.empty()) return false;
  base::SocketAddress local = member->connection->route().local, remote = member->connection->route().remote;
  local.set_port(0), remote.set_port(0);
  if (!base::is_loopback(remote) && !is_same_address(local, remote)) return false;
  const Result<base::HostPort> parts = base::parse_host_port(place);
  if (!parts) return false;
  Result<base::SocketAddress> address = base::numeric_address(*parts);
  if (!address || address->port() == 0) return false;
  address->set_port(0);
  return base::is_loopback(*address) || is_same_address(*address, remote);
}

std::string QuicNetwork::left_out(std::string_view address) const {
  const Result<Locator> locator = parse_locator(address);
  return locator ? left_out_from(*locator, locator_.host) : std::string();
}

const std::vector<InterfaceAddress>& QuicNetwork::interfaces() const {
  const Instant now = Clock::steady().now();
  if (interfaces_.empty() || now - interfaces_at_ > kInterfacesAge) {
    interfaces_ = interfaces_here();
    interfaces_at_ = now;
  }
  return interfaces_;
}

ConnectionOptions QuicNetwork::options_for(const UdpSocket& socket, const base::SocketAddress& peer) const {
  const bool is_near = base::is_loopback(peer);
  // cubic leaves its slow start when a round trip takes longer, which on loopback says that a process had to wait.
  ConnectionOptions options = {
      .congestion = options_.congestion.value_or(is_near ? Congestion::kReno : Congestion::kCubic),
      .window = options_.window,
      .stream_window = options_.window / stream::kStreamsMax,
      .unread_max = options_.window,
      .qlog = options_.qlog};
  options.datagram_max = options_.datagram > 0 ? options_.datagram : kNetworkDatagram;
  options.is_probed = !is_near && options_.datagram == 0;
  options.is_paced = !is_near;
  options.is_lent = is_near;
  if (!is_near) return options;
  options.window = std::min(options.window, std::max(socket.receive_buffer() / kLoopbackShare, kLoopbackWindowMin));
  if (options_.datagram == 0) options.datagram_max = kLoopbackDatagram;
  // A listener cannot ask for the route of one peer.
  std::size_t most = 0;
  if (socket.is_connected()) {
    most = socket.datagram_max();
  } else if (const auto asked = UdpSocket::connect(peer, {}, ledger_)) {
    most = (*asked)->datagram_max();
  }
  if (most > 0) options.datagram_max = std::min(options.datagram_max, most);
  return options;
}

// ---- Connecting.

QuicNetwork::Member* QuicNetwork::find_reusable(const std::string& candidate, const stream::Known& known) {
  const auto found = by_place_.find(candidate);
  if (found == by_place_.end() || found->second->known != known) return nullptr;
  const Connection& connection = *found->second->connection;
  return connection.state() == Connection::State::kUp && !connection.has_left() ? found->second : nullptr;
}

Result<std::unique_ptr<stream::Stream>> QuicNetwork::connect(const std::string& candidate, const stream::Known& known) {
  const bool can_prove = known.is_anything() || rules_.has_identity || options_.security == Security::kNone;
  if (!can_prove) return cannot_prove(candidate);
  if (Member* member = find_reusable(candidate, known)) {
    if (Flow* flow = member->connection->open_flow()) {
      auto stream = std::make_unique<QuicStream>(*this, *member, flow);
      tell(*stream, true, true);
      return std::unique_ptr<stream::Stream>(std::move(stream));
    }
  }
  HAWSER_TRY_ASSIGN(const base::HostPort place, base::parse_host_port(candidate));
  HAWSER_TRY_ASSIGN(const base::SocketAddress address, base::numeric_address(place));
  HAWSER_TRY_ASSIGN(auto socket,
                    UdpSocket::connect(address, {.send = options_.sndbuf, .receive = options_.rcvbuf}, ledger_));
  auto member = std::make_unique<Member>();
  member->own = std::make_unique<Endpoint>(Endpoint{.socket = std::move(socket), .opener = member.get()});
  member->endpoint = member->own.get();
  member->place = candidate;
  member->known = known;
  member->source = source_of(address);
  std::array<std::byte, 64> token = {};
  if (!known.secret.is_zero()) token = Doorkeeper::token(known.secret, known.key);
  UdpSocket& own = *member->own->socket;
  const Instant now = Clock::steady().now();
  HAWSER_TRY_ASSIGN(
      member->connection,
      Connection::open(set_, own, own.route(), std::span(token).first(known.secret.is_zero() ? 0 : token.size()),
                       options_for(own, address), now));
  HAWSER_TRY(add_endpoint(*member->own));
  Member& kept = *member;
  by_connection_[kept.connection.get()] = &kept;
  by_place_[candidate] = &kept;
  members_[&kept] = std::move(member);
  auto stream = std::make_unique<QuicStream>(*this, kept, nullptr);
  kept.first = stream.get();
  kept.connection->settle(now);
  touch(kept);
  return std::unique_ptr<stream::Stream>(std::move(stream));
}

std::unique_ptr<stream::Stream> QuicNetwork::accept() {
  while (is_listening_ && !opened_.empty()) {
    const auto [member, flow] = opened_.front();
    opened_.pop_front();
    know(*member);
    auto stream = std::make_unique<QuicStream>(*this, *member, flow);
    if (stream->state() != stream::StreamState::kOpen) continue;
    tell(*stream, true, true);
    return stream;
  }
  return nullptr;
}

// ---- What connections tell.

void QuicNetwork::on_state(Connection& connection) {
  const auto found = by_connection_.find(&connection);
  Member* const member = found != by_connection_.end() ? found->second : accepting_;
  if (member == nullptr) return;
  touch(*member);
  if (connection.state() == Connection::State::kEnded) {
    std::erase_if(opened_, [member](const auto& each) { return each.first == member; });
  }
  if (member->first == nullptr) return;
  QuicStream& first = *std::exchange(member->first, nullptr);
  if (connection.state() == Connection::State::kUp) {
    first.begin(connection.open_flow());
  } else {
    const Status& why = connection.why();
    first.fail(why.ok() ? Status(Code::kDisconnected, "the peer has closed the connection").with_scope(Scope::kPath)
                        : why);
  }
  tell(first, true, true);
}

void QuicNetwork::on_opened(Connection& connection, Flow& flow) {
  const auto found = by_connection_.find(&connection);
  if (found == by_connection_.end()) return;
  opened_.emplace_back(found->second, &flow);
}

std::size_t QuicNetwork::on_bytes(Connection&, Flow& flow, std::span<const std::byte> bytes) {
  stream::Landing* const landing = flow.user == nullptr ? nullptr : static_cast<QuicStream*>(flow.user)->landing;
  return landing == nullptr ? 0 : landing->place(bytes);
}

void QuicNetwork::on_id(Connection& connection, std::string_view id, bool is_added) {
  if (!is_added) {
    by_id_.erase(std::string(id));
    return;
  }
  const auto found = by_connection_.find(&connection);
  Member* const member = found != by_connection_.end() ? found->second : accepting_;
  if (member != nullptr) by_id_[std::string(id)] = member;
}

/// The port has it in its lobby from here on, or it is gone.
void QuicNetwork::know(Member& member) {
  if (!member.is_stranger) return;
  member.is_stranger = false;
  member.deadline = Instant::max();
  member.connection->trust();
  touch(member);
  --strangers_;
  const auto from = strangers_from_.find(member.source);
  if (--from->second == 0) strangers_from_.erase(from);
}

// ---- Datagrams.

void QuicNetwork::poll_sockets(Instant now) {
  std::array<epoll_event, kEventsMax> events;
  const auto count = epoll_.wait(events, Duration::zero());
  for (std::size_t i = 0; count && i < *count; ++i) {
    if (events[i].data.u64 == kWatchedMark) continue;
    auto& endpoint = *reinterpret_cast<Endpoint*>(static_cast<std::uintptr_t>(events[i].data.u64));
    endpoint.has_errors = endpoint.has_errors || (events[i].events & EPOLLERR) != 0;
    if ((events[i].events & (EPOLLIN | EPOLLERR)) != 0 && !endpoint.is_listed) {
      endpoint.is_listed = true;
      readable_.push_back(&endpoint);
    }
    if ((events[i].events & EPOLLOUT) != 0 && endpoint.socket->take_blocked()) go_on(endpoint, now);
  }
  std::vector<Endpoint*> reading;
  reading.swap(readable_);
  for (Endpoint* endpoint : reading) {
    endpoint->is_listed = false;
    read_all(*endpoint, now);
  }
}

/// The socket takes datagrams again.
void QuicNetwork::go_on(Endpoint& endpoint, Instant now) {
  for (auto& [member, owned] : members_) {
    if (member->endpoint != &endpoint || !member->connection->is_blocked()) continue;
    member->connection->on_writable(now);
    touch(*member);
  }
}

void QuicNetwork::read_all(Endpoint& endpoint, Instant now) {
  for (int i = 0; i < kReceivesPerLook; ++i) {
    const auto received = endpoint.socket->receive({buffer_.get(), kReceiveBytesMax});
    if (!received) {
      endpoint.refusal = received.error();
      continue;
    }
    if (received->is_all) return hear_errors(endpoint);
    std::span<const std::byte> rest = received->bytes;
    while (!rest.empty()) {
      const std::size_t size = std::min(std::max<std::size_t>(received->segment, 1), rest.size());
      dispatch(endpoint, received->route, rest.first(size), now);
      rest = rest.subspan(size);
    }
  }
  endpoint.is_listed = true;
  readable_.push_back(&endpoint);
}

void QuicNetwork::dispatch(Endpoint& endpoint, const Route& route, std::span<const std::byte> datagram, Instant now) {
  if (endpoint.opener != nullptr) {
    endpoint.opener->connection->take(endpoint.socket->route(), datagram, now);
    touch(*endpoint.opener);
    return;
  }
  ngtcp2_version_cid ids = {};
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(datagram.data());
  const int error = set_.library.pkt_decode_version_cid(&ids, bytes, datagram.size(), kIdBytes);
  if (error == NGTCP2_ERR_VERSION_NEGOTIATION && datagram.size() >= kFirstDatagramMin) {
    if (may_answer(strangers_budget_, route, now)) answer_version(endpoint, route, ids);
  }
  if (error != 0) return;
  const auto found = by_id_.find(std::string(reinterpret_cast<const char*>(ids.dcid), ids.dcidlen));
  if (found != by_id_.end()) return take(*found->second, route, datagram, now);
  first_datagram(endpoint, route, datagram, now);
  answer_forgotten(endpoint, route, datagram, now);
}

/// The peer did not hear that the connection ended, and would go on until its heartbeats stay away.
void QuicNetwork::answer_forgotten(Endpoint& endpoint, const Route& route, std::span<const std::byte> datagram,
                                   Instant now) {
  std::array<std::byte, ConnectionIds::kAnswerBytes> answer;
  const std::size_t size = set_.ids.answer(set_.library, datagram, answer);
  if (size == 0 || !may_answer(forgotten_budget_, route, now)) return;
  static_cast<void>(endpoint.socket->send(route, std::span(answer).first(size), size));
}

/// What handshakes of strangers cost is counted: see HandshakeShare.
void QuicNetwork::take(Member& member, const Route& route, std::span<const std::byte> datagram, Instant now) {
  const bool is_shaking = member.is_stranger && member.connection->state() == Connection::State::kShaking;
  const Instant began = is_shaking ? Clock::steady().now() : now;
  member.connection->take(route, datagram, now);
  touch(member);
  if (is_shaking) share_.worked(began, Clock::steady().now());
}

bool QuicNetwork::may_answer(AnswerBudget& budget, const Route& route, Instant now) const {
  return budget.take(source_of(route.remote), base::is_loopback(route.remote), now);
}

void QuicNetwork::answer_version(Endpoint& endpoint, const Route& route, const ngtcp2_version_cid& asked) {
  std::array<std::uint8_t, 256> answer;
  const std::uint32_t version = NGTCP2_PROTO_VER_V1;
  const ngtcp2_ssize size = set_.library.pkt_write_version_negotiation(
      answer.data(), answer.size(), 0, asked.scid, asked.scidlen, asked.dcid, asked.dcidlen, &version, 1);
  if (size <= 0) return;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(answer)).first(static_cast<std::size_t>(size));
  static_cast<void>(endpoint.socket->send(route, bytes, bytes.size()));
}

std::size_t QuicNetwork::strangers_of(std::uint64_t source) const {
  const auto found = strangers_from_.find(source);
  return found == strangers_from_.end() ? 0 : found->second;
}

void QuicNetwork::first_datagram(Endpoint& endpoint, const Route& route, std::span<const std::byte> datagram,
                                 Instant now) {
  if (!is_listening_) return;
  ngtcp2_pkt_hd head = {};
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(datagram.data());
  if (set_.library.accept(&head, bytes, datagram.size()) != 0) return;
  const Doorkeeper::Judged judged = doorkeeper_.judge(head, route, strangers_ >= kCrowd, now);
  AnswerBudget& budget = judged.has_card ? crowd_budget_ : strangers_budget_;
  if (judged.verdict == Verdict::kRetry && may_answer(budget, route, now)) {
    std::array<std::byte, 512> answer;
    const std::size_t size = doorkeeper_.write_retry(head, route, answer, now);
    if (size > 0) static_cast<void>(endpoint.socket->send(route, std::span(answer).first(size), size));
  }
  if (judged.verdict != Verdict::kAccept || knocks_.size() >= kKnocksMax) return;
  knocks_.push_back({&endpoint, route, {datagram.begin(), datagram.end()}});
}

void QuicNetwork::take_in_waiting(Instant now) {
  while (!knocks_.empty() && share_.may_work(now)) {
    const Knock knock = std::move(knocks_.front());
    knocks_.pop_front();
    if (is_listening_) take_in(knock, now);
  }
}

/// An opener sends its first datagram again, so what does not fit now may be dropped.
void QuicNetwork::take_in(const Knock& knock, Instant now) {
  ngtcp2_pkt_hd head = {};
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(knock.datagram.data());
  if (set_.library.accept(&head, bytes, knock.datagram.size()) != 0) return;
  const std::string id(reinterpret_cast<const char*>(head.dcid.data), head.dcid.datalen);
  if (const auto found = by_id_.find(id); found != by_id_.end()) {  // Its second try; the first came in meanwhile.
    return take(*found->second, knock.route, knock.datagram, now);
  }
  const std::uint64_t source = source_of(knock.route.remote);
  if (strangers_ >= kStrangersMax) return;
  if (strangers_of(source) >= kStrangersPerSource && !base::is_loopback(knock.route.remote)) return;
  const Doorkeeper::Judged judged = doorkeeper_.judge(head, knock.route, false, now);
  if (judged.verdict != Verdict::kAccept) return;  // It waited too long.
  auto member = std::make_unique<Member>();
  member->endpoint = knock.endpoint;
  member->source = source;
  member->is_stranger = true;
  member->deadline = now + kStrangerPatience;
  accepting_ = member.get();
  auto made =
      Connection::accept(set_, *knock.endpoint->socket, knock.route, {.head = head, .asked_id = judged.asked_id},
                         options_for(*knock.endpoint->socket, knock.route.remote), now);
  accepting_ = nullptr;
  if (!made) return;
  member->connection = *std::move(made);
  Member& kept = *member;
  by_connection_[kept.connection.get()] = &kept;
  members_[&kept] = std::move(member);
  ++strangers_;
  ++strangers_from_[source];
  take(kept, knock.route, knock.datagram, now);
}

/// What the kernel says of peers that are gone counts once all that they had sent is read, their goodbye last. Only
/// this host's kernel is believed: elsewhere anybody could say so.
void QuicNetwork::hear_errors(Endpoint& endpoint) {
  if (endpoint.opener != nullptr) {
    const Status refusal = std::exchange(endpoint.refusal, Status());
    Connection& connection = *endpoint.opener->connection;
    const bool is_believed =
        base::is_loopback(endpoint.socket->route().remote) || connection.state() == Connection::State::kShaking;
    if (!refusal.ok() && is_believed) connection.fail(refusal);
    return;
  }
  if (!std::exchange(endpoint.has_errors, false)) return;
  for (int i = 0; i < kUndeliveredPerLook; ++i) {
    const auto news = endpoint.socket->take_undelivered();
    if (!news) return;
    if (!news->is_refused || !base::is_loopback(news->to)) continue;
    for (auto& [member, owned] : members_) {
      if (member->endpoint != &endpoint || !is_same_address(member->connection->route().remote, news->to)) continue;
      member->connection->fail(
          Status(Code::kDisconnected, base::format("nobody listens at {} any more", base::to_string(news->to)))
              .with_scope(Scope::kPath));
      touch(*member);
    }
  }
}

// ---- Turns.

void QuicNetwork::touch(Member& member) {
  if (member.is_touched) return;
  member.is_touched = true;
  touched_.push_back(&member);
}

void QuicNetwork::list_timer(Member& member) {
  const Instant due = std::min({member.connection->due(), member.deadline, member.look_at});
  if (due == member.listed) return;
  if (member.listed != Instant::max()) timers_.erase({member.listed, &member});
  member.listed = due;
  if (due != Instant::max()) timers_.emplace(due, &member);
}

void QuicNetwork::fire_timers(Instant now) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    Member& member = *timers_.begin()->second;
    timers_.erase(timers_.begin());
    member.listed = Instant::max();
    touch(member);
    if (now >= member.deadline) {
      member.connection->close(now, true);
    } else {
      if (now >= member.connection->due()) member.connection->on_due(now);
      look_for_address(member, now);
    }
  }
}

/// Looks while nobody answers, because an address may take a while to come.
void QuicNetwork::look_for_address(Member& member, Instant now) {
  if (!member.connection->is_unanswered()) {
    member.look_at = Instant::max();
  } else if (member.look_at == Instant::max() || now >= member.look_at) {
    member.look_at = now + kLookEvery;
    follow_address(member, now);
  }
}

/// Where this host has another address towards the peer than its connection goes from, it goes on from there.
void QuicNetwork::follow_address(Member& member, Instant now) {
  UdpSocket& socket = *member.own->socket;
  const std::unique_ptr<UdpSocket> moved = socket.moved();
  if (moved == nullptr) return;
  static_cast<void>(epoll_.remove(socket.fd()));
  socket.become(*moved);
  if (!add_endpoint(*member.own).ok() || !member.connection->move_to(socket.route(), now)) {
    member.connection->fail(
        Status(Code::kDisconnected, base::format("this host has another address now, {}, and the connection cannot go "
                                                 "on from there",
                                                 base::to_string(socket.route().local)))
            .with_scope(Scope::kPath));
  }
}

/// Sends what connections have to say that were touched before. Acknowledgements wait so for one look, because the port
/// may have something to send with them.
void QuicNetwork::settle_touched(Instant now) {
  std::vector<Member*> touched;
  touched.swap(touched_);
  for (Member* member : touched) {
    if (member->connection->is_dirty) member->connection->settle(now);
    member->is_touched = false;
    finish(*member, now);
  }
}

/// Tells the port what happened; a connection that is over goes.
void QuicNetwork::finish(Member& member, Instant now) {
  gather(member);
  const bool is_done = member.streams == 0 && !member.is_stranger && member.deadline != Instant::max() &&
                       member.connection->is_unused() && member.connection->is_delivered();
  if (is_done) member.connection->close(now, false);
  if (member.connection->state() == Connection::State::kEnded && member.streams == 0) {
    drop(member);
  } else {
    list_timer(member);
  }
}

void QuicNetwork::gather(Member& member) {
  for (const auto& flow : member.connection->flows()) {
    if (flow->user == nullptr || (!flow->is_readable && !flow->is_writable && !flow->is_released)) continue;
    // A user that lent bytes has to look at what is released. It does so when it hears that there is room.
    const bool is_writable = std::exchange(flow->is_released, false) || flow->is_writable;
    flow->is_writable = false;
    tell(*static_cast<QuicStream*>(flow->user), std::exchange(flow->is_readable, false), is_writable);
  }
}

void QuicNetwork::tell(QuicStream& stream, bool readable, bool writable) {
  if (!stream.is_readable_ && !stream.is_writable_) news_.push_back(&stream);
  stream.is_readable_ = stream.is_readable_ || readable;
  stream.is_writable_ = stream.is_writable_ || writable;
}

/// The port has let go of one of its streams.
void QuicNetwork::left(Member& member, bool abort, Instant now) {
  if (member.streams == 0) {
    const bool is_lingering = !abort && !member.connection->is_delivered();
    member.deadline = now + kLastBytesPatience;
    if (!is_lingering) member.connection->close(now, abort);
  }
  touch(member);
}

void QuicNetwork::drop(Member& member) {
  if (member.listed != Instant::max()) timers_.erase({member.listed, &member});
  know(member);
  std::erase(touched_, &member);
  if (const auto at = by_place_.find(member.place); at != by_place_.end() && at->second == &member) by_place_.erase(at);
  if (member.own != nullptr) {
    std::erase(readable_, member.own.get());
    static_cast<void>(epoll_.remove(member.own->socket->fd()));
  }
  std::erase_if(opened_, [&member](const auto& each) { return each.first == &member; });
  by_connection_.erase(member.connection.get());
  const auto found = members_.find(&member);
  const std::unique_ptr<Member> last = std::move(found->second);  // Its connection still tells of its ids.
  members_.erase(found);
}

void QuicNetwork::advance(Instant now) {
  settle_touched(now);
  poll_sockets(now);
  take_in_waiting(now);
  fire_timers(now);
  const std::vector<Member*> touched = touched_;
  for (Member* member : touched) finish(*member, now);
}

std::size_t QuicNetwork::ready(std::span<stream::Readiness> out, bool* acceptable) {
  advance(Clock::steady().now());
  *acceptable = *acceptable || (is_listening_ && !opened_.empty());
  std::size_t count = 0;
  for (; count < out.size() && count < news_.size(); ++count) {
    QuicStream& stream = *news_[count];
    out[count] = {.stream = &stream,
                  .readable = std::exchange(stream.is_readable_, false),
                  .writable = std::exchange(stream.is_writable_, false)};
  }
  news_.erase(news_.begin(), news_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

bool QuicNetwork::arm() {
  const Instant now = Clock::steady().now();
  advance(now);
  const auto is_quiet = [this] { return news_.empty() && readable_.empty() && (!is_listening_ || opened_.empty()); };
  if (!is_quiet()) return false;
  settle_touched(now);
  return is_quiet();
}

Instant QuicNetwork::next_deadline() const {
  const Instant timer = timers_.empty() ? Instant::max() : timers_.begin()->first;
  return knocks_.empty() ? timer : std::min(timer, share_.next_at());
}

}  // namespace hawser::backend::quic
