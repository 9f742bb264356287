#include "backend/sim/net.h"

#include <algorithm>
#include <utility>

#include "backend/sim/connection.h"
#include "base/shown.h"

namespace hawser::sim {

using backend::stream::Moved;
using backend::stream::Readiness;
using backend::stream::Stream;
using backend::stream::StreamState;

// --- SimStream

SimStream::SimStream(HostNetwork* network, std::shared_ptr<Connection> connection, int end)
    : network_(network), connection_(std::move(connection)), end_(end) {
  connection_->attach(end_, this);
}

SimStream::~SimStream() { close(true); }

Moved SimStream::send(std::span<const iovec> parts) {
  if (state() == StreamState::kConnecting) return {};
  return connection_->out(end_).send(parts);
}

Moved SimStream::receive(std::span<const iovec> parts) {
  if (state() == StreamState::kConnecting) return {};
  const std::size_t placed = std::exchange(placed_, 0);
  Moved moved = connection_->in(end_).receive(parts);
  if (placed > 0 && moved.closed) return {.placed = placed};  // It is told of the end the next time.
  moved.placed = placed;
  return moved;
}

void SimStream::place() {
  if (landing != nullptr && state() != StreamState::kConnecting) placed_ += connection_->in(end_).place(*landing);
}

void SimStream::close(bool abort) {
  if (std::exchange(closed_, true)) return;
  network_->gone(this);
  if (!connection_->vanished(end_)) connection_->leave(end_, abort);
}

base::FarEnd SimStream::far_end(std::string*) const {
  const bool is_other = network_->net().is_other_user(connection_->host(1 - end_));
  return is_other ? base::FarEnd::kOtherUser : base::FarEnd::kSameUser;
}

std::string SimStream::describe() const {
  return "host " + std::to_string(connection_->host(end_)) + " to host " + std::to_string(connection_->host(1 - end_)) +
         " (" + connection_->address() + ")";
}

// --- HostNetwork

HostNetwork::~HostNetwork() { stop_listening(); }

Result<std::vector<std::string>> HostNetwork::candidates(std::string_view address, bool) const {
  // Backends of other names have networks of their own.
  if (!address.starts_with(address_.substr(0, address_.find(':') + 1))) {
    return Status(Code::kInvalid, "no simulated address: " + base::shown(address));
  }
  return std::vector<std::string>{std::string(address)};
}

Result<std::unique_ptr<Stream>> HostNetwork::connect(const std::string& candidate, const backend::stream::Known&) {
  const auto place = net_.places_.find(candidate);
  if (place == net_.places_.end()) return Status(Code::kDisconnected, "no way to " + candidate);
  auto connection = Connection::create(net_, host_->number(), place->second, candidate);
  auto stream = std::make_unique<SimStream>(this, connection, 0);
  std::erase_if(net_.connections_, [](const auto& weak) { return weak.expired(); });
  net_.connections_.push_back(connection);
  connection->knock();
  net_.world().note("connect", host_->name(), place->second);
  return std::unique_ptr<Stream>(std::move(stream));
}

bool HostNetwork::streams_are_apart() const { return net_.options().streams_are_apart; }

std::unique_ptr<Stream> HostNetwork::accept() {
  if (backlog_.empty()) return nullptr;
  std::shared_ptr<Connection> next = std::move(backlog_.front());
  backlog_.erase(backlog_.begin());
  auto stream = std::make_unique<SimStream>(this, next, 1);
  // Bytes, or the end, may have come while it waited.
  changed(stream.get(), true, true);
  return stream;
}

void HostNetwork::stop_listening() {
  if (!std::exchange(listening_, false)) return;
  const auto at = net_.listeners_.find(address_);
  if (at != net_.listeners_.end() && at->second == this) net_.listeners_.erase(at);
  for (const auto& waiting : backlog_) {
    if (!waiting->vanished(1)) waiting->leave(1, true);
  }
  backlog_.clear();
}

bool HostNetwork::offer(std::shared_ptr<Connection> connection) {
  if (!listening_ || backlog_.size() >= kBacklogMax) return false;
  backlog_.push_back(std::move(connection));
  acceptable_ = true;
  host_->wake();
  return true;
}

void HostNetwork::changed(SimStream* stream, bool readable, bool writable) {
  const auto same = [stream](const Readiness& change) { return change.stream == stream; };
  const auto at = std::find_if(changes_.begin(), changes_.end(), same);
  if (at == changes_.end()) {
    changes_.push_back({stream, readable, writable});
  } else {
    at->readable = at->readable || readable;
    at->writable = at->writable || writable;
  }
  host_->wake();
}

void HostNetwork::gone(SimStream* stream) {
  std::erase_if(changes_, [stream](const Readiness& change) { return change.stream == stream; });
}

std::size_t HostNetwork::ready(std::span<Readiness> out, bool* acceptable) {
  const std::size_t count = std::min(out.size(), changes_.size());
  for (const Readiness& change : std::span(changes_).first(count)) {
    if (change.readable && streams_are_apart()) static_cast<SimStream*>(change.stream)->place();  // As QUIC does.
  }
  std::copy_n(changes_.begin(), count, out.begin());
  changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(count));
  *acceptable = std::exchange(acceptable_, false) || *acceptable;
  return count;
}

