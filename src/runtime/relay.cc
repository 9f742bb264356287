#include "runtime/relay.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/bytes.h"
#include "base/planted.h"
#include "runtime/proof_of_death.h"
#include "runtime/rank_bitmap.h"
#include "runtime/rank_list.h"

namespace hawser::runtime {
namespace {

using agent::Sent;
using base::planted;
using base::Planted;
using wire::RelayKind;
using wire::RelayMessage;

constexpr std::uint32_t kRelayWindow = 64;  ///< Messages of one neighbour on their way to here.

constexpr std::array kPriorities = {Priority::kCritical, Priority::kRealtime, Priority::kBulk};

constexpr agent::OwnChannel relay_channel(Priority priority) {
  return {.id = wire::relay_channel_of(priority), .window = kRelayWindow, .priority = priority};
}

constexpr const char* kUnreachable =
    "it cannot be reached any more: every way leads by ranks that are gone, or links that are lost";
constexpr const char* kLeftOut =
    "it and a neighbour have lost each other, and of such ranks the one that lost more is left out, then the one that "
    "fewer others need as a relay, then the higher";

Status corrupt_relay(const char* what) { return {Code::kCorrupt, std::string("relay: ") + what}; }

}  // namespace

Relay::Relay(agent::Carrier& carrier, Site site)
    : carrier_(carrier),
      site_(std::move(site)),
      mailbox_(std::make_shared<Mailbox>(*this)),
      routes_(site_.topology, site_.rank, site_.size),
      ended_(site_.size),
      has_told_(site_.size),
      court_(routes_, [this](std::uint32_t rank) { convict(rank, carrier_.now()); }),
      clock_(*mailbox_, site_.heartbeat, site_.peer_timeout,
             {.settle =
                  [this] {
                    court_.settle();
                    watch_court();
                  },
              .give_up =
                  [this] {
                    court_.give_up();
                    watch_court();
                  }}),
      cards_(site_.size) {
  std::ranges::copy(mailbox_->channels(), std::back_inserter(channels_));
  std::ranges::transform(kPriorities, std::back_inserter(channels_), &relay_channel);
  for (std::uint32_t rank = 0; rank < site_.size; ++rank) {
    if (rank == site_.rank) continue;
    if (routes_.is_neighbour(rank)) {
      links_[rank];
    } else {
      (far_[rank] = std::make_unique<Far>())->rank = rank;
    }
  }
}

Relay::~Relay() = default;

// ---- Who is who.

Relay::Far* Relay::far_of(const agent::Session& session) const {
  const auto found = by_session_.find(&session);
  return found == by_session_.end() ? nullptr : found->second;
}

std::uint32_t Relay::rank_of(const agent::Session& session) const {
  const auto known = by_source_.find(source_of(agent::inner::peer_of(session)));
  return known == by_source_.end() ? kNoRank : known->second;
}

/// Only what is found under a rank's name is that rank. It may speak before it is found.
void Relay::hold(const agent::Session& session, std::uint32_t channel, std::span<const std::byte> bytes) {
  held_[source_of(agent::inner::peer_of(session))].push_back({channel, std::string(base::as_text(bytes))});
}

void Relay::hear_held(std::uint32_t rank, const Peer& peer, Instant now) {
  const auto held = held_.extract(source_of(peer));
  if (held.empty()) return;
  for (const auto& [channel, bytes] : held.mapped()) {
    const Result<RelayMessage> message = wire::decode_relay(base::as_bytes(bytes));
    const Status heard = message ? hear(rank, wire::class_of_relay(channel), *message, now) : message.error();
    if (!heard.ok()) return lose(rank, heard, now);
    Status gone;
    agent::Session* const session = carrier_.session_with(peer, &gone);
    if (session != nullptr) carrier_.release_message(*session, channel, bytes.size());
  }
}

void Relay::note_peer(std::uint32_t rank, const Peer& peer) {
  by_source_[source_of(peer)] = rank;
  const auto link = links_.find(rank);
  if (link == links_.end()) return;
  link->second.peer = peer;
  link->second.is_met = true;
}

// ---- Formation.

void Relay::meet(std::uint32_t rank, const Peer& peer, Instant now) {
  note_peer(rank, peer);
  serve_links(now);
  hear_held(rank, peer, now);
}

void Relay::tell_card(std::uint32_t rank, std::string card, Instant now) {
  if (is_entered_ || !cards_[rank].empty()) return;
  cards_[rank] = std::move(card);
  tell_all({.kind = RelayKind::kCard, .rank = rank}, std::make_shared<const std::string>(cards_[rank]), now);
  look_at_formation();
}

void Relay::look_at_formation() {
  if (is_entered_ || (broken_.ok() && std::ranges::any_of(cards_, &std::string::empty))) return;
  is_formed_.store(true, std::memory_order_release);
  carrier_.note_end();
}

void Relay::enter(std::span<const Peer> ranks, Instant now) {
  peers_.assign(ranks.begin(), ranks.end());
  for (std::uint32_t rank = 0; rank < site_.size; ++rank) note_peer(rank, peers_[rank]);
  is_entered_ = true;
  cards_.clear();
  held_.clear();
  for (const auto& [rank, far] : far_) {
    far->session = agent::inner::session_apart(peers_[rank]);
    by_session_[far->session.get()] = far.get();
  }
  serve_links(now);
  for (const auto& [rank, far] : far_) {
    for (const auto& [priority, message] : std::exchange(far->early, {})) {
      const std::uint32_t channel = wire::runtime_channel_of(priority);
      const Status heard = mailbox_->on_message(*far->session, channel, base::as_bytes(message), now);
      if (!heard.ok()) lose(rank, heard, now);
    }
    for (const Priority priority : kPriorities) {
      if (far->window(priority).received() > 0) send_acknowledgement(*far, priority, false, now);
    }
  }
}

// ---- What waits for neighbours.

void Relay::serve_link(Neighbour& link, Instant now) {
  if (!link.is_met || link.waiting() == 0) return;
  Status gone;
  agent::Session* const session = carrier_.session_with(link.peer, &gone);
  if (session == nullptr) return;
  mailbox_->attend(*session);
  carrier_.serve(*session, now);
}

void Relay::serve_links(Instant now) {
  for (auto& [rank, link] : links_) serve_link(link, now);
}

void Relay::tell_all(const RelayMessage& message, const std::shared_ptr<const std::string>& body, Instant now) {
  const bool precedes_frames =
      message.kind == RelayKind::kGone || message.kind == RelayKind::kLost || message.kind == RelayKind::kGraph;
  for (auto& [rank, link] : links_) {
    if (link.is_lost) continue;
    for (const Priority priority : kPriorities) {
      if (priority != Priority::kRealtime && !precedes_frames) continue;
      link.queue(priority).push_word({.message = message, .body = body});
    }
  }
  serve_links(now);
}

bool Relay::drain_queue(agent::Session& session, Neighbour& link, Priority priority, std::size_t* work) {
  RelayQueue& queue = link.queue(priority);
  while (const RelayItem* const item = queue.front()) {
    const std::string head = wire::encode(item->message);
    const auto body = item->body == nullptr ? std::span<const std::byte>() : base::as_bytes(*item->body);
    const Sent sent = carrier_.carry(session, wire::relay_channel_of(priority), base::as_bytes(head), body);
    if (sent != Sent::kYes) return sent != Sent::kNoRoom;
    queue.pop();
    ++*work;
  }
  return true;
}

bool Relay::pump(agent::Session& session, std::size_t* work) {
  bool has_room = mailbox_->pump(session, work);
  for (const std::uint32_t rank : std::exchange(wanting_, {})) {
    Far& far = *far_.at(rank);
    far.wants_pump = false;
    static_cast<void>(mailbox_->pump(*far.session, work));
  }
  const auto link = links_.find(rank_of(session));
  if (link == links_.end()) return has_room;
  for (const Priority priority : kPriorities) {
    has_room = drain_queue(session, link->second, priority, work) && has_room;
  }
  return has_room;
}

std::size_t Relay::left(const agent::Session& session) const {
  const auto link = links_.find(rank_of(session));
  return mailbox_->left(session) + (link == links_.end() ? 0 : link->second.waiting());
}

void Relay::describe(const agent::Visitor& visitor) const {
  mailbox_->describe(visitor);
  for (const auto& [rank, link] : links_) {
    if (link.waiting() == 0) continue;
    visitor({.who = "relay", .what = "a neighbour's credit", .peer = name_of(rank), .count = link.waiting()});
  }
}

// ---- What comes.

std::uint64_t Relay::held_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [rank, link] : links_) {
    for (const RelayQueue& each : link.queues) bytes += each.bytes();
  }
  for (const auto& [rank, far] : far_) {
    for (const RelayWindow& each : far->windows) bytes += each.held_bytes();
  }
  return bytes;
}

