#include "agent/presence.h"

#include <algorithm>
#include <utility>

#include "agent/core.h"
#include "base/bytes.h"
#include "base/format.h"

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
/// A folder tells of no change by itself. A look costs a read of the card's file.
constexpr Duration kCheckEvery = std::chrono::seconds(1);
/// Two agents of one name that write at once read again after it.
constexpr Duration kConflictPause = std::chrono::milliseconds(5);
/// Card away for so many times `peer_timeout`: its owner had time to publish it again.
constexpr int kPatience = 2;

/// Nothing for what is no card of this version.
std::optional<Holder> holder_of(const std::string& value) {
  const Result<wire::CardSummary> card = wire::check_card(base::as_bytes(value));
  if (!card) return std::nullopt;
  return Holder{.born = card->born, .incarnation = card->incarnation};
}

}  // namespace

std::uint64_t Presence::begin(const std::optional<DirectoryEvent>& answer, std::uint64_t clock_ns) {
  std::optional<Holder> before;
  if (answer && answer->status.ok() && !answer->entries.empty()) before = holder_of(answer->entries.front().value);
  const std::uint64_t born = born_after(clock_ns, before);
  claim_.set_self({.born = born, .incarnation = core_.identity.incarnation});
  if (answer && answer->status.code() == Code::kNotFound) claim_.on_free();
  if (answer && answer->status.ok() && !answer->entries.empty()) {
    claim_.on_value(answer->entries.front().version, before);
  }
  // To create a key is always safe, and a directory that is away may do it by itself once it is back.
  if (claim_.must_read()) claim_.on_free();
  return born;
}

void Presence::open() {
  if (!core_.options.directory) return;
  directory_ = core_.options.directory.get();
  runs_itself_ = directory_->runs_itself();
  set_next(Instant::min());
  ask();
}

void Presence::open_and_wait(Instant deadline) {
  core_.lane.lock();
  open();
  bool is_over = !is_open();
  core_.lane.unlock();
  while (!is_over && core_.now() < deadline) {
    core_.lane.lock();
    look(core_.now());
    is_over = is_settled();
    core_.lane.unlock();
    if (is_over) break;
    if (core_.options.directory->runs_itself()) {
      (void)core_.options.directory->run_job(core_.now(), deadline);  // Waits a little.
    } else {
      run_jobs(core_.now());
    }
  }
}

void Presence::ask() {
  is_due_ = true;
  if (is_open() && !runs_itself_) set_next(std::min(next_deadline(), not_before_));
}

std::string Presence::name_of(const std::string& key) const {
  return key.substr(core_.options.directory_prefix.size());
}

std::string Presence::key() const { return core_.options.directory_prefix + core_.options.name; }

void Presence::look(Instant now) {
  if (asking_) take_answer(now);
  step(now);
  set_jobs(asking_ && !runs_itself_);
  set_next(next_look(now));
  if (runs_itself_) watch(now);
}

Instant Presence::next_look(Instant now) const {
  if (runs_itself_) return now + kLookEvery;
  if (asking_) return now + kJobEvery;
  return std::max(now, is_due_ ? std::min(not_before_, check_at_) : check_at_);
}

void Presence::step(Instant now) {
  const bool must_check = must_check_ || now >= check_at_;
  if (asking_ || now < not_before_ || (!is_due_ && !must_check)) return;
  if (must_check || claim_.must_read() || claim_.is_displaced()) {
    read();
    asked_at_ = now;
  } else {
    write(now);
    asked_at_ = now;
  }
}

void Presence::read() {
  must_check_ = false;
  is_writing_ = false;
  asking_ = directory_->get(key());
}

void Presence::write(Instant now) {
  const Result<std::string> bytes = core_.own_card.full();
  is_due_ = false;
  if (!bytes) return;
  PutOptions how = claim_.condition();
  how.tied = runs_itself_;
  is_writing_ = true;
  asking_ = directory_->put(key(), *bytes, how);
  not_before_ = now + (runs_itself_ ? Duration::zero() : kPublishEvery);
}

void Presence::take_answer(Instant now) {
  const std::optional<DirectoryEvent> answer = directory_->poll(*asking_);
  if (!answer) return;
  asking_.reset();
  // A directory that runs by itself tells of each change by the watch.
  check_at_ = runs_itself_ ? Instant::max() : now + kCheckEvery;
  if (is_writing_) {
    on_written(*answer, now);
  } else {
    on_read(*answer, now);
  }
}

