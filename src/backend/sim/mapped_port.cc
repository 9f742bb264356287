#include "backend/sim/mapped_port.h"

#include <algorithm>

#include "base/shown.h"

namespace hawser::sim {

using backend::Path;
using backend::PathState;
using backend::PathTarget;
using backend::PortEvent;

namespace {

/// Whether that end is inside of the other's memory.
bool is_held(const MappedLink& link, int holder_end) {
  return link.pins[holder_end].has_value() || !link.views[holder_end].empty();
}

}  // namespace

MappedPort::~MappedPort() {
  hub_.leave(this);
  for (const auto& path : paths_) {
    path->link_->ports[path->end_] = nullptr;
    if (host_->dead()) continue;  // The hub lets others notice.
    path->link_->pins[path->end_].reset();
    path->end_views();
    if (path->link_->ended.ok()) path->link_->ended = Status(Code::kDisconnected, "the peer closed");
    hub_.wake(path->link_->hosts[1 - path->end_]);
  }
}

Result<Path*> MappedPort::open_path(const PathTarget& target, Instant) {
  MappedPort* const there = hub_.find(target.address);
  if (there == nullptr) {
    return Status(Code::kDisconnected, "nobody listens on " + base::shown(target.address)).with_peer(target.peer);
  }
  auto link = std::make_shared<MappedLink>();
  link->session = {rng_.u64() | 1, rng_.u64()};
  link->ports[0] = this;
  link->hosts = {host_, there->host_};
  link->identities[0] = identity_;
  hub_.add(link);
  paths_.push_back(std::make_unique<MappedPath>(*this, link, 0, target.deadline));
  hub_.world().after(hub_.options().wake_latency * 2,
                     [this_hub = &hub_, knock = MappedKnock{link, target.incarnation, target.supersedes},
                      address = std::string(target.address)] {
                       MappedPort* const port = this_hub->find(address);
                       if (port != nullptr && !port->host_->dead()) {
                         port->knock(knock);
                         return;
                       }
                       knock.link->ended = Status(Code::kDisconnected, "nobody listens on " + address);
                       this_hub->wake(knock.link->hosts[0]);
                     });
  return static_cast<Path*>(paths_.back().get());
}

void MappedPort::knock(MappedKnock knock) {
  knocks_.push_back(std::move(knock));
  host_->wake();
}

void MappedPort::refuse(const MappedKnock& knock, const Status& why) {
  knock.link->ended = why;
  hub_.wake(knock.link->hosts[0]);
}

void MappedPort::answer(const MappedKnock& knock) {
  if (knock.link->ports[0] == nullptr || !knock.link->ended.ok()) return;  // It left again.
  if (!listening_) return refuse(knock, Status(Code::kDisconnected, "the agent is closing"));
  if (!knock.expects.is_zero() && knock.expects != identity_.incarnation) {
    return refuse(knock, Status(Code::kDisconnected, "another incarnation of " + identity_.name + " runs here")
                             .with_scope(Scope::kPeer));
  }
  if (!knock.supersedes.is_zero()) {
    for (const auto& path : paths_) {
      if (path->link_->session != knock.supersedes) continue;
      path->link_->ended = Status(Code::kDisconnected, "superseded by a later session").with_scope(Scope::kPath);
      path->go_down(path->link_->ended);
    }
  }
  knock.link->ports[1] = this;
  knock.link->hosts[1] = host_;
  knock.link->identities[1] = identity_;
  paths_.push_back(std::make_unique<MappedPath>(*this, knock.link, 1, Instant::max()));
  paths_.back()->inbound_ = true;
  come_up(*paths_.back());
  hub_.wake(knock.link->hosts[0]);
}

void MappedPort::come_up(MappedPath& path) {
  path.state_ = PathState::kUp;
  PortEvent event;
  event.kind = PortEvent::Kind::kPathUp;
  event.path = &path;
  event.inbound = path.inbound_;
  event.peer = &path.link_->identities[1 - path.end_];
  event.session = path.link_->session;
  push(std::move(event));
}

void MappedPort::describe(const backend::WaitVisitor& visitor) const {
  for (const auto& path : paths_) {
    if (path->state_ != PathState::kConnecting) continue;
    visitor({.who = "sim",
             .what = "the hello",
             .peer = path->link_->hosts[1 - path->end_]->name(),
             .until = path->connect_deadline_});
  }
}

void MappedPort::release_path(Path* path) {
  const auto at = std::find_if(paths_.begin(), paths_.end(), [path](const auto& one) { return one.get() == path; });
  if (at == paths_.end()) return;
  MappedPath& gone = **at;
  gone.stop_taking();
  std::erase_if(events_, [path](const Event& entry) { return entry.event.path == path; });
  if (!host_->dead()) {  // Else it does nothing any more, and the hub lets others notice.
    gone.link_->ports[gone.end_] = nullptr;
    gone.leave();
    gone.end_views();
    if (is_held(*gone.link_, 1 - gone.end_)) left_.emplace_back(gone.link_, 1 - gone.end_);
    if (gone.link_->ended.ok()) gone.link_->ended = Status(Code::kDisconnected, "the peer closed");
    hub_.wake(gone.link_->hosts[1 - gone.end_]);
  }
  paths_.erase(at);
}

std::size_t MappedPort::watch(MappedPath& path, Instant now) {
  if (path.state_ == PathState::kDown) return 0;
  MappedLink& link = *path.link_;
  if (path.state_ == PathState::kConnecting) {
    if (link.ports[1] != nullptr) {
      link.seen_up = true;
      come_up(path);
    } else if (path.peer_gone()) {
      path.go_down(link.ended.ok() ? Status(Code::kDisconnected, "the peer's process ended") : link.ended);
    } else if (now >= path.connect_deadline_) {
      path.go_down(Status(Code::kTimedOut, "the peer's process did not answer"));
    } else {
      return 0;
    }
    return 1;
  }
  // What was said before the end is heard.
  const std::size_t read = path.read_ring();
  if (!link.rings[1 - path.end_].empty() || !path.peer_gone()) return read;
  path.go_down(link.noticed_death[1 - path.end_] ? Status(Code::kDisconnected, "the peer's process ended")
                                                 : link.ended);
  return read + 1;
}

void MappedPort::forget_handed_out() {
  for (const Event& entry : handed_out_) {
    if (entry.link != nullptr) entry.link->untaken[entry.from].pop_front();
  }
  handed_out_.clear();
}

std::size_t MappedPort::turn(Instant now, const backend::TurnBudget& budget) {
  forget_handed_out();
  std::size_t work = knocks_.size();
  const std::vector<MappedKnock> knocks = std::exchange(knocks_, {});
  for (const MappedKnock& knock : knocks) answer(knock);
  const std::uint64_t step = std::min(budget.copy_bytes, hub_.options().step_bytes);
  for (const auto& path : paths_) {
    work += watch(*path, now);
    work += path->copy_some(step);
  }
  return work;
}

std::size_t MappedPort::poll(std::span<PortEvent> out) {
  forget_handed_out();
  const std::size_t count = std::min(out.size(), events_.size());
  handed_out_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    handed_out_.push_back(std::move(events_.front()));
    events_.pop_front();
    out[i] = handed_out_.back().event;
    out[i].bytes = handed_out_.back().bytes;
  }
  return count;
}

