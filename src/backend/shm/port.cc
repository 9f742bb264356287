#include "backend/shm/port.h"

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "proto/detector.h"

namespace hawser::backend::shm {
namespace {

template <typename T>
void drop(std::vector<T*>& list, const T* value) {
  std::erase(list, value);
}

}  // namespace

ShmPort::ShmPort(const Shared& shared, base::Epoll epoll)
    : shared_(shared),
      watches_(std::move(epoll)),
      visitors_(
          {.watches = watches_,
           .forks = shared.forks,
           .identity = shared.context.identity,
           .log = shared.context.log,
           .admit = [this](ForkFd& socket, Packet& packet, const Open& open) { return admit(socket, packet, open); }}) {
  shared_.forks.add(watches_.fd());
}

Result<std::unique_ptr<Port>> ShmPort::make(const Shared& shared) {
  HAWSER_TRY_ASSIGN(base::Epoll epoll, base::Epoll::open());
  std::unique_ptr<ShmPort> port(new ShmPort(shared, std::move(epoll)));
  HAWSER_TRY(port->visitors_.listen(shared.place.socket()));
  return std::unique_ptr<Port>(std::move(port));
}

ShmPort::~ShmPort() {
  paths_.clear();
  ghosts_.clear();
  shared_.forks.remove(watches_.fd());
}

Result<Path*> ShmPort::open_path(const PathTarget& target, Instant now) {
  if (is_closing_) return Status(Code::kDisconnected, "this agent is closing");
  HAWSER_TRY_ASSIGN(Address address, decode_address(target.address));
  HAWSER_TRY(reach(address, shared_.boot));
  now_ = now;
  paths_.push_back(std::make_unique<ShmPath>(*this, target, std::move(address.socket)));
  ShmPath& path = *paths_.back();
  connecting_.push_back(&path);
  path.start(now);
  return &path;
}

void ShmPort::describe(const WaitVisitor& visitor) const {
  for (const auto* list : {&paths_, &ghosts_}) {
    for (const auto& path : *list) path->describe_waits(visitor);
  }
}

void ShmPort::release_path(Path* released) {
  const auto found = std::ranges::find(paths_, released, &std::unique_ptr<ShmPath>::get);
  if (found == paths_.end()) return;
  std::unique_ptr<ShmPath> path = std::move(*found);
  *found = std::move(paths_.back());
  paths_.pop_back();
  const bool must_stay = path->release();
  forget(*path);
  if (must_stay) ghosts_.push_back(std::move(path));
}

/// Nothing but paths_ or ghosts_ knows it any more.
void ShmPort::forget(ShmPath& path) {
  for (std::vector<ShmPath*>* list : {&hot_, &senders_, &blocked_, &draining_, &connecting_}) drop(*list, &path);
  path.is_hot = path.is_blocked = false;
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(events_taken_));
  events_taken_ = 0;
  std::erase_if(events_, [&path](const PortEvent& event) { return event.path == &path; });
}

std::size_t ShmPort::turn(Instant now, const TurnBudget& budget) {
  now_ = now;
  beside_jobs_left_ = kBesideJobsPerTurn;
  std::size_t work = 0;
  if (has_slept_ || now - looked_at_ >= kLookInterval || ++turns_ >= kTurnsPerLook) work += look(now);
  if (!queue_.empty()) work += copy(budget);
  if (!senders_.empty()) work += flush();
  if (!blocked_.empty()) work += unblock();
  if (!unmaps_.empty()) work += unmap_some();
  for (const ShmPath* path : hot_) work += path->has_message() ? 1 : 0;
  return work + draining_.size() + (events_.size() - events_taken_);
}

std::size_t ShmPort::look(Instant now) {
  looked_at_ = now;
  turns_ = 0;
  has_slept_ = false;
  const std::size_t count =
      watches_.look([this](const Watch& watch, std::uint32_t events) { on_event(watch, events); });
  if (!connecting_.empty()) check_deadlines(now);
  visitors_.turn(now);
  if (!ghosts_.empty()) bury_ghosts();
  if (heartbeat_at_ <= now) watch_peers(now);
  return count;
}

void ShmPort::on_event(const Watch& watch, std::uint32_t events) {
  switch (watch.kind) {
    case Watch::Kind::kListener:
      return visitors_.on_listener(now_);
    case Watch::Kind::kVisitor:
      return visitors_.on_visitor(*static_cast<Visitors::Visitor*>(watch.owner), now_);
    case Watch::Kind::kSocket:
      return static_cast<ShmPath*>(watch.owner)->on_socket(events);
    case Watch::Kind::kProcess:
      return static_cast<ShmPath*>(watch.owner)->on_process_end();
    case Watch::Kind::kDoor: {
      auto& path = *static_cast<ShmPath*>(watch.owner);
      path.answer_heartbeat();
      if (path.state() == PathState::kUp) make_hot(path);
      return;
    }
  }
}

