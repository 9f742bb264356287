#include "backend/quic/connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/quic/end_reasons.h"
#include "base/format.h"
#include "base/planted.h"
#include "base/try.h"

namespace hawser::backend::quic {

using base::Planted;
using base::planted;

namespace {

constexpr std::size_t kFirstIdBytes = 18;  ///< An opener makes up an id of this size for the acceptor.

std::uint8_t* raw(std::byte* bytes) { return reinterpret_cast<std::uint8_t*>(bytes); }
const std::uint8_t* raw(const std::byte* bytes) { return reinterpret_cast<const std::uint8_t*>(bytes); }

std::string_view text_of(const ngtcp2_cid& id) { return {reinterpret_cast<const char*>(id.data), id.datalen}; }

ngtcp2_cid random_id(RandomSource& random, std::size_t bytes) {
  ngtcp2_cid id = {};
  id.datalen = bytes;
  random.fill({id.data, bytes});
  return id;
}

ngtcp2_addr address_of(base::SocketAddress& address) { return {.addr = address.get(), .addrlen = address.size}; }

ngtcp2_path path_of(Route& route) {
  return {.local = address_of(route.local), .remote = address_of(route.remote), .user_data = nullptr};
}

}  // namespace

// ---- Making one.

Connection::Connection(ConnectionSet& set, PacketSender& sender, const Route& route, const ConnectionOptions& options)
    : set_(set),
      library_(set.library),
      options_(options),
      writer_(set.library),
      sending_(flows_, writer_, sender, set.spare, options),
      window_(options.unread_max),
      route_(route) {}

Connection::~Connection() {
  forget_ids();
  if (connection_ != nullptr) library_.conn_del(connection_);
}

ngtcp2_callbacks Connection::callbacks(const HandshakeEnd& handshake) {
  ngtcp2_callbacks table = {};
  handshake.add_callbacks(table);
  table.rand = [](std::uint8_t* to, std::size_t size, const ngtcp2_rand_ctx* random) {
    static_cast<RandomSource*>(random->native_handle)->fill({to, size});
  };
  table.handshake_completed = handshake_completed;
  table.handshake_confirmed = handshake_confirmed;
  table.stream_open = stream_opened;
  table.recv_stream_data = data_came;
  table.acked_stream_data_offset = data_acked;
  table.stream_close = stream_closed;
  table.stream_reset = stream_reset;
  table.get_new_connection_id = make_id;
  table.remove_connection_id = drop_id;
  table.recv_stateless_reset = forgotten;
  table.path_validation = on_path_validation<path_checked>;
  return table;
}

Result<std::unique_ptr<Connection>> Connection::open(ConnectionSet& set, PacketSender& sender, const Route& route,
                                                     std::span<const std::byte> token, const ConnectionOptions& options,
                                                     Instant now) {
  std::unique_ptr<Connection> connection(new Connection(set, sender, route, options));
  connection->is_opener_ = true;
  HAWSER_TRY(connection->init_opener(token, now));
  return connection;
}

Status Connection::init_opener(std::span<const std::byte> token, Instant now) {
  HAWSER_TRY_ASSIGN(handshake_, set_.handshakes->open_end(tls::End::kOpener));
  ngtcp2_settings its = settings_of(options_, library_, set_.random, now);
  set_token(its, {raw(token.data()), token.size()});
  const ngtcp2_transport_params given = params_of(options_, library_, true);
  const ngtcp2_callbacks table = callbacks(*handshake_);
  // Its socket has no other connection, so it needs no id of its own.
  const ngtcp2_cid acceptor = random_id(set_.random, kFirstIdBytes), own = {};
  const ngtcp2_path path = path_of(route_);
  const int error =
      library_.conn_client_new_versioned(&connection_, &acceptor, &own, &path, NGTCP2_PROTO_VER_V1, kCallbacksVersion,
                                         &table, kSettingsVersion, &its, kParamsVersion, &given, nullptr, this);
  if (error != 0) return Status(Code::kUnsupported, base::format("a QUIC connection: {}", library_.strerror(error)));
  attach();
  open_log(acceptor, now);
  note_due();
  return {};
}

/// What both ends do once ngtcp2 has the connection.
void Connection::attach() {
  handshake_->attach(connection_);
  writer_.attach(connection_);
  if (options_.keep_alive == Duration::zero()) return;
  library_.conn_set_keep_alive_timeout(connection_, static_cast<ngtcp2_duration>(options_.keep_alive.count()));
}

void Connection::open_log(const ngtcp2_cid& id, Instant now) {
  if (options_.qlog.empty()) return;
  auto opened = Qlog::open(options_.qlog, {id.data, id.datalen}, is_opener_, route_, now);
  if (!opened) return;
  qlog_ = *std::move(opened);
  sending_.set_log(qlog_.get());
}

Result<std::unique_ptr<Connection>> Connection::accept(ConnectionSet& set, PacketSender& sender, const Route& route,
                                                       const First& first, const ConnectionOptions& options,
                                                       Instant now) {
  std::unique_ptr<Connection> connection(new Connection(set, sender, route, options));
  HAWSER_TRY(connection->init_acceptor(first, now));
  return connection;
}

Status Connection::init_acceptor(const First& first, Instant now) {
  HAWSER_TRY_ASSIGN(handshake_, set_.handshakes->open_end(tls::End::kAcceptor));
  ngtcp2_settings its = settings_of(options_, library_, set_.random, now);
  if (first.asked_id) set_token(its, token_of(first.head));  // It has proven that the address is the opener's.
  ngtcp2_transport_params given = params_of(options_, library_, false);
  set_original_id(given, first.asked_id.value_or(first.head.dcid));
  given.retry_scid_present = first.asked_id.has_value() ? 1 : 0;
  if (first.asked_id) given.retry_scid = first.head.dcid;
  const ngtcp2_callbacks table = callbacks(*handshake_);
  const ngtcp2_cid own = set_.ids.make();
  given.stateless_reset_token_present = 1;
  std::ranges::copy(set_.ids.token({own.data, own.datalen}), given.stateless_reset_token);
  const ngtcp2_path path = path_of(route_);
  const int error = library_.conn_server_new_versioned(&connection_, &first.head.scid, &own, &path, first.head.version,
                                                       kCallbacksVersion, &table, kSettingsVersion, &its,
                                                       kParamsVersion, &given, nullptr, this);
  if (error != 0) return Status(Code::kUnsupported, base::format("a QUIC connection: {}", library_.strerror(error)));
  attach();
  open_log(given.original_dcid, now);
  add_id(own);
  add_id(first.head.dcid);
  note_due();
  return {};
}

// ---- What comes.

void Connection::take(const Route& route, std::span<const std::byte> datagram, Instant now) {
  if (state_ == State::kEnded) return;
  // An opener that has proven nothing has no reason to move, and no right to have others' addresses written to.
  if (!is_opener_ && !window_.is_trusted() && !is_same_route(route, route_)) return;
  Route from = route;
  const ngtcp2_path path = path_of(from);
  const ngtcp2_pkt_info info = {};
  if (qlog_ != nullptr) qlog_->at(now), qlog_->came(datagram.size());
  const int error = library_.conn_read_pkt_versioned(connection_, &path, kPacketVersion, &info, raw(datagram.data()),
                                                     datagram.size(), stamp(now));
  is_dirty = true;
  if (error != 0 && !is_still_to_count(error, now)) return fail_by(error, now);
  answer_.note_heard();
  note_missed(now);
}

/// ngtcp2 0.12 may tell a peer of a wider window of a stream, and count it with a later packet only: where the frame
/// did not fit into the one that it was made for. What a peer sends meanwhile it takes for a violation. Here that
/// packet counts as lost, and the peer sends it again.
bool Connection::is_still_to_count(int error, Instant now) const {
  if (!counts_windows_late(error) || planted(Planted::kLateCounted)) return false;
  return is_widening_ || now - widened_at_ <= patience_of_stall();
}

/// Before the handshake is confirmed an opener's bytes may wait for that.
void Connection::note_sent(Instant now) {
  if (state_ == State::kUp && is_confirmed_) sending_.watch(now, probe_timeout());
}

/// The peer is heard, and acknowledges nothing of a stream: smaller datagrams are tried. Where that did not help for
/// the idle timeout the connection is of no use.
void Connection::note_missed(Instant now) {
  if (state_ != State::kUp) return;
  const std::optional<Duration> waited = sending_.note_heard(now, probe_timeout());
  if (!waited || *waited < options_.idle_timeout || planted(Planted::kStallKept)) return;
  say_close(library_.close_by_code(kCodeStill), now);
  end(disconnected("it stands still: the peer is heard, and acknowledges nothing any more"));
}

bool Connection::move_to(const Route& route, Instant now) {
  if (state_ != State::kUp) return false;
  Route to = route;
  const ngtcp2_path path = path_of(to);
  if (library_.conn_initiate_immediate_migration(connection_, &path, stamp(now)) != 0) return false;
  route_ = route;
  sending_.note_moved();
  answer_.note_heard();
  settle(now);
  return true;
}

/// ngtcp2 sends to an opener's new address at once, three times what came from there at most. For all others here the
/// opener is where it was until the new address has answered.
int Connection::path_checked(const ngtcp2_path* path, ngtcp2_path_validation_result result, void* self) {
  auto& connection = *static_cast<Connection*>(self);
  const bool is_proven = result == NGTCP2_PATH_VALIDATION_RESULT_SUCCESS || planted(Planted::kMovesUnproven);
  if (connection.is_opener_ || !is_proven) return 0;
  connection.route_ = {.local = address_from(path->local), .remote = address_from(path->remote)};
  connection.sending_.note_moved();
  return 0;
}

void Connection::note_asked(Instant now) {
  if (!is_opener_ || state_ != State::kUp || answer_.is_asking()) return;
  if (library_.figures(connection_).bytes_in_flight > 0) answer_.note_asked(now);
}

void Connection::note_unanswered(Instant now) {
  if (state_ != State::kUp || planted(Planted::kUnansweredKept)) return;
  answer_.look(now, probe_timeout(), options_.idle_timeout);
}

/// Ends a connection on which ngtcp2 sends nothing any more, so that its user gets another one sooner than by
/// heartbeats. An opener has no timer either before it knows that the handshake is confirmed (RFC 9002, section 6.2.1):
/// that is no stall. An end whose streams have nothing to send stands still, too: its peer waits for a wider window.
void Connection::note_stall(Instant now) {
  const bool is_held = state_ == State::kUp && is_confirmed_ && library_.conn_get_cwnd_left(connection_) == 0 &&
                       !planted(Planted::kStallKept);
  const bool is_still = is_held && stands_still(library_.figures(connection_));
  if (!stall_.note(is_still, now, patience_of_stall())) return;
  say_close(library_.close_by_code(kCodeStill), now);
  end(disconnected("ngtcp2 stands still: it sends nothing again, and gives nothing up"));
}

Duration Connection::probe_timeout() const {
  return Duration(static_cast<std::int64_t>(library_.conn_get_pto(connection_)));
}

Duration Connection::patience_of_stall() const { return StallWatch::patience(probe_timeout()); }

void Connection::on_due(Instant now) {
  if (state_ == State::kEnded) return;
  const int error = library_.conn_handle_expiry(connection_, stamp(now));
  note_unanswered(now);
  if (error != 0) {
    fail_by(error, now);
  } else {
    settle(now);
  }
}

void Connection::on_writable(Instant now) {
  if (sending_.flush()) settle(now);
}

int Connection::handshake_confirmed(ngtcp2_conn*, void* self) {
  static_cast<Connection*>(self)->is_confirmed_ = true;
  return 0;
}

int Connection::handshake_completed(ngtcp2_conn*, void* self) {
  auto& connection = *static_cast<Connection*>(self);
  const Status known = connection.handshake_->learn();
  if (!known.ok()) {
    connection.why_ = known;
    return NGTCP2_ERR_CALLBACK_FAILURE;
  }
  connection.state_ = State::kUp;
  if (connection.qlog_ != nullptr) connection.qlog_->handshake_done();
  if (!connection.is_opener_) connection.is_confirmed_ = true;
  if (connection.is_opener_) connection.trust();  // It has chosen its peer, and opens all streams itself.
  connection.set_.user.on_state(connection);
  return 0;
}

Flow& Connection::add_flow(std::int64_t id) {
  flows_.push_back(std::make_unique<Flow>(set_.chunks, first_window(is_opener_)));
  flows_.back()->id = id;
  return *flows_.back();
}

int Connection::stream_opened(ngtcp2_conn*, std::int64_t id, void* self) {
  auto& connection = *static_cast<Connection*>(self);
  Flow& flow = connection.add_flow(id);
  connection.set_.user.on_opened(connection, flow);
  return 0;
}

int Connection::data_came(ngtcp2_conn* conn, std::uint32_t flags, std::int64_t id, std::uint64_t,
                          const std::uint8_t* data, std::size_t size, void* self, void*) {
  auto& connection = *static_cast<Connection*>(self);
  const auto found = std::ranges::find_if(connection.flows_, [id](const auto& flow) { return flow->id == id; });
  if (found == connection.flows_.end() || (*found)->is_left) {
    if (planted(Planted::kPastUnread)) return 0;
    connection.library_.conn_extend_max_offset(conn, size);  // It is read past, so that the peer comes to its end.
    connection.widen(id, size);
    return 0;
  }
  Flow& flow = **found;
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const bool is_next = flow.in.empty() || planted(Planted::kPushOvertakes);
  const std::size_t placed = is_next ? connection.set_.user.on_bytes(connection, flow, bytes) : 0;
  flow.in.append(bytes.subspan(placed));
  flow.placed += placed;
  connection.note_came(size);
  if (placed > 0 && !planted(Planted::kPushUnpaid)) connection.note_read(flow, placed);
  if ((flags & NGTCP2_STREAM_DATA_FLAG_FIN) != 0) flow.has_ended = true;
  flow.is_readable = true;
  return 0;
}

int Connection::data_acked(ngtcp2_conn*, std::int64_t id, std::uint64_t, std::uint64_t size, void* self, void*) {
  static_cast<Connection*>(self)->sending_.note_acknowledged(id, size);
  return 0;
}

int Connection::stream_reset(ngtcp2_conn*, std::int64_t id, std::uint64_t, std::uint64_t, void* self, void*) {
  auto& connection = *static_cast<Connection*>(self);
  for (const auto& flow : connection.flows_) {
    if (flow->id != id) continue;
    flow->reset = disconnected("the peer has reset the stream");
    flow->is_readable = flow->is_writable = !planted(Planted::kResetUntold);
  }
  return 0;
}

int Connection::stream_closed(ngtcp2_conn*, std::uint32_t, std::int64_t id, std::uint64_t, void* self, void*) {
  auto& connection = *static_cast<Connection*>(self);
  for (const auto& flow : connection.flows_) {
    if (flow->id == id) flow->is_over = true;
  }
  return 0;
}

void Connection::drop_over() {
  std::erase_if(flows_,
                [this](const auto& flow) { return flow->is_left && (flow->is_over || state_ == State::kEnded); });
}

// ---- Ids.

void Connection::add_id(const ngtcp2_cid& id) {
  ids_.emplace_back(text_of(id));
  set_.user.on_id(*this, ids_.back(), true);
}

void Connection::forget_ids() {
  for (const std::string& id : ids_) set_.user.on_id(*this, id, false);
  ids_.clear();
}

int Connection::make_id(ngtcp2_conn*, ngtcp2_cid* id, std::uint8_t* token, std::size_t size, void* self) {
  auto& connection = *static_cast<Connection*>(self);
  *id = size == kIdBytes ? connection.set_.ids.make() : random_id(connection.set_.random, size);
  std::ranges::copy(connection.set_.ids.token({id->data, id->datalen}), token);
  connection.add_id(*id);
  return 0;
}

int Connection::forgotten(ngtcp2_conn*, const ngtcp2_pkt_stateless_reset*, void* self) {
  static_cast<Connection*>(self)->is_forgotten_ = true;
  return 0;
}

int Connection::drop_id(ngtcp2_conn*, const ngtcp2_cid* id, void* self) {
  auto& connection = *static_cast<Connection*>(self);
  const auto found = std::ranges::find(connection.ids_, text_of(*id));
  if (found == connection.ids_.end()) return 0;
  connection.set_.user.on_id(connection, *found, false);
  connection.ids_.erase(found);
  return 0;
}

// ---- What goes.

void Connection::settle(Instant now) {
  is_dirty = false;
  if (state_ == State::kEnded) return;
  if (std::exchange(is_widening_, false)) widened_at_ = now;
  if (const int error = sending_.settle(now); error != 0) return fail_by(error, now);
  note_asked(now);
  note_sent(now);
  note_stall(now);
  if (qlog_ != nullptr && state_ != State::kEnded) qlog_->at(now), qlog_->settle(metrics());
  if (state_ == State::kUp) sending_.tell_room();
  drop_over();
  note_due();
}

void Connection::note_due() {
  if (planted(Planted::kDueForgotten) && state_ == State::kUp && due_ != Instant::max()) return;
  const ngtcp2_tstamp at = state_ == State::kEnded ? UINT64_MAX : library_.conn_get_expiry(connection_);
  due_ = at >= static_cast<ngtcp2_tstamp>(INT64_MAX) ? Instant::max() : Instant::from_ns(static_cast<std::int64_t>(at));
  if (state_ == State::kUp) due_ = std::min(due_, stall_.due(patience_of_stall()));
}

// ---- Streams.

Flow* Connection::open_flow() {
  if (state_ != State::kUp || library_.conn_get_streams_bidi_left(connection_) == 0) return nullptr;
  std::int64_t id = -1;
  if (library_.conn_open_bidi_stream(connection_, &id, nullptr) != 0) return nullptr;
  return &add_flow(id);
}

std::size_t Connection::write(Flow& flow, std::span<const iovec> parts, Instant now) {
  if (state_ != State::kUp) return 0;
  const Sending::Taken taken = sending_.write(flow, parts, now);
  is_dirty = is_dirty || !taken.is_held;  // What it waits for, and when it has to send again, has changed.
  if (qlog_ != nullptr && taken.bytes > 0) qlog_->at(now), qlog_->moved(flow.id, taken.bytes, true);
  if (taken.error != 0) fail_by(taken.error, now);
  return taken.bytes;
}

std::uint64_t Connection::released(const Flow& flow) const {
  const bool is_over = state_ == State::kEnded || flow.is_over;  // ngtcp2 sends nothing of it any more.
  return is_over ? flow.out.given() : flow.out.released();
}

std::size_t Connection::read(Flow& flow, std::span<const iovec> parts) {
  const std::size_t bytes = flow.in.take(parts);
  if (bytes > 0 && state_ != State::kEnded) note_read(flow, bytes);
  return bytes;
}

void Connection::note_read(Flow& flow, std::size_t bytes) {
  give_credit(flow, bytes);
  note_taken(bytes);
  if (qlog_ != nullptr) qlog_->moved(flow.id, bytes, false);
  is_dirty = true;
}

void Connection::give_credit(Flow& flow, std::size_t bytes) {
  flow.window.read(bytes);
  if (flow.is_over || !flow.window.is_worth_a_frame() || planted(Planted::kStreamCreditKept)) return;
  widen(flow.id, flow.window.widen(options_.stream_window));
}

void Connection::widen(std::int64_t id, std::uint64_t bytes) {
  static_cast<void>(library_.conn_extend_max_stream_offset(connection_, id, bytes));
  is_widening_ = true;
}

void Connection::trust() {
  if (window_.is_trusted() || state_ == State::kEnded) return;
  library_.conn_extend_max_offset(connection_, window_.trust());
  is_dirty = true;
}

void Connection::note_came(std::size_t bytes) {
  const std::size_t paid = window_.came(bytes, !planted(Planted::kUnreadUnbounded));
  if (paid > 0) library_.conn_extend_max_offset(connection_, paid);
}

void Connection::note_taken(std::size_t bytes) {
  const std::size_t paid = window_.taken(bytes);
  if (paid > 0 && !planted(Planted::kCreditKept)) library_.conn_extend_max_offset(connection_, paid);
}

void Connection::leave(Flow& flow, bool abort, Instant now) {
  has_left_ = true;
  flow.is_left = true;
  flow.user = nullptr;
  // Nothing else makes sure that ngtcp2 sends nothing of it again, for a reset leaves lost datagrams as they are.
  if (state_ == State::kUp && released(flow) < flow.out.given()) close(now, abort);
  if (state_ != State::kUp) return drop_over();
  const std::size_t unread = flow.in.size();
  flow.in.clear();
  // A window that was full of it opens again: the peer may have more to say before its end.
  flow.window.read(unread);
  if (!flow.is_over && !planted(Planted::kLeftUnread)) widen(flow.id, flow.window.settle());
  note_taken(unread);
  if (abort) {
    static_cast<void>(library_.shutdown_stream(connection_, flow.id, kCodeAborted));
    flow.out.abort();
  } else {
    flow.out.finish();  // What still comes is read past.
  }
  settle(now);
}

bool Connection::is_unused() const {
  return std::ranges::all_of(flows_, [](const auto& flow) { return flow->is_left; });
}

bool Connection::is_delivered() const { return state_ == State::kEnded || sending_.is_delivered(); }

// ---- The end.

void Connection::end(const Status& why) {
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  why_ = why;
  if (qlog_ != nullptr) qlog_->closed(why.ok() ? "both ends wanted it" : why.to_string());
  sending_.set_log(nullptr);
  qlog_.reset();
  due_ = Instant::max();
  for (const auto& flow : flows_) {
    if (flow->reset.ok() && !flow->has_ended) flow->reset = why.ok() ? disconnected("the peer has closed") : why;
    flow->is_readable = flow->is_writable = true;
  }
  if (!planted(Planted::kIdsKept)) forget_ids();
  drop_over();
  set_.user.on_state(*this);
}

void Connection::fail(const Status& why) { end(why); }

void Connection::say_close(const CloseError& error, Instant now) {
  if (qlog_ != nullptr) qlog_->at(now);
  sending_.send_last(route_, NGTCP2_MAX_UDP_PAYLOAD_SIZE, [&](std::span<std::byte> room) {
    ngtcp2_pkt_info info = {};
    const ngtcp2_ssize size = library_.conn_write_connection_close_versioned(
        connection_, nullptr, kPacketVersion, &info, raw(room.data()), room.size(), &error, stamp(now));
    return static_cast<std::size_t>(std::max<ngtcp2_ssize>(size, 0));
  });
}

void Connection::close(Instant now, bool abort) {
  if (state_ == State::kEnded) return;
  say_close(library_.close_by_code(abort ? kCodeAborted : kCodeOrderly), now);
  end(Status());
}

Status Connection::why_closed() const {
  if (is_forgotten_) return disconnected("the peer does not know this QUIC connection any more");
  return reason_of(library_.close_of(connection_), *set_.handshakes);
}

void Connection::fail_by(int error, Instant now) {
  if (state_ == State::kEnded) return;
  if (error == NGTCP2_ERR_DRAINING) return end(why_closed());
  if (const std::optional<Status> quiet = quiet_reason_of(error)) return end(*quiet);
  Status why = why_;
  if (error == NGTCP2_ERR_NO_VIABLE_PATH) why = disconnected("the peer does not answer at its new address");
  if (error == NGTCP2_ERR_CRYPTO) {
    const std::uint8_t alert = library_.conn_get_tls_alert(connection_);
    say_close(library_.close_by_alert(alert), now);
    why = reason_of_alert(alert, *set_.handshakes);
  } else {
    say_close(library_.close_by_error(error), now);
    if (why.ok()) why = Status(Code::kCorrupt, base::format("QUIC: {}", library_.strerror(error)));
  }
  end(why.with_scope(Scope::kPath));
}

// ---- For people.

std::string Connection::describe() const {
  return base::format("{} - {}{}", base::to_string(route_.local), base::to_string(route_.remote),
                      state_ == State::kUp ? " (" + handshake_->describe() + ")" : "");
}

Qlog::Metrics Connection::metrics() const {
  const ConnectionFigures stat = library_.figures(connection_);
  const auto time_of = [](ngtcp2_duration ns) { return ns > INT64_MAX ? Duration::zero() : Duration(ns); };
  return {.smoothed = time_of(stat.smoothed_rtt),
          .latest = time_of(stat.latest_rtt),
          .least = time_of(stat.min_rtt),
          .window = stat.cwnd,
          .under_way = stat.bytes_in_flight};
}

std::string Connection::condition() const {
  if (state_ != State::kUp) return {};
  const ConnectionFigures stat = library_.figures(connection_);
  return base::format("round trip {} us, {} bytes under way, {} allowed, {} more wait, datagrams of {} bytes{}",
                      stat.smoothed_rtt / 1000, stat.bytes_in_flight, stat.cwnd, sending_.unsent(),
                      library_.conn_get_path_max_tx_udp_payload_size(connection_),
                      is_confirmed_ ? "" : ", the handshake is not confirmed");
}

}  // namespace hawser::backend::quic