std::span<const agent::OwnChannel> Relay::channels() const { return channels_; }

Status Relay::on_message(agent::Session& session, std::uint32_t channel, std::span<const std::byte> bytes,
                         Instant now) {
  if (!wire::is_relay_channel(channel)) return mailbox_->on_message(session, channel, bytes, now);
  const Result<RelayMessage> message = wire::decode_relay(bytes);
  if (!message) return message.error();
  const std::uint32_t by = rank_of(session);
  if (by == kNoRank && !is_entered_) {
    hold(session, channel, bytes);
    return {};
  }
  // Of strangers it is passed over.
  Status status = by == kNoRank ? Status() : hear(by, wire::class_of_relay(channel), *message, now);
  carrier_.release_message(session, channel, bytes.size());
  mailbox_->run_jobs(now);
  return status;
}

Status Relay::hear(std::uint32_t by, Priority priority, const RelayMessage& message, Instant now) {
  const bool is_plain = message.kind == RelayKind::kCard || message.kind == RelayKind::kLeaving;
  if (is_plain && priority != Priority::kRealtime)
    return corrupt_relay("a message came in another class than realtime");
  if (std::max({message.rank, message.other, message.source, message.target}) >= site_.size) {
    return corrupt_relay("a message speaks of a rank that is not there");
  }
  switch (message.kind) {
    case RelayKind::kFrame:
      return on_frame(priority, message, now);
    case RelayKind::kGone:
      on_gone(by, message.rank, now);
      return {};
    case RelayKind::kLost:
      on_lost(by, message.rank, message.other, now);
      return {};
    case RelayKind::kLeaving:
      on_leaving(message.rank, now);
      return {};
    case RelayKind::kGraph:
      return on_graph(message, now);
    case RelayKind::kCard:
      tell_card(message.rank, std::string(base::as_text(message.body)), now);
      return {};
  }
  return {};
}

