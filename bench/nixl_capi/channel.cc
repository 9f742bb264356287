#include "channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "library.h"

namespace nixl_bench {
namespace {

void await(int fd, short events, const Deadline& deadline) {
  pollfd one{.fd = fd, .events = events, .revents = 0};
  const int found = ::poll(&one, 1, deadline.left_ms());
  if (found == 0) throw Failure("no answer in time");
  if (found < 0 && errno != EINTR) throw Failure(std::string("poll: ") + std::strerror(errno));
}

}  // namespace

int Deadline::left_ms() const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Time::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000));
}

bool Channel::ready() const {
  pollfd one{.fd = fd(), .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 0) > 0;
}

void Channel::send(const Json& message, Deadline deadline) {
  const std::vector<std::uint8_t> body = Json::to_msgpack(message);
  const std::uint64_t size = body.size();
  std::vector<std::uint8_t> bytes(sizeof(size));
  std::memcpy(bytes.data(), &size, sizeof(size));
  bytes.insert(bytes.end(), body.begin(), body.end());
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t now = ::send(fd(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now > 0) {
      sent += static_cast<std::size_t>(now);
    } else if (errno == EAGAIN || errno == EINTR) {
      await(fd(), POLLOUT, deadline);
    } else {
      throw Failure("it is gone");
    }
  }
}

void Channel::read_all(void* into, std::size_t size, const Deadline& deadline) {
  auto* const bytes = static_cast<char*>(into);
  std::size_t got = 0;
  while (got < size) {
    const ssize_t now = ::recv(fd(), bytes + got, size - got, MSG_DONTWAIT);
    if (now > 0) {
      got += static_cast<std::size_t>(now);
    } else if (now < 0 && (errno == EAGAIN || errno == EINTR)) {
      await(fd(), POLLIN, deadline);
    } else {
      throw Failure("it is gone");
    }
  }
}

Json Channel::receive(Deadline deadline) {
  std::uint64_t size = 0;
  read_all(&size, sizeof(size), deadline);
  if (size > kMessageMax) throw Failure("a message is too large");
  std::vector<std::uint8_t> body(size);
  read_all(body.data(), body.size(), deadline);
  return Json::from_msgpack(body);
}

}  // namespace nixl_bench
