// Peers of an agent: met by card, by hello or through a directory.

#include <algorithm>

#include "agent/core.h"
#include "base/bytes.h"
#include "base/planted.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(10);  ///< Between two looks into a directory.
/// Nobody waits longer for a path that is only better than the one there is; it may still come up later.
constexpr Duration kBetterPathMax = std::chrono::milliseconds(250);
constexpr Duration kUnpublishMax = std::chrono::milliseconds(200);
constexpr Duration kServerUnpublishMax = std::chrono::seconds(2);

}  // namespace

Result<std::shared_ptr<PeerCore>> Core::meet(const backend::Identity& who) {
  const base::MutexLock lock(mutex_);
  const auto found = peers_.find(who.incarnation);
  if (found != peers_.end()) {
    found->second->note_born(who.born);
    return found->second;
  }
  if (peers_.size() >= options.limits.peers) {
    return Status(Code::kBusy, "agent '" + options.name +
                                   "' knows limits.peers = " + std::to_string(options.limits.peers) +
                                   " peers already; " + who.name + " is not taken in")
        .with_advice("raise limits.peers, or invalidate peers that are not needed");
  }
  auto peer = std::make_shared<PeerCore>(weak_from_this(), who.name, who.incarnation);
  peer->note_born(who.born);
  peers_.emplace(who.incarnation, peer);
  return peer;
}

std::shared_ptr<PeerCore> Core::known_peer(const base::Id128& incarnation) const {
  const base::MutexLock lock(mutex_);
  const auto found = peers_.find(incarnation);
  return found != peers_.end() ? found->second : nullptr;
}

std::vector<std::shared_ptr<PeerCore>> Core::peers() const {
  if (disowned()) return {};
  const base::MutexLock lock(mutex_);
  std::vector<std::shared_ptr<PeerCore>> all;
  for (const auto& [incarnation, peer] : peers_) {
    if (!peer->is_self) all.push_back(peer);
  }
  return all;
}

void Core::forget(const PeerCore& peer) {
  const base::MutexLock lock(mutex_);
  const auto found = peers_.find(peer.incarnation);
  if (found != peers_.end() && found->second.get() == &peer) peers_.erase(found);
  inbox.let_go_of(peer);
}

Status Core::gone_status(const PeerCore& peer, const Status& cause) {
  // To find it again does not help who cannot talk to it: what would comes first.
  if (cause.code() == Code::kUnsupported) {
    return Status(Code::kUnsupported, "peer '" + peer.name + "' cannot be talked to: " + std::string(cause.message()))
        .with_scope(Scope::kPeer)
        .with_peer(peer.name)
        .with_advice(cause.advice())
        .because(cause.cause());
  }
  return Status(Code::kDisconnected, "peer '" + peer.name + "' is gone")
      .with_scope(Scope::kPeer)
      .with_peer(peer.name)
      .with_advice("find the peer again and plan again")
      .because(cause);
}

Status Core::down_status(PeerCore& peer) const {
  const base::MutexLock lock(peer.mutex);
  return gone_status(peer, peer.down_cause).with_buffer(BufferState::kUntouched);
}

