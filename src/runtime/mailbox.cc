#include "runtime/mailbox.h"

#include <algorithm>
#include <array>
#include <new>
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

/// It says that something does not come any more, so it overtakes nothing.
constexpr bool is_last_word(wire::RuntimeKind kind) {
  return kind == wire::RuntimeKind::kLeft || kind == wire::RuntimeKind::kChecked;
}

/// Among which parts those of the message take turns.
Priority stream_class_of(const Send& send) {
  return send.envelope.use == wire::MessageUse::kUser ? send.priority : Priority::kBulk;
}

/// Parts on the channel of class realtime would hold back words and collectives.
Priority part_class_of(const Send& send) {
  return stream_class_of(send) == Priority::kCritical ? Priority::kCritical : Priority::kBulk;
}

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

/// `from` is what the message has from `offset` on.
void put(const Receive& receive, std::uint64_t offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    const std::span<std::byte> into = receive.run(offset);
    const std::size_t size = std::min(into.size(), from.size());
    base::copy_cached(into.data(), from.data(), size);
    offset += size;
    from = from.subspan(size);
  }
}

/// The message's bytes from `offset` on, as many as there is room for.
void take(const Send& send, std::uint64_t offset, std::span<std::byte> into) {
  if (send.pieces != nullptr) return send.pieces->gather(offset, into);
  base::copy_cached(into.data(), send.data + offset, into.size());
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

Mailbox::~Mailbox() {
  matcher_.for_each_waiting([this](Receive& receive) { matcher_.forget(receive); });
}

std::span<const agent::OwnChannel> Mailbox::channels() const { return kChannels; }

Mailbox::Desk& Mailbox::desk_of(agent::Session& session) {
  if (Desk* const known = known_desk(session)) return *known;
  auto made = std::make_unique<Desk>();
  Desk& desk = *made;
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
  } else {
    static_cast<Send&>(operation).hook.unlink();
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
  Desk& desk = desk_of(*session);
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
bool Mailbox::goes_at_once(agent::Session& session, Desk& desk, Send& send) {
  if (send.listener != nullptr || !desk.is_silent() || !carrier_.has_path(session)) return false;
  return announce(session, desk, send) == Sent::kYes;
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
    receive.own.reset(new (std::nothrow) std::byte[envelope.bytes]);
    receive.data = receive.own.get();
    receive.capacity = envelope.bytes;
    if (receive.data != nullptr) return true;
    status = Status(Code::kBusy, "there is no memory for a message of " + bytes_text(envelope.bytes));
  }
  end_one(receive, status.with_peer(from.name()));
  return false;
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
  want(*session, receive, id, address, now);
}

void Mailbox::want(agent::Session& session, Receive& receive, std::uint64_t id, std::uint64_t address, Instant now) {
  Desk& desk = desk_of(session);
  receive.asked_id = id;
  receive.landing = next_id_++;
  const bool is_fetched = address != 0 && receive.got.bytes != 0 && carrier_.can_fetch(session);
  if (is_fetched) {
    receive.address = address;
    desk.fetches.push_back(receive);
  } else {
    desk.of(Priority::kRealtime)
        .words.push_back({{.kind = wire::RuntimeKind::kGrant, .id = id, .landing = receive.landing}, {}});
  }
  carrier_.serve(session, now);
  if (receive.got.bytes == 0) return end_one(receive, {});
  desk.landing.emplace(receive.landing, &receive);
}

/// What cannot be read is granted, and comes in parts.
void Mailbox::fetch_part(agent::Session& session, Desk& desk, Receive& receive) {
  const std::span<std::byte> free = receive.run(receive.received);
  const std::uint64_t left = std::min<std::uint64_t>(receive.got.bytes - receive.received, kFetchPart);
  const std::size_t size = std::min<std::uint64_t>(left, free.size());
  const std::span<std::byte> into = free.first(size);
  const bool is_read = carrier_.fetch(session, receive.address + receive.received, into);
  receive.fetch_hook.unlink();
  if (is_read) receive.received += size;
  if (is_read && receive.received < receive.got.bytes) return desk.fetches.push_back(receive);
  if (!is_read) {
    receive.received = 0;
    receive.address = 0;
  }
  const wire::RuntimeKind kind = is_read ? wire::RuntimeKind::kFetched : wire::RuntimeKind::kGrant;
  desk.of(Priority::kRealtime)
      .words.push_back({{.kind = kind, .id = receive.asked_id, .landing = receive.landing}, {}});
  if (is_read && planted(Planted::kFetchedIsTaken)) {
    desk.landing.erase(receive.landing);
    end_one(receive, {});
  }
}

void Mailbox::drop_kept(Arrived& arrived) {
  if (!arrived.from.is_self()) {
    Status gone;
    agent::Session* const session = carrier_.session_with(arrived.from, &gone);
    Desk* const desk = session == nullptr ? nullptr : known_desk(*session);
    if (desk != nullptr && arrived.bytes != nullptr) {
      ClassDesk& its = desk->of(arrived.priority);
      its.kept_bytes -= arrived.envelope.bytes;
      --its.kept_messages;
      note_freed(its, arrived.envelope.bytes);
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

void Mailbox::note_freed(ClassDesk& its, std::size_t bytes) {
  its.freed_bytes += bytes;
  ++its.freed_messages;
}

void Mailbox::stop(Operation& operation, const Status& status, Instant now) {
  if (operation.final.load(std::memory_order_relaxed)) return;
  if (operation.kind == OperationKind::kReceive) {
    auto& receive = static_cast<Receive&>(operation);
    if (receive.landing != 0) {
      Status gone;
      agent::Session* const session = carrier_.session_with(receive.from, &gone);
      if (session != nullptr) {  // What comes for it is passed over: nobody lands there.
        Desk& desk = desk_of(*session);
        desk.landing.erase(receive.landing);
        if (receive.fetch_hook.is_linked()) {  // The sender waits for a word.
          const wire::RuntimeKind kind = wire::RuntimeKind::kFetched;
          desk.of(Priority::kRealtime)
              .words.push_back({{.kind = kind, .id = receive.asked_id, .landing = receive.landing}, {}});
          carrier_.serve(*session, now);
        }
      }
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
  if (session != nullptr && send.is_asked) {
    Desk& desk = desk_of(*session);
    desk.asked.erase(send.id);
    if (!planted(Planted::kGoneUntold)) {  // It does not overtake what it speaks of.
      desk.of(send.priority).words.push_back({{.kind = wire::RuntimeKind::kGone, .id = send.id}, {}});
    }
    carrier_.serve(*session, now);
  }
  end_one(send, status);
}

void Mailbox::stop_any(std::uint64_t world, const Status& status) {
  matcher_.for_each_waiting([&](Receive& receive) {
    const Pattern& pattern = receive.pattern;
    const bool is_users = pattern.use == wire::MessageUse::kUser;
    if (pattern.world == world && is_users && pattern.source == nullptr) end_one(receive, status);
  });
}

void Mailbox::stop_all(std::uint64_t world, const Status& status) {
  matcher_.for_each_waiting([&](Receive& receive) {
    if (receive.pattern.world == world) end_one(receive, status);
  });
}

void Mailbox::stop_landing(std::uint64_t world, std::span<const Peer> ranks, const Status& status, Instant now) {
  std::vector<Receive*> all;
  for (const Peer& from : ranks) {
    Status gone;
    const agent::Session* const session = from.is_self() ? nullptr : carrier_.session_with(from, &gone);
    const Desk* const desk = session == nullptr ? nullptr : known_desk(*session);
    if (desk == nullptr) continue;
    for (const auto& [id, receive] : desk->landing) {
      if (receive->pattern.world == world) all.push_back(receive);
    }
  }
  std::ranges::sort(all, {}, &Receive::landing);  // In a fixed order.
  for (Receive* const receive : all) stop(*receive, status, now);
}

void Mailbox::forget_world(std::uint64_t world) {
  if (planted(Planted::kUnwantedKept)) return;
  matcher_.for_each_kept([&](Arrived& arrived) {
    if (arrived.envelope.world == world && arrived.own == nullptr) drop_kept(arrived);
  });
}

/// Those that are not through, in a fixed order.
std::vector<Send*> Mailbox::sends_of(std::uint64_t world, const Peer& to) {
  std::vector<Send*> all;
  const auto add = [&](Send* send) {
    const bool is_its = send != nullptr && send->envelope.world == world;
    if (is_its && send->envelope.use == wire::MessageUse::kUser) all.push_back(send);
  };
  if (to.is_self()) {
    matcher_.for_each_kept([&](const Arrived& arrived) { add(arrived.own); });
    return all;
  }
  Status gone;
  const agent::Session* const session = carrier_.session_with(to, &gone);
  Desk* const desk = session == nullptr ? nullptr : known_desk(*session);
  if (desk == nullptr) return all;
  for (const auto& [id, send] : desk->asked) add(send);
  std::ranges::sort(all, {}, &Send::id);
  for (ClassDesk& its : desk->classes) {
    for (Send& send : its.line) add(&send);
  }
  return all;
}

bool Mailbox::run_jobs(Instant now) {
  if (jobs_.empty() || std::exchange(runs_jobs_, true)) return false;  // Below, on the same thread: it goes on there.
  while (!jobs_.empty()) {
    std::vector<std::function<void(Instant)>> jobs = std::exchange(jobs_, {});
    for (const auto& job : jobs) job(now);
  }
  runs_jobs_ = false;
  return true;
}

// ---- What worlds say to one another.

void Mailbox::tell(const Peer& peer, Word word, Instant now) {
  Status gone;
  agent::Session* const session = peer.is_self() ? nullptr : carrier_.session_with(peer, &gone);
  if (session == nullptr) return;
  Desk& desk = desk_of(*session);
  if (is_last_word(word.message.kind)) {
    for (ClassDesk& its : desk.classes) its.last_words.push_back(word);
  } else {
    desk.of(Priority::kRealtime).words.push_back(std::move(word));
  }
  carrier_.serve(*session, now);
}

void Mailbox::tell_if_room(const Peer& peer, Word word, Instant now) {
  Status gone;
  const agent::Session* const session = carrier_.session_with(peer, &gone);
  const Desk* const desk = session == nullptr ? nullptr : known_desk(*session);
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
    Status gone;
    agent::Session* const session = peer.is_self() ? nullptr : carrier_.session_with(peer, &gone);
    Desk* const desk = session == nullptr ? nullptr : known_desk(*session);
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
  const Desk* const desk = known_desk(session);
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
      return on_grant(session, message, now);
    case wire::RuntimeKind::kPart:
      return on_part(session, message);
    case wire::RuntimeKind::kGone:
      return on_gone(session, message);
    case wire::RuntimeKind::kFetched:
      return on_fetched(session, message, now);
    case wire::RuntimeKind::kTaken:
      return on_taken(session, message);
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

/// All classes bring the same ones, each in the same order.
Status Mailbox::on_last_word(agent::Session& session, Priority priority, const wire::RuntimeMessage& message) {
  Desk& desk = desk_of(session);
  const std::size_t place = desk.of(priority).last_heard++ - desk.last_heard;
  if (place >= kLastWordsMax) return Status(Code::kCorrupt, "a peer says its last words in one class only");
  if (place == desk.last.size()) desk.last.push_back({.word = {.message = message, .text = {}}});
  Desk::LastWord& its = desk.last[place];
  const wire::RuntimeMessage& known = its.word.message;
  const bool is_same = known.kind == message.kind && known.world == message.world && known.number == message.number &&
                       known.code == message.code;
  if (!is_same) return Status(Code::kCorrupt, "a peer's classes bring different last words");
  if (++its.classes < wire::kClasses) return {};
  desk.last.pop_front();  // Those before it came in each class before it did.
  ++desk.last_heard;
  watchers_.tell(agent::inner::peer_of(session), message, desk.early, carrier_.now());
  return {};
}

Status Mailbox::on_freed(agent::Session& session, const wire::RuntimeMessage& message) {
  ClassDesk& its = desk_of(session).of(message.priority);
  if (message.bytes > its.eager_bytes || message.messages > its.eager_messages) {
    return Status(Code::kCorrupt, "a peer frees more than it was sent");
  }
  its.eager_bytes -= message.bytes;
  its.eager_messages -= message.messages;
  return {};
}

Status Mailbox::on_eager(agent::Session& session, Priority priority, const wire::RuntimeMessage& message, Instant now) {
  const Peer from = agent::inner::peer_of(session);
  ClassDesk& its = desk_of(session).of(priority);
  if (watchers_.is_closed(message.envelope.world)) {
    note_freed(its, message.body.size());
    return {};
  }
  if (Receive* const receive = receive_for(message.envelope, from)) {
    prepare(*receive, message.envelope, from);
    put(*receive, 0, message.body);
    receive->received = message.body.size();
    note_freed(its, message.body.size());
    if (its.owes_freed()) carrier_.serve(session, now);
    end_one(*receive, {});
    return {};
  }
  if (its.kept_bytes + message.body.size() > kEagerWindow || its.kept_messages >= kEagerMessages) {
    return Status(Code::kCorrupt, "a peer sent more than may wait here unwanted");
  }
  auto arrived = std::make_unique<Arrived>();
  arrived->from = from;
  arrived->source = source_of(from);
  arrived->envelope = message.envelope;
  arrived->priority = priority;
  arrived->bytes = std::make_unique_for_overwrite<std::byte[]>(message.body.size());
  base::copy_cached(arrived->bytes.get(), message.body.data(), message.body.size());
  its.kept_bytes += message.body.size();
  ++its.kept_messages;
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
    want(session, *receive, message.id, message.address, now);
    return {};
  }
  Desk& desk = desk_of(session);
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

Status Mailbox::on_grant(agent::Session& session, const wire::RuntimeMessage& message, Instant now) {
  Desk& desk = desk_of(session);
  const auto found = desk.asked.find(message.id);
  if (found == desk.asked.end()) return {};  // It was stopped meanwhile, and the peer hears of that.
  Send& send = *found->second;
  if (message.landing == 0) return Status(Code::kCorrupt, "a peer grants a message without a number for its parts");
  if (send.landing != 0) return Status(Code::kCorrupt, "a peer grants a message twice");
  send.landing = message.landing;
  if (send.envelope.bytes == 0) {
    desk.asked.erase(found);
    end_one(send, {});
    return {};
  }
  desk.of(stream_class_of(send)).streams.push_back(send);
  carrier_.serve(session, now);
  return {};
}

Status Mailbox::on_part(agent::Session& session, const wire::RuntimeMessage& message) {
  Desk& desk = desk_of(session);
  const auto found = desk.landing.find(message.landing);
  if (found == desk.landing.end()) return {};
  Receive& receive = *found->second;
  if (receive.address != 0) return Status(Code::kCorrupt, "a peer sends a part of a message that it was not granted");
  if (message.offset != receive.received || message.body.size() > receive.got.bytes - receive.received) {
    return Status(Code::kCorrupt, "parts of a message do not follow each other");
  }
  put(receive, receive.received, message.body);
  receive.received += message.body.size();
  if (receive.received < receive.got.bytes && !planted(Planted::kPartEndsReceive)) return {};
  desk.landing.erase(found);
  end_one(receive, {});
  return {};
}

Status Mailbox::on_gone(agent::Session& session, const wire::RuntimeMessage& message) {
  Desk& desk = desk_of(session);
  const auto kept = desk.kept_asks.find(message.id);
  if (kept != desk.kept_asks.end()) {
    drop_kept(*kept->second);
    return {};
  }
  const auto granted =
      std::ranges::find_if(desk.landing, [&](const auto& entry) { return entry.second->asked_id == message.id; });
  if (granted == desk.landing.end()) return {};
  Receive& receive = *granted->second;
  desk.landing.erase(granted);
  end_one(receive,
          Status(Code::kCancelled, "the sender stopped the message").with_peer(agent::inner::peer_of(session).name()));
  return {};
}

Status Mailbox::on_fetched(agent::Session& session, const wire::RuntimeMessage& message, Instant now) {
  Desk& desk = desk_of(session);
  const auto found = desk.asked.find(message.id);
  if (found == desk.asked.end()) return {};  // It was stopped meanwhile, and the peer hears of that.
  Send& send = *found->second;
  if (send.landing != 0 || !send.is_readable) {
    return Status(Code::kCorrupt, "a peer has read a message that it was granted, or was not told where");
  }
  desk.asked.erase(found);
  desk.of(Priority::kRealtime).words.push_back({{.kind = wire::RuntimeKind::kTaken, .landing = message.landing}, {}});
  carrier_.serve(session, now);
  end_one(send, {});
  return {};
}

/// The sender's memory was the message's until the peer had heard that all of it was read.
Status Mailbox::on_taken(agent::Session& session, const wire::RuntimeMessage& message) {
  Desk& desk = desk_of(session);
  const auto found = desk.landing.find(message.landing);
  if (found == desk.landing.end()) return {};
  Receive& receive = *found->second;
  if (receive.address == 0 || receive.received < receive.got.bytes || receive.fetch_hook.is_linked()) {
    return Status(Code::kCorrupt, "a peer says of a message that it was taken, which was not read");
  }
  desk.landing.erase(found);
  end_one(receive, {});
  return {};
}

// ---- What goes.

Sent Mailbox::say(agent::Session& session, Priority priority, const wire::RuntimeMessage& message) {
  wire::RuntimeBuffer buffer;
  return carrier_.carry(session, wire::runtime_channel_of(priority), wire::encode(message, buffer), message.body);
}

/// Small pieces are copied together.
std::span<const std::byte> Mailbox::together(const Send& send, std::uint64_t offset, std::size_t size) {
  const std::span<const std::byte> first = send.run(offset);
  if (first.size() >= size) return first.first(size);
  gathered_.resize(kEagerMax);
  take(send, offset, std::span(gathered_).first(size));
  return std::span(gathered_).first(size);
}

Sent Mailbox::announce(agent::Session& session, Desk& desk, Send& send) {
  const std::uint64_t bytes = send.envelope.bytes;
  ClassDesk& its = desk.of(send.priority);
  const bool is_eager =
      bytes <= kEagerMax && its.eager_bytes + bytes <= kEagerWindow && its.eager_messages < kEagerMessages;
  wire::RuntimeMessage message{.kind = wire::RuntimeKind::kEager, .envelope = send.envelope};
  if (is_eager) {
    message.body = together(send, 0, bytes);
  } else {
    message.kind = wire::RuntimeKind::kAsk;
    if (send.id == 0) send.id = next_id_++;
    message.id = send.id;
    send.is_readable = bytes != 0 && send.pieces == nullptr && carrier_.can_fetch(session);
    message.address = send.is_readable ? reinterpret_cast<std::uintptr_t>(send.data) : 0;
  }
  const Sent sent = say(session, send.priority, message);
  if (sent != Sent::kYes) return sent;
  send.hook.unlink();
  if (is_eager) {
    its.eager_bytes += bytes;
    ++its.eager_messages;
    end_one(send, {});
  } else {
    send.is_asked = true;
    desk.asked.emplace(send.id, &send);
  }
  return sent;
}

Sent Mailbox::send_part(agent::Session& session, Desk& desk, Send& send) {
  std::uint64_t size = std::min<std::uint64_t>(send.envelope.bytes - send.sent, wire::kRuntimeBodyMax);
  const std::size_t lies_together = send.run(send.sent).size();
  if (lies_together >= kPieceMin) size = std::min<std::uint64_t>(size, lies_together);  // It is not copied.
  const Sent sent = say(session, part_class_of(send),
                        {.kind = wire::RuntimeKind::kPart,
                         .landing = send.landing,
                         .offset = send.sent,
                         .body = together(send, send.sent, size)});
  if (sent != Sent::kYes) return sent;
  send.sent += size;
  send.hook.unlink();
  if (send.sent < send.envelope.bytes) {
    desk.of(stream_class_of(send)).streams.push_back(send);
    return sent;
  }
  desk.asked.erase(send.id);
  end_one(send, {});
  return sent;
}

Sent Mailbox::say_all(agent::Session& session, std::list<Word>& words, Priority priority, std::size_t* work) {
  while (!words.empty()) {
    if (const Sent sent = say(session, priority, words.front().whole()); sent != Sent::kYes) return sent;
    words.pop_front();
    ++*work;
  }
  return Sent::kYes;
}

Sent Mailbox::announce_all(agent::Session& session, Desk& desk, Priority priority, std::size_t* work) {
  auto& line = desk.of(priority).line;
  while (!line.empty()) {
    if (const Sent sent = announce(session, desk, *line.front()); sent != Sent::kYes) return sent;
    ++*work;
  }
  return Sent::kYes;
}

/// Of every class: what frees room for bulk does not wait behind bulk.
Sent Mailbox::tell_freed(agent::Session& session, Desk& desk) {
  for (std::size_t i = 0; i < wire::kClasses; ++i) {
    ClassDesk& its = desk.classes[i];
    if (!its.owes_freed()) continue;
    const Sent sent = say(session, Priority::kRealtime,
                          {.kind = wire::RuntimeKind::kFreed,
                           .bytes = its.freed_bytes,
                           .messages = its.freed_messages,
                           .priority = static_cast<Priority>(i)});
    if (sent != Sent::kYes) return sent;
    its.freed_bytes = its.freed_messages = 0;
  }
  return Sent::kYes;
}

/// The first of these classes that has streams comes first.
Sent Mailbox::send_parts(agent::Session& session, Desk& desk, std::span<ClassDesk> classes, std::size_t* work) {
  const auto next = [&] {
    return std::ranges::find_if(classes, [](ClassDesk& each) { return !each.streams.empty(); });
  };
  for (int part = 0; part < kPartsAtOnce && next() != classes.end(); ++part) {
    const Sent sent = send_part(session, desk, *next()->streams.front());
    if (sent != Sent::kYes) return sent;
    ++*work;
  }
  if (next() != classes.end()) carrier_.serve(session, carrier_.now());  // The next ones next turn.
  return Sent::kYes;
}

Sent Mailbox::pump_urgent(agent::Session& session, Desk& desk, Priority priority, std::size_t* work) {
  ClassDesk& its = desk.of(priority);
  Sent sent = say_all(session, its.words, priority, work);
  if (sent == Sent::kYes && priority == Priority::kRealtime) sent = tell_freed(session, desk);
  if (sent == Sent::kYes) sent = announce_all(session, desk, priority, work);
  if (sent == Sent::kYes) sent = say_all(session, its.last_words, priority, work);
  if (sent == Sent::kYes && priority == Priority::kCritical) {
    sent = send_parts(session, desk, std::span(&its, 1), work);
  }
  return sent;
}

/// Parts come last.
Sent Mailbox::pump_bulk(agent::Session& session, Desk& desk, std::size_t* work) {
  ClassDesk& its = desk.of(Priority::kBulk);
  Sent sent = say_all(session, its.words, Priority::kBulk, work);
  if (sent == Sent::kYes) sent = announce_all(session, desk, Priority::kBulk, work);
  if (sent == Sent::kYes) sent = say_all(session, its.last_words, Priority::kBulk, work);
  if (!desk.fetches.empty()) {  // Whatever waits for credit: to read needs none.
    fetch_part(session, desk, *desk.fetches.front());
    carrier_.serve(session, carrier_.now());
    ++*work;
  }
  if (sent == Sent::kYes) sent = send_parts(session, desk, std::span(desk.classes).subspan(1), work);
  return sent;
}

bool Mailbox::pump(agent::Session& session, std::size_t* work) {
  Desk* const desk = known_desk(session);
  if (desk == nullptr) return true;
  bool has_room = true;  // A class that waits holds back no other one.
  for (const Priority priority : {Priority::kCritical, Priority::kRealtime}) {
    has_room = pump_urgent(session, *desk, priority, work) != Sent::kNoRoom && has_room;
  }
  has_room = pump_bulk(session, *desk, work) != Sent::kNoRoom && has_room;
  run_jobs(carrier_.now());
  return has_room;
}

// ---- Ends.

void Mailbox::end(agent::Session& session, const Status& status) {
  Desk* const desk = known_desk(session);
  const Peer peer = agent::inner::peer_of(session);
  if (desk != nullptr) {
    for (ClassDesk& its : desk->classes) {
      while (Send* const send = its.line.front()) end_one(*send, status);
    }
    for (const auto& [id, send] : std::exchange(desk->asked, {})) {
      if (!planted(Planted::kAskedKept)) end_one(*send, status);
    }
    for (const auto& [landing, receive] : std::exchange(desk->landing, {})) end_one(*receive, status);
    for (ClassDesk& its : desk->classes) {
      its.words.clear();
      its.last_words.clear();
      its.last_heard = 0;
      its.eager_bytes = its.eager_messages = its.kept_bytes = its.kept_messages = 0;
      its.freed_bytes = its.freed_messages = 0;
    }
    desk->last.clear();
    desk->last_heard = 0;
    desk->early.clear();
    desk->kept_asks.clear();
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
  const Desk* const desk = known_desk(session);
  return desk != nullptr && (!desk->asked.empty() || !desk->landing.empty());
}

std::size_t Mailbox::left(const agent::Session& session) const {
  const Desk* const desk = known_desk(session);
  return desk == nullptr ? 0 : desk->asked.size() + desk->landing.size() + desk->words();
}

std::size_t Mailbox::expire(Instant now) {
  std::size_t ended = later_.size();
  for (const auto& job : std::exchange(later_, {})) job(now);
  for (std::size_t i = 0; i < lookouts_.size();) {
    Lookout* const next = lookouts_[i];
    ended += next->look(now);  // It may go.
    if (i < lookouts_.size() && lookouts_[i] == next) ++i;
  }
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

/// A lookout that has asked does not look any more.
bool Mailbox::prepare_sleep() {
  std::erase_if(lookouts_, [](Lookout* lookout) { return lookout->ask(); });
  return lookouts_.empty();
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
