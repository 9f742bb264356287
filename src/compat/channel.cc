#include "compat/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/address.h"
#include "base/bytes.h"
#include "base/shown.h"
#include "base/try.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::size_t kRefusalHead = 3, kReasonMax = 1024;

bool is_passing(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

iovec part_of(std::span<char> bytes) { return {.iov_base = bytes.data(), .iov_len = bytes.size()}; }
iovec part_of(std::string_view bytes) { return {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()}; }

Status closed() { return Status(Code::kDisconnected, "the far end has closed the connection"); }

identity::Speaker other(identity::Speaker speaker) {
  return speaker == identity::Speaker::kOpener ? identity::Speaker::kAcceptor : identity::Speaker::kOpener;
}

}  // namespace

Channel::Channel(base::Fd fd, IdentityDesk& desk, identity::Speaker self)
    : fd_(std::move(fd)), desk_(&desk), self_(self) {
  Result<std::unique_ptr<tls::Session>> session =
      desk.open_session(self == identity::Speaker::kOpener ? tls::End::kOpener : tls::End::kAcceptor);
  if (session) session_ = *std::move(session);
  failed_ = session.status();
}

short Channel::events(bool has_to_say) const {
  if (!is_secured()) return has_to_say ? POLLOUT : POLLIN;
  const bool waits_for_room = is_proven_ && has_to_say;  // Then what comes may wait, too.
  return static_cast<short>((waits_for_room ? 0 : POLLIN) | (has_unsent() || waits_for_room ? POLLOUT : 0));
}

std::string_view Channel::peer_name() const {
  return is_secured() && is_proven_ ? std::string_view(greeting_).substr(1, static_cast<unsigned char>(greeting_[0]))
                                    : std::string_view();
}

Result<std::size_t> Channel::receive(std::span<char> to) {
  if (!is_secured()) return receive_plain(to);
  HAWSER_TRY(move());
  if (!is_proven_) return std::size_t{0};
  const iovec part = part_of(to);
  HAWSER_TRY_ASSIGN(const std::size_t count, session_->read({&part, 1}));
  if (count == 0 && session_->is_done()) return closed();
  return count;
}

/// Whatever can go on of the handshake, the greetings, and the bytes of the socket. A refusal goes out, too.
Status Channel::move() {
  if (session_ == nullptr) return failed_;
  Status status = failed_;
  if (status.ok()) status = pump_in();
  if (status.ok()) status = advance();
  const Status sent = pump_out();  // An alert, too.
  return status.ok() ? sent : status;
}

Result<std::size_t> Channel::receive_plain(std::span<char> to) {
  const ssize_t count = ::recv(fd_.get(), to.data(), to.size(), 0);
  if (count < 0 && is_passing(errno)) return std::size_t{0};
  if (count < 0) return base::errno_status(Code::kDisconnected, "recv", errno);
  if (count == 0) return closed();
  has_heard_ = true;
  return static_cast<std::size_t>(count);
}

Result<std::size_t> Channel::send(std::string_view what) {
  if (!is_secured()) return send_plain(what);
  if (!is_proven_) HAWSER_TRY(move());
  HAWSER_TRY(pump_out());
  if (!is_proven_ || !session_->to_send().empty()) return std::size_t{0};
  const iovec part = part_of(what);
  HAWSER_TRY_ASSIGN(const std::size_t count, session_->write({&part, 1}));
  HAWSER_TRY(pump_out());
  return count;
}

Result<std::size_t> Channel::send_plain(std::string_view what) {
  const ssize_t count = ::send(fd_.get(), what.data(), what.size(), MSG_NOSIGNAL);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (is_passing(errno)) return std::size_t{0};
  return base::errno_status(Code::kDisconnected, "send", errno);
}

Status Channel::pump_in() {
  const std::span<std::byte> room = session_->room();
  if (room.empty()) return {};
  const ssize_t count = ::recv(fd_.get(), room.data(), room.size(), 0);
  if (count > 0) {
    has_heard_ = true;
    session_->came(static_cast<std::size_t>(count));
  } else if (count == 0) {
    session_->ended();
    if (!session_->is_up()) return closed();
  } else if (!is_passing(errno)) {
    return base::errno_status(Code::kDisconnected, "recv", errno);
  }
  return {};
}