Status Relay::on_frame(Priority priority, const RelayMessage& message, Instant now) {
  if (message.target == site_.rank) {
    const auto far = far_.find(message.source);
    if (far == far_.end()) return corrupt_relay("a neighbour's message came in a frame");
    const Status heard = deliver(*far->second, priority, message, now);
    if (!heard.ok()) lose(message.source, heard, now);
    return {};
  }
  RelayMessage next = message;  // It may come back even to its source, where the ways changed meanwhile.
  next.body = {};
  if (++next.hops > routes_.hops_max()) {
    ++dropped_;
    return {};
  }
  const Priority by = planted(Planted::kRelayClassLost) && priority == Priority::kBulk ? Priority::kRealtime : priority;
  send_frame(by, next, std::make_shared<const std::string>(base::as_text(message.body)), now);
  return {};
}

Status Relay::deliver(Far& far, Priority priority, const RelayMessage& message, Instant now) {
  if (!ended_[far.rank].ok()) return {};
  RelayWindow& window = far.window(priority);
  const std::size_t kept = window.unacknowledged().size();
  if (!window.acknowledge(message.acknowledged)) return corrupt_relay("a rank acknowledges what it was not sent");
  if (window.unacknowledged().size() < kept) want_pump(far, now);
  bool is_again = false;
  if (message.sequence != 0) {
    const RelayWindow::Taken taken = window.take(message.sequence, message.has_more, message.body);
    if (taken == RelayWindow::Taken::kBad) return corrupt_relay("a message is too long");
    is_again = taken == RelayWindow::Taken::kAgain;
    if (taken == RelayWindow::Taken::kWhole) {
      if (Status heard = receive(far, priority, now); !heard.ok()) return heard;
    }
  }
  // What was not given to the mailbox yet is not acknowledged: so the window bounds it.
  const bool tells = is_again || message.asks_at_once || window.owes();
  if (tells && far.session != nullptr) send_acknowledgement(far, priority, false, now);
  return {};
}

