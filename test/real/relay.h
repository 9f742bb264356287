#pragma once

// Relay: a TCP relay on 127.0.0.1, through which a test leads connections that it wants to lose one by one.
//
// A cut connection is closed at both of its ends with what was on its way thrown away, as when a rail of a network
// breaks and both hosts hear of it. The other connections go on.
//
// Thread rule: the relay has a thread of its own; its calls may come from any. Lifetime: its connections end with it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/mutex.h"

namespace hawser::real {

class Relay {
 public:
  /// Leads to `target`, an address with its port.
  explicit Relay(const base::SocketAddress& target);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// "127.0.0.1:port".
  std::string address() const;
  /// Cuts connection `number` (in the order in which they came, from 0) once `after` bytes more went through it.
  void cut(std::size_t number, std::uint64_t after);
  /// Resets the next so many connections before a byte went through them, as an acceptor that is overrun does.
  void refuse(std::size_t count);
  /// How many of these are left.
  std::size_t to_refuse() const;
  std::size_t connections() const;
  std::size_t cuts() const;
  /// That went through connection `number`, both ways.
  std::uint64_t bytes(std::size_t number) const;

 private:
  struct Way {  ///< One direction of a connection.
    std::vector<char> waiting;
    bool ended = false;
  };
  struct Connection {
    base::Fd ends[2];
    Way ways[2];  ///< From that end.
    std::uint64_t bytes = 0;
    std::uint64_t cut_at = UINT64_MAX;
    bool open = true;
  };

  void work();
  void accept() HAWSER_REQUIRES(mutex_);
  void move(Connection& connection, int from, short events) HAWSER_REQUIRES(mutex_);
  void close(Connection& connection) HAWSER_REQUIRES(mutex_);

  const base::SocketAddress target_;
  base::SocketAddress listens_;
  base::Fd listener_;
  mutable base::Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> connections_ HAWSER_GUARDED_BY(mutex_);
  std::size_t cuts_ HAWSER_GUARDED_BY(mutex_) = 0;
  std::size_t to_refuse_ HAWSER_GUARDED_BY(mutex_) = 0;
  bool stop_ HAWSER_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hawser::real