Result<std::shared_ptr<PeerCore>> Core::find_peer(std::string_view name, Instant deadline) {
  if (Status status = usable("find_peer"); !status.ok()) return status;
  if (name.empty()) return Status(Code::kInvalid, "find_peer: the name is empty");
  std::shared_ptr<PeerCore> known;
  for (const auto& peer : peers()) {
    const PeerState state = peer->state.load(std::memory_order_acquire);
    if (peer->name != name || state == PeerState::kDown || known_revision(*peer) == 0) continue;
    if (!known || peer->outranks(*known) || base::planted(base::Planted::kDeadOutranks)) known = peer;
  }
  // A session tells of each change; without one the directory may know better.
  const bool fresh = known && (!options.directory || known->state.load(std::memory_order_acquire) == PeerState::kUp);
  if (fresh) return known;
  // After those whose card is here: they may be called so.
  const std::size_t at = name.rfind('@');
  const bool is_address = at != std::string_view::npos && name.find(':', at) != std::string_view::npos;
  if (is_address && !known) return find_at_address(name.substr(0, at), name.substr(at + 1), deadline);
  if (known) {
    Status why_not;
    const Result<std::shared_ptr<PeerCore>> newer = look_in_directory(name, deadline, &why_not);
    // The directory may still have the card of an incarnation that is gone.
    const bool is_newer = newer && *newer && !known->outranks(**newer);
    return is_newer ? *newer : known;
  }
  if (!options.directory) {
    return Status(Code::kNotFound, "find_peer: no peer '" + std::string(name) + "' is known and agent '" +
                                       options.name + "' has no directory")
        .with_advice("open the agent with a directory, load the peer's card, or name it as name@host:port");
  }
  return find_in_directory(name, deadline);
}

Result<std::shared_ptr<PeerCore>> Core::look_in_directory(std::string_view name, Instant deadline, Status* why_not) {
  Directory& directory = *options.directory;
  const Ticket ticket = directory.get(options.directory_prefix + std::string(name));
  std::optional<DirectoryEvent> answer;
  while (!(answer = directory.poll(ticket)) && now() < deadline) {
    if (!directory.run_job(now(), deadline))
      lane.wait_until([] { return false; }, std::min(deadline, now() + kLookAgain));
  }
  if (!answer) {
    directory.cancel(ticket);
    return std::shared_ptr<PeerCore>();
  }
  *why_not = answer->status;
  if (!answer->status.ok() || answer->entries.empty()) return std::shared_ptr<PeerCore>();
  Result<std::shared_ptr<PeerCore>> peer = take_card(base::as_bytes(answer->entries.front().value));
  if (!peer || (*peer)->state.load(std::memory_order_acquire) != PeerState::kDown) return peer;
  *why_not = down_status(**peer);  // A successor may publish its own.
  return std::shared_ptr<PeerCore>();
}

Result<std::shared_ptr<PeerCore>> Core::find_in_directory(std::string_view name, Instant deadline) {
  Status last;
  for (;;) {
    HAWSER_TRY(usable("find_peer"));  // It may be closed meanwhile.
    const Result<std::shared_ptr<PeerCore>> found = look_in_directory(name, deadline, &last);
    if (!found) return found.error();
    if (*found != nullptr) return *found;
    if (now() >= deadline) break;
    lane.wait_until([] { return false; }, std::min(deadline, now() + kLookAgain));
  }
  return Status(Code::kNotFound, "find_peer: '" + std::string(name) + "' did not appear in the " +
                                     std::string(options.directory->kind()) + " directory in time")
      .with_peer(name)
      .because(last)
      .with_advice("check that the peer runs and uses the same directory and prefix");
}

Result<std::shared_ptr<PeerCore>> Core::find_at_address(std::string_view name, std::string_view address,
                                                        Instant deadline) {
  Result<std::string> resolved = resolve_address(address, deadline);
  if (!resolved) return resolved.error().with_peer(name);
  lane.lock();
  Result<std::uint64_t> ticket = engine.open_stranger("tcp", *resolved, name, deadline, now());
  lane.unlock();
  lane.wake();
  if (!ticket) return ticket.error();
  Result<std::shared_ptr<PeerCore>> found = std::shared_ptr<PeerCore>();
  while (now() < deadline) {
    lane.lock();
    found = engine.take_stranger(*ticket);
    lane.unlock();
    if (!found || *found != nullptr) break;
    lane.wait_until([] { return false; }, std::min(deadline, now() + std::chrono::microseconds(200)));
  }
  lane.lock();
  engine.drop_stranger(*ticket);
  if (found && *found != nullptr) engine.want_card(engine.session(*found), now());
  lane.unlock();
  lane.wake();
  const std::string where = (name.empty() ? "" : std::string(name) + "@") + std::string(address);
  if (!found && found.error().code() == Code::kUnsupported) {
    return Status(Code::kUnsupported,
                  "find_peer: '" + where + "' cannot be talked to: " + std::string(found.error().message()))
        .with_peer(name)
        .with_advice(found.error().advice())
        .because(found.error().cause());
  }
  if (!found) {
    return Status(found.error().code(), "find_peer: '" + where + "' cannot be reached")
        .with_advice("check the address, and that an agent of that name listens there")
        .because(found.error());
  }
  if (*found == nullptr) {
    return Status(Code::kTimedOut, "find_peer: '" + where + "' did not answer in time").with_peer(name);
  }
  if (Status status = wait_for_card(*found, deadline); !status.ok()) return status;
  seek_better_path(*found, std::min(deadline, now() + kBetterPathMax));
  return *found;
}