Status Relay::receive(Far& far, Priority priority, Instant now) {
  std::string& message = far.window(priority).message();
  if (far.session != nullptr) {
    return mailbox_->on_message(*far.session, wire::runtime_channel_of(priority), base::as_bytes(message), now);
  }
  far.early.emplace_back(priority, std::move(message));
  return {};
}

// ---- What goes.

void Relay::send_frame(Priority priority, RelayMessage message, std::shared_ptr<const std::string> piece, Instant now) {
  const auto link = links_.find(routes_.hop_to(message.target));
  if (link == links_.end()) return;  // No way leads there: the source finds out, too.
  if (!link->second.queue(priority).push_frame({.message = message, .body = std::move(piece)}, routes_.changes() + 1)) {
    ++dropped_;
    return;
  }
  serve_link(link->second, now);
}

void Relay::send_piece(Far& far, Priority priority, const RelayWindow::Piece& piece, Instant now) {
  RelayWindow& window = far.window(priority);
  window.note_told();
  send_frame(priority,
             {.has_more = piece.has_more,
              .source = site_.rank,
              .target = far.rank,
              .sequence = piece.sequence,
              .acknowledged = window.received()},
             piece.bytes, now);
}

void Relay::send_acknowledgement(Far& far, Priority priority, bool asks_at_once, Instant now) {
  RelayWindow& window = far.window(priority);
  window.note_told();
  send_frame(
      priority,
      {.asks_at_once = asks_at_once, .source = site_.rank, .target = far.rank, .acknowledged = window.received()},
      nullptr, now);
}

void Relay::send_again(Instant now) {
  for (const auto& [rank, far] : far_) {
    if (!ended_[rank].ok()) continue;
    for (const Priority priority : kPriorities) {
      if (planted(Planted::kRelayForgets)) break;
      for (const auto& piece : far->window(priority).unacknowledged()) send_piece(*far, priority, piece, now);
    }
    far->asked = {};  // What asked went the way of the pieces.
    want_pump(*far, now);
  }
}

Sent Relay::carry(agent::Session& session, std::uint32_t channel, std::span<const std::byte> head,
                  std::span<const std::byte> body) {
  Far* const far = far_of(session);
  if (far == nullptr) return carrier_.carry(session, channel, head, body);
  const Priority priority = wire::class_of_runtime(channel);
  RelayWindow& window = far->window(priority);
  if (!window.has_room(head.size() + body.size())) return Sent::kNoCredit;
  const std::size_t count = window.push(head, body);
  const auto& kept = window.unacknowledged();
  for (std::size_t i = kept.size() - count; i < kept.size(); ++i) send_piece(*far, priority, kept[i], carrier_.now());
  return Sent::kYes;
}

