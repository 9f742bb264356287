#include "relay.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

namespace hawser::real {
namespace {

constexpr int kLookEveryMs = 5;            ///< For `stop_`, and for cuts that are asked for.
constexpr std::size_t kStep = 64 * 1024;   ///< Bytes of one direction in the relay: it holds little, so that both
constexpr std::size_t kHeld = 256 * 1024;  ///< ends feel each other.

}  // namespace

Relay::Relay(const base::SocketAddress& target) : target_(target) {
  listens_ = *base::numeric_address({.host = "127.0.0.1", .port = 0});
  listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!listener_ || ::bind(listener_.get(), listens_.get(), listens_.size) != 0 || ::listen(listener_.get(), 64) != 0 ||
      ::getsockname(listener_.get(), listens_.get(), &listens_.size) != 0) {
    throw std::runtime_error("the relay cannot listen");
  }
  thread_ = std::thread([this] { work(); });
}

Relay::~Relay() {
  {
    const base::MutexLock lock(mutex_);
    stop_ = true;
  }
  thread_.join();
}

std::string Relay::address() const { return base::to_string(listens_); }

void Relay::cut(std::size_t number, std::uint64_t after) {
  const base::MutexLock lock(mutex_);
  Connection& connection = *connections_.at(number);
  connection.cut_at = connection.bytes + after;
}

void Relay::refuse(std::size_t count) {
  const base::MutexLock lock(mutex_);
  to_refuse_ = count;
}

std::size_t Relay::to_refuse() const {
  const base::MutexLock lock(mutex_);
  return to_refuse_;
}

std::size_t Relay::connections() const {
  const base::MutexLock lock(mutex_);
  return connections_.size();
}

std::size_t Relay::cuts() const {
  const base::MutexLock lock(mutex_);
  return cuts_;
}

std::uint64_t Relay::bytes(std::size_t number) const {
  const base::MutexLock lock(mutex_);
  return connections_.at(number)->bytes;
}

void Relay::work() {
  for (;;) {
    std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}};
    std::vector<std::pair<Connection*, int>> of = {{nullptr, 0}};
    {
      const base::MutexLock lock(mutex_);
      if (stop_) return;
      for (const auto& connection : connections_) {
        if (!connection->open) continue;
        for (const int end : {0, 1}) {
          const Way& from = connection->ways[end];
          const Way& to = connection->ways[1 - end];
          const bool reads = !from.ended && from.waiting.size() < kHeld;
          polled.push_back({connection->ends[end].get(),
                            static_cast<short>((reads ? POLLIN : 0) | (to.waiting.empty() ? 0 : POLLOUT)), 0});
          of.emplace_back(connection.get(), end);
        }
      }
    }
    if (::poll(polled.data(), polled.size(), kLookEveryMs) < 0 && errno != EINTR) return;
    const base::MutexLock lock(mutex_);
    if ((polled[0].revents & POLLIN) != 0) accept();
    for (std::size_t i = 1; i < polled.size(); ++i) {
      if (of[i].first->open) move(*of[i].first, of[i].second, polled[i].revents);
    }
  }
}

void Relay::accept() {
  auto connection = std::make_unique<Connection>();
  connection->ends[0].reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  connection->ends[1].reset(::socket(target_.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!connection->ends[0] || !connection->ends[1]) return;
  if (to_refuse_ > 0) {
    --to_refuse_;
    return close(*connection);
  }
  connection->open = ::connect(connection->ends[1].get(), target_.get(), target_.size) == 0;
  connections_.push_back(std::move(connection));
}

// Takes what came from an end, and sends on what it is to get.
void Relay::move(Connection& connection, int from, short events) {
  Way& in = connection.ways[from];
  Way& out = connection.ways[1 - from];
  const int fd = connection.ends[from].get();
  if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && !in.ended && in.waiting.size() < kHeld) {
    std::array<char, kStep> bytes;
    const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0) in.ended = true;
    if (got < 0 && errno != EAGAIN && errno != EINTR) return close(connection);
    if (got > 0) {
      connection.bytes += static_cast<std::uint64_t>(got);
      if (connection.bytes >= connection.cut_at) {
        ++cuts_;
        return close(connection);
      }
      in.waiting.insert(in.waiting.end(), bytes.data(), bytes.data() + got);
    }
  }
  if (!out.waiting.empty()) {
    const ssize_t sent = ::send(fd, out.waiting.data(), out.waiting.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return close(connection);
    if (sent > 0) out.waiting.erase(out.waiting.begin(), out.waiting.begin() + sent);
  }
  if (out.ended && out.waiting.empty()) ::shutdown(fd, SHUT_WR);
  if (in.ended && out.ended && in.waiting.empty() && out.waiting.empty()) close(connection);
}

void Relay::close(Connection& connection) {
  const linger abort = {.l_onoff = 1, .l_linger = 0};
  for (base::Fd& end : connection.ends) {
    ::setsockopt(end.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
    end.reset();
  }
  connection.open = false;
}

}  // namespace hawser::real