// Waited for, so that what is planned next takes it: on the same host it is many times as fast as the socket.
void Core::seek_better_path(const std::shared_ptr<PeerCore>& peer, Instant deadline) {
  const auto is_down = [&] { return peer->state.load(std::memory_order_acquire) == PeerState::kDown; };
  lane.lock();
  const std::uint64_t serial = is_down() ? 0 : engine.open_better_path(engine.session(peer), deadline, now());
  lane.unlock();
  lane.wake();
  for (bool is_opening = serial != 0; is_opening && now() < deadline;) {
    lane.wait_until([] { return false; }, std::min(deadline, now() + std::chrono::microseconds(200)));
    lane.lock();
    is_opening = !is_down() && engine.is_opening(engine.session(peer), serial);
    lane.unlock();
  }
}

Status Core::wait_for_card(const std::shared_ptr<PeerCore>& peer, Instant deadline) {
  const auto settled = [&] {
    return known_revision(*peer) > 0 || peer->state.load(std::memory_order_acquire) == PeerState::kDown;
  };
  lane.wake();
  lane.wait_until(settled, deadline);
  if (known_revision(*peer) > 0) return {};
  if (peer->state.load(std::memory_order_acquire) == PeerState::kDown) return down_status(*peer);
  return Status(Code::kTimedOut, "find_peer: " + peer->name + " did not send its card in time").with_peer(peer->name);
}

void Core::await_presence(Instant deadline) {
  lane.lock();
  presence.open();
  const bool is_open = presence.is_open();
  lane.unlock();
  for (bool is_settled = !is_open; !is_settled && now() < deadline;) {
    lane.lock();
    presence.look(now());
    is_settled = presence.is_settled();
    lane.unlock();
    if (is_settled) break;
    if (options.directory->runs_itself()) {
      (void)options.directory->run_job(now(), deadline);  // Waits a little.
    } else {
      presence.run_jobs(now());
    }
  }
}

bool Core::unpublish(Instant deadline) {
  if (!options.directory) return true;
  Directory& directory = *options.directory;
  lane.lock();
  presence.close();
  lane.unlock();
  // A server may be slow, and only this takes the card away while the directory is in use by others.
  const Instant enough = now() + (directory.runs_itself() ? kServerUnpublishMax : kUnpublishMax);
  deadline = std::min(deadline, enough);
  const auto run = [&](Ticket ticket) {
    std::optional<DirectoryEvent> answer;
    while (!(answer = directory.poll(ticket)) && now() < deadline) {
      if (!directory.run_job(now(), deadline)) base::cpu_relax();
    }
    if (!answer) directory.cancel(ticket);
    return answer;
  };
  // A successor of the same name may have published meanwhile: its card stays.
  const std::string key = options.directory_prefix + options.name;
  const auto there = run(directory.get(key));
  const bool is_found = there && there->status.ok() && !there->entries.empty();
  if (!is_found) return there || now() >= enough;
  const Result<wire::CardSummary> card = wire::check_card(base::as_bytes(there->entries.front().value));
  const bool is_ours = card && card->incarnation == identity.incarnation;
  return !is_ours || run(directory.erase(key)) || now() >= enough;
}

}  // namespace hawser::agent