void Relay::release_message(agent::Session& session, std::uint32_t channel, std::size_t bytes) {
  if (far_of(session) == nullptr) carrier_.release_message(session, channel, bytes);
}

void Relay::want_pump(Far& far, Instant now) {
  if (far.session == nullptr) return;
  const auto link = links_.find(routes_.hop_to(far.rank));
  if (link == links_.end()) return;
  if (!std::exchange(far.wants_pump, true)) wanting_.push_back(far.rank);
  Status gone;
  agent::Session* const session = carrier_.session_with(link->second.peer, &gone);
  if (session == nullptr) return;
  mailbox_->attend(*session);
  carrier_.serve(*session, now);
}

void Relay::serve(agent::Session& session, Instant now) {
  Far* const far = far_of(session);
  if (far == nullptr) return carrier_.serve(session, now);
  carrier_.note_deadline();
  want_pump(*far, now);
}

agent::Session* Relay::session_with(const Peer& peer, Status* why) {
  const auto known = by_source_.find(source_of(peer));
  const auto far = known == by_source_.end() ? far_.end() : far_.find(known->second);
  if (far == far_.end()) return carrier_.session_with(peer, why);
  if (ended_[far->first].ok()) return far->second->session.get();
  *why = ended_[far->first];
  return nullptr;
}

/// What goes by others waits for a turn.
bool Relay::has_path(agent::Session& session) const { return far_of(session) == nullptr && carrier_.has_path(session); }

bool Relay::can_fetch(agent::Session& session) const {
  return far_of(session) == nullptr && carrier_.can_fetch(session);
}

bool Relay::fetch(agent::Session& session, std::uint64_t address, std::span<std::byte> into) {
  return far_of(session) == nullptr && carrier_.fetch(session, address, into);
}

Result<std::unique_ptr<backend::View>> Relay::view(agent::Session& session,
                                                   const std::shared_ptr<const agent::RemoteRegion>& region) {
  if (far_of(session) == nullptr) return carrier_.view(session, region);
  return Status(Code::kUnsupported, "the rank is no neighbour, and its memory is read by neighbours only");
}

// ---- Ranks that are gone.

void Relay::end(agent::Session& session, const Status& status) {
  held_.erase(source_of(agent::inner::peer_of(session)));
  const std::uint32_t rank = rank_of(session);
  if (rank == kNoRank) return mailbox_->end(session, status);
  if (!links_.contains(rank)) return;  // A connection of the user's own: the rank's messages do not go by it.
  const Instant now = carrier_.now();
  const bool is_far = far_.contains(rank);
  const bool is_dead = proves_death(status) || !is_entered_ || planted(Planted::kLossIsDeath);
  if (!is_far && ended_[rank].ok()) ended_[rank] = status;
  // Before anything is said to others by the new ways.
  const bool is_loss = !is_dead && !routes_.is_gone(rank) && lose_link(site_.rank, rank, now);
  if (!is_far) mailbox_->end(session, status);
  if (is_loss) return go_round(now);
  if (is_dead) return lose(rank, status, now);
  end_unreachable();
  look_at_leaving();
  look_at_court();
}

void Relay::lose(std::uint32_t rank, const Status& why, Instant now) {
  if (rank == site_.rank) return exclude_self(why, now);
  if (!routes_.exclude(rank)) return;
  const auto link = links_.find(rank);
  if (link != links_.end()) {  // Their sources send them again.
    for (RelayQueue& queue : link->second.queues) queue.drop_frames();
  }
  // Before anything is sent by the new ways; the rank itself, too, if it can hear.
  if (!planted(Planted::kRelayNewsUntold)) tell_all({.kind = RelayKind::kGone, .rank = rank}, nullptr, now);
  if (!is_entered_ && broken_.ok()) broken_ = why;
  end_rank(rank, why);
  look_at_formation();
  go_round(now);
}

/// The ways have changed.
void Relay::go_round(Instant now) {
  end_unreachable();
  send_again(now);
  look_at_leaving();
  look_at_court();
}

