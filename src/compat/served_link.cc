#include "compat/served_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::size_t kPiece = 65536;

bool is_passing(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

short ServedLink::events() const { return is_answering_ ? POLLOUT : POLLIN; }

bool ServedLink::move_on(const Answer& answer) { return is_answering_ ? send() : receive(answer); }

bool ServedLink::receive(const Answer& answer) {
  std::array<char, kPiece> piece;
  const ssize_t count = ::recv(fd_.get(), piece.data(), piece.size(), 0);
  if (count < 0) return is_passing(errno);
  if (count == 0) return false;
  received_.append(piece.data(), static_cast<std::size_t>(count));
  // Only a whole head says how long it is; looking for a frame costs nothing until its last byte is there.
  const Result<std::optional<Frame>> frame = decode_frame(received_);
  if (frame && !*frame) return true;
  answer_ =
      encode_frame(frame ? answer(**frame) : Frame{.kind = Frame::Kind::kRefused, .body = frame.status().to_string()});
  std::string().swap(received_);
  is_answering_ = true;
  return true;
}

bool ServedLink::send() {
  const ssize_t count = ::send(fd_.get(), answer_.data() + sent_, answer_.size() - sent_, MSG_NOSIGNAL);
  if (count < 0) return is_passing(errno);
  sent_ += static_cast<std::size_t>(count);
  return sent_ < answer_.size();
}

}  // namespace compat
HAWSER_NAMESPACE_END
