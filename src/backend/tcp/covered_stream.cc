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

Result<std::unique_ptr<tls::Session>> TlsSource::open(tls::End end) {
  HAWSER_TRY(prepare());
  return tls::Session::open(credentials_, end);
}

// ---- CoveredStream

CoveredStream::CoveredStream(std::unique_ptr<TcpStream> socket, std::unique_ptr<tls::Session> session,
                             std::shared_ptr<TlsSource> source)
    : socket_(std::move(socket)),
      session_(std::move(session)),
      source_(std::move(source)),
      is_stranger_(session_ == nullptr),
      phase_(session_ == nullptr ? Phase::kUndecided : Phase::kShaking) {
  socket_->set_front(this);
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
  std::byte first{};
  const stream::Moved moved = socket_->peek(&first);
  if (moved.closed) {
    static_cast<void>(fail(moved.status));
  } else if (moved.bytes > 0 && first != kTlsHandshake) {
    phase_ = Phase::kBare;
    state_ = stream::StreamState::kOpen;
  } else if (moved.bytes > 0) {
    auto session = source_->open(tls::End::kAcceptor);
    if (session) {
      session_ = *std::move(session);
      phase_ = Phase::kShaking;
    } else {
      static_cast<void>(fail(session.error()));
    }
  }
}

void CoveredStream::shake() {
  for (bool more = true; more && !session_->is_up(); more = more && fill()) {
    const Status status = session_->handshake();
    flush();
    if (!status.ok()) {  // What the socket says is nearer to the cause than that the handshake was cut off.
      static_cast<void>(fail(status.code() == Code::kDisconnected && !socket_ended_.ok() ? socket_ended_ : status));
      return;
    }
    if (!session_->is_up()) continue;
    phase_ = Phase::kCovered;
    state_ = stream::StreamState::kOpen;
  }
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