Instant MappedPort::next_deadline() const {
  Instant next = Instant::max();
  for (const auto& path : paths_) {
    if (path->state_ == PathState::kConnecting) next = std::min(next, path->connect_deadline_);
  }
  return next;
}

bool MappedPort::holds(const MappedLink& link, int holder_end, std::uint32_t index, std::uint32_t generation,
                       std::string* holder) const {
  const auto is_it = [&](const Pin& pin) { return pin.region == index && pin.generation == generation; };
  const auto& pin = link.pins[holder_end];
  if ((!pin || !is_it(*pin)) && std::ranges::none_of(link.views[holder_end], is_it)) return false;
  if (holder != nullptr) *holder = link.identities[holder_end].name;
  return true;
}

bool MappedPort::region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) {
  std::erase_if(left_, [](const auto& entry) { return !is_held(*entry.first, entry.second); });
  for (const auto& path : paths_) {
    if (holds(*path->link_, 1 - path->end_, index, generation, holder)) return false;
  }
  for (const auto& [link, end] : left_) {
    if (holds(*link, end, index, generation, holder)) return false;
  }
  return true;
}

void MappedPort::begin_close(Instant) {
  listening_ = false;
  hub_.leave(this);
  for (const auto& path : paths_) {
    if (path->state_ == PathState::kDown) continue;
    if (path->link_->ended.ok()) path->link_->ended = Status(Code::kDisconnected, "the peer's agent closed");
    path->go_down(path->link_->ended);
    hub_.wake(path->link_->hosts[1 - path->end_]);
  }
}

bool MappedPort::idle() const {
  return std::all_of(paths_.begin(), paths_.end(), [](const auto& path) { return path->state_ == PathState::kDown; });
}

}  // namespace hawser::sim
