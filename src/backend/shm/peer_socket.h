#pragma once

// PeerSocket: the unix socket of one path, and the process at its other end.
//
// Thread rule: confined to the lane; it never blocks. Lifetime: a member of its path, to which its watches point.

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include <hawser/status.h>

#include "backend/shm/fork_list.h"
#include "backend/shm/packet.h"
#include "backend/shm/place.h"
#include "backend/shm/region_server.h"
#include "backend/shm/watches.h"

namespace hawser::backend::shm {

class PeerSocket {
 public:
  /// `path`: the owner of what the port is told.
  PeerSocket(const Watches& watches, ForkList& forks, void* path)
      : watches_(watches),
        forks_(forks),
        socket_watch_{Watch::Kind::kSocket, path},
        process_watch_{Watch::Kind::kProcess, path} {}
  ~PeerSocket();
  PeerSocket(const PeerSocket&) = delete;
  PeerSocket& operator=(const PeerSocket&) = delete;

  void take(ForkFd socket) { socket_ = std::move(socket); }
  /// For whoever is to tell the other end why it is refused.
  ForkFd give_back() { return std::move(socket_); }
  void close();
  explicit operator bool() const { return static_cast<bool>(socket_); }
  int fd() const { return socket_.get(); }
  int process_fd() const { return process_fd_.get(); }
  const Credentials& credentials() const { return credentials_; }

  /// Finds out who is at the other end. kDenied: a process of another user.
  Status look_at_peer();
  /// From now on the port is told of packets, and of the end of socket and process.
  Status watch();
  void unwatch_process() { watches_.remove(process_fd_.get()); }

  Io send(std::span<const std::byte> bytes, std::span<const int> fds = {}) const {
    return send_packet(socket_.get(), bytes, fds);
  }
  Io receive(Packet* packet) const { return receive_packet(socket_.get(), packet); }
  /// Sends the waiting answer. While it does not go out, the socket is watched for room and not read.
  Status send_reply(RegionServer& server);
  /// Nothing is sent after this.
  void say_last(const std::string& packet) const;

 private:
  const Watches& watches_;
  ForkList& forks_;
  ForkFd socket_;
  ForkFd process_fd_;
  Credentials credentials_;
  Watch socket_watch_;
  Watch process_watch_;
  bool is_reply_waiting_ = false;
};

}  // namespace hawser::backend::shm