/// Nothing more can be said to the rank, or heard of it.
void Relay::end_rank(std::uint32_t rank, const Status& why) {
  if (has_told_[rank]) return;
  has_told_[rank] = true;
  if (ended_[rank].ok()) ended_[rank] = why;
  if (!is_entered_) return;
  const auto far = far_.find(rank);
  if (far == far_.end()) return mailbox_->tell_down(peers_[rank], why);
  mailbox_->end(*far->second->session, why);
}

void Relay::end_unreachable() {
  if (planted(Planted::kUnreachableAwaited)) return;
  for (std::uint32_t rank = 0; rank < site_.size; ++rank) {
    if (has_told_[rank] || routes_.reaches(rank)) continue;
    if (!far_.contains(rank) && ended_[rank].ok()) continue;  // A neighbour that was left out is heard as before.
    const char* const text = left_out_.contains(rank) ? "was left out of the world" : kUnreachable;
    end_rank(rank, Status(Code::kDisconnected, text).with_peer(name_of(rank)));
  }
}

void Relay::on_gone(std::uint32_t by, std::uint32_t rank, Instant now) {
  const std::string teller = "rank " + std::to_string(by);
  if (rank != site_.rank) {
    return lose(rank, Status(Code::kDisconnected, teller + " found so").with_peer(name_of(rank)), now);
  }
  std::string text =
      teller + " of world '" + site_.world + "' holds this rank, " + std::to_string(rank) + ", for failed";
  const std::vector<std::uint32_t> lost = this->lost();
  if (!lost.empty()) text += ", for it and rank " + list_of(lost) + " have lost each other";
  if (ended_[rank].ok()) {  // The teller may die before it has told all others.
    tell_all({.kind = RelayKind::kGone, .rank = rank}, nullptr, now);
  }
  exclude_self(Status(Code::kDisconnected, text), now);
}

void Relay::on_lost(std::uint32_t by, std::uint32_t from, std::uint32_t to, Instant now) {
  const bool is_new_way = lose_link(from, to, now);
  if (to == site_.rank) static_cast<void>(lose_link(to, from, now));  // So the others know that this rank lives.
  if (!is_new_way) return look_at_court();
  if (!is_entered_ && broken_.ok()) {
    broken_ = Status(Code::kDisconnected,
                     "ranks " + list_of({from, to}) + " have lost each other, as rank " + std::to_string(by) + " says");
    look_at_formation();
  }
  go_round(now);
}

/// The one hears nothing of the other any more. False: no way changes for it.
bool Relay::lose_link(std::uint32_t from, std::uint32_t to, Instant now) {
  const std::uint64_t changes = routes_.changes();
  if (!routes_.lose_link(from, to)) return false;
  const bool is_new_way = routes_.changes() > changes;
  const auto neighbour =
      from == site_.rank || to == site_.rank ? links_.find(from == site_.rank ? to : from) : links_.end();
  if (neighbour != links_.end() && is_new_way) {
    neighbour->second.is_lost = true;
    neighbour->second.queues = {};  // Their sources send them again.
  }
  if (!planted(Planted::kLossUntold)) tell_all({.kind = RelayKind::kLost, .rank = from, .other = to}, nullptr, now);
  return is_new_way;
}

/// The verdict of this rank on another one, or on itself.
void Relay::convict(std::uint32_t rank, Instant now) {
  const Status why = Status(Code::kDisconnected, kLeftOut).with_peer(name_of(rank));
  if (rank != site_.rank) return lose(rank, why, now);
  tell_all({.kind = RelayKind::kGone, .rank = rank}, nullptr, now);
  exclude_self(why, now);
}

void Relay::look_at_court() {
  if (!is_entered_ || !ended_[site_.rank].ok()) return;
  court_.look();
  watch_court();
}

