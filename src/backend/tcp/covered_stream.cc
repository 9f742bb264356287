#include "backend/tcp/covered_stream.h"

#include <utility>

#include "base/format.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

/// What a TLS connection begins with (RFC 8446, section 5.1): a record of a handshake. A hello begins with an H.
constexpr std::byte kTlsHandshake{0x16};

std::size_t size_of(std::span<const iovec> parts) {
  std::size_t size = 0;
  for (const iovec& part : parts) size += part.iov_len;
  return size;
}

}  // namespace

// ---- TlsSource

Status TlsSource::prepare() {
  if (credentials_ != nullptr || !failed_.ok()) return failed_;
  if (keys_ == nullptr) return failed_ = Status(Code::kUnsupported, "this agent has no keys for TLS");
  auto made = tls::Credentials::make(*keys_);
  if (!made) return failed_ = made.error();
  credentials_ = *std::move(made);
  return {};
}

bool TlsSource::is_preface(const tls::Preface& preface) const {
  return keys_ != nullptr && tls::is_preface(preface, secret_, keys_->public_key());
}

Result<std::unique_ptr<tls::Session>> TlsSource::open(tls::End end) {
  HAWSER_TRY(prepare());
  return tls::Session::open(credentials_, end);
}

// ---- CoveredStream

CoveredStream::CoveredStream(std::unique_ptr<TcpStream> socket, Opening opening, std::shared_ptr<TlsSource> source)
    : socket_(std::move(socket)),
      session_(std::move(opening.session)),
      source_(std::move(source)),
      is_stranger_(session_ == nullptr),
      phase_(is_stranger_ ? Phase::kUndecided : Phase::kShaking) {
  socket_->set_front(this);
  if (is_stranger_ || opening.known.secret.is_zero()) return;
  preface_ = tls::make_preface(opening.known.secret, opening.known.key);
  preface_bytes_ = preface_.size();
}

CoveredStream::~CoveredStream() {
  source_->share().forget(this);
  close(true);
}

stream::Moved CoveredStream::fail(const Status& why) {
  state_ = stream::StreamState::kClosed;
  status_ = why;
  return {.bytes = 0, .closed = true, .status = why};
}

/// Goes on with what comes before the first plain byte.
void CoveredStream::advance() {
  if (state_ != stream::StreamState::kConnecting || socket_->state() == stream::StreamState::kConnecting) return;
  if (socket_->state() == stream::StreamState::kClosed && phase_ == Phase::kShaking) {
    static_cast<void>(fail(socket_->status()));
    return;
  }
  if (phase_ == Phase::kUndecided) decide();
  if (phase_ == Phase::kShaking) shake();
}

void CoveredStream::decide() {
  if (preface_bytes_ > 0) return take_preface();
  std::byte first{};
  const stream::Moved moved = socket_->peek(&first);
  if (moved.closed) {
    static_cast<void>(fail(moved.status));
  } else if (moved.bytes > 0 && first == tls::kPrefaceFirst) {
    preface_bytes_ = preface_.size();
    take_preface();
  } else if (moved.bytes > 0 && first != kTlsHandshake) {
    phase_ = Phase::kBare;
    state_ = stream::StreamState::kOpen;
  } else if (moved.bytes > 0 && !source_->is_open_to_strangers() && !is_kin()) {
    static_cast<void>(fail(Status(Code::kDenied, "it began TLS without showing that it has this agent's card")));
  } else if (moved.bytes > 0) {
    begin_session();
  }
}

/// Whether the kernel tells that the opener is the same user of this host, which needs no card, or cannot tell.
bool CoveredStream::is_kin() const {
  const base::FarEnd end = socket_->far_end(nullptr);
  return end == base::FarEnd::kSameUser || end == base::FarEnd::kCannotAsk;
}

void CoveredStream::take_preface() {
  while (preface_at_ < preface_bytes_) {
    const iovec part = {preface_.data() + preface_at_, preface_bytes_ - preface_at_};
    const stream::Moved moved = socket_->receive({&part, 1});
    if (moved.closed) static_cast<void>(fail(moved.status));
    if (moved.bytes == 0) return;
    preface_at_ += moved.bytes;
  }
  if (source_->is_open_to_strangers() || source_->is_preface(preface_)) return begin_session();
  static_cast<void>(fail(Status(Code::kDenied, "it does not have this agent's card, or an old one")));
}

void CoveredStream::begin_session() {
  auto session = source_->open(tls::End::kAcceptor);
  if (!session) {
    static_cast<void>(fail(session.error()));
    return;
  }
  session_ = *std::move(session);
  phase_ = Phase::kShaking;
}

/// False: some of it is still to go.
bool CoveredStream::send_preface() {
  while (!is_stranger_ && preface_at_ < preface_bytes_) {
    const iovec part = {preface_.data() + preface_at_, preface_bytes_ - preface_at_};
    const stream::Moved moved = socket_->send({&part, 1});
    if (moved.bytes == 0) return false;
    preface_at_ += moved.bytes;
  }
  return true;
}