Status Channel::pump_out() {
  while (!session_->to_send().empty()) {
    const std::span<const std::byte> bytes = session_->to_send();
    const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && is_passing(errno)) return {};
    if (count < 0) return base::errno_status(Code::kDisconnected, "send", errno);
    session_->sent(static_cast<std::size_t>(count));
  }
  return {};
}

/// The handshake, and then both greetings, the opener's first.
Status Channel::advance() {
  if (is_proven_) return {};
  if (!session_->is_up()) HAWSER_TRY(session_->handshake());
  if (!session_->is_up()) return {};
  if (self_ == identity::Speaker::kOpener && !std::exchange(has_greeted_, true)) HAWSER_TRY(greet());
  return hear_greeting();
}

Status Channel::say(std::string_view words) {
  const iovec part = part_of(words);
  HAWSER_TRY_ASSIGN(const std::size_t taken, session_->write({&part, 1}));
  if (taken == words.size()) return {};
  return Status(Code::kFailed, "a greeting is larger than what one end may have under way");
}

Status Channel::greet() {
  HAWSER_TRY_ASSIGN(const std::string proof, desk_->prove(self_, session_->binding()));
  return say(static_cast<char>(desk_->name().size()) + desk_->name() + proof);
}

void Channel::refuse() {
  const std::string text = failed_.to_string().substr(0, kReasonMax);
  const auto size = static_cast<unsigned>(text.size());
  static_cast<void>(say(std::string{'\0', static_cast<char>(size & 0xff), static_cast<char>(size >> 8)} + text));
}

/// As far as what came tells it.
Result<std::size_t> Channel::greeting_size() const {
  if (greeting_.empty()) return std::size_t{1};
  const auto byte = [this](std::size_t at) { return std::size_t{static_cast<unsigned char>(greeting_[at])}; };
  if (byte(0) == 0) {
    if (self_ == identity::Speaker::kAcceptor) return Status(Code::kCorrupt, "the far end says no name");
    if (greeting_.size() < kRefusalHead) return kRefusalHead;
    const std::size_t size = byte(1) | byte(2) << 8;
    if (size > kReasonMax) return Status(Code::kCorrupt, "the far end refuses with too many words");
    return kRefusalHead + size;
  }
  const std::size_t head = 1 + byte(0) + identity::kProofHead;
  if (greeting_.size() < head) return head;
  const std::span<const std::byte> proof = base::as_bytes(greeting_).subspan(1 + byte(0));
  HAWSER_TRY_ASSIGN(const std::size_t size, identity::proof_size(proof.first<identity::kProofHead>()));
  return 1 + byte(0) + size;
}

Status Channel::hear_greeting() {
  std::array<char, 4096> piece;
  for (;;) {
    HAWSER_TRY_ASSIGN(const std::size_t size, greeting_size());
    if (greeting_.size() == size) break;
    const iovec part = part_of(std::span(piece).first(std::min(piece.size(), size - greeting_.size())));
    HAWSER_TRY_ASSIGN(const std::size_t count, session_->read({&part, 1}));
    if (count == 0) return session_->is_done() ? closed() : Status();
    greeting_.append(piece.data(), count);
  }
  const std::size_t name = static_cast<unsigned char>(greeting_[0]);
  const std::string_view said = greeting_;
  if (name == 0) {
    return failed_ = Status(Code::kDenied, "it refuses: " + base::shown(said.substr(kRefusalHead), kReasonMax));
  }
  failed_ = desk_->check(other(self_), session_->binding(), said.substr(1, name), said.substr(1 + name));
  const bool is_acceptor = self_ == identity::Speaker::kAcceptor;
  if (!failed_.ok() && is_acceptor) refuse();
  HAWSER_TRY(failed_);
  if (is_acceptor) HAWSER_TRY(greet());
  is_proven_ = true;
  return {};
}

}  // namespace compat
HAWSER_NAMESPACE_END