void Presence::on_read(const DirectoryEvent& answer, Instant now) {
  const Status refusal = std::exchange(refusal_, Status());
  if (answer.status.code() == Code::kNotFound) {
    const bool was_free = claim_.is_free();
    claim_.on_free();
    is_due_ = true;
    if (was_free && !refusal.ok()) on_failure(refusal, now);
  } else if (!answer.status.ok() && answer.status.code() != Code::kCorrupt) {
    on_failure(answer.status, now);
  } else if (answer.entries.empty()) {
    claim_.on_free();  // A file that is no value has no version; putting one mends it.
    is_due_ = true;
  } else if (!refusal.ok() && claim_.stands_at(answer.entries.front().version)) {
    on_failure(refusal, now);
  } else {
    take_value(answer.entries.front());
  }
}

void Presence::take_value(const DirectoryEntry& entry) {
  if (claim_.is_held_in(entry.version)) return;
  claim_.on_value(entry.version, holder_of(entry.value));
  // Where another one is, born before us, the key is ours to take; where a later one is, we yield.
  is_due_ = (is_due_ || !claim_.is_held()) && !claim_.is_displaced();
  if (claim_.is_displaced()) tell_displaced();
}

void Presence::on_written(const DirectoryEvent& answer, Instant now) {
  if (answer.status.ok()) {
    has_failed_ = false;
    claim_.on_written(answer.entries.empty() ? 0 : answer.entries.front().version);
    return;
  }
  if (answer.status.code() == Code::kBusy) {
    // Another agent was faster, or the directory is busy: what is read next tells which.
    refusal_ = answer.status;
    must_check_ = is_due_ = true;
    not_before_ = now + kConflictPause;
    return;
  }
  claim_.on_unsure();
  on_failure(answer.status, now);
}

void Presence::on_failure(const Status& why, Instant now) {
  if (!has_failed_) {
    HAWSER_LOG(core_.log, kError, "{}: the card could not be published yet: {}", core_.options.name, why.to_string());
  }
  if (claim_.must_read()) claim_.on_free();  // As in `begin`.
  has_failed_ = true;
  is_due_ = why.code() != Code::kInvalid;  // What is wrong with the card stays wrong.
  not_before_ = now + kTryAgain;
}

void Presence::tell_displaced() {
  const Holder& holder = claim_.holder();
  if (displaced_by_ == holder.incarnation) return;
  displaced_by_ = holder.incarnation;
  const Status cause =
      Status(Code::kBusy,
             base::format("a later agent of the name '{}' (incarnation {}) has the key in the {} directory",
                          core_.options.name, to_hex(holder.incarnation), directory_->kind()))
          .with_advice("close this agent, or give each its own name");
  HAWSER_LOG(core_.log, kWarn, "{}: displaced: {}", core_.options.name, cause.to_string());
  core_.inbox.push_event({.kind = PeerEvent::Kind::kDisplaced, .peer = Peer(core_.peer_book.self()), .cause = cause});
  core_.queues.hint(CompletionKind::kPeer, 0);
}

void Presence::run_jobs(Instant now) {
  if (!take_jobs()) return;
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
      set_next(now + std::chrono::seconds(1));
      return;
    }
    on_own_key(*event);
    apply(*event, now);
  }
  for (auto at = gone_.begin(); at != gone_.end();) {
    const auto one = at++;
    if (now < one->second + core_.options.peer_timeout * kPatience) continue;
    give_up(one->first, now);
    gone_.erase(one);
  }
}

void Presence::on_own_key(const DirectoryEvent& event) {
  const std::string ours = key();
  const auto at = std::find_if(event.entries.begin(), event.entries.end(),
                               [&](const DirectoryEntry& entry) { return entry.key == ours; });
  const bool is_named = at != event.entries.end();
  const bool is_whole = event.kind == DirectoryEvent::Kind::kAnswer;
  if (!is_named && !is_whole) return;
  if (!is_named || event.kind == DirectoryEvent::Kind::kErased) {
    must_check_ = must_check_ || claim_.is_held() || claim_.is_displaced();
    return;
  }
  // What comes while a write of ours is under way is mostly that write.
  const std::optional<Holder> holder = holder_of(at->value);
  const bool is_ours = holder && holder->incarnation == core_.identity.incarnation;
  if (!is_ours) {
    must_check_ = true;
  } else if (!asking_ && claim_.is_held()) {
    claim_.on_written(at->version);
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
    core_.engine.connector().invalidate(
        core_.engine.sessions().of(peer),
        Status(Code::kDisconnected, "its card is gone from the directory: it closed, or its lease ended")
            .with_scope(Scope::kPeer)
            .with_peer(name),
        now);
  }
}

void Presence::describe(const Visitor& visitor) const {
  if (!asking_) return;
  visitor({.who = "directory",
           .what = is_writing_ ? "our card to be published" : "the card under our name",
           .since = asked_at_});
}

void Presence::close() {
  if (!is_open()) return;
  for (const std::optional<Ticket>& ticket : {asking_, watching_}) {
    if (ticket) directory_->cancel(*ticket);
  }
  asking_.reset();
  watching_.reset();
  directory_ = nullptr;
  set_next(Instant::max());
}

}  // namespace hawser::agent
