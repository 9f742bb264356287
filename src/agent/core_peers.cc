// Peers of an agent: met by card, by hello or through a directory.

#include <algorithm>

#include "agent/core.h"
#include "agent/peer_names.h"
#include "base/bytes.h"
#include "base/planted.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(10);  ///< Between two looks into a directory.
constexpr Duration kLookForRegions = std::chrono::milliseconds(20);
/// Nobody waits longer for a path that is only better than the one there is; it may still come up later.
constexpr Duration kBetterPathMax = std::chrono::milliseconds(250);
/// Reads of our key at closing, while it changes each time.
constexpr int kUnpublishTries = 4;
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
  // Silence, time that is over, and bytes that make no sense prove no death.
  const bool is_proven = cause.code() == Code::kDisconnected && cause.scope() != Scope::kPath;
  const bool is_forgotten = cause.code() == Code::kCancelled;
  return Status(Code::kDisconnected, "peer '" + peer.name +
                                         (is_proven      ? "' is gone"
                                          : is_forgotten ? "' was forgotten"
                                                         : "' was given up"))
      .with_scope(Scope::kPeer)
      .with_peer(peer.name)
      .with_advice("find the peer again and plan again")
      .because(cause);
}

Status Core::down_status(PeerCore& peer) const {
  const base::MutexLock lock(peer.mutex);
  return gone_status(peer, peer.down_cause).with_buffer(BufferState::kUntouched);
}

void Core::note_death(const PeerCore& peer, const Status& why) {
  if (peer.is_self) return;
  const base::MutexLock lock(mutex_);
  departed_.add(peer.incarnation, why);
}

void Core::note_life(const PeerCore& peer) {
  const base::MutexLock lock(mutex_);
  departed_.remove(peer.incarnation);
}

Result<std::shared_ptr<PeerCore>> Core::find_peer(std::string_view name, std::span<const std::string_view> wanted,
                                                  Instant deadline) {
  for (;;) {
    const Result<std::shared_ptr<PeerCore>> found = find_once(name, deadline);
    if (!found || wanted.empty()) return found;
    const Status missing = await_regions(*found, wanted, deadline);
    if (missing.ok()) return found;
    // It went meanwhile: its successor may have them.
    if (missing.code() != Code::kDisconnected || now() >= deadline) return missing;
    lane.wait_until([] { return false; }, std::min(deadline, now() + kLookAgain));
  }
}

