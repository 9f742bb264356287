// Session messages in the engine: notifications, messages, credits, arrivals, signals.

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "agent/core.h"
#include "agent/engine.h"
#include "base/bytes.h"
#include "base/planted.h"
#include "base/shown.h"

namespace hawser::agent {
namespace {

constexpr Duration kAckDelay = std::chrono::microseconds(50);  ///< So that an answer carries the acknowledgement along.

using HeadArray = std::array<std::byte, wire::kHeadMax>;

}  // namespace

wire::CreditLimits channel_window(std::uint32_t credit) {
  return {.messages = credit, .bytes = std::uint64_t{credit} * kMessageMax};
}

// ---- Out.

bool Engine::push_reliable(Session& session, std::span<const std::byte> head, std::span<const std::byte> body) {
  PathEntry* control = session.control();
  if (control != nullptr && control->backend != favourite_) others_turned_ = Instant::min();  // An answer is likely.
  if (control != nullptr && session.link_out.can_pass()) {
    if (control->path->send(Priority::kRealtime, head, body)) {
      session.link_out.pass();
      return true;
    }
  }
  if (!session.link_out.push(head, body)) return false;
  if (control != nullptr) {
    while (!session.link_out.pending().empty() && send_pending(session, *control->path)) continue;
  }
  enlist(session);
  return true;
}

/// The oldest message that waits. An acknowledgement that is owed rides along.
bool Engine::send_pending(Session& session, backend::Path& path) {
  HeadArray buffer;
  const bool acks = session.link_in.ack_due(true);
  const wire::Ack ack{.up_to = session.link_in.received()};
  const bool sent = acks ? path.send(Priority::kRealtime, wire::encode_acked(ack, buffer), session.link_out.pending())
                         : path.send(Priority::kRealtime, session.link_out.pending(), {});
  if (!sent) return false;
  session.link_out.sent();
  if (acks) acknowledged(session);
  return true;
}

void Engine::acknowledged(Session& session) {
  session.link_in.take_ack();
  session.ack_since = Instant::max();
}

bool Engine::send_plain(Session& session, std::span<const std::byte> head, std::span<const std::byte> body) {
  PathEntry* control = session.control();
  return control != nullptr && control->path->send(Priority::kRealtime, head, body);
}

void Engine::send_welcome(Session& session, PathEntry& entry) {
  HeadArray buffer;
  const wire::Welcome welcome{.session = session.number,
                              .peer_session = session.peer_number,
                              .revision = core_.card_revision(),
                              .received = session.link_in.received(),
                              .notify = session.notify_in.take_limits(notify_room()),
                              .credits = {}};
  const std::string body = wire::encode_credits(open_credits(session));
  const auto send = [&] {
    return entry.path->send(Priority::kRealtime, wire::encode(welcome, buffer), base::as_bytes(body));
  };
  if (entry.answer_first) entry.answer_first = !send();
  entry.welcome_sent = !entry.answer_first && send();
  if (!entry.welcome_sent) return;
  for (auto& [id, channel] : session.channels) channel.credit_owed = false;
}

std::vector<wire::Credit> Engine::open_credits(Session& session) {
  std::vector<wire::Credit> credits;
  for (auto& [id, channel] : session.channels) {
    if (channel.in) credits.push_back({.channel = id, .limits = channel.in->take_limits()});
  }
  return credits;
}

Status Engine::notify(Session& session, std::string_view text, Instant now) {
  if (session.peer->state.load(std::memory_order_relaxed) == PeerState::kDown) return core_.down_status(*session.peer);
  if (!session.unreached.ok()) {  // Not taken for what may never leave. But it is tried again.
    const Status unreached = session.unreached;
    want(session, now);
    return unreached;
  }
  if (!session.peer->notify_out.try_take(text.size())) return no_room_to_notify(*session.peer);
  wire::Arrive arrive{.seq = session.link_out.next_seq()};
  arrive.notify = base::as_bytes(text);
  HeadArray buffer;
  if (!session.unsent.empty() || !push_reliable(session, wire::encode(arrive, buffer), *arrive.notify)) {
    session.peer->notify_out.give_back(text.size());
    return Status(Code::kBusy, "notify: the queue of messages to " + session.peer->name + " is full");
  }
  ++session.flow.notifications_sent;
  want(session, now);
  return {};
}

Status Engine::no_room_to_notify(const PeerCore& peer) {
  return Status(Code::kBusy, "notify: the inbox of " + peer.name + " has no room for another notification")
      .with_peer(peer.name)
      .with_advice("the peer must take notifications; retry after a pause");
}

Status Engine::no_room(const PeerCore& peer, std::uint32_t channel) {
  const std::string number = std::to_string(channel);
  if (!peer.is_self && !peer.is_greeted.load(std::memory_order_acquire)) {
    return Status(Code::kBusy,
                  "send: " + peer.name + " has not greeted yet, so it is not known to have opened channel " + number)
        .with_peer(peer.name)
        .with_advice("connect to the peer first, or give `send` a timeout");
  }
  const bool is_open = peer.channels.is_open(channel);
  return Status(Code::kBusy,
                "send: " + peer.name + (is_open ? " has no room on channel " : " has not opened channel ") + number)
      .with_peer(peer.name)
      .with_advice(is_open ? "the peer must take messages; retry after a pause, or give `send` a timeout"
                           : "the peer must open it (open_channel)");
}

Status Engine::send(Session& session, std::uint32_t channel, std::span<const std::byte> bytes, Instant now) {
  PeerCore& peer = *session.peer;
  if (peer.state.load(std::memory_order_relaxed) == PeerState::kDown) return core_.down_status(peer);
  const Status unreached = session.unreached;
  want(session, now);
  if (!unreached.ok()) return unreached;
  if (peer.channels.try_take(channel, bytes.size()) != ChannelCredits::Taken::kYes) return no_room(peer, channel);
  const wire::Send message{.seq = session.link_out.next_seq(), .channel = channel, .bytes = bytes};
  HeadArray buffer;
  if (!session.unsent.empty() || !push_reliable(session, wire::encode(message, buffer), bytes)) {
    peer.channels.give_back(channel, bytes.size());
    return Status(Code::kBusy, "send: the queue of messages to " + peer.name + " is full");
  }
  ++session.flow.messages_sent;
  return {};
}

void Engine::take_left_over(LeftOver left, Instant now) {
  PeerCore& peer = *left.peer;
  if (peer.state.load(std::memory_order_relaxed) == PeerState::kDown || closing_) return;
  // The session to which it belongs is over, and so is what was sent in it.
  if (left.kind != LeftOver::Kind::kNotification && left.epoch != peer.channels.epoch()) return;
  Session& its_session = session(left.peer);
  if (left.kind == LeftOver::Kind::kRelease) {
    release_messages(its_session, left.channel, left.messages, left.freed);
    return;
  }
  if (its_session.unsent.empty() && push_left_over(its_session, left)) return;
  its_session.unsent.push_back(std::move(left));
  want(its_session, now);
  enlist(its_session);
}

bool Engine::push_left_over(Session& session, const LeftOver& left) {
  const auto bytes = base::as_bytes(left.bytes);
  HeadArray buffer;
  if (left.kind == LeftOver::Kind::kNotification) {
    wire::Arrive arrive{.seq = session.link_out.next_seq()};
    arrive.notify = bytes;
    if (!push_reliable(session, wire::encode(arrive, buffer), bytes)) return false;
    ++session.flow.notifications_sent;
    return true;
  }
  const wire::Send message{.seq = session.link_out.next_seq(), .channel = left.channel, .bytes = bytes};
  if (!push_reliable(session, wire::encode(message, buffer), bytes)) return false;
  ++session.flow.messages_sent;
  return true;
}

bool Engine::pump_unsent(Session& session, std::size_t* work) {
  while (!session.unsent.empty()) {
    if (!push_left_over(session, session.unsent.front())) return false;
    session.unsent.pop_front();
    ++*work;
  }
  return true;
}

std::size_t Engine::pump_messages(Session& session, Instant now) {
  for (PathEntry& entry : session.paths) {
    if (entry.up && !entry.welcome_sent) send_welcome(session, entry);
  }
  choose_control(session, now);
  tell_awaited(session, now);
  PathEntry* const control = session.control();
  if (control == nullptr) return 0;
  std::size_t work = 0;
  while (!session.link_out.pending().empty()) {
    if (!send_pending(session, *control->path)) {
      block(session, now);
      return work;
    }
    ++work;
  }
  const bool all = pump_credits(session, &work) && pump_unsent(session, &work) && pump_requests(session, &work) &&
                   pump_services(session, &work) && pump_ack(session, now, &work);
  if (!all) {
    block(session, now);
  } else if (session.link_in.ack_due(true)) {
    enlist(session);  // It waits for company, but not for long.
  }
  return work;
}

/// These answer false when there is no room now: the session is looked at again after a pause, or when something moved.
bool Engine::pump_credits(Session& session, std::size_t* work) {
  HeadArray buffer;
  if (session.credit_owed) {
    const wire::Credit credit{.channel = wire::kNotifyChannel, .limits = session.notify_in.take_limits(notify_room())};
    if (!send_plain(session, wire::encode(credit, buffer), {})) return false;
    session.credit_owed = false;
    ++*work;
  }
  for (auto& [id, channel] : session.channels) {
    if (!channel.credit_owed || !channel.in) continue;
    const wire::Credit credit{.channel = id, .limits = channel.in->take_limits()};
    if (!send_plain(session, wire::encode(credit, buffer), {})) return false;
    channel.credit_owed = false;
    ++*work;
  }
  return true;
}

bool Engine::pump_requests(Session& session, std::size_t* work) {
  HeadArray buffer;
  while (!session.cancelled.empty()) {
    const wire::Arrive gone{
        .seq = session.link_out.next_seq(), .transfer = session.cancelled.back(), .cancelled = true};
    if (!push_reliable(session, wire::encode(gone, buffer), {})) return false;
    session.cancelled.pop_back();
    ++*work;
  }
  // After those: of what failed the peer expects nothing any more, and ignores this.
  while (!session.visible.empty()) {
    const wire::Arrive visible{.seq = session.link_out.next_seq(), .transfer = session.visible.back(), .chunks = 0};
    if (!push_reliable(session, wire::encode(visible, buffer), {})) return false;
    session.visible.pop_back();
    ++*work;
  }
  if (session.card_asker.must_ask()) {
    const wire::CardRequest request{.seq = session.link_out.next_seq(),
                                    .since_revision = core_.known_revision(*session.peer)};
    if (!push_reliable(session, wire::encode(request, buffer), {})) return false;
    session.card_asker.asked();
    ++*work;
  }
  return pump_card(session, work);
}

bool Engine::pump_ack(Session& session, Instant now, std::size_t* work) {
  if (!session.link_in.ack_due(now - kAckDelay >= session.ack_since)) return true;
  HeadArray buffer;
  const wire::Ack ack{.up_to = session.link_in.received()};
  if (!send_plain(session, wire::encode(ack, buffer), {})) return false;
  acknowledged(session);
  ++*work;
  return true;
}

// ---- In.

void Engine::on_message(const backend::PortEvent& event, Instant now) {
  Session* session = session_of(event.path);
  if (session == nullptr) return;
  const Result<wire::Envelope> envelope = wire::open_envelope(event.bytes);
  Status status = envelope.error();
  if (envelope && envelope->acked != 0) status = session->link_out.on_ack(envelope->acked);
  if (!status.ok()) {
    // The path breaks below.
  } else if (wire::is_reliable(envelope->kind)) {
    PathEntry* const entry = session->find(event.path);
    if (entry != nullptr) ++entry->carried;
    const bool lossless = entry != nullptr && backends_[entry->backend].traits->lossless;
    switch (session->link_in.on_receive(envelope->seq, event.bytes.size(), lossless)) {
      case proto::Received::kDeliver:
        status = on_reliable(*session, *envelope, now);
        break;
      case proto::Received::kDuplicate:
        break;
      case proto::Received::kGap:
        status = Status(Code::kCorrupt, "a message of the session is missing");
        break;
    }
    if (session->ack_since == Instant::max() && !session->link_in.ack_due(false)) session->ack_since = now;
    if (session->link_in.ack_due(true)) enlist(*session);
  } else {
    status = on_plain(*session, event.path, *envelope, now);
  }
  if (!status.ok()) return break_path(*session, status.with_peer(session->peer->name), now);
  if (session->is_told_in_vain()) tell_awaited(*session, now);
}

Status Engine::on_plain(Session& session, const backend::Path* path, const wire::Envelope& envelope, Instant now) {
  switch (envelope.kind) {
    case wire::SessionKind::kAck: {
      const Result<wire::Ack> ack = wire::decode_ack(envelope);
      return ack ? session.link_out.on_ack(ack->up_to) : ack.error();
    }
    case wire::SessionKind::kCredit: {
      const Result<wire::Credit> credit = wire::decode_credit(envelope);
      return credit ? on_credit(session, *credit) : credit.error();
    }
    case wire::SessionKind::kWelcome: {
      const Result<wire::Welcome> welcome = wire::decode_welcome(envelope);
      PathEntry* entry = session.find(path);
      if (!welcome || entry == nullptr) return welcome.error();
      return on_welcome(session, *entry, *welcome, now);
    }
    case wire::SessionKind::kBye: {
      const Result<wire::Bye> bye = wire::decode_bye(envelope);
      if (!bye) return bye.error();
      const bool is_refusal = bye->code == Code::kBusy;
      const Status cause = Status(is_refusal ? Code::kBusy : Code::kDisconnected,
                                  (is_refusal ? "the peer refuses this agent: " : "the peer said goodbye: ") +
                                      base::shown(bye->text, is_refusal ? wire::kByeTextMax : base::kShownMax))
                               .with_scope(Scope::kPeer)
                               .with_peer(session.peer->name);
      feed(session, proto::SessionEvent::kBye, cause, now);
      return {};
    }
    default:
      return Status(Code::kCorrupt, "a message of an unknown kind");
  }
}

Status Engine::on_reliable(Session& session, const wire::Envelope& envelope, Instant now) {
  switch (envelope.kind) {
    case wire::SessionKind::kArrive: {
      const Result<wire::Arrive> arrive = wire::decode_arrive(envelope);
      return arrive ? on_arrive(session, *arrive) : arrive.error();
    }
    case wire::SessionKind::kSend: {
      const Result<wire::Send> message = wire::decode_send(envelope);
      return message ? on_send(session, *message, now) : message.error();
    }
    case wire::SessionKind::kCardRequest: {
      const Result<wire::CardRequest> request = wire::decode_card_request(envelope);
      return request ? on_card_request(session, *request) : request.error();
    }
    case wire::SessionKind::kCardPart: {
      const Result<wire::CardPart> part = wire::decode_card_part(envelope);
      return part ? on_card_part(session, *part, now) : part.error();
    }
    default:
      return Status(Code::kCorrupt, "a message of an unknown kind");
  }
}

Status Engine::on_welcome(Session& session, PathEntry& entry, const wire::Welcome& welcome, Instant now) {
  if (welcome.session == 0) return Status(Code::kCorrupt, "a Welcome of no session");
  const bool means_another = welcome.peer_session != 0 && welcome.peer_session != session.number;
  const bool known = session.peer_number != 0 && !base::planted(base::Planted::kRestartUnnoticed);
  const bool began_anew = known && session.peer_number != welcome.session;
  // It believes in a session that is over here. Our Welcome tells it so, and it will drop this path.
  // Or it is an old session of the peer, which is over there, too: a late word of it ends nothing here.
  if (means_another && (session.peer_number == 0 || began_anew)) return {};
  if (means_another || began_anew) {
    feed(session, proto::SessionEvent::kRestarted,
         Status(Code::kDisconnected, "the peer forgot this session and began another one")
             .with_scope(Scope::kPeer)
             .with_peer(session.peer->name),
         now);
    return {};
  }
  session.peer_number = welcome.session;
  if (!std::exchange(entry.agreed, true)) {
    on_fenced(session, entry.supersedes);  // One of another backend was dropped before the peer greeted.
    on_path_agreed(session, entry, now);
  }
  const bool answers = entry.greeted || base::planted(base::Planted::kWelcomeAnswered);
  if (answers) entry.welcome_sent = false;  // It lost its control path and greets again: it waits for an answer.
  entry.greeted = true;
  entry.peer_received = welcome.received;
  // Also where our messages go by another path and stay there: the peer lost one by which an Ack was under way.
  if (Status acked = session.link_out.on_ack(welcome.received); !acked.ok()) return acked;
  session.peer->notify_out.on_credit(welcome.notify);
  const Result<std::vector<wire::Credit>> credits = wire::decode_credits(welcome.credits);
  if (!credits) return credits.error();
  for (const wire::Credit& credit : *credits) {
    if (Status status = on_credit(session, credit); !status.ok()) return status;
  }
  follow_card(session, welcome.revision);
  choose_control(session, now);
  enlist(session);
  return {};
}

Status Engine::on_credit(Session& session, const wire::Credit& credit) {
  bool more = false;
  if (credit.channel == wire::kNotifyChannel) {
    more = session.peer->notify_out.on_credit(credit.limits);
  } else if (service_of(credit.channel) != nullptr) {
    if (session.peer->channels.on_credit(credit.channel, credit.limits).value_or(false)) enlist(session);
    return {};
  } else if (credit.channel >= wire::kUserChannelMin) {
    // A hostile peer must not make us keep any number.
    const std::optional<bool> is_more = session.peer->channels.on_credit(credit.channel, credit.limits);
    if (!is_more) return Status(Code::kCorrupt, "credit for more than " + std::to_string(kChannelsMax) + " channels");
    more = *is_more;
  }
  if (more) {
    session.peer->news.fetch_add(1, std::memory_order_release);
    ++finalized_;  // Waiters look at it.
    core_.hint(CompletionKind::kRoom, 0);
  }
  return {};
}

Status Engine::on_arrive(Session& session, const wire::Arrive& arrive) {
  if (arrive.cancelled) {
    drop_waiting(session, session.arrivals.cancel(arrive.transfer));
    return {};
  }
  const bool counted = arrive.notify || arrive.signal;
  const std::size_t bytes = arrive.notify ? arrive.notify->size() : 0;
  if (counted && !session.notify_in.on_receive(bytes)) {
    return Status(Code::kCorrupt, "a notification beyond the credit that was given");
  }
  if (arrive.transfer == 0) {
    deliver(session, arrive.notify, arrive.signal);
  } else {
    const std::uint64_t cookie = session.waiting.next_cookie();
    const std::uint32_t chunks = base::planted(base::Planted::kNotifyBeforeBytes) ? 0 : arrive.chunks;
    const bool is_whole = chunks == 0 && arrive.oldest > arrive.transfer;
    const proto::ArrivalResult result = is_whole ? session.arrivals.on_whole(arrive.transfer, cookie)
                                                 : session.arrivals.on_arrive(arrive.transfer, chunks, cookie);
    switch (result.state) {
      case proto::ArrivalState::kComplete:
        if (result.cookie != cookie) {
          deliver_waiting(session, result.cookie);  // Announced before; only now all is there.
        } else {
          deliver(session, arrive.notify, arrive.signal);
        }
        break;
      case proto::ArrivalState::kIgnored:
        if (counted) release_notify(session, 1, bytes);
        break;
      case proto::ArrivalState::kCorrupt:
        return Status(Code::kCorrupt, "a transfer's chunks contradict what was said of it");
      case proto::ArrivalState::kWaiting: {
        WaitingArrive waiting{.notify = std::nullopt, .signal = arrive.signal};
        if (arrive.notify) waiting.notify = std::string(base::as_text(*arrive.notify));
        session.waiting.put(cookie, std::move(waiting));
        break;
      }
    }
  }
  if (arrive.oldest != 0) session.arrivals.retire(arrive.oldest);
  tell_notify_credit(session);
  return {};
}

/// This peer's part of what the agent may still hold of notifications of all.
std::uint64_t Engine::notify_room() const {
  const std::uint64_t held = core_.inbox.notification_bytes();
  const std::uint64_t total = core_.options.limits.notification_bytes_total;
  return held >= total ? 0 : (total - held) / std::max<std::size_t>(sessions_.size(), 1);
}

void Engine::tell_notify_credit(Session& session) {
  if (!session.notify_in.runs_low()) return;
  PeerCore& peer = *session.peer;
  const std::uint64_t room = notify_room();
  const bool is_pinched = session.notify_in.left(room) < proto::kNotificationCostMax + kUntoldMax;
  peer.is_pinched.store(is_pinched, std::memory_order_seq_cst);
  // Who took some before it could see the mark left them untold.
  const Released::Sum untold = is_pinched ? peer.released.take() : Released::Sum{};
  if (untold.messages > 0) session.notify_in.on_release(untold.messages, untold.bytes);
  if (session.credit_owed || !session.notify_in.credit_due(room)) return;
  session.credit_owed = true;
  enlist(session);
}

void Engine::release_notify(Session& session, std::uint64_t messages, std::uint64_t bytes) {
  session.notify_in.on_release(messages, bytes);
  tell_notify_credit(session);
}

void Engine::deliver_waiting(Session& session, std::uint64_t cookie) {
  const std::optional<WaitingArrive> found = session.waiting.take(cookie);
  if (!found) return;
  std::optional<std::span<const std::byte>> text;
  if (found->notify) text = base::as_bytes(*found->notify);
  deliver(session, text, found->signal);
}

/// The transfer will never be complete: its notification's place goes back to the sender.
void Engine::drop_waiting(Session& session, std::optional<std::uint64_t> cookie) {
  const std::optional<WaitingArrive> found = cookie ? session.waiting.take(*cookie) : std::nullopt;
  if (!found || base::planted(base::Planted::kCreditLost)) return;
  release_notify(session, 1, found->notify ? found->notify->size() : 0);
}

void Engine::on_arrival(const backend::PortEvent& event, Instant now) {
  Session* session = session_of(event.path);
  if (session == nullptr) return;
  const proto::ArrivalResult result = session->arrivals.on_chunk(event.transfer, event.chunk);
  if (result.state == proto::ArrivalState::kCorrupt) {
    break_path(*session, Status(Code::kCorrupt, "chunks of more transfers than were announced"), now);
  } else if (result.state == proto::ArrivalState::kComplete) {
    deliver_waiting(*session, result.cookie);
  }
}

/// The peer may wait for chunks that it will not hear of. Where the transfer goes on, its end tells that all is there.
void Engine::on_uncounted(const backend::PortEvent& event) {
  Session* session = session_of(event.path);
  if (session == nullptr || event.transfer >= session->next_covered) return;
  for (Slot& slot : session->covered) {
    if (slot.id != event.transfer) continue;
    slot.uncounted = true;
    return;
  }
  session->visible.push_back(event.transfer);
  enlist(*session);
}

void Engine::deliver(Session& session, const std::optional<std::span<const std::byte>>& notify,
                     const std::optional<wire::SignalBump>& signal) {
  if (signal) bump(session, *signal);
  if (notify) {
    core_.inbox.push_notification(session.peer, base::as_text(*notify));
    ++session.flow.notifications_received;
    ++finalized_;
    core_.hint(CompletionKind::kNotification, 0);
  } else if (signal && !base::planted(base::Planted::kSignalCreditLost)) {
    release_notify(session, 1, 0);
  }
}

void Engine::bump(Session& session, const wire::SignalBump& signal) {
  const auto entry = core_.regions.find(signal.region, signal.generation, signal.key, Rights::kWrite);
  if (!entry || !is_word_at(**entry, signal.offset)) {
    ++session.flow.errors;  // Counted, and no more: the peer decides how often this happens.
    HAWSER_LOG(core_.log, kDebug, "{}: a signal of {} names no word of ours that it may write", core_.identity.name,
               session.peer->name);
    return;
  }
  auto* word = reinterpret_cast<std::uint64_t*>((*entry)->base + signal.offset);
  std::atomic_ref<std::uint64_t>(*word).fetch_add(signal.add, std::memory_order_release);
  core_.inbox.count_arrival();
  ++finalized_;
}

Status Engine::on_send(Session& session, const wire::Send& message, Instant now) {
  const auto found = session.channels.find(message.channel);
  if (found == session.channels.end() || !found->second.in || !found->second.in->on_receive(message.bytes.size())) {
    return Status(Code::kCorrupt, "a message on a channel that is not open or beyond its credit");
  }
  if (Service* const service = service_of(message.channel)) {
    return service->on_message(session, message.channel, message.bytes, now);
  }
  core_.inbox.push_message(session.peer, message.channel, base::as_text(message.bytes));
  ++session.flow.messages_received;
  ++finalized_;
  core_.hint(CompletionKind::kMessage, message.channel);
  return {};
}

Status Engine::open_channel(std::uint32_t channel, std::uint32_t credit) {
  if (open_channels_.contains(channel)) return {};
  if (open_channels_.size() - own_channels_ >= kChannelsMax) {
    return Status(Code::kBusy, "open_channel: " + std::to_string(kChannelsMax) + " channels are open");
  }
  open_channels_.emplace(channel, credit);
  for (Session* session : sessions_) {
    if (session->machine.state() == proto::SessionState::kDown) continue;
    ChannelState& state = session->channels[channel];
    state.in.emplace(channel_window(credit));
    state.credit_owed = true;
    enlist(*session);
  }
  return {};
}

void Engine::release_notifications(const std::shared_ptr<PeerCore>& peer) {
  if (!peer->session) return;
  const Released::Sum all = peer->released.take();
  if (all.messages > 0) release_notify(*peer->session, all.messages, all.bytes);
}

void Engine::release_message(Session& session, std::uint32_t channel, std::size_t bytes) {
  release_messages(session, channel, 1, bytes);
}

void Engine::release_messages(Session& session, std::uint32_t channel, std::uint32_t messages, std::uint64_t bytes) {
  const auto found = session.channels.find(channel);
  if (found == session.channels.end() || !found->second.in) return;
  if (found->second.in->on_release(messages, bytes)) {
    found->second.credit_owed = true;
    enlist(session);
  }
}

}  // namespace hawser::agent
