#include "player.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/inside.h"
#include "pattern.h"

namespace hawser::storm {
namespace {

constexpr std::size_t kFlightsMax = 24;
constexpr std::size_t kPartsMax = 12;
constexpr std::size_t kAdditionsMax = 16;
constexpr Duration kDeadline = std::chrono::seconds(2);  ///< Of what has no other.
constexpr std::size_t kOldNews = 12;
constexpr Duration kStarved = std::chrono::milliseconds(50);  ///< A longer pause of this thread was no choice of ours.

/// Of a region "in.N".
std::uint64_t number_of(const std::string& region) { return std::stoull(region.substr(region.find('.') + 1)); }

}  // namespace

Player::Player(Agent& agent, const std::atomic<bool>& closing, Board& board, const StormOptions& options,
               std::size_t worker, std::size_t number, std::uint64_t seed)
    : agent_(agent),
      closing_(closing),
      board_(board),
      options_(options),
      worker_(worker),
      number_(number),
      rng_(seed),
      targets_(options.workers),
      last_tick_(Clock::steady().now()) {
  for (Target& target : targets_) {
    target.slots.resize(kSlots);
    for (std::size_t i = 0; i < kSlots; ++i) {
      target.slots[i].offset = slot_offset(i);
      target.slots[i].size = slot_size(i);
      target.slots[i].content.resize(slot_size(i));
    }
  }
  add_memory();
}

Player::~Player() = default;

void Player::fail(const std::string& what) {
  board_.fail(base::format("worker {}, player {}: {}", worker_, number_, what));
  throw Fault();
}

std::string Player::who(const Flight& flight) const {
  return base::format("{} {} of {} parts at worker {} in '{}'", flight.kind == Kind::kWrite ? "write" : "read",
                      flight.uid, flight.parts.size(), flight.worker, flight.region);
}

/// What may become of a call or transfer while processes come and go.
bool Player::is_fair(const Status& status) const {
  switch (status.code()) {
    case Code::kInvalid:
      return closing_;
    case Code::kUnsupported:
    case Code::kCorrupt:
    case Code::kFailed:
      return false;
    default:
      return true;
  }
}

/// A socket that is not there proves nothing to an agent: where it was cleaned away behind a life that is over, the
/// worker is unreachable, and is met anew. Of a living one that would be a fault.
bool Player::is_fair(const Status& status, std::size_t worker, std::uint32_t life) {
  if (status.code() != Code::kUnsupported) return is_fair(status);
  if (!board_.posts[worker].is_over(life)) return false;
  if (status.to_string().find("there is no socket") == std::string::npos) return false;
  if (targets_[worker].life == life) targets_[worker].is_unreachable = true;
  return true;
}

/// Whoever was stopped, or got no time, does not count it.
Instant Player::tick() {
  const Instant now = Clock::steady().now();
  const Duration gap = now - last_tick_;
  last_tick_ = now;
  if (gap > kStarved) {
    for (Flight& flight : flights_) flight.due = flight.due + gap;
    for (Note& note : notes_) note.due = note.due + gap;
    for (Addition& each : additions_) each.due = each.due + gap;
  }
  return now;
}

/// Grows when something happens that may cost a notification.
std::uint32_t Player::interruptions(std::size_t worker) {
  const Post& there = board_.posts[worker];
  return there.lives + there.stops + board_.posts[worker_].stops + board_.partings(worker_, worker);
}

void Player::add_memory() {
  const std::size_t size = options_.workers * kSliceSize;
  if (!options_.allocated) storage_.resize(size);
  Result<Region> made = options_.allocated
                            ? agent_.allocate({.name = {}, .size = size})
                            : agent_.add_region({.bytes = storage_, .device = {}, .rights = Rights::kNone});
  is_over_ = !made && closing_;
  if (is_over_) return;
  if (!made) fail("its memory cannot be registered: " + made.error().to_string());
  region_ = std::move(*made);
  memory_ = region_.bytes();
  for (std::size_t worker = 0; worker < targets_.size(); ++worker) {
    for (Slot& slot : targets_[worker].slots) {
      slot.lost = false;
      scribble(worker, slot, board_.new_uid());
    }
  }
}

std::span<std::byte> Player::ours(std::size_t worker, const Slot& slot) {
  return memory_.subspan(worker * kSliceSize + slot.offset, slot.size);
}

void Player::scribble(std::size_t worker, Slot& slot, std::uint64_t uid) {
  slot.scribble = uid;
  fill(ours(worker, slot), uid);
}

void Player::check_scribble(std::size_t worker, const Slot& slot) {
  const std::size_t same = matching(ours(worker, slot), slot.scribble);
  if (same == slot.size) return;
  fail(base::format("memory of a transfer with worker {} changed after it was final, at byte {} of slot at {}", worker,
                    same, slot.offset));
}

bool Player::meet(std::size_t worker, bool anew) {
  Target& target = targets_[worker];
  if (anew || !target.peer.valid() || target.is_unreachable || target.peer.state() == PeerState::kDown) {
    std::uint32_t life = 0;
    const std::optional<std::string> card = board_.posts[worker].card(&life);
    if (!card) return false;
    Result<Peer> peer = agent_.add_peer(*card);
    if (!peer && !is_fair(peer.error())) fail("add_peer: " + peer.error().to_string());
    if (!peer) return false;
    if (!target.peer.valid() || core_of(target.peer) != core_of(*peer)) {
      target.stream = board_.new_uid();
      target.sent = 0;
      target.region_number = 0;
    }
    target.peer = std::move(*peer);
    target.life = life;
    target.is_unreachable = false;
  }
  look_at_region(worker);
  return !target.region.empty();
}

/// An incarnation's regions have growing numbers, so none that follows may have a smaller one.
void Player::look_at_region(std::size_t worker) {
  Target& target = targets_[worker];
  std::string found;
  for (std::string& name : target.peer.region_names()) {
    if (name.starts_with("in.")) found = std::move(name);
  }
  if (found == target.region) return;
  target.region = found;
  for (Slot& slot : target.slots) {
    slot.known = false;
    slot.doubt.reset();
  }
  if (found.empty()) return;
  const std::uint64_t number = number_of(found);
  if (number < target.region_number)
    fail(base::format("an old card of worker {} brought '{}' back after 'in.{}'", worker, found, target.region_number));
  target.region_number = number;
}

/// A card that is not the newest, of this life or of one before, comes late. It changes nothing.
void Player::hear_old_news(std::size_t worker) {
  const std::string card = board_.posts[worker].old.any(rng_.u64());
  const Result<Peer> peer = agent_.add_peer(card);
  // Its writer may have been killed while it wrote.
  if (!peer && peer.error().code() != Code::kCorrupt && !is_fair(peer.error()))
    fail("add_peer of an old card: " + peer.error().to_string());
}

std::vector<Player::Part> Player::pick(Target& target, bool whole) {
  std::vector<Part> parts;
  const std::size_t most = rng_.chance(0.5) ? 1 : 1 + rng_.below(kPartsMax);
  for (std::size_t tries = 0; tries < 2 * most && parts.size() < most; ++tries) {
    const std::size_t number =
        rng_.chance(is_heavy_ ? 0.5 : 0.03) ? rng_.below(kLargeSlots) : kLargeSlots + rng_.below(kSlots - kLargeSlots);
    const Slot& slot = target.slots[number];
    const bool is_taken = std::ranges::any_of(parts, [&](const Part& part) { return part.slot == number; });
    if (slot.busy || slot.lost || is_taken) continue;
    Part part{.slot = number, .begin = 0, .size = slot.size};
    if (!whole && slot.known) {
      part.begin = rng_.below(slot.size);
      part.size = 1 + rng_.below(slot.size - part.begin);
    }
    parts.push_back(part);
  }
  return parts;
}

void Player::set_busy(std::size_t worker, const std::vector<Part>& parts, bool busy) {
  for (const Part& part : parts) targets_[worker].slots[part.slot].busy = busy;
}

void Player::fill_source(const Flight& flight) {
  for (const Part& part : flight.parts) {
    const Slot& slot = targets_[flight.worker].slots[part.slot];
    check_scribble(flight.worker, slot);
    if (flight.kind == Kind::kWrite) fill(ours(flight.worker, slot).subspan(part.begin, part.size), flight.uid);
  }
}

/// "uid worker lives region offset:size..."
std::string Player::note_of(const Flight& flight) const {
  std::string text =
      base::format("{} {} {} {}", flight.uid, worker_, board_.posts[worker_].lives.load(), flight.region);
  for (const Part& part : flight.parts) {
    const std::size_t at = slice_offset(worker_, number_) + slot_offset(part.slot) + part.begin;
    text += base::format(" {}:{}", at, part.size);
  }
  return text;
}

Result<Plan> Player::plan(const Flight& flight) {
  const Target& target = targets_[flight.worker];
  std::vector<LocalRange> here;
  std::vector<RemoteRange> there;
  for (const Part& part : flight.parts) {
    const std::size_t at = slot_offset(part.slot) + part.begin;
    here.push_back(region_.range(flight.worker * kSliceSize + at, part.size));
    there.push_back(target.peer.range(flight.region, slice_offset(worker_, number_) + at, part.size));
  }
  return flight.kind == Kind::kWrite ? agent_.plan_write(target.peer, here, there)
                                     : agent_.plan_read(target.peer, there, here);
}

Status Player::start(std::size_t worker, Kind kind, std::vector<Part> parts, Duration deadline, bool noted) {
  Flight flight{.kind = kind,
                .worker = worker,
                .life = targets_[worker].life,
                .region = targets_[worker].region,
                .parts = std::move(parts),
                .uid = board_.new_uid(),
                .noted = noted,
                .transfer = {},
                .due = {}};
  Result<Plan> made = plan(flight);
  // The region may have been closed there, and the card changed, since its name was looked up.
  if (!made && !is_fair(made.error(), worker, flight.life))
    fail(who(flight) + " could not be planned: " + made.error().to_string());
  if (!made) return made.error();
  fill_source(flight);
  const std::string note = note_of(flight);
  SubmitOptions options;
  options.deadline = deadline;
  options.priority = static_cast<Priority>(rng_.below(3));
  if (noted) options.notify = note;
  Result<Transfer> sent = made->submit(options);
  if (!sent) {
    for (const Part& part : flight.parts) scribble(worker, targets_[worker].slots[part.slot], flight.uid);
    if (!is_fair(sent.error(), worker, flight.life)) fail(who(flight) + " was refused: " + sent.error().to_string());
    return sent.error();
  }
  flight.transfer = std::move(*sent);
  flight.due = Clock::steady().now() + deadline + options_.slack;
  set_busy(worker, flight.parts, true);
  flights_.push_back(std::move(flight));
  return {};
}

void Player::reap() {
  const Instant now = tick();
  for (std::size_t i = 0; i < flights_.size();) {
    Flight& flight = flights_[i];
    if (!flight.transfer.done()) {
      if (now > flight.due) fail(who(flight) + " is not final long after its deadline");
      ++i;
      continue;
    }
    Flight ended = std::move(flight);
    flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
    judge(ended);
  }
  look_at_notes();
  reap_additions(now);
}

void Player::judge(Flight& flight) {
  const Status status = flight.transfer.status();
  Target& target = targets_[flight.worker];
  set_busy(flight.worker, flight.parts, false);
  ++(flight.kind == Kind::kWrite ? board_.tally.writes : board_.tally.reads);
  if (!status.ok()) ++board_.tally.bad[static_cast<std::size_t>(status.code())];
  if (!status.ok() && !is_fair(status, flight.worker, flight.life))
    fail(who(flight) + " ended badly: " + status.to_string());
  if (status.code() == Code::kCancelled && !flight.cancelled && !closing_)
    fail(who(flight) + " was cancelled by nobody");
  // What ended badly may have told the peer all the same.
  if (flight.noted && !status.ok()) board_.withdraw(flight.uid);
  flight.kind == Kind::kWrite ? judge_write(target, flight, status) : judge_read(target, flight, status);
  for (const Part& part : flight.parts) scribble(flight.worker, target.slots[part.slot], board_.new_uid());
  if (flight.noted && status.ok()) watch_note(flight);
}

void Player::judge_write(Target& target, const Flight& flight, const Status& status) {
  if (flight.region != target.region) return;  // All is unknown anyway.
  for (const Part& part : flight.parts) {
    Slot& slot = target.slots[part.slot];
    slot.doubt.reset();
    if (status.ok() || status.buffer() == BufferState::kComplete) {
      fill(std::span(slot.content).subspan(part.begin, part.size), flight.uid);
      slot.known = slot.known || part.size == slot.size;
    } else if (status.buffer() != BufferState::kUntouched) {
      const auto before = std::span(slot.content).subspan(part.begin, part.size);
      // Of several parts one may be complete and another untouched.
      if (slot.known && flight.parts.size() == 1) {
        slot.doubt = {.state = status.buffer(), .begin = part.begin, .before = {before.begin(), before.end()}};
        slot.doubt->brought.resize(part.size);
        fill(slot.doubt->brought, flight.uid);
      }
      slot.known = false;
    }
  }
}

/// What a status said of the bytes is held against them.
void Player::judge_doubt(const Flight& flight, const Part& part, const Doubt& doubt) {
  const std::size_t size = doubt.before.size();
  if (part.begin > doubt.begin || part.begin + part.size < doubt.begin + size) return;
  const auto read = ours(flight.worker, targets_[flight.worker].slots[part.slot]).subspan(doubt.begin, size);
  bool holds_old = false, holds_new = false;
  for (std::size_t i = 0; i < size; ++i) {
    if (doubt.before[i] == doubt.brought[i]) continue;
    const bool is_new = read[i] == doubt.brought[i];
    const bool is_old = read[i] == doubt.before[i] || read[i] == std::byte{0};
    if (!is_new && !is_old)
      fail(base::format("{}: byte {} holds neither what it held, nor what a write that failed brought, nor zero",
                        who(flight), i));
    holds_new = holds_new || is_new;
    holds_old = holds_old || !is_new;
  }
  ++board_.tally.doubts;
  if (doubt.state == BufferState::kPartlyWritten && !(holds_old && holds_new))
    fail(base::format("{}: a write was told to have left {} bytes partly written, but they hold all of it or nothing",
                      who(flight), size));
}

void Player::judge_read(Target& target, const Flight& flight, const Status& status) {
  if (!status.ok() || flight.region != target.region) return;
  for (const Part& part : flight.parts) {
    const Slot& slot = target.slots[part.slot];
    if (slot.doubt) judge_doubt(flight, part, *slot.doubt);
    if (!slot.known) continue;
    ++board_.tally.compared;
    const auto read = ours(flight.worker, slot).subspan(part.begin, part.size);
    const auto wanted = std::span<const std::byte>(slot.content).subspan(part.begin, part.size);
    const auto differs = std::ranges::mismatch(read, wanted).in1;
    if (differs != read.end()) {
      fail(base::format("{} brought other bytes than were written, from byte {} of {} of slot {}", who(flight),
                        differs - read.begin(), part.size, part.slot));
    }
  }
}

void Player::watch_note(const Flight& flight) {
  set_busy(flight.worker, flight.parts, true);
  notes_.push_back({.uid = flight.uid,
                    .worker = flight.worker,
                    .parts = flight.parts,
                    .peer = targets_[flight.worker].peer,
                    .interruptions = interruptions(flight.worker),
                    .due = Clock::steady().now() + options_.slack});
}

bool Player::is_excused(const Note& note) {
  return note.interruptions != interruptions(note.worker) || note.peer.state() == PeerState::kDown;
}

void Player::look_at_notes() {
  std::erase_if(notes_, [this](const Note& note) {
    const bool is_there = board_.is_acknowledged(note.uid);
    if (is_there) ++board_.tally.notes;
    if (!is_there && !is_excused(note)) {
      if (last_tick_ > note.due) fail(base::format("notification {} never came to worker {}", note.uid, note.worker));
      return false;
    }
    if (!is_there) board_.withdraw(note.uid);
    set_busy(note.worker, note.parts, false);
    return true;
  });
}

void Player::talk(std::size_t worker) {
  Target& target = targets_[worker];
  for (std::uint64_t burst = 1 + rng_.below(4); burst > 0; --burst) {
    std::string text = base::format("{} {} {} {} ", worker_, target.stream, target.sent + 1, interruptions(worker));
    if (rng_.chance(0.1)) text.append(rng_.below(20'000), '.');
    const Status status = target.peer.send(channel_of(number_), std::as_bytes(std::span(text))).error();
    if (!status.ok() && !is_fair(status, worker, target.life)) fail("send: " + status.to_string());
    if (!status.ok()) return;
    ++target.sent;
  }
}

void Player::add_one(std::size_t worker) {
  const Target& target = targets_[worker];
  Addition addition{.worker = worker, .life = target.life, .region = number_of(target.region), .op = {}, .due = {}};
  Additions* const its = board_.additions(addition.region);
  if (its == nullptr) return;
  ++its->begun;
  Result<AtomicOp> op =
      fetch_add(agent_, target.peer.range(target.region, word_offset(options_.workers), sizeof(std::uint64_t)), 1,
                {.deadline = kDeadline});
  if (!op) {
    const bool is_there = target.peer.region(target.region).has_value();
    if (is_there && !is_fair(op.error(), worker, addition.life)) fail("fetch_add: " + op.error().to_string());
    --its->begun;
    return;
  }
  addition.op = std::move(*op);
  addition.due = Clock::steady().now() + kDeadline + options_.slack;
  additions_.push_back(std::move(addition));
}

void Player::reap_additions(Instant now) {
  std::erase_if(additions_, [&](Addition& addition) {
    if (!addition.op.done()) {
      if (now > addition.due) fail("an addition is not final long after its deadline");
      if (rng_.chance(0.01)) addition.op.cancel();
      return false;
    }
    const Status status = addition.op.status();
    if (!status.ok() && !is_fair(status, addition.worker, addition.life))
      fail("an addition ended badly: " + status.to_string());
    ++board_.tally.additions;
    Additions* const its = board_.additions(addition.region);
    if (its == nullptr) return true;
    if (status.ok()) ++its->done;
    if (!status.ok() && status.buffer() == BufferState::kUntouched) --its->begun;
    return true;
  });
}

void Player::cancel_one() {
  if (flights_.empty()) return;
  Flight& flight = flights_[rng_.below(flights_.size())];
  flight.cancelled = true;
  flight.transfer.cancel();
}

/// Its memory is in use for nobody knows how long, and so is its slot.
void Player::drop_one() {
  if (flights_.empty() || drops_left_ == 0) return;
  --drops_left_;
  const auto which = flights_.begin() + static_cast<std::ptrdiff_t>(rng_.below(flights_.size()));
  board_.withdraw(which->uid);
  for (const Part& part : which->parts) {
    Slot& slot = targets_[which->worker].slots[part.slot];
    slot.lost = true;
    slot.busy = slot.known = false;
    slot.doubt.reset();
  }
  flights_.erase(which);
}

void Player::forget_one() {
  const std::size_t worker = rng_.below(targets_.size());
  if (worker == worker_ || !targets_[worker].peer.valid()) return;
  ++board_.partings(worker_, worker);
  if (const Status status = agent_.invalidate(targets_[worker].peer); !status.ok() && !is_fair(status)) {
    fail("invalidate: " + status.to_string());
  }
}

/// A close that ends well means that nothing touches the memory any more, whatever became of its transfers.
void Player::renew_memory() {
  for (Flight& flight : flights_) flight.cancelled = true;
  Status status;
  for (int tries = 0; tries < 4; ++tries) {
    status = region_.close(options_.slack);
    static_cast<void>(tick());  // That was no pause of the transfers.
    if (status.ok()) break;
  }
  if (!status.ok()) fail("a region that only its owner uses cannot be closed: " + status.to_string());
  reap();
  if (!flights_.empty()) fail(who(flights_.front()) + " is not final though its region is closed");
  region_ = Region();
  add_memory();
}

void Player::act() {
  if (is_over_) return;
  const std::uint64_t dice = rng_.below(1000);
  std::size_t worker = rng_.below(targets_.size());
  if (worker == worker_) worker = (worker + 1) % targets_.size();
  if (dice < 2) {
    forget_one();
  } else if (dice < 4) {
    renew_memory();
  } else if (dice < 40) {
    cancel_one();
  } else if (dice < 42) {
    drop_one();
  } else if (dice < 60) {
    static_cast<void>(meet(worker, true));
  } else if (dice < 62) {
    if (targets_[worker].peer.valid()) static_cast<void>(targets_[worker].peer.reconnect());
  } else if (dice < 70) {
    hear_old_news(worker);
  } else if (dice < 160) {
    if (meet(worker, false)) talk(worker);
  } else if (dice < 260) {
    if (additions_.size() < kAdditionsMax && meet(worker, false)) add_one(worker);
  } else if (flights_.size() < kFlightsMax && meet(worker, false)) {
    const Kind kind = rng_.chance(0.55) ? Kind::kWrite : Kind::kRead;
    std::vector<Part> parts = pick(targets_[worker], rng_.chance(0.3));
    const Duration deadline = rng_.chance(0.1) ? std::chrono::milliseconds(rng_.range(1, 20)) : kDeadline;
    const bool noted = kind == Kind::kWrite && rng_.chance(0.3);
    if (!parts.empty()) static_cast<void>(start(worker, kind, std::move(parts), deadline, noted));
  }
  reap();
}

void Player::finish() {
  while ((!flights_.empty() || !additions_.empty()) && !board_.failed()) {
    static_cast<void>(agent_.wait(std::chrono::milliseconds(2)));
    reap();
  }
}

Status Player::do_all(std::size_t worker, Kind kind) {
  for (std::size_t number = 0; number < kSlots; ++number) {
    const Slot& slot = targets_[worker].slots[number];
    if (slot.lost) continue;
    const std::vector<Part> whole{{.slot = number, .begin = 0, .size = slot.size}};
    const Status status = start(worker, kind, whole, options_.slack, false);
    if (!status.ok()) return status;
    while (!flights_.empty() && !flights_.back().transfer.done() && !board_.failed()) {
      static_cast<void>(agent_.wait(std::chrono::milliseconds(2)));
    }
    if (board_.failed()) return {};
    const Status ended = flights_.back().transfer.status();
    reap();
    if (!ended.ok()) return ended;
  }
  return {};
}

bool Player::prove_by(std::size_t worker, bool may_meet_anew, Instant end, Status& last) {
  while (Clock::steady().now() < end && !board_.failed()) {
    if (meet(worker, may_meet_anew && last.code() != Code::kNotFound)) {
      last = do_all(worker, Kind::kWrite);
      if (last.ok()) last = do_all(worker, Kind::kRead);
      if (last.ok()) return true;
    }
    static_cast<void>(agent_.wait(std::chrono::milliseconds(20)));
  }
  return board_.failed();
}

void Player::prove_with(std::size_t worker) {
  Status last(Code::kNotFound, "it has no region");
  if (!prove_by(worker, true, Clock::steady().now() + 4 * options_.slack, last))
    fail(base::format("worker {} (life {} of {}{}) cannot be used in calm: {}", worker, targets_[worker].life,
                      board_.posts[worker].lives.load(),
                      board_.posts[worker].is_over(targets_[worker].life) ? ", which is over" : "", last.to_string()));
  for (std::size_t i = 0; i < kOldNews; ++i) hear_old_news(worker);
  if (!prove_by(worker, false, Clock::steady().now() + 4 * options_.slack, last))
    fail(base::format("old cards made worker {} useless: {}", worker, last.to_string()));
  const Result<Peer> found = agent_.find_peer(base::format("w{}", worker), options_.slack);
  if (!board_.failed() && (!found || core_of(*found) != core_of(targets_[worker].peer)))
    fail(base::format("after old cards worker {} is found as another one", worker));
}

void Player::prove() {
  finish();
  for (const Note& note : notes_) board_.withdraw(note.uid);
  notes_.clear();
  for (std::size_t worker = 0; worker < targets_.size() && !board_.failed(); ++worker) {
    if (worker != worker_) prove_with(worker);
  }
  for (std::size_t worker = 0; worker < targets_.size(); ++worker) {
    for (const Slot& slot : targets_[worker].slots) {
      if (!slot.lost) check_scribble(worker, slot);
    }
  }
}

}  // namespace hawser::storm
