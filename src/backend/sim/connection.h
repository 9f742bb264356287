#pragma once

// Connection: two pipes and the two streams at their ends. End 0 is who connected, end 1 who accepted.
//
// Thread rule: the world's. Lifetime: held by its streams, by events on their way, and by a listener's backlog.

#include <cstdint>
#include <memory>
#include <string>

#include <hawser/status.h>

#include "backend/sim/net.h"
#include "backend/stream/stream.h"

namespace hawser::sim {

class SimStream;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  static std::shared_ptr<Connection> create(Net& net, std::uint32_t from, std::uint32_t to, std::string address);

  std::uint32_t host(int end) const { return hosts_[end]; }
  int end_of(std::uint32_t host) const { return host == hosts_[0] ? 0 : 1; }
  Pipe& out(int end) { return *pipes_[end]; }
  Pipe& in(int end) { return *pipes_[1 - end]; }
  backend::stream::StreamState state(int end) const { return state_[end]; }
  const Status& status(int end) const { return status_[end]; }
  const std::string& address() const { return address_; }
  bool over() const;

  /// The first step of a connect: something travels to the listener.
  void knock();
  void attach(int end, SimStream* stream) { streams_[end] = stream; }
  /// The stream at `end` goes. `abort`: as a reset.
  void leave(int end, bool abort);
  /// One end learns of a reset now.
  void fail(int end, const Status& why);
  /// The far end learns after the link's latency.
  void fail_later(int end, const Status& why);
  /// Something on the way keeps what `end` sends, then tells it of a reset, and after the pause gives the other end
  /// what it kept, and the reset: so one end has gone on by another connection while bytes of this one are still to
  /// come.
  void part(int end, Duration kept, Duration pause, const Status& why);
  /// The machine at `end` lost power: it takes nothing and answers nothing.
  void vanish(int end);
  bool vanished(int end) const { return vanished_[end]; }
  /// The machine is on again and knows nothing of this.
  void deny(int end);

 private:
  Connection(Net& net, std::uint32_t from, std::uint32_t to, std::string address);
  void wire(int end);
  void knocked();
  void open(int end);
  void tell(int end, bool readable, bool writable);

  Net& net_;
  const std::uint32_t hosts_[2];
  const std::string address_;
  std::shared_ptr<Pipe> pipes_[2];  ///< pipes_[e] starts at end e.
  SimStream* streams_[2] = {nullptr, nullptr};
  backend::stream::StreamState state_[2] = {backend::stream::StreamState::kConnecting,
                                            backend::stream::StreamState::kConnecting};
  Status status_[2];
  bool vanished_[2] = {false, false};
  bool left_[2] = {false, false};
  void tell_of_reset(int end, Duration pause, const Status& why);
  bool parted_[2] = {false, false};
};

/// One end, as the streams' port sees it.
class SimStream final : public backend::stream::Stream {
 public:
  SimStream(HostNetwork* network, std::shared_ptr<Connection> connection, int end);
  ~SimStream() override;

  backend::stream::StreamState state() const override { return connection_->state(end_); }
  Status status() const override { return connection_->status(end_); }
  backend::stream::Moved send(std::span<const iovec> parts) override;
  std::uint64_t released() const override { return connection_->out(end_).released(); }
  backend::stream::Moved receive(std::span<const iovec> parts) override;
  void close(bool abort) override;
  std::string describe() const override;
  base::FarEnd far_end(std::string* why) const override;

  HostNetwork* network() const { return network_; }
  /// Something may have arrived that need not wait for `receive`.
  void place();

 private:
  HostNetwork* const network_;
  const std::shared_ptr<Connection> connection_;
  const int end_;
  std::size_t placed_ = 0;
  bool closed_ = false;
};

/// A host's part of the net. Owned by the port of its process.
class HostNetwork final : public backend::stream::Network {
 public:
  HostNetwork(Net& net, std::shared_ptr<Host> host, std::string address)
      : net_(net), host_(std::move(host)), address_(std::move(address)) {}
  ~HostNetwork() override;

  Result<std::vector<std::string>> candidates(std::string_view address, bool) const override;
  Result<std::unique_ptr<backend::stream::Stream>> connect(const std::string& candidate,
                                                           const backend::stream::Known& = {}) override;
  bool streams_are_apart() const override;
  std::unique_ptr<backend::stream::Stream> accept() override;
  void stop_listening() override;
  std::size_t ready(std::span<backend::stream::Readiness> out, bool* acceptable) override;
  int wait_fd() const override { return -1; }
  bool arm() override { return changes_.empty() && !acceptable_; }

  Host& host() { return *host_; }
  const Net& net() const { return net_; }
  /// False: the backlog is full.
  bool offer(std::shared_ptr<Connection> connection);
  void changed(SimStream* stream, bool readable, bool writable);
  void gone(SimStream* stream);

 private:
  friend class Net;
  Net& net_;
  const std::shared_ptr<Host> host_;
  const std::string address_;
  std::vector<std::shared_ptr<Connection>> backlog_;
  std::vector<backend::stream::Readiness> changes_;  ///< One per stream at most.
  bool acceptable_ = false;
  bool listening_ = true;
};

}  // namespace hawser::sim
