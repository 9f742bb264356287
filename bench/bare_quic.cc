#include "bare_quic.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "backend/fd_ledger.h"
#include "backend/quic/random_source.h"
#include "base/address.h"
#include "tls/key_pair.h"

namespace hawser {
namespace {

using namespace backend::quic;

constexpr std::size_t kIdSize = 18;
constexpr int kReadsPerTurn = 8;
/// As the backend's on loopback: what is under way lies in the receiver's buffer.
constexpr std::uint64_t kShareOfBuffer = 3;

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "bare QUIC: %s\n", what.c_str());
  std::abort();
}

Instant now() { return Clock::steady().now(); }
const std::uint8_t* raw(const std::byte* bytes) { return reinterpret_cast<const std::uint8_t*>(bytes); }

ngtcp2_path path_of(Route& route) {
  return {.local = {.addr = route.local.get(), .addrlen = route.local.size},
          .remote = {.addr = route.remote.get(), .addrlen = route.remote.size},
          .user_data = nullptr};
}

ngtcp2_cid some_id() {
  ngtcp2_cid id = {};
  id.datalen = kIdSize;
  secure_random().fill({id.data, id.datalen});
  return id;
}

}  // namespace

BareQuic::BareQuic(std::size_t datagram, bool is_opener)
    : datagram_(datagram),
      is_opener_(is_opener),
      credentials_(TlsCredentials::make(tls::KeyPair::make()).value()),
      library_(credentials_->library()),
      handshake_(credentials_->open_end(is_opener ? tls::End::kOpener : tls::End::kAcceptor).value()),
      in_(std::make_unique_for_overwrite<std::byte[]>(kReceiveBytesMax)),
      out_(std::make_unique_for_overwrite<std::byte[]>(kSendBytesMax)) {}

BareQuic::BareQuic(std::size_t datagram) : BareQuic(datagram, false) {
  base::SocketAddress address = base::numeric_address({"127.0.0.1", 0}).value();
  socket_ = UdpSocket::listen(address, {}, std::make_shared<backend::FdLedger>()).value();
}

BareQuic::BareQuic(std::size_t datagram, std::uint16_t port) : BareQuic(datagram, true) {
  const base::SocketAddress address = base::numeric_address({"127.0.0.1", port}).value();
  socket_ = UdpSocket::connect(address, {}, std::make_shared<backend::FdLedger>()).value();
  route_ = socket_->route();
  const ngtcp2_callbacks table = callbacks();
  const ngtcp2_settings its = settings();
  const ngtcp2_transport_params given = params();
  const ngtcp2_cid acceptor = some_id(), own = some_id();
  const ngtcp2_path path = path_of(route_);
  if (library_.conn_client_new_versioned(&connection_, &acceptor, &own, &path, NGTCP2_PROTO_VER_V1, kCallbacksVersion,
                                         &table, kSettingsVersion, &its, kParamsVersion, &given, nullptr, this) != 0) {
    give_up("no connection");
  }
  handshake_->attach(connection_);
}

BareQuic::~BareQuic() {
  if (connection_ != nullptr) library_.conn_del(connection_);
}

std::uint16_t BareQuic::port() const { return socket_->route().local.port(); }

ngtcp2_callbacks BareQuic::callbacks() const {
  ngtcp2_callbacks table = {};
  handshake_->add_callbacks(table);
  table.rand = [](std::uint8_t* to, std::size_t size, const ngtcp2_rand_ctx*) { secure_random().fill({to, size}); };
  table.get_new_connection_id = [](ngtcp2_conn*, ngtcp2_cid* id, std::uint8_t* token, std::size_t size, void*) {
    id->datalen = size;
    secure_random().fill({id->data, size});
    secure_random().fill({token, NGTCP2_STATELESS_RESET_TOKENLEN});
    return 0;
  };
  table.handshake_completed = [](ngtcp2_conn*, void* self) {
    static_cast<BareQuic*>(self)->is_up_ = true;
    return 0;
  };
  table.stream_open = [](ngtcp2_conn*, std::int64_t id, void* self) {
    static_cast<BareQuic*>(self)->outs_.push_back({.id = id, .parts = {}});
    return 0;
  };
  table.recv_stream_data = [](ngtcp2_conn* connection, std::uint32_t, std::int64_t id, std::uint64_t,
                              const std::uint8_t*, std::size_t size, void* self, void*) {
    auto& bare = *static_cast<BareQuic*>(self);
    bare.came_ += size;
    bare.library_.conn_extend_max_stream_offset(connection, id, size);
    bare.library_.conn_extend_max_offset(connection, size);
    return 0;
  };
  return table;
}

ngtcp2_settings BareQuic::settings() const {
  ngtcp2_settings settings = {};
  library_.settings_default_versioned(kSettingsVersion, &settings);
  settings.initial_ts = stamp(now());
  settings.cc_algo = NGTCP2_CC_ALGO_RENO;
  settings.max_tx_udp_payload_size = datagram_;
  settings.no_tx_udp_payload_size_shaping = 1;
  settings.no_pmtud = 1;
  return settings;
}

