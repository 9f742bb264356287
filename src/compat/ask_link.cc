#include "compat/ask_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/far_end.h"
#include "base/format.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::size_t kPiece = 65536;
constexpr Duration kLookEvery = std::chrono::milliseconds(2);  ///< While the kernel knows no owner of the other end.

bool is_passing(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

Status lost(std::string_view what, int error) {
  return base::errno_status(Code::kDisconnected, base::format("metadata by address: {}", what), error);
}

}  // namespace

AskLink::AskLink(const base::SocketAddress& address, std::string_view question, Trust trust, Instant now)
    : address_(address),
      question_(question),
      trust_(trust),
      fd_(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  if (!fd_) {
    end(base::errno_status("metadata by address: socket", errno));
  } else if (::connect(fd_.get(), address_.get(), address_.size) == 0) {
    stage_ = Stage::kKnowing;
    move_on(now);
  } else if (errno != EINPROGRESS) {
    end(lost(base::format("connecting to {}", where()), errno));
  }
}

short AskLink::events() const {
  if (stage_ == Stage::kKnowing) return POLLRDHUP;
  return stage_ == Stage::kReceiving ? POLLIN : POLLOUT;
}

void AskLink::move_on(Instant now) {
  if (outcome_) return;
  if (stage_ == Stage::kConnecting && !connected()) return;
  if (stage_ == Stage::kKnowing && !known(now)) return;
  if (stage_ == Stage::kSending && !send()) return;
  while (receive()) continue;
}

bool AskLink::connected() {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) {
    end(lost(base::format("connecting to {}", where()), error));
    return false;
  }
  stage_ = Stage::kKnowing;
  return true;
}

/// Until the listener took the connection, the kernel knows no owner of its other end.
bool AskLink::known(Instant now) {
  next_look_ = Instant::max();
  std::string why;
  const base::FarEnd far_end =
      trust_ == Trust::kEverybody ? base::FarEnd::kSameUser : base::far_end_of(fd_.get(), &why);
  if (far_end == base::FarEnd::kSameUser) {
    stage_ = Stage::kSending;
    return true;
  }
  if (far_end != base::FarEnd::kNobody) {
    end(not_trusted(why));
    return false;
  }
  pollfd one{.fd = fd_.get(), .events = POLLRDHUP, .revents = 0};
  if (::poll(&one, 1, 0) > 0) {
    end(Status(Code::kDisconnected, base::format("metadata by address: {} closed the connection", where())));
    return false;
  }
  next_look_ = now + kLookEvery;
  return false;
}

bool AskLink::send() {
  while (sent_ < question_.size()) {
    const ssize_t count = ::send(fd_.get(), question_.data() + sent_, question_.size() - sent_, MSG_NOSIGNAL);
    if (count < 0) {
      if (!is_passing(errno)) end(lost(base::format("sending to {}", where()), errno));
      return false;
    }
    sent_ += static_cast<std::size_t>(count);
  }
  stage_ = Stage::kReceiving;
  return true;
}

bool AskLink::receive() {
  std::array<char, kPiece> piece;
  const ssize_t count = ::recv(fd_.get(), piece.data(), piece.size(), 0);
  if (count < 0) {
    if (!is_passing(errno)) end(lost(base::format("the answer of {}", where()), errno));
    return false;
  }
  if (count == 0) {
    end(Status(Code::kDisconnected, base::format("metadata by address: {} closed without an answer", where())));
    return false;
  }
  received_.append(piece.data(), static_cast<std::size_t>(count));
  Result<std::optional<Frame>> answer = decode_frame(received_);
  if (!answer) {
    end(answer.error());
  } else if (*answer) {
    end(**std::move(answer));
  }
  return !outcome_;
}

}  // namespace compat
HAWSER_NAMESPACE_END