Result<std::shared_ptr<PeerCore>> Core::find_once(std::string_view name, Instant deadline) {
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
  if (is_address(name) && !known) return find_at_address(name.substr(0, at), name.substr(at + 1), deadline);
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

std::optional<DirectoryEvent> Core::ask_directory(Ticket ticket, Instant deadline) {
  Directory& directory = *options.directory;
  std::optional<DirectoryEvent> answer;
  while (!(answer = directory.poll(ticket)) && now() < deadline) {
    if (!directory.run_job(now(), deadline))
      lane.wait_until([] { return false; }, std::min(deadline, now() + kLookAgain));
  }
  if (!answer) directory.cancel(ticket);
  return answer;
}

Result<std::shared_ptr<PeerCore>> Core::look_in_directory(std::string_view name, Instant deadline, Status* why_not) {
  const auto answer = ask_directory(options.directory->get(options.directory_prefix + std::string(name)), deadline);
  if (!answer) return std::shared_ptr<PeerCore>();
  *why_not = answer->status;
  if (!answer->status.ok() || answer->entries.empty()) return std::shared_ptr<PeerCore>();
  const DirectoryEntry& entry = answer->entries.front();
  const Result<wire::CardSummary> card = wire::check_card(base::as_bytes(entry.value));
  if (!card) return card.error();
  {
    const base::MutexLock lock(mutex_);
    if (const std::optional<Status> death = departed_.judge(card->incarnation, entry.version)) {
      *why_not = Status(Code::kNotFound, "the card in the directory is that of incarnation " +
                                             to_hex(card->incarnation) + ", which has died")
                     .because(*death);
      return std::shared_ptr<PeerCore>();
    }
  }
  Result<std::shared_ptr<PeerCore>> peer = take_card(base::as_bytes(entry.value));
  if (!peer || (*peer)->state.load(std::memory_order_acquire) != PeerState::kDown) return peer;
  *why_not = Status(Code::kNotFound, "its card is that of an incarnation which is down").because(down_status(**peer));
  return std::shared_ptr<PeerCore>();  // A successor may publish its own.
}

Result<std::shared_ptr<PeerCore>> Core::find_in_directory(std::string_view name, Instant deadline) {
  Status last(Code::kTimedOut, "it did not answer");
  for (;;) {
    HAWSER_TRY(usable("find_peer"));  // It may be closed meanwhile.
    const Result<std::shared_ptr<PeerCore>> found = look_in_directory(name, deadline, &last);
    if (!found) return found.error();
    if (*found != nullptr) return *found;
    if (now() >= deadline) break;
    lane.wait_until([] { return false; }, std::min(deadline, now() + kLookAgain));
  }
  return not_in_directory(name, last);
}

Status Core::not_in_directory(std::string_view name, const Status& last) const {
  const std::string kind(options.directory->kind());
  if (last.ok() || last.code() == Code::kNotFound) {
    return Status(Code::kNotFound,
                  "find_peer: '" + std::string(name) + "' did not appear in the " + kind + " directory in time")
        .with_peer(name)
        .because(last)
        .with_advice("check that the peer runs and uses the same directory and prefix");
  }
  // Nothing is known of the peer: it is the directory that failed.
  std::string trouble;
  for (const std::string& warning : options.directory->warnings()) trouble += (trouble.empty() ? "" : "; ") + warning;
  const bool is_silent = last.code() == Code::kTimedOut && !trouble.empty();
  return Status(last.code(), "find_peer: the " + kind + " directory cannot be asked for '" + std::string(name) + "'")
      .because(is_silent ? Status(last.code(), trouble) : last)
      .with_advice(last.advice().empty() ? "check that the directory can be reached: hawser doctor" : last.advice());
}

namespace {

std::string names_of(const Peer& peer) {
  constexpr std::size_t kNamesShown = 8;
  const std::vector<std::string> all = peer.region_names();
  std::string names = all.empty() ? "none" : "";
  for (std::size_t i = 0; i < all.size() && i < kNamesShown; ++i) names += (i == 0 ? "" : ", ") + base::shown(all[i]);
  return all.size() > kNamesShown ? names + ", and " + std::to_string(all.size() - kNamesShown) + " more" : names;
}

std::string missing_of(const Peer& peer, std::span<const std::string_view> names) {
  std::string missing;
  for (const std::string_view name : names) {
    if (peer.region(name)) continue;
    missing += (missing.empty() ? "'" : ", '") + base::shown(name) + "'";
  }
  return missing;
}

Status succeeded_status(const PeerCore& peer) {
  return Status(Code::kDisconnected,
                "peer '" + peer.name + "' has a successor: another incarnation is in the directory")
      .with_scope(Scope::kPeer)
      .with_peer(peer.name)
      .with_advice("find the peer again and plan again");
}

}  // namespace

Status Core::await_regions(const std::shared_ptr<PeerCore>& peer, std::span<const std::string_view> names,
                           Instant deadline) {
  const Peer handle(peer);
  const auto state = [&] { return peer->state.load(std::memory_order_acquire); };
  const bool may_look = options.directory && !peer->is_self;
  Status last;
  for (;;) {
    HAWSER_TRY(usable("await_regions"));
    const std::uint64_t known = known_revision(*peer);
    const std::string missing = missing_of(handle, names);
    if (missing.empty()) return {};
    if (state() == PeerState::kDown) return down_status(*peer);
    if (now() >= deadline) {
      return Status(Code::kNotFound, "peer '" + peer->name + "' has no region " + missing + " yet")
          .with_peer(peer->name)
          .because(last)
          .with_advice("it has: " + names_of(handle));
    }
    // A session tells each change. Without one the directory does; where neither is, a session is opened.
    if (state() != PeerState::kUp && may_look) {
      const auto there = look_in_directory(peer->name, deadline, &last);
      if (there && *there != nullptr && *there != peer) return succeeded_status(*peer);
    } else if (state() == PeerState::kKnown && !peer->is_self) {
      lane.lock();
      engine.connector().want(engine.sessions().of(peer), now());
      lane.unlock();
      lane.wake();
    }
    const auto changed = [&] { return known_revision(*peer) != known || state() == PeerState::kDown; };
    lane.wait_until(changed, std::min(deadline, now() + (may_look ? kLookForRegions : kLookAgain)));
  }
}

Result<std::shared_ptr<PeerCore>> Core::find_at_address(std::string_view name, std::string_view address,
                                                        Instant deadline) {
  HAWSER_TRY_ASSIGN(const TicketedAddress typed, split_ticket(address));
  Result<std::string> resolved = resolve_address(typed.address, deadline);
  if (!resolved) return resolved.error().with_peer(name);
  lane.lock();
  Result<std::uint64_t> number = engine.strangers().open(*resolved, name, typed.ticket, deadline, now());
  lane.unlock();
  lane.wake();
  if (!number) return number.error();
  Result<std::shared_ptr<PeerCore>> found = std::shared_ptr<PeerCore>();
  while (now() < deadline) {
    lane.lock();
    found = engine.strangers().take(*number);
    lane.unlock();
    if (!found || *found != nullptr) break;
    lane.wait_until([] { return false; }, std::min(deadline, now() + std::chrono::microseconds(200)));
  }
  lane.lock();
  engine.strangers().drop(*number);
  if (found && *found != nullptr) engine.exchange().want(engine.sessions().of(*found), now());
  lane.unlock();
  lane.wake();
  const std::string where = (name.empty() ? "" : std::string(name) + "@") + std::string(typed.address);
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
  const std::uint64_t serial = is_down() ? 0 : engine.better().open(engine.sessions().of(peer), deadline, now());
  lane.unlock();
  lane.wake();
  for (bool is_opening = serial != 0; is_opening && now() < deadline;) {
    lane.wait_until([] { return false; }, std::min(deadline, now() + std::chrono::microseconds(200)));
    lane.lock();
    is_opening = !is_down() && engine.better().is_opening(engine.sessions().of(peer), serial);
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

std::optional<DirectoryEvent> Core::ask_alone(Ticket ticket, Instant deadline) {
  Directory& directory = *options.directory;
  std::optional<DirectoryEvent> answer;
  while (!(answer = directory.poll(ticket)) && now() < deadline) {
    if (!directory.run_job(now(), deadline)) base::cpu_relax();
  }
  if (!answer) directory.cancel(ticket);
  return answer;
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
  const auto run = [&](Ticket ticket) { return ask_alone(ticket, deadline); };
  const std::string key = options.directory_prefix + options.name;
  for (int tries = 0; tries < kUnpublishTries; ++tries) {
    const auto there = run(directory.get(key));
    const bool is_found = there && there->status.ok() && !there->entries.empty();
    if (!is_found) return there || now() >= enough;
    const DirectoryEntry& entry = there->entries.front();
    const Result<wire::CardSummary> card = wire::check_card(base::as_bytes(entry.value));
    if (!card || card->incarnation != identity.incarnation) return true;
    // A successor of this name may publish just now: its card stays.
    const auto erased = run(directory.erase(key, {.if_version = entry.version}));
    if (!erased) return now() >= enough;
    if (erased->status.code() != Code::kBusy) return true;
  }
  return true;
}

std::uint64_t Core::learn_born(std::uint64_t clock_ns, Instant deadline) {
  std::optional<DirectoryEvent> answer;
  if (options.directory) {
    answer = ask_alone(options.directory->get(options.directory_prefix + options.name), deadline);
  }
  lane.lock();
  const std::uint64_t born = presence.begin(answer, clock_ns);
  lane.unlock();
  return born;
}

}  // namespace hawser::agent