void ShmPort::check_deadlines(Instant now) {
  for (std::size_t i = 0; i < connecting_.size(); ++i) connecting_[i]->check_deadline(now);
  std::erase_if(connecting_, [](const ShmPath* path) { return path->state() != PathState::kConnecting; });
}

void ShmPort::watch_peers(Instant now) {
  auto asked = static_cast<std::size_t>(
      std::ranges::count_if(paths_, [now](const auto& path) { return path->next_heartbeat() <= now; }));
  const bool is_due = asked > 0;  // Else one that was due was heard meanwhile.
  heartbeat_at_ = Instant::max();
  for (const auto& path : paths_) {
    if (is_due && asked < proto::kHastenedMax && path->hasten_heartbeat(now)) ++asked;
    path->watch_peer(now);
    heartbeat_at(path->next_heartbeat());
  }
}

void ShmPort::bury_ghosts() {
  std::erase_if(ghosts_, [](const auto& path) { return path->is_peer_quiet(); });
}

Status ShmPort::admit(ForkFd& socket, Packet& packet, const Open& open) {
  auto path = std::make_unique<ShmPath>(*this, std::move(socket), open);
  Status status = path->admit(packet, open);
  if (!status.ok()) {
    socket = path->take_socket();
    forget(*path);
    return status;
  }
  paths_.push_back(std::move(path));
  return {};
}

std::size_t ShmPort::copy(const TurnBudget& budget) {
  std::uint64_t left = budget.copy_bytes;
  std::size_t work = 0;
  while (left > 0) {
    Job* job = queue_.front();
    if (job == nullptr) break;
    auto& path = static_cast<ShmPath&>(*job->path);
    const base::SlotId id = job->id;
    const std::uint64_t cost = path.work(*job, budget, left);
    if (Job* same = queue_.get(id)) queue_.rotate(*same);
    left -= std::min(left, cost);
    ++work;
    if (has_message()) break;
  }
  return work;
}

std::size_t ShmPort::flush() {
  const std::size_t before = senders_.size();
  std::erase_if(senders_, [](ShmPath* path) { return path->flush_outbox(); });
  return before - senders_.size();
}

/// No bell tells one who does not sleep that there is room: the session would wait for its pause.
std::size_t ShmPort::unblock() {
  return std::erase_if(blocked_, [](ShmPath* path) {
    if (path->has_refused() && !path->take_room()) return false;
    path->is_blocked = false;
    return true;
  });
}

/// A large mapping goes in steps: the kernel takes 0.2 us per page.
std::size_t ShmPort::unmap_some() {
  Mapping& mapping = unmaps_.back();
  mapping.shrink_by(kUnmapStep);
  if (!mapping) unmaps_.pop_back();
  return 1;
}

void ShmPort::unmap_later(Mapping mapping) {
  if (mapping) unmaps_.push_back(std::move(mapping));
}

CrossMover& ShmPort::cross_mover() {
  if (cross_mover_ == nullptr) cross_mover_ = std::make_unique<CrossMover>();
  return *cross_mover_;
}

std::size_t ShmPort::take_events(std::span<PortEvent> out) {
  const std::size_t count = std::min(out.size(), events_.size() - events_taken_);
  for (std::size_t i = 0; i < count; ++i) out[i] = std::move(events_[events_taken_++]);
  if (events_taken_ == events_.size()) {
    events_.clear();
    events_taken_ = 0;
  }
  return count;
}

std::size_t ShmPort::poll(std::span<PortEvent> out) {
  std::size_t count = take_events(out);
  if (inbox_ == nullptr) inbox_ = std::make_unique_for_overwrite<std::byte[]>(kInboxBytes);
  Inbox inbox{{inbox_.get(), kInboxBytes}};
  // Only when all events before are told: a message must not overtake its path's kPathUp.
  const std::size_t hot = hot_.size();
  const std::size_t draining = draining_.size();  // one that begins to drain now has its turn in the next poll
  for (std::size_t i = 0; i < hot && events_.empty() && count < out.size(); ++i) {
    ShmPath& path = *hot_[(poll_next_ + i) % hot];
    if (path.stage() != Stage::kUp) continue;
    const std::size_t got = path.receive(out.subspan(count), inbox);
    if (got != 0) {
      path.was_touched = true;
      note_message();
    }
    count += got;
  }
  if (hot != 0) poll_next_ = (poll_next_ + 1) % hot;
  if (draining != 0) count += drain(out.subspan(count), draining, inbox);
  return count;
}

/// Reads what ended paths still hold; those that hold nothing more are down.
std::size_t ShmPort::drain(std::span<PortEvent> out, std::size_t paths, Inbox& inbox) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < paths && events_.empty() && count < out.size(); ++i) {
    count += draining_[i]->receive(out.subspan(count), inbox);
  }
  if (count != 0 || !events_.empty()) return count;
  std::erase_if(hot_, [](ShmPath* path) { return path->stage() != Stage::kUp && std::exchange(path->is_hot, false); });
  std::erase_if(draining_, [](ShmPath* path) {
    if (path->has_message()) return false;
    path->finish_draining();
    return true;
  });
  return take_events(out);
}

