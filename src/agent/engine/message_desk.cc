#include "agent/engine/message_desk.h"

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

constexpr Priority kNotifyClass = Priority::kRealtime;  ///< With those of transfers, in one order.

}  // namespace

Status MessageDesk::notify(Session& session, std::string_view text, Instant now) {
  PeerCore& peer = *session.peer;
  if (peer.state.load(std::memory_order_relaxed) == PeerState::kDown) return uses_.peers.down_status(peer);
  if (!session.unreached.ok()) {  // Not taken for what may never leave. But it is tried again.
    const Status unreached = session.unreached;
    uses_.connector.want(session, now);
    return unreached;
  }
  if (!peer.use().notify_out.try_take(text.size())) return no_room_to_notify(peer);
  wire::Arrive arrive{.place = session.links.next(kNotifyClass)};
  arrive.notify = base::as_bytes(text);
  HeadArray buffer;
  if (!session.unsent.has_none(kNotifyClass) ||
      !uses_.link.push(session, kNotifyClass, wire::encode(arrive, buffer), *arrive.notify)) {
    peer.use().notify_out.give_back(text.size());
    return Status(Code::kBusy, "notify: the queue of messages to " + peer.name + " is full");
  }
  ++session.flow.notifications_sent;
  uses_.connector.want(session, now);
  return {};
}

Status MessageDesk::no_room_to_notify(const PeerCore& peer) {
  return Status(Code::kBusy, "notify: the inbox of " + peer.name + " has no room for another notification")
      .with_peer(peer.name)
      .with_advice("the peer must take notifications; retry after a pause");
}

Status MessageDesk::no_room(const PeerCore& peer, std::uint32_t channel) {
  const std::string number = std::to_string(channel);
  if (!peer.is_self && !peer.use().is_greeted.load(std::memory_order_acquire)) {
    return Status(Code::kBusy,
                  "send: " + peer.name + " has not greeted yet, so it is not known to have opened channel " + number)
        .with_peer(peer.name)
        .with_advice("connect to the peer first, or give `send` a timeout");
  }
  const bool is_open = peer.use().channels.is_open(channel);
  return Status(Code::kBusy,
                "send: " + peer.name + (is_open ? " has no room on channel " : " has not opened channel ") + number)
      .with_peer(peer.name)
      .with_advice(is_open ? "the peer must take messages; retry after a pause, or give `send` a timeout"
                           : "the peer must open it (open_channel)");
}

MessageDesk::Sending MessageDesk::send(Session& session, std::uint32_t channel, std::span<const std::byte> bytes,
                                       Instant now) {
  PeerCore& peer = *session.peer;
  if (peer.state.load(std::memory_order_relaxed) == PeerState::kDown) return uses_.peers.down_status(peer);
  const Status unreached = session.unreached;
  uses_.connector.want(session, now);
  if (!unreached.ok()) return unreached;
  ChannelCredits::Ticket ticket;
  const ChannelCredits::Taken taken = peer.use().channels.try_take(channel, bytes.size(), &ticket);
  if (taken == ChannelCredits::Taken::kBehind) return std::nullopt;
  if (taken != ChannelCredits::Taken::kYes) return no_room(peer, channel);
  const wire::Link link(ticket.priority, channel);
  const wire::Send message{.place = session.links.next(link), .channel = channel, .bytes = bytes};
  HeadArray buffer;
  if (!session.unsent.has_none(link) || !uses_.link.push(session, link, wire::encode(message, buffer), bytes)) {
    if (peer.use().channels.give_back(channel, bytes.size(), ticket)) {
      return Status(Code::kBusy, "send: the queue of messages to " + peer.name + " is full");
    }
    session.unsent.push({.peer = session.peer,
                         .bytes = std::string(base::as_text(bytes)),
                         .kind = LeftOver::Kind::kMessage,
                         .channel = channel,
                         .priority = ticket.priority,
                         .epoch = ticket.epoch});
    uses_.sessions.enlist(session);
    return ticket.number;
  }
  ++session.flow.messages_sent;
  return ticket.number;
}

void MessageDesk::take_left_over(LeftOver left, Instant now) {
  PeerCore& peer = *left.peer;
  if (peer.state.load(std::memory_order_relaxed) == PeerState::kDown || uses_.sessions.is_closing()) return;
  // The session to which it belongs is over, and so is what was sent in it.
  if (left.kind != LeftOver::Kind::kNotification && left.epoch != peer.use().channels.epoch()) return;
  Session& session = uses_.sessions.of(left.peer);
  if (left.kind == LeftOver::Kind::kRelease) return release(session, left.channel, left.messages, left.freed);
  if (session.unsent.has_none(UnsentMessages::link_of(left)) && push_left_over(session, left)) return;
  session.unsent.push(std::move(left));
  uses_.connector.want(session, now);
  uses_.sessions.enlist(session);
}

