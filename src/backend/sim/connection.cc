#include "backend/sim/connection.h"

#include <utility>

namespace hawser::sim {

using backend::stream::StreamState;

Connection::Connection(Net& net, std::uint32_t from, std::uint32_t to, std::string address)
    : net_(net), hosts_{from, to}, address_(std::move(address)) {
  pipes_[0] = std::make_shared<Pipe>(net.world(), net.fabric(), from, to, net.options().pipe);
  pipes_[1] = std::make_shared<Pipe>(net.world(), net.fabric(), to, from, net.options().pipe);
}

std::shared_ptr<Connection> Connection::create(Net& net, std::uint32_t from, std::uint32_t to, std::string address) {
  std::shared_ptr<Connection> made(new Connection(net, from, to, std::move(address)));
  made->wire(0);
  made->wire(1);
  return made;
}

void Connection::wire(int end) {
  const std::weak_ptr<Connection> weak = weak_from_this();
  out(end).on_writable = [weak, end] {
    if (const auto self = weak.lock()) self->tell(end, false, true);
  };
  in(end).on_readable = [weak, end] {
    const auto self = weak.lock();
    if (!self) return;
    if (!self->left_[end]) {
      self->tell(end, true, false);
    } else if (self->in(end).has_unread()) {
      self->fail_later(1 - end, Status(Code::kDisconnected, "reset: the peer had closed"));
    }
  };
  in(end).on_lost = [weak, end] {
    const auto self = weak.lock();
    if (self && !self->net_.is_off(self->hosts_[end])) self->deny(end);
  };
}

bool Connection::over() const { return state_[0] == StreamState::kClosed && state_[1] == StreamState::kClosed; }

void Connection::knock() {
  Fabric& fabric = net_.fabric();
  fabric.deliver(hosts_[0], hosts_[1], fabric.arrival_small(hosts_[0], hosts_[1]),
                 [self = shared_from_this()] { self->knocked(); });
  net_.world().after(net_.options().connect_timeout, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->state_[0] == StreamState::kConnecting) {
      self->fail(0, Status(Code::kTimedOut, "nobody answered at " + self->address_));
    }
  });
}

void Connection::knocked() {
  if (state_[0] == StreamState::kClosed || net_.is_off(hosts_[1])) return;
  const auto at = net_.listeners_.find(address_);
  if (at == net_.listeners_.end() || !at->second->offer(shared_from_this())) {
    state_[1] = StreamState::kClosed;
    fail_later(0, Status(Code::kDisconnected, "refused: nobody listens on " + address_).with_scope(Scope::kPeer));
    return;
  }
  state_[1] = StreamState::kOpen;
  Fabric& fabric = net_.fabric();
  fabric.deliver(hosts_[1], hosts_[0], fabric.arrival_small(hosts_[1], hosts_[0]),
                 [self = shared_from_this()] { self->open(0); });
}

void Connection::open(int end) {
  if (state_[end] != StreamState::kConnecting) return;
  state_[end] = StreamState::kOpen;
  tell(end, false, true);
}

void Connection::tell(int end, bool readable, bool writable) {
  SimStream* const stream = streams_[end];
  if (stream == nullptr || state_[end] == StreamState::kConnecting) return;
  stream->network()->changed(stream, readable, writable);
}

void Connection::leave(int end, bool abort) {
  streams_[end] = nullptr;
  left_[end] = true;
  if (state_[end] == StreamState::kClosed) return;
  const bool was_open = state_[end] == StreamState::kOpen;
  state_[end] = StreamState::kClosed;
  if (!was_open) return;
  if (parted_[end]) return;  // What it says now, nobody hears.
  out(end).detach();
  // As a kernel does it: closing with bytes unread is a reset.
  if (abort || in(end).has_unread()) {
    fail_later(1 - end, Status(Code::kDisconnected, "reset by the peer"));
  } else {
    out(end).finish();
  }
}

void Connection::fail(int end, const Status& why) {
  if (state_[end] == StreamState::kClosed) return;
  const bool drop_arrived = !net_.options().keep_arrived_on_reset;
  // The stream itself is closed for its owner once it is told; reads of what arrived before still work.
  const bool was_connecting = state_[end] == StreamState::kConnecting;
  status_[end] = why;
  out(end).fail_sender(why);
  in(end).fail_receiver(why, drop_arrived);
  if (was_connecting || drop_arrived) state_[end] = StreamState::kClosed;
  if (streams_[end] != nullptr) streams_[end]->network()->changed(streams_[end], true, true);
}

void Connection::fail_later(int end, const Status& why) {
  Fabric& fabric = net_.fabric();
  fabric.deliver(hosts_[1 - end], hosts_[end], fabric.arrival_small(hosts_[1 - end], hosts_[end]),
                 [self = shared_from_this(), end, why] { self->fail(end, why); });
}

void Connection::part(int end, Duration kept, Duration pause, const Status& why) {
  out(end).hold();
  net_.world().after(kept, [self = shared_from_this(), end, pause, why] { self->tell_of_reset(end, pause, why); });
}

void Connection::tell_of_reset(int end, Duration pause, const Status& why) {
  const bool stands = state_[0] == StreamState::kOpen && state_[1] == StreamState::kOpen;
  if (!stands || parted_[0] || parted_[1]) return out(end).let_go();
  parted_[end] = true;
  out(end).strand(why);
  fail(end, why);
  net_.world().after(pause, [self = shared_from_this(), end, why] {
    self->out(end).let_go();
    self->fail_later(1 - end, why);
  });
}

void Connection::vanish(int end) {
  if (vanished_[end]) return;
  vanished_[end] = true;
  left_[end] = true;
  streams_[end] = nullptr;
  state_[end] = StreamState::kClosed;
  out(end).detach();
  in(end).blackhole();
}

void Connection::deny(int end) {
  if (state_[1 - end] == StreamState::kClosed) return;
  fail_later(1 - end, Status(Code::kDisconnected, "reset: the machine was restarted"));
}

}  // namespace hawser::sim