// --- Net

Result<std::unique_ptr<backend::stream::Network>> Net::open(std::shared_ptr<Host> host, std::string address) {
  if (listeners_.contains(address)) {
    return Status(Code::kInvalid, "somebody listens on " + address + " already");
  }
  places_[address] = host->number();
  auto network = std::make_unique<HostNetwork>(*this, std::move(host), address);
  listeners_[std::move(address)] = network.get();
  return std::unique_ptr<backend::stream::Network>(std::move(network));
}

std::vector<std::shared_ptr<Connection>> Net::of(std::uint32_t host) {
  std::vector<std::shared_ptr<Connection>> found;
  for (const auto& weak : connections_) {
    const auto connection = weak.lock();
    if (connection && !connection->over() && (connection->host(0) == host || connection->host(1) == host)) {
      found.push_back(connection);
    }
  }
  return found;
}

std::vector<std::shared_ptr<Connection>> Net::between(std::uint32_t a, std::uint32_t b) {
  auto found = of(a);
  std::erase_if(found, [b](const auto& one) { return one->host(0) != b && one->host(1) != b; });
  return found;
}

void Net::reset(const std::shared_ptr<Connection>& connection) {
  const Status why(Code::kDisconnected, "reset by the network");
  connection->fail_later(0, why);
  connection->fail_later(1, why);
}

void Net::reset_late(const std::shared_ptr<Connection>& connection, std::uint32_t from, Duration kept, Duration pause) {
  connection->part(connection->end_of(from), kept, pause, Status(Code::kDisconnected, "reset on its way"));
}

void Net::half_close(const std::shared_ptr<Connection>& connection, std::uint32_t from) {
  const int end = connection->end_of(from);
  if (connection->state(end) == StreamState::kOpen) connection->out(end).finish();
}

void Net::set_capacity(const std::shared_ptr<Connection>& connection, std::size_t bytes) {
  connection->out(0).set_capacity(bytes);
  connection->out(1).set_capacity(bytes);
}

void Net::forget(std::uint32_t host) {
  for (auto at = listeners_.begin(); at != listeners_.end();) {
    HostNetwork* const network = at->second;
    const bool mine = network->host().number() == host;
    at = mine ? listeners_.erase(at) : std::next(at);
    if (mine) {
      network->listening_ = false;
      network->backlog_.clear();
    }
  }
}

void Net::crash(std::uint32_t host) {
  for (const auto& connection : of(host)) {
    const int end = connection->end_of(host);
    const bool was_closed = connection->state(end) == StreamState::kClosed;
    connection->vanish(end);
    if (!was_closed) {
      connection->fail_later(1 - end, Status(Code::kDisconnected, "reset: the peer's process ended"));
    }
  }
  forget(host);
}

void Net::lose_power(std::uint32_t host) {
  for (const auto& connection : of(host)) connection->vanish(connection->end_of(host));
  forget(host);
  off_.insert(host);
}

void Net::power_on(std::uint32_t host) {
  off_.erase(host);
  for (const auto& connection : of(host)) {
    const int end = connection->end_of(host);
    if (connection->vanished(end) && connection->out(1 - end).has_unacknowledged()) connection->deny(end);
  }
}

}  // namespace hawser::sim
