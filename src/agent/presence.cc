#include "agent/presence.h"

#include <algorithm>

#include "agent/core.h"

namespace hawser::agent {
namespace {

/// At a directory that runs by itself.
constexpr Duration kLookEvery = std::chrono::milliseconds(50);
/// At one that does not, while an answer is awaited: a folder may be locked by another process for as long.
constexpr Duration kJobEvery = std::chrono::milliseconds(1);
/// A card of many regions costs something, and regions often come one after the other.
constexpr Duration kPublishEvery = std::chrono::milliseconds(10);
constexpr Duration kTryAgain = std::chrono::seconds(1);
constexpr Duration kJobMax = std::chrono::milliseconds(50);
constexpr int kJobsPerRun = 8;
/// Events of the watch in one look.
constexpr int kEventsPerLook = 16;
/// Card away for so many times `peer_timeout`: its owner had time to publish it again.
constexpr int kPatience = 2;

}  // namespace

void Presence::open() {
  if (!core_.options.directory) return;
  directory_ = core_.options.directory.get();
  runs_itself_ = directory_->runs_itself();
  ask();
}

void Presence::ask() {
  is_due_ = true;
  if (is_open() && !runs_itself_) next_ = std::min(next_, not_before_);
}

std::string Presence::name_of(const std::string& key) const {
  return key.substr(core_.options.directory_prefix.size());
}

void Presence::look(Instant now) {
  publish(now);
  next_ = next_look(now);
  if (runs_itself_) watch(now);
}

Instant Presence::next_look(Instant now) const {
  if (runs_itself_) return now + kLookEvery;
  if (publishing_) return now + kJobEvery;
  return is_due_ ? std::max(now, not_before_) : Instant::max();
}

void Presence::publish(Instant now) {
  if (publishing_) take_answer(now);
  if (publishing_) has_jobs_.store(!runs_itself_, std::memory_order_relaxed);
  if (publishing_ || !is_due_ || now < not_before_) return;
  is_due_ = false;
  const Result<std::string> bytes = core_.card();
  if (!bytes) return;
  publishing_ = directory_->put(core_.options.directory_prefix + core_.options.name, *bytes, {.tied = runs_itself_});
  not_before_ = now + (runs_itself_ ? Duration::zero() : kPublishEvery);
  has_jobs_.store(!runs_itself_, std::memory_order_relaxed);
}

void Presence::take_answer(Instant now) {
  const std::optional<DirectoryEvent> answer = directory_->poll(*publishing_);
  if (!answer) return;
  publishing_.reset();
  const bool failed = !answer->status.ok();
  if (failed && !has_failed_) {
    HAWSER_LOG(core_.log, kError, "{}: the card could not be published yet: {}", core_.options.name,
               answer->status.to_string());
  }
  has_failed_ = failed;
  if (!failed || answer->status.code() == Code::kInvalid) return;  // What is wrong with the card stays wrong.
  is_due_ = true;
  not_before_ = now + kTryAgain;
}

void Presence::run_jobs(Instant now) {
  if (!has_jobs_.exchange(false, std::memory_order_acq_rel)) return;
  // Not directory_: the agent may be closed meanwhile. More than one job, as others use the directory, too.
  Directory& directory = *core_.options.directory;
  for (int i = 0; i < kJobsPerRun && directory.run_job(now, now + kJobMax); ++i) continue;
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
