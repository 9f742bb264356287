#include "quicsim/host.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <utility>

namespace hawser::quicsim {
namespace {

using backend::quic::Connection;
using backend::quic::Flow;
using backend::quic::Sending;
using backend::quic::SendQueue;
using State = Connection::State;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLastBytesPatience = seconds(3);  // As in backend/quic/network.cc,
constexpr Duration kLookEvery = milliseconds(50);    // too.
constexpr Duration kMomentary{10};                   // Whoever is due in the past looks again after 1 ns.
constexpr std::size_t kFiredMax = 16;
constexpr std::byte kLongHeader{0x80}, kRetryBits{0xb0};  // RFC 9000, section 17.2.
constexpr std::size_t kFirstWindowOfOpener = 1024 * 1024, kFirstWindowOfAcceptor = 128 * 1024;

std::string text_of(const ngtcp2_cid& id) { return {reinterpret_cast<const char*>(id.data), id.datalen}; }
const std::uint8_t* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

tls::PublicKey key_from(std::uint64_t seed) {
  base::Rng rng(seed);
  tls::PublicKey key;
  for (std::byte& byte : key) byte = static_cast<std::byte>(rng.u64());
  return key;
}

}  // namespace

// ---- Lines.

bool Line::send(const Route& route, std::span<const std::byte> packets, std::size_t segment) {
  if (host_.world_.now() < host_.blocked_until_) {
    host_.was_blocked_ = true;
    return false;
  }
  fired_ = 0;
  for (std::size_t at = 0; at < packets.size(); at += segment) {
    const std::span<const std::byte> packet = packets.subspan(at, std::min(segment, packets.size() - at));
    host_.world_.note("send", name_, packet.size(), XXH3_64bits(packet.data(), packet.size()));
    host_.net_.send(host_.number_, side_ == Side::kOpener ? route_ : route, packet);  // A connected socket has one way.
  }
  return true;
}

bool Line::is_held_up() const {
  return std::ranges::any_of(streams_, [](const auto& each) { return each->is_held_up(); });
}

/// As QuicNetwork::left.
void Line::left(bool abort, Instant now) {
  const bool is_used = std::ranges::any_of(streams_, [](const auto& each) { return !each->has_left(); });
  if (is_used || opens_left_ > 0 || !closes_unused_) return;
  deadline_ = now + kLastBytesPatience;
  if (abort || connection_->is_delivered()) close(abort, !abort, now);
}

void Line::close(bool abort, bool is_clean, Instant now) {
  if (connection_->state() == State::kEnded) return;
  note_close(abort, is_clean);
  connection_->close(now, abort);
}

void Line::note_close(bool abort, bool is_clean) {
  if (is_bound() || !host_.judge_.talk(number_).end(side_).is_up) {
    EndBook& own = host_.judge_.talk(number_).end(side_);
    own.closed = abort ? Parting::kAborted : Parting::kOrderly;
    own.is_clean = is_clean;
  }
  host_.world_.note("close", name_, abort ? 1 : 0, is_clean ? 1 : 0);
}

// ---- The host.

QuicHost::QuicHost(sim::World& world, PacketNet& net, QuicJudge& judge, const Settings& settings, const Place& place,
                   const backend::quic::Ngtcp2& library)
    : world_(world),
      net_(net),
      judge_(judge),
      settings_(settings),
      name_(place.name),
      side_(place.side),
      library_(library),
      random_(place.seed),
      rng_(place.seed ^ 0x9e3779b97f4a7c15U),
      handshakes_(std::make_shared<PlainHandshakes>(library, random_, key_from(place.seed), settings.certificate)),
      set_{.library = library, .handshakes = handshakes_, .user = *this, .random = random_} {
  number_ = net_.add(place.address, {place.up, place.down}, [this](Datagram datagram) {
    if (is_gone_ || inbox_bytes_ + datagram.bytes.size() > settings_.inbox_bytes) return lose(datagram);
    inbox_bytes_ += datagram.bytes.size();
    inbox_.push_back(std::move(datagram));
    const Duration wait(settings_.look_max > Duration::zero() ? rng_.range(0, settings_.look_max.count()) : 0);
    look_by(world_.now() + wait);
  });
}

/// A connection tells of its ids while it goes.
QuicHost::~QuicHost() {
  std::vector<std::unique_ptr<Line>> last;
  last.swap(lines_);
}

void QuicHost::connect(std::size_t connection, const base::SocketAddress& acceptor) {
  if (is_gone_) {
    judge_.talk(connection).end(Side::kOpener).is_gone = true;
    return;
  }
  base::SocketAddress local = net_.address(number_);
  local.set_port(static_cast<std::uint16_t>(kPortBase + connection));
  auto line = std::make_unique<Line>(*this, connection, Side::kOpener, Route{.local = local, .remote = acceptor});
  line->name_ = fmt::format("c{}o", connection);
  line->opens_left_ = settings_.streams;
  line->closes_unused_ = true;
  auto made = Connection::open(set_, *line, line->route_, {}, settings_.options, world_.now());
  if (!made) return judge_.fail("a connection cannot be made: " + made.error().to_string());
  line->connection_ = *std::move(made);
  judge_.talk(connection).end(Side::kOpener).heard = world_.now();
  judge_.talk(connection).end(Side::kOpener).stopped = std::max(stopped_until_, blocked_until_);
  world_.note("connect", line->name_);
  lines_.push_back(std::move(line));
  lines_.back()->connection_->settle(world_.now());
  wake();
}

Line* QuicHost::line_of(const Connection& connection) const {
  for (const auto& line : lines_) {
    if (line->connection_.get() == &connection) return line.get();
  }
  return accepting_;
}

void QuicHost::on_state(Connection& connection) {
  Line* const line = line_of(connection);
  if (line == nullptr) return;
  if (connection.state() == State::kUp) {
    line->was_up_ = true;
    if (line->side_ == Side::kAcceptor) {
      line->is_bound_ = true;
      line->trust_at_ = world_.now() + Duration(rng_.range(0, Duration(milliseconds(50)).count()));
      judge_.talk(line->number_).end(Side::kAcceptor).is_gone = false;
    }
    judge_.talk(line->number_).end(line->side_).heard = world_.now();
    judge_.came_up(line->number_, line->side_, *connection.handshake().binding(0));
    if (expected_[line->number_] != connection.handshake().peer_key())
      judge_.fail(line->name_ + ": another peer's key");
    world_.note("up", line->name_);
    line->open_at_ = world_.now();
  } else {
    line->is_ended_ = true;
    world_.note("ended " + connection.why().to_string(), line->name_);
    if (line->is_bound()) {
      check_end(*line);
      judge_.ended(line->number_, line->side_, connection.why(), line->was_up_);
    } else if (!judge_.talk(line->number_).end(Side::kAcceptor).is_up) {
      judge_.talk(line->number_).end(Side::kAcceptor).is_gone = true;  // The opener is on its own.
    }
  }
  wake();
}

/// Who hears nothing looks for another address of its host.
void QuicHost::check_end(const Line& line) {
  base::SocketAddress home = net_.address(number_);
  home.set_port(line.route_.local.port());
  const bool is_behind = side_ == Side::kOpener && !backend::quic::is_same_address(home, line.route_.local);
  // Who only listens asks for no answer, and who does not know yet that the handshake is confirmed does not ask again.
  if (line.fired_at_ - moved_at_ < settings_.options.idle_timeout / 4) return;
  const bool asks = std::ranges::any_of(line.connection_->flows(), [](const auto& flow) { return !flow->out.empty(); });
  if (!is_behind || !line.was_up_ || !asks) return;
  if (line.connection_->why().to_string().find("idle timeout") == std::string::npos) return;
  if (world_.now() - moved_at_ >= settings_.options.idle_timeout) {
    judge_.fail(line.name_ + ": heard nothing, and did not look for another address of its host");
  }
}

void QuicHost::on_opened(Connection& connection, Flow& flow) {
  Line* const line = line_of(connection);
  if (line == nullptr) return;
  use(*line, flow);
}

std::size_t QuicHost::on_bytes(Connection&, Flow& flow, std::span<const std::byte> bytes) {
  return flow.user == nullptr ? 0 : static_cast<StreamEnd*>(flow.user)->take(bytes);
}

void QuicHost::use(Line& line, Flow& flow) {
  line.streams_.push_back(std::make_unique<StreamEnd>(line, flow, rng_.u64()));
  if (is_calm_) line.streams_.back()->calm();
}

void QuicHost::on_id(Connection& connection, std::string_view id, bool is_added) {
  Line* const line = line_of(connection);
  if (line == nullptr) return;
  if (is_added) {
    ++line->ids_;
    if (!by_id_.emplace(id, line).second) judge_.fail(line->name_ + ": an id was given twice");
    return;
  }
  --line->ids_;
  if (by_id_.erase(std::string(id)) == 0) judge_.fail(line->name_ + ": an id is given back that nobody has");
}

// ---- Turns.

void QuicHost::look_by(Instant at) {
  at = std::max(at, stopped_until_);
  if (at >= armed_) return;
  armed_ = at;
  world_.at(at, [this, at] {
    if (armed_ != at) return;  // An earlier look was asked for meanwhile.
    armed_ = Instant::max();
    look();
  });
}

void QuicHost::look() {
  const Instant now = world_.now();
  if (is_gone_ || judge_.failed()) return;
  if (now < stopped_until_) return look_by(stopped_until_);
  if (was_blocked_ && now >= blocked_until_) {
    was_blocked_ = false;
    for (const auto& line : lines_) {
      if (line->connection_->is_blocked()) line->connection_->on_writable(now);
    }
  }
  const auto settle = [&] {
    for (const auto& line : lines_) {
      if (line->connection_->is_dirty) line->connection_->settle(now);
    }
  };
  settle();
  take_all(now);
  for (const auto& line : lines_) fire(*line, now);
  settle();
  for (const auto& line : lines_) act(*line, now);
  settle();
  for (const auto& line : lines_) finish(*line, now);
  for (const auto& line : lines_) check(*line);
  drop_ended();
  arm();
}

/// A connection that goes gives back its ids, so it goes once the others are in order.
void QuicHost::drop_ended() {
  std::vector<std::unique_ptr<Line>> last;
  for (auto& line : lines_) {
    const bool is_used = std::ranges::any_of(line->streams_, [](const auto& each) { return !each->has_left(); });
    if (line->is_ended_ && !is_used) last.push_back(std::move(line));
  }
  std::erase(lines_, nullptr);
}

void QuicHost::arm() {
  const Instant now = world_.now();
  Instant next = Instant::max();
  for (const auto& line : lines_) {
    next = std::min({next, line->connection_->due(), line->deadline_, line->look_at_, line->trust_at_});
    if (line->opens_left_ > 0 && line->connection_->state() == State::kUp) next = std::min(next, line->open_at_);
    for (const auto& stream : line->streams_) next = std::min(next, stream->next_at());
    for (const auto& flow : line->connection_->flows()) {
      if (flow->user != nullptr && (flow->is_readable || flow->is_writable)) next = now;
    }
    if (line->connection_->is_dirty) next = now;
  }
  if (!inbox_.empty()) next = now;
  if (was_blocked_) next = std::min(next, blocked_until_);
  if (next != Instant::max()) look_by(std::max(next, now + Duration(1)));
}

void QuicHost::take_all(Instant now) {
  std::deque<Datagram> all;
  all.swap(inbox_);
  inbox_bytes_ = 0;
  for (const Datagram& datagram : all) {
    if (side_ == Side::kAcceptor) {
      dispatch(datagram, now);
      continue;
    }
    const auto its = std::ranges::find_if(lines_, [&datagram](const auto& line) {
      return backend::quic::is_same_address(line->route_.local, datagram.route.local) &&
             backend::quic::is_same_address(line->route_.remote, datagram.route.remote);
    });
    if (its != lines_.end()) {
      take(**its, datagram, now);
    } else {
      lose(datagram);
    }
  }
}

void QuicHost::lose(const Datagram& datagram) {
  if (net_.on_lost) net_.on_lost(number_, {datagram.route.remote, datagram.route.local});
}

void QuicHost::take(Line& line, const Datagram& datagram, Instant now) {
  if (line.is_ended_) return;
  world_.note("take", line.name_, datagram.bytes.size(), XXH3_64bits(datagram.bytes.data(), datagram.bytes.size()));
  // Keys of the handshake are gone once it is through. An opener that does not know it yet, and whose NAT has taken
  // another port meanwhile, says nothing else, and so cannot be found there (RFC 9000, section 9).
  const bool is_late = line.was_up_ && (datagram.bytes[0] & kLongHeader) != std::byte{0};
  if (is_late) judge_.talk(line.number_).end(line.side_).late = now;
  const bool is_retry = (datagram.bytes[0] & kRetryBits) == kRetryBits && !line.was_up_;
  // Who has proven nothing does not move.
  const bool is_elsewhere = line.side_ == Side::kAcceptor && (line.trust_at_ != Instant::max() || !line.was_up_) &&
                            !backend::quic::is_same_route(datagram.route, line.connection_->route());
  if (is_elsewhere) lose(datagram);
  if (datagram.is_whole && !is_late && !is_retry && !is_elsewhere && line.is_bound()) {
    judge_.talk(line.number_).end(line.side_).heard = now;
  }
  line.fired_ = 0;
  line.connection_->take(line.side_ == Side::kOpener ? line.route_ : datagram.route, datagram.bytes, now);
}

void QuicHost::dispatch(const Datagram& datagram, Instant now) {
  ngtcp2_version_cid ids = {};
  if (library_.pkt_decode_version_cid(&ids, raw(datagram.bytes), datagram.bytes.size(), backend::quic::kIdBytes) != 0) {
    return;
  }
  const auto found = by_id_.find(std::string(reinterpret_cast<const char*>(ids.dcid), ids.dcidlen));
  if (found != by_id_.end()) return take(*found->second, datagram, now);
  dispatch_unknown(datagram, now);
  std::array<std::byte, backend::quic::ConnectionIds::kAnswerBytes> answer;
  const std::size_t size = set_.ids.answer(library_, datagram.bytes, answer);
  if (size == 0) return;
  world_.note("forgotten", name_);
  net_.send(number_, datagram.route, std::span(answer).first(size));
}

bool QuicHost::asks_first(const ngtcp2_pkt_hd& head, const Route& route, std::optional<ngtcp2_cid>* asked) {
  const std::span<const std::uint8_t> token = backend::quic::token_of(head);
  if (!token.empty()) {
    const auto found = asked_.find(std::string(reinterpret_cast<const char*>(token.data()), token.size()));
    if (found == asked_.end() || found->first != text_of(head.dcid)) return true;
    if (!backend::quic::is_same_address(found->second.remote, route.remote)) return true;
    *asked = found->second.original;
    return false;
  }
  if (!settings_.asks) return false;
  ngtcp2_cid own = {};
  own.datalen = backend::quic::kIdBytes;
  random_.fill({own.data, own.datalen});
  std::array<std::byte, 512> room;
  const std::size_t size = handshakes_->write_retry(head, own, {own.data, own.datalen}, room);
  asked_[text_of(own)] = {.original = head.dcid, .remote = route.remote};
  world_.note("retry", name_, size);
  net_.send(number_, route, std::span(room).first(size));
  return true;
}

void QuicHost::dispatch_unknown(const Datagram& datagram, Instant now) {
  ngtcp2_pkt_hd head = {};
  if (library_.accept(&head, raw(datagram.bytes), datagram.bytes.size()) != 0) return;
  const std::size_t number = datagram.route.remote.port() % PacketNet::kNatStep - kPortBase;
  if (number >= settings_.connections) return;
  std::optional<ngtcp2_cid> asked;
  if (asks_first(head, datagram.route, &asked)) return;
  auto line = std::make_unique<Line>(*this, number, Side::kAcceptor, datagram.route);
  line->name_ = fmt::format("c{}a", number);
  line->closes_unused_ = rng_.chance(0.3);
  world_.note("accept", line->name_);
  accepting_ = line.get();
  auto made =
      Connection::accept(set_, *line, datagram.route, {.head = head, .asked_id = asked}, settings_.options, now);
  accepting_ = nullptr;
  if (!made) return judge_.fail("a connection cannot be accepted: " + made.error().to_string());
  line->connection_ = *std::move(made);
  lines_.push_back(std::move(line));
  take(*lines_.back(), datagram, now);
}

void QuicHost::fire(Line& line, Instant now) {
  if (now >= line.trust_at_) {
    line.trust_at_ = Instant::max();
    line.connection_->trust();
  }
  if (now >= line.deadline_) {
    line.deadline_ = Instant::max();
    return line.close(true, false, now);
  }
  if (now >= line.connection_->due()) {
    if (now - line.fired_at_ > kMomentary) line.fired_ = 0;
    if (++line.fired_ > kFiredMax) judge_.fail(line.name_ + ": is due again and again, and does nothing");
    line.connection_->on_due(now);
    line.fired_at_ = now;  // Behind it: a timer that ends the connection asks nobody.
  }
  if (line.side_ != Side::kOpener || !line.connection_->is_unanswered()) {
    line.look_at_ = Instant::max();
  } else if (line.look_at_ == Instant::max() || now >= line.look_at_) {
    line.look_at_ = now + kLookEvery;
    follow(line, now);
  }
}

/// As QuicNetwork::follow_address.
void QuicHost::follow(Line& line, Instant now) {
  base::SocketAddress home = net_.address(number_);
  home.set_port(line.route_.local.port());
  if (backend::quic::is_same_address(home, line.route_.local)) return;
  line.route_.local = home;
  world_.note("move", line.name_);
  if (!line.connection_->move_to(line.route_, now)) forget(line);
}

void QuicHost::act(Line& line, Instant now) {
  if (line.opens_left_ > 0 && line.connection_->state() == State::kUp && now >= line.open_at_) {
    Flow* const flow = line.connection_->open_flow();
    line.open_at_ = now + microseconds(rng_.chance(0.5) ? 0 : rng_.range(0, 20'000));
    if (flow != nullptr) {
      --line.opens_left_;
      use(line, *flow);
    } else {
      line.open_at_ = now + milliseconds(5);
    }
  }
  for (const auto& flow : line.connection_->flows()) {
    if (flow->user == nullptr) continue;
    static_cast<StreamEnd*>(flow->user)
        ->tell(std::exchange(flow->is_readable, false), std::exchange(flow->is_writable, false));
  }
  if (line.trust_at_ != Instant::max()) return;  // Nobody has accepted one yet.
  for (std::size_t i = 0; i < line.streams_.size(); ++i) line.streams_[i]->look(now);
}

void QuicHost::finish(Line& line, Instant now) {
  const bool is_done =
      line.deadline_ != Instant::max() && line.connection_->is_unused() && line.connection_->is_delivered();
  if (is_done) line.close(false, true, now);
  if (line.is_ended_ && line.ids_ > 0) judge_.fail(line.name_ + ": has ended and keeps ids");
}

void QuicHost::check(const Line& line) {
  std::size_t unread = 0;
  for (const auto& flow : line.connection_->flows()) {
    unread += flow->in.size();
    if (flow->out.size() > SendQueue::kUnackedMax + Sending::kTakeAtOnce)
      judge_.fail(line.name_ + ": keeps more than it may");
  }
  if (line.was_up_ && base::to_string(line.connection_->route().remote).starts_with(kStranger)) {
    judge_.fail(line.name_ + ": goes by an address that has not answered");
  }
  const std::size_t first = side_ == Side::kOpener ? kFirstWindowOfOpener : kFirstWindowOfAcceptor;
  const std::size_t most = line.trust_at_ != Instant::max() || !line.was_up_
                               ? first
                               : settings_.options.unread_max + std::max<std::size_t>(settings_.options.window, first);
  if (unread > most) judge_.fail(fmt::format("{}: {} bytes are unread, and {} may be", line.name_, unread, most));
}

// ---- Faults.

void QuicHost::stop(Duration span) {
  stopped_until_ = std::max(stopped_until_, world_.now() + span);
  armed_ = Instant::max();
  for (const auto& line : lines_) {
    for (EndBook& end : judge_.talk(line->number_).ends) end.stopped = std::max(end.stopped, stopped_until_);
  }
  look_by(stopped_until_);
}

void QuicHost::move(const base::SocketAddress& address) {
  moved_at_ = world_.now();
  net_.move(number_, address);
}

void QuicHost::block(Duration span) {
  blocked_until_ = std::max(blocked_until_, world_.now() + span);
  for (const auto& line : lines_) {
    for (EndBook& end : judge_.talk(line->number_).ends) end.stopped = std::max(end.stopped, blocked_until_);
  }
}

void QuicHost::power_off() {
  world_.note("power off", name_);
  is_gone_ = true;
  net_.unplug(number_);
  for (const auto& [connection, key] : expected_) judge_.talk(connection).end(side_).is_gone = true;
  std::vector<std::unique_ptr<Line>> last;
  last.swap(lines_);
  accepting_ = nullptr;
  by_id_.clear();
}

/// Something else than the peer says that it is gone.
void QuicHost::forget(Line& line) {
  if (line.is_bound()) judge_.talk(line.number_).end(line.side_).is_gone = true;
  line.connection_->fail(Status(Code::kDisconnected, "the host says that the peer is gone").with_scope(Scope::kPath));
  wake();
}

void QuicHost::calm() {
  is_calm_ = true;
  stopped_until_ = std::min(stopped_until_, world_.now());
  blocked_until_ = std::min(blocked_until_, world_.now());
  for (const auto& line : lines_) {
    for (const auto& stream : line->streams_) {
      if (!stream->has_left()) stream->calm();
    }
  }
  armed_ = Instant::max();
  wake();
}

}  // namespace hawser::quicsim