bool MessageDesk::push_left_over(Session& session, const LeftOver& left) {
  const auto bytes = base::as_bytes(left.bytes);
  const wire::Link link = UnsentMessages::link_of(left);
  HeadArray buffer;
  if (left.kind == LeftOver::Kind::kNotification) {
    wire::Arrive arrive{.place = session.links.next(link)};
    arrive.notify = bytes;
    if (!uses_.link.push(session, link, wire::encode(arrive, buffer), bytes)) return false;
    ++session.flow.notifications_sent;
    return true;
  }
  const wire::Send message{.place = session.links.next(link), .channel = left.channel, .bytes = bytes};
  if (!uses_.link.push(session, link, wire::encode(message, buffer), bytes)) return false;
  session.peer->use().channels.note_gone(left.channel);
  ++session.flow.messages_sent;
  return true;
}

bool MessageDesk::pump_unsent(Session& session, std::size_t* work) {
  *work += session.unsent.offer([&](const LeftOver& left) { return push_left_over(session, left); });
  return session.unsent.empty();
}

Status MessageDesk::open_channel(std::uint32_t channel, std::uint32_t credit, Priority priority) {
  const Result<bool> is_new = uses_.channels.open(channel, {.credit = credit, .priority = priority});
  if (!is_new || !*is_new) return is_new.error();
  give(channel, {.credit = credit, .priority = priority});
  return {};
}

void MessageDesk::give(std::uint32_t channel, const ChannelBook::Opened& how) {
  for (Session* const session : uses_.sessions.all()) {
    if (session->machine.state() == proto::SessionState::kDown) continue;
    ChannelBook::give(*session, channel, how);
    uses_.sessions.enlist(*session);
  }
}

void MessageDesk::give_channels(std::span<const OwnChannel> channels) {
  for (const OwnChannel& each : channels) give(each.id, {.credit = each.window, .priority = each.priority});
}

void MessageDesk::release(Session& session, std::uint32_t channel, std::uint32_t messages, std::uint64_t bytes) {
  const auto found = session.channels.find(channel);
  if (found == session.channels.end() || !found->second.in) return;
  if (!found->second.in->on_release(messages, bytes)) return;
  found->second.credit_owed = true;
  uses_.sessions.enlist(session);
}

std::vector<wire::Credit> MessageDesk::take_credits(Session& session) {
  std::vector<wire::Credit> credits;
  for (auto& [id, channel] : session.channels) {
    if (channel.in)
      credits.push_back({.channel = id, .priority = channel.priority, .limits = channel.in->take_limits()});
  }
  return credits;
}

void MessageDesk::credits_told(Session& session) {
  for (auto& [id, channel] : session.channels) channel.credit_owed = false;
}

bool MessageDesk::pump_credits(Session& session, std::size_t* work) {
  HeadArray buffer;
  for (auto& [id, channel] : session.channels) {
    if (!channel.credit_owed || !channel.in) continue;
    const wire::Credit credit{.channel = id, .priority = channel.priority, .limits = channel.in->take_limits()};
    if (!SessionLink::send_plain(session, {channel.priority, id}, wire::encode(credit, buffer), {})) return false;
    channel.credit_owed = false;
    ++*work;
  }
  return true;
}

Status MessageDesk::on_credit(Session& session, const wire::Credit& credit) {
  PeerCore& peer = *session.peer;
  bool is_more = false;
  if (credit.channel == wire::kNotifyChannel) {
    is_more = peer.use().notify_out.on_credit(credit.limits);
  } else if (credit.channel < wire::kUserChannelMin) {
    // Kept for a service that comes later, too: the peer tells it once.
    HAWSER_TRY_ASSIGN(const bool taken, peer.use().channels.on_credit(credit));
    if (taken) uses_.sessions.enlist(session);
    return {};
  } else {
    HAWSER_TRY_ASSIGN(is_more,
                      peer.use().channels.on_credit(credit));  // A hostile peer must not make us keep any number.
  }
  if (!is_more) return {};
  peer.use().news.fetch_add(1, std::memory_order_release);
  uses_.news.room();
  return {};
}

Status MessageDesk::on_send(Session& session, const wire::Send& message, Instant now) {
  const auto found = session.channels.find(message.channel);
  if (found == session.channels.end() || !found->second.in || !found->second.in->on_receive(message.bytes.size())) {
    return Status(Code::kCorrupt, "a message on a channel that is not open or beyond its credit");
  }
  if (message.place.link != wire::Link(found->second.priority, message.channel)) {
    return Status(Code::kCorrupt, "a message by another link than its channel has");
  }
  if (Service* const service = uses_.services.of(message.channel)) {
    return service->on_message(session, message.channel, message.bytes, now);
  }
  ++session.flow.messages_received;
  uses_.news.message(session.peer, message.channel, base::as_text(message.bytes));
  return {};
}

void MessageDesk::forget(Session& session) {
  session.channels.clear();
  session.adrift.reset();
  session.peer->use().channels.clear();
  session.unsent.clear();
}

}  // namespace hawser::agent
