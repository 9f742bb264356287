#include "runtime/mailbox.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/bytes.h"
#include "base/copy.h"
#include "base/planted.h"

namespace hawser::runtime {
namespace {

using agent::Sent;
using base::planted;
using base::Planted;

constexpr agent::OwnChannel own_channel(Priority priority) {
  return {.id = wire::runtime_channel_of(priority), .window = kMailboxWindow, .priority = priority};
}
constexpr std::array kChannels = {own_channel(Priority::kRealtime), own_channel(Priority::kBulk),
                                  own_channel(Priority::kCritical)};

/// Whether such a message may come in that class.
bool may_come(const wire::RuntimeMessage& message, Priority priority) {
  switch (message.kind) {
    case wire::RuntimeKind::kEager:
    case wire::RuntimeKind::kAsk:
      return priority == Priority::kRealtime || message.envelope.use == wire::MessageUse::kUser;
    case wire::RuntimeKind::kGone:
    case wire::RuntimeKind::kLeft:
    case wire::RuntimeKind::kChecked:
      return true;
    case wire::RuntimeKind::kPart:
      return priority != Priority::kRealtime;
    default:
      return priority == Priority::kRealtime;
  }
}

/// All of the message.
void put(const Receive& receive, const Send& send) {
  for (std::uint64_t at = 0; at < send.envelope.bytes;) {
    const std::span<const std::byte> from = send.run(at);
    put(receive, at, from);
    at += from.size();
  }
}

/// A planted bug: some realtime messages go by the channel of another class.
void misclass(Send& send) {
  const bool is_users = send.envelope.use == wire::MessageUse::kUser;
  if (is_users && send.priority == Priority::kRealtime && send.envelope.bytes % 2 == 0) {
    send.priority = Priority::kCritical;
  }
}

std::string bytes_text(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

Mailbox::Mailbox(agent::Carrier& carrier)
    : carrier_(carrier),
      landings_(carrier, [this](Operation& operation, const Status& status) { end_one(operation, status); }),
      outbox_(carrier, landings_, [this](Operation& operation, const Status& status) { end_one(operation, status); }) {}

Mailbox::~Mailbox() {
  matcher_.for_each_waiting([this](Receive& receive) { matcher_.forget(receive); });
}

std::span<const agent::OwnChannel> Mailbox::channels() const { return kChannels; }

MailDesk& Mailbox::desk_of(agent::Session& session) {
  if (MailDesk* const known = known_desk(session)) return *known;
  auto made = std::make_unique<MailDesk>();
  MailDesk& desk = *made;
  agent::inner::keep_tenancy(session, *this, std::move(made));
  return desk;
}

// ---- Beginning and ending.

void Mailbox::end_one(Operation& operation, Status status) {
  deadlines_.clear(operation);
  if (operation.kind == OperationKind::kReceive) {
    auto& receive = static_cast<Receive&>(operation);
    matcher_.forget(receive);
    receive.fetch_hook.unlink();
    landings_.take_back(receive);
  } else {
    auto& send = static_cast<Send&>(operation);
    send.hook.unlink();
    if (send.write != 0) carrier_.end_write(std::exchange(send.write, 0));
  }
  if (std::exchange(operation.is_counted, false)) --under_way_;
  operation.status = std::move(status);
  const std::shared_ptr<Operation> self = std::move(operation.self);
  if (operation.listener != nullptr) return operation.listener->on_end(operation);
  operation.final.store(true, std::memory_order_release);
  carrier_.note_end();
}

void Mailbox::set_deadline(Operation& operation, Instant deadline) {
  deadlines_.set(operation, deadline);
  carrier_.note_deadline();
}

/// False: the operation has ended, because too many are under way.
bool Mailbox::admit(Operation& operation) {
  if (operation.is_standing) return true;
  if (under_way_ < kOperationsMax) {
    operation.is_counted = true;
    ++under_way_;
    return true;
  }
  end_one(operation,
          Status(Code::kBusy, std::to_string(kOperationsMax) + " sends and receives of this rank are under way")
              .with_advice("wait for some of them to end"));
  return false;
}

void Mailbox::start(Send& send, Instant deadline, Instant now) {
  if (!admit(send)) return;
  set_deadline(send, deadline);
  if (send.to.is_self()) return send_to_self(send);
  Status why;
  agent::Session* const session = carrier_.session_with(send.to, &why);
  if (session == nullptr) return end_one(send, why);
  MailDesk& desk = desk_of(*session);
  if (desk.asked.size() >= kAsksMax) {
    return end_one(send, Status(Code::kBusy, "send: " + std::to_string(kAsksMax) + " messages to " +
                                                 std::string(send.to.name()) + " wait for somebody to receive them")
                             .with_peer(send.to.name())
                             .with_advice("the receiver must take messages; retry after a pause"));
  }
  if (planted(Planted::kClassOrderLost)) misclass(send);
  if (goes_at_once(*session, desk, send)) return;
  auto& line = desk.of(send.priority).line;
  planted(Planted::kMessagesOvertake) ? line.push_front(send) : line.push_back(send);
  carrier_.serve(*session, now);
}

/// Sends a user's message within the call, if nothing waits to be said to the peer before it. True: it is said, and its
/// caller need not turn the lane.
bool Mailbox::goes_at_once(agent::Session& session, MailDesk& desk, Send& send) {
  if (send.listener != nullptr || !desk.is_silent() || !carrier_.has_path(session)) return false;
  return outbox_.announce(session, desk, send) == Sent::kYes;
}

void Mailbox::send_to_self(Send& send) {
  Receive* const receive = receive_for(send.envelope, send.to);
  if (receive != nullptr) {
    prepare(*receive, send.envelope, send.to);
    put(*receive, send);
    receive->received = send.envelope.bytes;
    end_one(*receive, {});
    return end_one(send, {});
  }
  auto arrived = std::make_unique<Arrived>();
  arrived->from = send.to;
  arrived->source = source_of(send.to);
  arrived->envelope = send.envelope;
  const std::size_t cost = send.envelope.bytes + sizeof(Arrived);
  const bool is_small = send.envelope.bytes <= kEagerMax && own_kept_bytes_ + cost <= kEagerWindow;
  if (is_small) {
    own_kept_bytes_ += cost;
    arrived->bytes = std::make_unique<std::byte[]>(send.envelope.bytes);
    take(send, 0, {arrived->bytes.get(), send.envelope.bytes});
  } else {
    arrived->own = &send;
    send.kept = arrived.get();
  }
  keep(std::move(arrived));
  if (is_small) end_one(send, {});
}

/// Somebody may wait to see what is here.
void Mailbox::keep(std::unique_ptr<Arrived> arrived) {
  const Arrived& kept = matcher_.keep(std::move(arrived));
  if (kept.envelope.use == wire::MessageUse::kCollective) look_for_misfit(kept);
  kept_so_far_.fetch_add(1, std::memory_order_release);
  carrier_.note_end();
}

void Mailbox::look_for_misfit(const Arrived& kept) {
  Watcher* const watcher = watchers_.find(kept.envelope.world);
  if (watcher == nullptr || !watcher->is_misfit(kept.envelope)) return;
  run_soon([this, envelope = kept.envelope, from = kept.from](Instant now) {
    if (Watcher* const its = watchers_.find(envelope.world)) its->on_misfit(from, envelope, now);
  });
}

void Mailbox::start(Receive& receive, Instant deadline, Instant now) {
  if (!admit(receive)) return;
  set_deadline(receive, deadline);
  Arrived* const arrived = matcher_.find(receive.pattern);
  if (arrived == nullptr) return matcher_.wait(receive);
  if (accepts(receive, arrived->envelope, arrived->from)) take_kept(receive, *arrived, now);
}

bool Mailbox::accepts(Receive& receive, const wire::MessageEnvelope& envelope, const Peer& from) {
  const auto refuse = [&](const std::string& text) {
    end_one(receive, Status(Code::kInvalid, text).with_peer(from.name()));
    return false;
  };
  if (receive.digest && *receive.digest != envelope.digest && !planted(Planted::kMisfitUnseen)) {
    return refuse("number " + std::to_string(envelope.tag) + " at " + std::string(from.name()) +
                  " is another operation: the ranks differ in what they call");
  }
  if (!receive.has_buffer) return makes_buffer(receive, envelope, from);
  const bool fits = envelope.bytes <= receive.capacity && (!receive.is_exact || envelope.bytes == receive.capacity);
  if (fits) return true;
  return refuse("the message is " + bytes_text(envelope.bytes) + " long, the buffer that was given for it " +
                bytes_text(receive.capacity));
}

/// The size is the sender's word.
bool Mailbox::makes_buffer(Receive& receive, const wire::MessageEnvelope& envelope, const Peer& from) {
  Status status;
  if (envelope.bytes > kOwnBufferMax) {
    status = Status(Code::kInvalid, "the message is " + bytes_text(envelope.bytes) + " long; no buffer of more than " +
                                        bytes_text(kOwnBufferMax) + " is made for one")
                 .with_advice("receive it into a buffer of your own");
  } else {
    status = make_buffer(receive, envelope.bytes);
    if (status.ok()) return true;
  }
  end_one(receive, status.with_peer(from.name()));
  return false;
}

Status Mailbox::make_buffer(Receive& receive, std::uint64_t bytes) {
  if (receive.buffers != nullptr) {
    Result<MadeBuffer> made = receive.buffers->make(bytes);
    if (!made) return made.error();
    receive.own = std::move(*made);
  } else {
    receive.own = heap_buffer(bytes);
    if (receive.own == nullptr) return {Code::kBusy, "there is no memory for a message of " + bytes_text(bytes)};
  }
  receive.data = receive.own.get();
  receive.capacity = bytes;
  return {};
}

Receive* Mailbox::receive_for(const wire::MessageEnvelope& envelope, const Peer& from) {
  while (Receive* const receive = matcher_.take_receive(envelope, source_of(from))) {
    if (accepts(*receive, envelope, from)) return receive;
  }
  return nullptr;
}

void Mailbox::prepare(Receive& receive, const wire::MessageEnvelope& envelope, const Peer& from) {
  receive.from = from;
  receive.got = envelope;
  if (receive.listener != nullptr) receive.listener->on_matched(receive);
}

void Mailbox::take_kept(Receive& receive, Arrived& arrived, Instant now) {
  prepare(receive, arrived.envelope, arrived.from);
  if (arrived.bytes != nullptr || arrived.own != nullptr) {
    Send* const own = arrived.own;
    if (own != nullptr) own->kept = nullptr;
    if (own != nullptr) {
      put(receive, *own);
    } else {
      put(receive, 0, {arrived.bytes.get(), arrived.envelope.bytes});
    }
    receive.received = arrived.envelope.bytes;
    drop_kept(arrived);
    if (own != nullptr) end_one(*own, {});
    return end_one(receive, {});
  }
  Status why;
  agent::Session* const session = carrier_.session_with(arrived.from, &why);
  const std::uint64_t id = arrived.id, address = arrived.address;
  drop_kept(arrived);
  if (session == nullptr) return end_one(receive, why);
  landings_.want(*session, desk_of(*session), receive, id, address, now);
}

void Mailbox::drop_kept(Arrived& arrived) {
  if (!arrived.from.is_self()) {
    Status gone;
    agent::Session* const session = carrier_.session_with(arrived.from, &gone);
    MailDesk* const desk = session == nullptr ? nullptr : known_desk(*session);
    if (desk != nullptr && arrived.bytes != nullptr) {
      ClassDesk& its = desk->of(arrived.priority);
      its.note_taken(arrived.envelope.bytes);
      if (its.owes_freed()) carrier_.serve(*session, carrier_.now());
    } else if (desk != nullptr) {
      desk->kept_asks.erase(arrived.id);
    }
  } else if (arrived.bytes != nullptr) {
    own_kept_bytes_ -= arrived.envelope.bytes + sizeof(Arrived);
  }
  matcher_.drop(arrived);
}

bool Mailbox::discard(const Pattern& pattern, Peer* from, wire::MessageEnvelope* envelope) {
  Arrived* const arrived = matcher_.find(pattern);
  if (arrived == nullptr) return false;
  *from = arrived->from;
  *envelope = arrived->envelope;
  Send* const own = arrived->own;
  if (own != nullptr) own->kept = nullptr;
  drop_kept(*arrived);
  if (own != nullptr) end_one(*own, {});
  return true;
}

void Mailbox::stop(Operation& operation, const Status& status, Instant now) {
  if (operation.final.load(std::memory_order_relaxed)) return;
  if (operation.kind == OperationKind::kReceive) {
    auto& receive = static_cast<Receive&>(operation);
    if (receive.landing != 0) {
      Status gone;
      agent::Session* const session = carrier_.session_with(receive.from, &gone);
      if (session != nullptr) landings_.forget(*session, desk_of(*session), receive, now);
    }
    return end_one(receive, status);
  }
  auto& send = static_cast<Send&>(operation);
  if (send.to.is_self()) {
    if (Arrived* const mine = std::exchange(send.kept, nullptr)) matcher_.drop(*mine);
    return end_one(send, status);
  }
  Status gone;
  agent::Session* const session = carrier_.session_with(send.to, &gone);
  if (session != nullptr && send.is_asked) outbox_.forget(*session, desk_of(*session), send, now);
  end_one(send, status);
}

void Mailbox::stop_any(std::uint64_t world, const Status& status) {
  matcher_.for_each_waiting([&](Receive& receive) {
    const Pattern& pattern = receive.pattern;
    const bool is_users = pattern.use == wire::MessageUse::kUser;
    if (pattern.world == world && is_users && pattern.source == nullptr) end_one(receive, status);
  });
}

void Mailbox::stop_from(std::uint64_t world, const Peer& rank, const Status& status) {
  matcher_.for_each_waiting([&](Receive& receive) {
    if (receive.pattern.world == world && receive.pattern.source == source_of(rank)) end_one(receive, status);
  });
}

std::uint64_t Mailbox::unreceived(std::uint64_t family) {
  std::uint64_t bytes = 0;
  matcher_.for_each_kept([&](Arrived& one) {
    const Watcher* const its = watchers_.find(one.envelope.world);
    if (its == nullptr || its->family() != family) return;
    bytes += sizeof one + (one.bytes == nullptr ? 0 : one.envelope.bytes);
  });
  return bytes;
}

void Mailbox::stop_all(std::uint64_t world, const Status& status) {
  matcher_.for_each_waiting([&](Receive& receive) {
    if (receive.pattern.world == world) end_one(receive, status);
  });
}

void Mailbox::stop_landing(std::uint64_t world, std::span<const Peer> ranks, const Status& status, Instant now) {
  std::vector<Receive*> all;
  for (const Peer& from : ranks) {
    const MailDesk* const desk = known_desk(from);
    if (desk == nullptr) continue;
    const std::vector<Receive*> its = Landings::of_world(*desk, world);
    all.insert(all.end(), its.begin(), its.end());
  }
  std::ranges::sort(all, {}, &Receive::landing);  // In a fixed order.
  for (Receive* const receive : all) stop(*receive, status, now);
}

/// Null: nothing went between the two yet, or the peer is gone.
MailDesk* Mailbox::known_desk(const Peer& peer) {
  Status gone;
  const agent::Session* const session = peer.is_self() ? nullptr : carrier_.session_with(peer, &gone);
  return session == nullptr ? nullptr : known_desk(*session);
}

void Mailbox::forget_world(std::uint64_t world) {
  if (planted(Planted::kUnwantedKept)) return;
  matcher_.for_each_kept([&](Arrived& arrived) {
    if (arrived.envelope.world == world && arrived.own == nullptr) drop_kept(arrived);
  });
}

/// Those that are not through, in a fixed order.
std::vector<Send*> Mailbox::sends_of(std::uint64_t world, const Peer& to) {
  if (!to.is_self()) {
    MailDesk* const desk = known_desk(to);
    return desk == nullptr ? std::vector<Send*>() : Outbox::of_world(*desk, world);
  }
  std::vector<Send*> all;
  matcher_.for_each_kept([&](const Arrived& arrived) {
    const wire::MessageEnvelope& its = arrived.envelope;
    if (arrived.own != nullptr && its.world == world && its.use == wire::MessageUse::kUser) all.push_back(arrived.own);
  });
  return all;
}

// ---- What worlds say to one another.

void Mailbox::tell(const Peer& peer, Word word, Instant now) {
  Status gone;
  agent::Session* const session = peer.is_self() ? nullptr : carrier_.session_with(peer, &gone);
  if (session == nullptr) return;
  MailDesk& desk = desk_of(*session);
  if (LastWords::has(word.message.kind)) {
    for (ClassDesk& its : desk.classes) its.last_words.push_back(word);
  } else {
    desk.of(Priority::kRealtime).words.push_back(std::move(word));
  }
  carrier_.serve(*session, now);
}

void Mailbox::tell_if_room(const Peer& peer, Word word, Instant now) {
  const MailDesk* const desk = known_desk(peer);
  if (desk != nullptr && desk->words() >= kChecksMax) return;
  tell(peer, std::move(word), now);
}

/// Of a world that is not known yet nothing can be said: the peer asks again.
void Mailbox::on_check(agent::Session& session, const wire::RuntimeMessage& message, Instant now) {
  const Peer by = agent::inner::peer_of(session);
  if (Watcher* const its = watchers_.find(message.world)) {
    const Question question = {.number = message.number, .digest = message.digest, .awaits = message.flag};
    return its->on_check(by, question, now);
  }
  if (message.flag && watchers_.is_closed(message.world))
    tell(by, checked_word(message.world, message.number, Code::kDisconnected), now);
}

void Mailbox::add_watcher(std::uint64_t world, Watcher& watcher, std::span<const Peer> ranks) {
  watchers_.add(world, watcher);
  for (const Peer& peer : ranks) {
    MailDesk* const desk = known_desk(peer);
    if (desk != nullptr) watchers_.tell_early(world, peer, desk->early, carrier_.now());
  }
}

// ---- What comes.

Status Mailbox::on_message(agent::Session& session, std::uint32_t channel, std::span<const std::byte> bytes,
                           Instant now) {
  const Result<wire::RuntimeMessage> message = wire::decode_runtime(bytes);
  if (!message) return message.error();
  const Priority priority = wire::class_of_runtime(channel);
  if (!may_come(*message, priority)) {
    return Status(Code::kCorrupt, "world: a message came in a class that its kind does not have");
  }
  Status status = handle(session, priority, *message, now);
  // Answers to what it says wait for it to read.
  const MailDesk* const desk = known_desk(session);
  if (status.ok() && desk != nullptr && desk->words() > kWordsMax) {
    status = Status(Code::kCorrupt, "a peer asks much and reads nothing");
  }
  carrier_.release_message(session, channel, bytes.size());
  run_jobs(now);
  return status;
}

Status Mailbox::handle(agent::Session& session, Priority priority, const wire::RuntimeMessage& message, Instant now) {
  switch (message.kind) {
    case wire::RuntimeKind::kEager:
      return on_eager(session, priority, message, now);
    case wire::RuntimeKind::kAsk:
      return on_ask(session, priority, message, now);
    case wire::RuntimeKind::kGrant:
      return outbox_.on_grant(session, desk_of(session), message, now);
    case wire::RuntimeKind::kLend:
      return outbox_.on_lend(*this, session, desk_of(session), message, now);
    case wire::RuntimeKind::kWritten:
      return landings_.on_written(desk_of(session), message);
    case wire::RuntimeKind::kUnwritten:
      return landings_.on_unwritten(session, desk_of(session), message, now);
    case wire::RuntimeKind::kPart:
      return landings_.on_part(desk_of(session), message);
    case wire::RuntimeKind::kGone:
      return on_gone(session, message);
    case wire::RuntimeKind::kFetched:
      return outbox_.on_fetched(session, desk_of(session), message, now);
    case wire::RuntimeKind::kTaken:
      return landings_.on_taken(desk_of(session), message);
    case wire::RuntimeKind::kFreed:
      return on_freed(session, message);
    case wire::RuntimeKind::kLeft:
    case wire::RuntimeKind::kChecked:
      return on_last_word(session, priority, message);
    case wire::RuntimeKind::kFailed:
    case wire::RuntimeKind::kRevoke:
    case wire::RuntimeKind::kAgree:
    case wire::RuntimeKind::kLost:
    case wire::RuntimeKind::kTopology:
    case wire::RuntimeKind::kBell:
      watchers_.tell(agent::inner::peer_of(session), message, desk_of(session).early, carrier_.now());
      return {};
    case wire::RuntimeKind::kCheck:
      on_check(session, message, now);
      return {};
  }
  return {};
}

Status Mailbox::on_last_word(agent::Session& session, Priority priority, const wire::RuntimeMessage& message) {
  MailDesk& desk = desk_of(session);
  bool counts = false;
  Status status = desk.last.hear(priority, message, &counts);
  if (counts) watchers_.tell(agent::inner::peer_of(session), message, desk.early, carrier_.now());
  return status;
}

Status Mailbox::on_freed(agent::Session& session, const wire::RuntimeMessage& message) {
  ClassDesk& its = desk_of(session).of(message.priority);
  if (its.note_freed_by_peer(message.bytes, message.messages)) return {};
  return Status(Code::kCorrupt, "a peer frees more than it was sent");
}

Status Mailbox::on_eager(agent::Session& session, Priority priority, const wire::RuntimeMessage& message, Instant now) {
  const Peer from = agent::inner::peer_of(session);
  ClassDesk& its = desk_of(session).of(priority);
  if (watchers_.is_closed(message.envelope.world)) {
    its.note_freed(message.body.size());
    return {};
  }
  if (Receive* const receive = receive_for(message.envelope, from)) {
    prepare(*receive, message.envelope, from);
    put(*receive, 0, message.body);
    receive->received = message.body.size();
    its.note_freed(message.body.size());
    if (its.owes_freed()) carrier_.serve(session, now);
    end_one(*receive, {});
    return {};
  }
  if (!its.may_keep(message.body.size())) {
    return Status(Code::kCorrupt, "a peer sent more than may wait here unwanted");
  }
  auto arrived = std::make_unique<Arrived>();
  arrived->from = from;
  arrived->source = source_of(from);
  arrived->envelope = message.envelope;
  arrived->priority = priority;
  arrived->bytes = std::make_unique_for_overwrite<std::byte[]>(message.body.size());
  base::copy_cached(arrived->bytes.get(), message.body.data(), message.body.size());
  its.note_kept(message.body.size());
  keep(std::move(arrived));
  return {};
}

Status Mailbox::on_ask(agent::Session& session, Priority priority, const wire::RuntimeMessage& message, Instant now) {
  if (watchers_.is_closed(message.envelope.world)) return {};
  const Peer from = agent::inner::peer_of(session);
  const bool is_call = message.envelope.use == wire::MessageUse::kCall;
  if (is_call && message.envelope.bytes > kOwnBufferMax) {
    return Status(Code::kCorrupt, "a peer calls with more than may be given");
  }
  if (Receive* const receive = receive_for(message.envelope, from)) {
    prepare(*receive, message.envelope, from);
    landings_.want(session, desk_of(session), *receive, message.id, message.address, now);
    return {};
  }
  MailDesk& desk = desk_of(session);
  if (desk.kept_asks.size() >= kAsksMax) return Status(Code::kCorrupt, "a peer asks for more than may wait here");
  if (desk.kept_asks.contains(message.id)) return Status(Code::kCorrupt, "a peer asks for two messages by one number");
  auto arrived = std::make_unique<Arrived>();
  arrived->from = from;
  arrived->source = source_of(from);
  arrived->envelope = message.envelope;
  arrived->priority = priority;
  arrived->id = message.id;
  arrived->address = message.address;
  desk.kept_asks.emplace(message.id, arrived.get());
  keep(std::move(arrived));
  return {};
}

Status Mailbox::on_gone(agent::Session& session, const wire::RuntimeMessage& message) {
  MailDesk& desk = desk_of(session);
  const auto kept = desk.kept_asks.find(message.id);
  if (kept != desk.kept_asks.end()) {
    drop_kept(*kept->second);
    return {};
  }
  const Peer from = agent::inner::peer_of(session);
  landings_.on_gone(desk, message, Status(Code::kCancelled, "the sender stopped the message").with_peer(from.name()));
  return {};
}

void Mailbox::on_written(agent::Session& session, std::uint64_t id, std::uint64_t bytes, const Status& status) {
  outbox_.on_written(session, desk_of(session), id, bytes, status, carrier_.now());
  run_jobs(carrier_.now());
}

bool Mailbox::pump(agent::Session& session, std::size_t* work) {
  MailDesk* const desk = known_desk(session);
  if (desk == nullptr) return true;
  const bool has_room = outbox_.pump(session, *desk, work);
  run_jobs(carrier_.now());
  return has_room;
}

// ---- Ends.

void Mailbox::on_closing(const Status& why, Instant now) {
  watchers_.for_each([&](Watcher& watcher) { watcher.on_agent_closing(why, now); });
  run_jobs(now);
}

void Mailbox::end(agent::Session& session, const Status& status) {
  MailDesk* const desk = known_desk(session);
  const Peer peer = agent::inner::peer_of(session);
  if (desk != nullptr) {
    for (ClassDesk& its : desk->classes) {
      while (Send* const send = its.line.front()) end_one(*send, status);
    }
    for (const auto& [id, send] : std::exchange(desk->asked, {})) {
      outbox_.end_write(*desk, *send);
      if (!planted(Planted::kAskedKept)) end_one(*send, status);
    }
    for (const auto& [landing, receive] : std::exchange(desk->landing, {})) {
      landings_.take_back(*receive);
      end_one(*receive, status);
    }
    desk->forget();
  }
  matcher_.for_each_kept([&](Arrived& arrived) {  // What came whole may still be received.
    if (arrived.source == source_of(peer) && arrived.bytes == nullptr) matcher_.drop(arrived);
  });
  matcher_.for_each_waiting([&](Receive& receive) {
    if (receive.pattern.source == source_of(peer)) end_one(receive, status);
  });
  tell_down(peer, status);
}

bool Mailbox::awaits(const agent::Session& session) const {
  const MailDesk* const desk = known_desk(session);
  return desk != nullptr && (!desk->asked.empty() || !desk->landing.empty());
}

std::size_t Mailbox::left(const agent::Session& session) const {
  const MailDesk* const desk = known_desk(session);
  return desk == nullptr ? 0 : desk->asked.size() + desk->landing.size() + desk->words();
}

std::size_t Mailbox::expire(Instant now) {
  std::size_t ended = jobs_.turn(now);
  while (Operation* const late = deadlines_.take(now)) {
    ++ended;
    if (late->kind == OperationKind::kSeveral) {
      late->listener->on_late(*late, now);
    } else {
      stop(*late, Status(Code::kTimedOut, "the message did not come through by its deadline"), now);
    }
  }
  run_jobs(now);
  return ended;
}

void Mailbox::describe(const agent::Visitor& visitor) const {
  if (matcher_.waiting() > 0) {
    visitor({.who = "messages", .what = "a message", .peer = {}, .count = matcher_.waiting()});
  }
  if (matcher_.kept() > 0) {
    visitor({.who = "messages", .what = "somebody to receive it", .peer = {}, .count = matcher_.kept()});
  }
}

}  // namespace hawser::runtime
