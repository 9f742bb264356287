#include "agent/presence.h"

#include <algorithm>

#include "agent/core.h"

namespace hawser::agent {
namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds(50);
/// Events of the watch in one look.
constexpr int kEventsPerLook = 16;
/// Card away for so many times `peer_timeout`: its owner had time to publish it again.
constexpr int kPatience = 2;

}  // namespace

void Presence::open() {
  if (!core_.options.directory || !core_.options.directory->runs_itself()) return;
  directory_ = core_.options.directory.get();
  ask();
}

std::string Presence::name_of(const std::string& key) const {
  return key.substr(core_.options.directory_prefix.size());
}

void Presence::look(Instant now) {
  next_ = now + kLookEvery;
  publish();
  watch(now);
}

void Presence::publish() {
  if (publishing_) {
    const std::optional<DirectoryEvent> answer = directory_->poll(*publishing_);
    if (!answer) return;
    publishing_.reset();
    if (!answer->status.ok()) {
      HAWSER_LOG(core_.log, kError, "{}: the card could not be published yet: {}", core_.options.name,
                 answer->status.to_string());
    }
  }
  if (!is_due_.exchange(false, std::memory_order_acq_rel)) return;
  const Result<std::string> bytes = core_.card();
  if (!bytes) return;
  publishing_ = directory_->put(core_.options.directory_prefix + core_.options.name, *bytes, {.tied = true});
}

void Presence::watch(Instant now) {
  if (!watching_) watching_ = directory_->watch(core_.options.directory_prefix);
  for (int i = 0; i < kEventsPerLook; ++i) {
    const std::optional<DirectoryEvent> event = directory_->poll(*watching_);
    if (!event) break;
    if (!event->status.ok()) {  // It never began: the directory is away.
      directory_->cancel(*watching_);
      watching_.reset();
      next_ = now + std::chrono::seconds(1);
      return;
    }
    apply(*event, now);
  }
  for (auto at = gone_.begin(); at != gone_.end();) {
    const auto one = at++;
    if (now < one->second + core_.options.peer_timeout * kPatience) continue;
    give_up(one->first, now);
    gone_.erase(one);
  }
}

void Presence::apply(const DirectoryEvent& event, Instant now) {
  const auto is_known = [&](const std::string& name) {
    const auto peers = core_.peers();
    return std::any_of(peers.begin(), peers.end(), [&](const auto& peer) { return peer->name == name; });
  };
  const auto went = [&](const std::string& name) {
    if (is_known(name)) gone_.emplace(name, now);
  };
  if (event.kind == DirectoryEvent::Kind::kErased) {
    for (const DirectoryEntry& entry : event.entries) {
      const std::string name = name_of(entry.key);
      if (there_.erase(name) > 0) went(name);
    }
    return;
  }
  std::set<std::string> names;
  for (const DirectoryEntry& entry : event.entries) names.insert(name_of(entry.key));
  for (const std::string& name : names) gone_.erase(name);
  if (event.kind == DirectoryEvent::Kind::kAnswer) {
    std::swap(there_, names);
    for (const std::string& name : names) {
      if (!there_.contains(name)) went(name);
    }
  } else {
    there_.merge(names);
  }
}

void Presence::give_up(const std::string& name, Instant now) {
  for (const auto& peer : core_.peers()) {
    const PeerState state = peer->state.load(std::memory_order_acquire);
    if (peer->name != name || state == PeerState::kDown || state == PeerState::kUp) continue;
    core_.engine.invalidate(
        core_.engine.session(peer),
        Status(Code::kDisconnected, "its card is gone from the directory: it closed, or its lease ended")
            .with_scope(Scope::kPeer)
            .with_peer(name),
        now);
  }
}

void Presence::close() {
  if (!is_open()) return;
  for (const std::optional<Ticket>& ticket : {publishing_, watching_}) {
    if (ticket) directory_->cancel(*ticket);
  }
  publishing_.reset();
  watching_.reset();
  directory_ = nullptr;
}

}  // namespace hawser::agent