void Relay::watch_court() {
  const bool is_open = is_undecided();
  clock_.watch(is_open);
  if (std::exchange(was_undecided_, is_open) && !is_open) mailbox_->tell_decided();
}

/// The others go on without this rank.
void Relay::exclude_self(const Status& why, Instant now) {
  if (!ended_[site_.rank].ok()) return;
  ended_[site_.rank] = why;
  for (const auto& [rank, far] : far_) end_rank(rank, why);
  if (is_entered_) mailbox_->tell_down(peers_[site_.rank], why);
  watch_court();
  serve_links(now);
}

// ---- A world that was shrunk.

void Relay::adopt(std::uint64_t generation, std::span<const std::uint32_t> members, Instant now) {
  if (!routes_.adopt(generation, members)) return;
  std::vector<bool> is_member(site_.size);
  for (const std::uint32_t rank : members) is_member[rank] = true;
  for (std::uint32_t rank = 0; rank < site_.size; ++rank) {
    if (!is_member[rank]) left_out_.insert(rank);
  }
  for (const std::uint32_t rank : routes_.neighbours()) {
    Neighbour& link = links_[rank];
    link.peer = peers_[rank];
    link.is_met = true;
  }
  tell_all({.kind = RelayKind::kGraph, .generation = generation},
           std::make_shared<const std::string>(bitmap_of(is_member)), now);
  if (!is_member[site_.rank]) {
    return exclude_self(Status(Code::kDisconnected, "this rank, " + std::to_string(site_.rank) +
                                                        ", was left out of world '" + site_.world + "'"),
                        now);
  }
  go_round(now);
}

Status Relay::on_graph(const RelayMessage& message, Instant now) {
  const std::vector<bool> is_member = ranks_of(message.body, site_.size);
  if (is_member.empty()) return corrupt_relay("a graph is of a world of another size");
  if (!is_entered_) return corrupt_relay("a graph is of a world that was not entered");
  std::vector<std::uint32_t> members;
  for (std::uint32_t rank = 0; rank < site_.size; ++rank) {
    if (is_member[rank]) members.push_back(rank);
  }
  adopt(message.generation, members, now);
  return {};
}

// ---- The end.

bool Relay::drain(Instant now) {
  bool is_drained = true;
  for (const auto& [rank, far] : far_) {
    if (!ended_[rank].ok() || far->session == nullptr) continue;
    is_drained = is_drained && far->is_acknowledged() && mailbox_->is_silent(*far->session);
    for (const Priority priority : kPriorities) {
      const auto& kept = far->window(priority).unacknowledged();
      std::uint64_t& asked = far->asked[wire::index_of(priority)];
      if (kept.empty() || kept.back().sequence <= asked) continue;
      asked = kept.back().sequence;
      send_acknowledgement(*far, priority, true, now);
    }
  }
  return is_drained;
}

void Relay::say_leaving(Instant now) { on_leaving(site_.rank, now); }

void Relay::on_leaving(std::uint32_t rank, Instant now) {
  if (!leaving_.insert(rank).second) return;
  tell_all({.kind = RelayKind::kLeaving, .rank = rank}, nullptr, now);
  look_at_leaving();
}

void Relay::look_at_leaving() {
  for (std::uint32_t rank = 0; rank < site_.size && !planted(Planted::kRelayLeavesEarly); ++rank) {
    const bool is_over = !ended_[rank].ok() && !ended_[site_.rank].ok();  // There will be no verdict.
    const bool is_lost = rank != site_.rank && (routes_.is_gone(rank) || has_told_[rank] || is_over);
    if (!is_lost && !leaving_.contains(rank) && !left_out_.contains(rank)) return;
  }
  all_leave_.store(true, std::memory_order_release);
  carrier_.note_end();
}

bool Relay::is_idle() const {
  return std::ranges::all_of(
      links_, [&](const auto& link) { return routes_.is_gone(link.first) || link.second.waiting() == 0; });
}

}  // namespace hawser::runtime
