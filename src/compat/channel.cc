#include "compat/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/address.h"
#include "base/bytes.h"
#include "base/try.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

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
  const bool may_speak = is_proven_ || !denied_.ok();
  const bool waits_for_room = may_speak && has_to_say;  // Then what comes may wait, too.
  return static_cast<short>((waits_for_room ? 0 : POLLIN) | (has_unsent() || waits_for_room ? POLLOUT : 0));
}

Result<std::size_t> Channel::receive(std::span<char> to) {
  if (!is_secured()) return receive_plain(to);
  HAWSER_TRY(failed_);
  HAWSER_TRY(pump_in());
  const Status advanced = advance();
  const Status sent = pump_out();  // An alert, too.
  HAWSER_TRY(advanced);
  HAWSER_TRY(sent);
  if (!is_proven_) return std::size_t{0};
  const iovec part = part_of(to);
  HAWSER_TRY_ASSIGN(const std::size_t count, session_->read({&part, 1}));
  if (count == 0 && session_->is_done()) return closed();
  return count;
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
  HAWSER_TRY(failed_);
  if (!is_proven_ && denied_.ok()) {
    HAWSER_TRY(pump_in());
    HAWSER_TRY(advance());
  }
  HAWSER_TRY(pump_out());
  const bool may_speak = is_proven_ || !denied_.ok();
  if (!may_speak || !session_->to_send().empty()) return std::size_t{0};
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

/// The handshake, and then both greetings.
Status Channel::advance() {
  if (is_proven_ || !denied_.ok()) return denied_;
  if (!session_->is_up()) HAWSER_TRY(session_->handshake());
  if (!session_->is_up()) return {};
  if (!std::exchange(has_greeted_, true)) HAWSER_TRY(greet());
  return hear_greeting();
}

Status Channel::greet() {
  HAWSER_TRY_ASSIGN(const std::string greeting, desk_->greet(self_, session_->binding()));
  const iovec part = part_of(std::string_view(greeting));
  HAWSER_TRY_ASSIGN(const std::size_t taken, session_->write({&part, 1}));
  if (taken == greeting.size()) return {};
  return Status(Code::kFailed, "a greeting is larger than what one end may have under way");
}

/// As far as what came tells it.
Result<std::size_t> Channel::greeting_size() const {
  if (greeting_.empty()) return std::size_t{1};
  const std::size_t name = static_cast<unsigned char>(greeting_[0]), head = 1 + name + identity::kProofHead;
  if (name == 0) return Status(Code::kCorrupt, "the far end says no name");
  if (greeting_.size() < head) return head;
  const std::span<const std::byte> proof = base::as_bytes(greeting_).subspan(1 + name);
  HAWSER_TRY_ASSIGN(const std::size_t size, identity::proof_size(proof.first<identity::kProofHead>()));
  return 1 + name + size;
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
  denied_ = desk_->check(other(self_), session_->binding(), said.substr(1, name), said.substr(1 + name));
  is_proven_ = denied_.ok();
  return denied_;
}

}  // namespace compat
HAWSER_NAMESPACE_END