ngtcp2_transport_params BareQuic::params() const {
  ngtcp2_transport_params params = {};
  library_.transport_params_default_versioned(kParamsVersion, &params);
  const std::uint64_t window = std::max<std::uint64_t>(socket_->receive_buffer() / kShareOfBuffer, 128 * 1024);
  params.initial_max_stream_data_bidi_local = window;
  params.initial_max_stream_data_bidi_remote = window;
  params.initial_max_data = window;
  params.initial_max_streams_bidi = 64;
  params.max_udp_payload_size = 65'527;
  params.active_connection_id_limit = 2;
  params.max_idle_timeout = 10 * NGTCP2_SECONDS;  // Whose other end is gone gives up.
  return params;
}

void BareQuic::accept(const Route& route, std::span<const std::byte> datagram) {
  ngtcp2_pkt_hd head = {};
  if (library_.accept(&head, raw(datagram.data()), datagram.size()) != 0) return;
  route_ = route;
  const ngtcp2_callbacks table = callbacks();
  const ngtcp2_settings its = settings();
  ngtcp2_transport_params given = params();
  set_original_id(given, head.dcid);
  const ngtcp2_cid own = some_id();
  const ngtcp2_path path = path_of(route_);
  if (library_.conn_server_new_versioned(&connection_, &head.scid, &own, &path, head.version, kCallbacksVersion, &table,
                                         kSettingsVersion, &its, kParamsVersion, &given, nullptr, this) != 0) {
    give_up("not accepted");
  }
  handshake_->attach(connection_);
}

void BareQuic::take(const Route& route, std::span<const std::byte> datagram) {
  if (connection_ == nullptr) accept(route, datagram);
  if (connection_ == nullptr) return;
  Route from = route;
  const ngtcp2_path path = path_of(from);
  const ngtcp2_pkt_info info = {};
  const int error = library_.conn_read_pkt_versioned(connection_, &path, kPacketVersion, &info, raw(datagram.data()),
                                                     datagram.size(), stamp(now()));
  if (error != 0 && library_.err_is_fatal(error) != 0) give_up(library_.strerror(error));
}

void BareQuic::receive() {
  for (int i = 0; i < kReadsPerTurn; ++i) {
    const auto received = socket_->receive({in_.get(), kReceiveBytesMax});
    if (!received) give_up(received.error().to_string());
    if (received->is_all) return;
    const Route& route = is_opener_ ? route_ : received->route;
    for (std::span<const std::byte> rest = received->bytes; !rest.empty();) {
      const std::size_t size = std::min(std::max<std::size_t>(received->segment, 1), rest.size());
      take(route, rest.first(size));
      rest = rest.subspan(size);
    }
  }
}

void BareQuic::flush() {
  if (used_ == 0) return;
  while (!socket_->send(route_, {out_.get(), used_}, segment_)) continue;
  used_ = 0;
}

/// Null: what there is to say beside streams.
void BareQuic::write(Out* out) {
  while (out == nullptr || !out->parts.empty()) {
    if (kSendBytesMax - used_ < datagram_) flush();
    const std::span<const std::byte> next = out != nullptr ? out->parts.front() : std::span<const std::byte>();
    const ngtcp2_vec part = {.base = const_cast<std::uint8_t*>(raw(next.data())), .len = next.size()};
    ngtcp2_path_storage where = {};
    where.path.local.addr = reinterpret_cast<ngtcp2_sockaddr*>(&where.local_addrbuf);
    where.path.remote.addr = reinterpret_cast<ngtcp2_sockaddr*>(&where.remote_addrbuf);
    ngtcp2_pkt_info info = {};
    ngtcp2_ssize taken = -1;
    const ngtcp2_ssize size = library_.conn_writev_stream_versioned(
        connection_, &where.path, kPacketVersion, &info, reinterpret_cast<std::uint8_t*>(out_.get() + used_), datagram_,
        &taken, NGTCP2_WRITE_STREAM_FLAG_NONE, out != nullptr ? out->id : -1, next.empty() ? nullptr : &part,
        next.empty() ? 0 : 1, stamp(now()));
    if (taken > 0) out->parts.front() = next.subspan(static_cast<std::size_t>(taken));
    if (taken > 0 && out->parts.front().empty()) out->parts.erase(out->parts.begin());
    if (size <= 0) return;
    const auto bytes = static_cast<std::size_t>(size);
    if (used_ == 0) segment_ = bytes;
    if (bytes > segment_) {  // It goes alone: the kernel wants all but the last of one size.
      const std::size_t at = used_;
      flush();
      std::memmove(out_.get(), out_.get() + at, bytes);
      segment_ = bytes;
    }
    used_ += bytes;
    if (bytes < segment_) flush();
  }
}

void BareQuic::open_streams(std::size_t count) {
  while (outs_.size() < count) {
    std::int64_t id = -1;
    if (library_.conn_open_bidi_stream(connection_, &id, nullptr) != 0) give_up("no stream");
    outs_.push_back({.id = id, .parts = {}});
  }
}

void BareQuic::send(std::size_t number, std::span<const std::byte> bytes) { outs_[number].parts.push_back(bytes); }

void BareQuic::turn() {
  receive();
  if (connection_ == nullptr) return;
  if (library_.conn_get_expiry(connection_) <= stamp(now())) {
    if (library_.conn_handle_expiry(connection_, stamp(now())) != 0) give_up("it timed out");
  }
  for (Out& out : outs_) write(&out);
  write(nullptr);
  flush();
}

}  // namespace hawser