void ShmPort::make_hot(ShmPath& path) {
  path.was_touched = true;
  if (path.is_hot) return;
  if (hot_.size() >= options().hot_paths) cool_one();
  // It stays armed until its doorbell rang once: another thread may sleep by it.
  path.is_hot = true;
  hot_.push_back(&path);
}

/// Second chance: a path that was used since the hand passed stays.
void ShmPort::cool_one() {
  for (std::size_t i = 0; i < 2 * hot_.size(); ++i) {
    hand_ = (hand_ + 1) % hot_.size();
    ShmPath& path = *hot_[hand_];
    if (std::exchange(path.was_touched, false)) continue;
    break;
  }
  ShmPath& path = *hot_[hand_];
  path.is_hot = false;
  hot_[hand_] = hot_.back();
  hot_.pop_back();
  // Something came meanwhile: it is found like any other. And what the agent still deals with is given back later.
  if (!path.arm() || path.holds_taken()) path.ring_own_door();
}

void ShmPort::note_blocked(ShmPath& path) {
  if (std::exchange(path.is_blocked, true)) return;
  blocked_.push_back(&path);
}

void ShmPort::supersede(const base::Id128& session, const base::Id128& incarnation) {
  for (const auto& path : paths_) {
    if (path->session() == session && path->peer().incarnation == incarnation) {
      path->end(Status(Code::kDisconnected, "replaced by a new session of the peer").with_scope(Scope::kPath));
    }
  }
}

bool ShmPort::prepare_sleep() {
  if (events_taken_ != events_.size() || !queue_.empty() || !unmaps_.empty() || !draining_.empty()) return false;
  has_slept_ = true;
  bool may_sleep = true;
  for (ShmPath* path : hot_) {
    path->give_back();
    may_sleep = path->arm() && may_sleep;
  }
  std::erase_if(blocked_, [](ShmPath* path) { return !path->has_refused() && std::exchange(path->is_blocked, false); });
  for (ShmPath* path : blocked_) may_sleep = path->await_room() && may_sleep;
  return may_sleep;
}

void ShmPort::regions_closing(std::span<const RegionId> ids) {
  // Without paths nobody is inside, and the barrier that makes pins visible can be saved.
  const bool has_paths = !paths_.empty() || !ghosts_.empty();
  shared_.gates.shut(ids,
                     has_paths && std::ranges::any_of(ids, [this](const RegionId& id) { return is_enterable(id); }));
}

/// Whether a peer may be entering that region just now. Where a grant for one transfer is one peer's, and that peer has
/// said that the transfer is over, it left its last pin before that word, which this thread has read: all pins can be
/// seen without a barrier.
bool ShmPort::is_enterable(const RegionId& id) const {
  if (!served_.of(id).is_any) return false;  // Nobody was told where it lies, and nobody is told any more.
  const std::shared_ptr<const RegionEntry> entry = shared_.context.regions.at(id.index);
  const bool is_it = entry != nullptr && entry->generation == id.generation;
  return !is_it || entry->once == nullptr || entry->holder.is_zero() || !entry->once->is_over();
}

bool ShmPort::region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) {
  const RegionId id{index, generation};
  regions_closing(std::array{id});  // A late one: mostly it is shut already.
  const ServedRegions::Served served = served_.of(id);
  if (!served.is_any) return true;
  if (served.only != nullptr) return !static_cast<const ShmPath*>(served.only)->holds(index, generation, holder);
  const base::Id128 only = only_holder(shared_.context.regions, id);
  for (const auto* list : {&paths_, &ghosts_}) {
    for (const auto& path : *list) {
      if (!only.is_zero() && path->peer().incarnation != only) continue;  // It was never told where that lies.
      if (path->holds(index, generation, holder)) return false;
    }
  }
  return true;
}

void ShmPort::begin_close(Instant now) {
  if (std::exchange(is_closing_, true)) return;
  now_ = now;
  visitors_.close();
  shared_.place.close();
  for (const auto& path : paths_) path->end(Status(Code::kDisconnected, "this agent closes").with_scope(Scope::kPeer));
}

bool ShmPort::idle() const {
  const auto is_down = [](const auto& path) { return path->stage() == Stage::kDown; };
  return is_closing_ && events_taken_ == events_.size() && std::ranges::all_of(paths_, is_down);
}

Instant ShmPort::next_deadline() const {
  Instant next = std::min(visitors_.next_deadline(), heartbeat_at_);
  for (const ShmPath* path : connecting_) next = std::min(next, path->next_deadline());
  return next;
}

}  // namespace hawser::backend::shm