void CoveredStream::shake() {
  if (!send_preface()) return;
  for (bool more = true; more && !session_->is_up(); more = more && fill()) {
    const Status status = session_->handshake();
    flush();
    if (!status.ok()) {
      static_cast<void>(fail(why_cut(status)));
      return;
    }
    if (!session_->is_up()) continue;
    phase_ = Phase::kCovered;
    state_ = stream::StreamState::kOpen;
  }
}

/// The socket's reason is nearer to the cause than that the handshake was cut off. An acceptor closes without a word on
/// an opener that does not show that it has the card.
Status CoveredStream::why_cut(const Status& status) const {
  const bool is_cut = status.code() == Code::kDisconnected;
  const Status& why = is_cut && !socket_ended_.ok() ? socket_ended_ : status;
  if (!is_cut || is_stranger_) return why;
  return Status(Code::kDisconnected, base::format("{} ended the connection before TLS was up", socket_->describe()))
      .with_scope(Scope::kPath)
      .with_advice("the card or ticket may be another agent's, or of before it was restarted: get the new one")
      .because(why);
}

/// Takes what came from the socket, as much as there is room for. False: nothing came.
bool CoveredStream::fill() {
  const std::span<std::byte> room = session_->room();
  if (room.empty() || socket_->state() != stream::StreamState::kOpen) return false;
  const iovec part = {room.data(), room.size()};
  const stream::Moved moved = socket_->receive({&part, 1});
  session_->came(moved.bytes);
  if (moved.closed) {
    socket_ended_ = moved.status;
    session_->ended();
  }
  return moved.closed || moved.bytes > 0;
}

void CoveredStream::flush() {
  while (!session_->to_send().empty() && socket_->state() == stream::StreamState::kOpen) {
    const std::span<const std::byte> bytes = session_->to_send();
    const iovec part = {const_cast<std::byte*>(bytes.data()), bytes.size()};
    const stream::Moved moved = socket_->send({&part, 1});
    if (moved.closed) socket_ended_ = moved.status;
    if (moved.bytes == 0) return;
    session_->sent(moved.bytes);
  }
}

stream::Moved CoveredStream::send(std::span<const iovec> parts) {
  if (is_bare()) return socket_->send(parts);
  const std::size_t wanted = size_of(parts);
  std::size_t total = 0;
  flush();
  const Result<std::size_t> taken = session_->write(parts);
  if (!taken) return fail(taken.error());
  total += *taken;
  flush();
  if (!socket_ended_.ok()) return fail(socket_ended_);
  sent_ += total;
  wants_room_ = total < wanted;
  return {.bytes = total, .closed = false, .status = Status()};
}

stream::Moved CoveredStream::receive(std::span<const iovec> parts) {
  if (is_bare()) return socket_->receive(parts);
  // What is read in one turn of this loop is all that the session holds, or all that there is room for.
  do {
    const Result<std::size_t> got = session_->read(parts);
    if (!got) {
      const bool is_cut = got.error().code() == Code::kDisconnected && !socket_ended_.ok();
      return fail(is_cut ? socket_ended_ : got.error());
    }
    if (*got > 0) return {.bytes = *got, .closed = false, .status = Status()};
    if (session_->is_done()) return fail(Status());
  } while (fill());
  return {};
}

void CoveredStream::close(bool abort) {
  if (phase_ == Phase::kCovered && !abort && state_ == stream::StreamState::kOpen) session_->say_done();
  if (session_ != nullptr && !abort) flush();
  socket_->close(abort);
  state_ = stream::StreamState::kClosed;
}

std::string CoveredStream::describe() const {
  if (phase_ != Phase::kCovered) return socket_->describe();
  return base::format("{} {}", socket_->describe(), session_->describe());
}

std::span<const std::byte> CoveredStream::peer_key() const {
  if (phase_ != Phase::kCovered) return {};
  return session_->peer_key();
}

std::span<const std::byte> CoveredStream::binding() const {
  if (phase_ != Phase::kCovered) return {};
  return session_->binding();
}

bool CoveredStream::on_turn(stream::Readiness* news) {
  *news = {.stream = this, .readable = true, .writable = true};
  const Instant began = Clock::steady().now();
  if (is_stranger_ && !source_->share().may_work(began)) {
    source_->share().wait(this);
    return false;
  }
  advance();
  if (is_stranger_ && session_ != nullptr) source_->share().worked(began, Clock::steady().now());
  return state_ != stream::StreamState::kConnecting;
}

bool CoveredStream::on_events(std::uint32_t events, stream::Readiness* news) {
  const bool told = socket_->on_events(events, news);
  news->stream = this;
  if (state_ == stream::StreamState::kConnecting) return on_turn(news);
  if (is_bare()) return told;
  if (news->writable && phase_ == Phase::kCovered) flush();
  const bool has_room = news->writable && wants_room_ && is_flushed();
  if (has_room) wants_room_ = false;
  return news->readable || has_room;
}

}  // namespace hawser::backend
