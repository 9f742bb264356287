#include "cli/demo_control.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "base/bytes.h"
#include "base/try.h"

namespace hawser::cli {
namespace {

constexpr std::size_t kMessageSizeMax = 64u << 20;  // bytes; a card with very many regions
constexpr std::size_t kHeadSize = 4;                // the length before each message
constexpr int kControlSliceMs = 1;                  // between two calls of the caller's idle function

bool readable(int fd, int timeout_ms) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, timeout_ms) > 0;
}

/// Not a byte more than there is room for, and no signal where nobody reads.
ssize_t put(int fd, const char* bytes, std::size_t size) {
  const ssize_t sent = ::send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent < 0 && errno == ENOTSOCK ? write(fd, bytes, size) : sent;
}

ssize_t get(int fd, char* bytes, std::size_t size) {
  const ssize_t got = recv(fd, bytes, size, MSG_DONTWAIT);
  return got < 0 && errno == ENOTSOCK ? read(fd, bytes, size) : got;
}

}  // namespace

Control::Control(base::Fd in, base::Fd out) : in_(std::move(in)), out_(std::move(out)) {
  for (const int fd : {in_.get(), out_.get()}) static_cast<void>(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
  signal(SIGPIPE, SIG_IGN);  // A line that is closed is an error of `send`.
}

Status Control::send(const Json& message, Duration timeout) {
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string frame;
  base::ByteWriter(&frame).u32(static_cast<std::uint32_t>(text.size()));
  frame += text;
  const Instant deadline = Clock::steady().now() + timeout;
  for (std::size_t sent = 0; sent < frame.size();) {
    const ssize_t n = put(out(), frame.data() + sent, frame.size() - sent);
    if (n > 0) {
      sent += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN || errno == EINTR) {
      if (Clock::steady().now() > deadline) return Status(Code::kTimedOut, "the other process does not read");
      pollfd entry{out(), POLLOUT, 0};
      poll(&entry, 1, kControlSliceMs);
    } else {
      return base::errno_status(Code::kDisconnected, "telling the other process", errno);
    }
  }
  return Status();
}

Result<bool> Control::fill() {
  std::array<char, 65536> bytes;
  const ssize_t n = get(in_.get(), bytes.data(), bytes.size());
  if (n > 0) {
    buffer_.append(bytes.data(), static_cast<std::size_t>(n));
    return true;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  return Status(Code::kDisconnected, "the other process closed its end");
}

Result<Json> Control::take() {
  if (buffer_.size() < kHeadSize) return Json();
  const std::size_t size = base::load_little_endian<std::uint32_t>(buffer_.data());
  if (size > kMessageSizeMax) {
    return Status(Code::kCorrupt, fmt::format("a control message of {} bytes; at most {}", size, kMessageSizeMax));
  }
  if (buffer_.size() < kHeadSize + size) return Json();
  Json message = Json::parse(buffer_.substr(kHeadSize, size), nullptr, false);
  buffer_.erase(0, kHeadSize + size);
  if (!message.is_object()) return Status(Code::kCorrupt, "a control message that is no JSON object");
  return message;
}

Result<Json> Control::next(Duration timeout, const Idle& idle) {
  const Instant deadline = Clock::steady().now() + timeout;
  while (true) {
    HAWSER_TRY_ASSIGN(Json message, take());
    if (!message.is_null()) {
      if (message.value("kind", "") != "error") return message;
      return status_from(message.value("status", Json()));
    }
    if (idle) HAWSER_TRY(idle());
    if (Clock::steady().now() > deadline) return Status(Code::kTimedOut, "the other process is silent");
    if (readable(in_.get(), kControlSliceMs)) HAWSER_TRY(fill().status());
  }
}

Result<Json> Control::receive(std::string_view kind, Duration timeout, const Idle& idle) {
  HAWSER_TRY_ASSIGN(Json message, next(timeout, idle));
  const std::string got = message.value("kind", "");
  if (got == kind) return message;
  return Status(Code::kCorrupt, fmt::format("expected a message '{}', got '{}'", kind, got));
}

bool Control::pending() const { return !buffer_.empty() || readable(in_.get(), 0); }

Json control_message(std::string_view kind) { return {{"kind", kind}}; }

std::string to_hex(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned char>(c) >> 4];
    text += "0123456789abcdef"[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

Result<std::string> from_hex(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t at = 0; at < text.size(); at += 2) {
    unsigned value = 0;
    const char* end = text.data() + std::min(at + 2, text.size());
    const auto parsed = std::from_chars(text.data() + at, end, value, 16);
    if (parsed.ec != std::errc() || parsed.ptr != end || text.size() % 2 != 0) {
      return Status(Code::kCorrupt, "bytes that are not hexadecimal");
    }
    bytes += static_cast<char>(value);
  }
  return bytes;
}

}  // namespace hawser::cli
