#include "agent/engine/arrival_desk.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "agent/region.h"
#include "base/bytes.h"
#include "base/planted.h"

namespace hawser::agent {

Status ArrivalDesk::on_arrive(Session& session, const wire::Arrive& arrive) {
  if (arrive.cancelled) {
    drop_waiting(session, session.arrivals.cancel(arrive.transfer));
    return {};
  }
  const bool counted = arrive.notify || arrive.signal;
  if (counted && !session.notify_in.on_receive(arrive.notify ? arrive.notify->size() : 0)) {
    return Status(Code::kCorrupt, "a notification beyond the credit that was given");
  }
  if (arrive.transfer == 0) {
    deliver(session, arrive.notify, arrive.signal);
  } else if (Status bad = on_transfer(session, arrive); !bad.ok()) {
    return bad;
  }
  if (arrive.oldest != 0) session.arrivals.retire(arrive.oldest);
  tell_credit(session);
  return {};
}

Status ArrivalDesk::on_transfer(Session& session, const wire::Arrive& arrive) {
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
      if (arrive.notify || arrive.signal) give_back(session, 1, arrive.notify ? arrive.notify->size() : 0);
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
  return {};
}

Status ArrivalDesk::on_chunk(Session& session, std::uint64_t transfer, std::uint32_t chunk) {
  const proto::ArrivalResult result = session.arrivals.on_chunk(transfer, chunk);
  if (result.state == proto::ArrivalState::kCorrupt) {
    return Status(Code::kCorrupt, "chunks of more transfers than were announced");
  }
  if (result.state == proto::ArrivalState::kComplete) deliver_waiting(session, result.cookie);
  return {};
}

void ArrivalDesk::deliver(Session& session, const Text& notify, const std::optional<wire::SignalBump>& signal) {
  if (signal) bump(session, *signal);
  if (notify) {
    ++session.flow.notifications_received;
    uses_.news.notification(session.peer, base::as_text(*notify));
  } else if (signal && !base::planted(base::Planted::kSignalCreditLost)) {
    give_back(session, 1, 0);
  }
}

void ArrivalDesk::bump(Session& session, const wire::SignalBump& signal) {
  const auto entry =
      uses_.regions.find(signal.region, signal.generation, signal.key, Rights::kWrite, session.peer->incarnation);
  if (!entry || (*entry)->once != nullptr || !is_word_at(**entry, signal.offset)) {
    ++session.flow.errors;  // Counted, and no more: the peer decides how often this happens.
    HAWSER_LOG(uses_.log, kDebug, "{}: a signal of {} names no word of ours that it may write", uses_.agent,
               session.peer->name);
    return;
  }
  auto* word = reinterpret_cast<std::uint64_t*>((*entry)->base + signal.offset);
  std::atomic_ref<std::uint64_t>(*word).fetch_add(signal.add, std::memory_order_release);
  uses_.news.signal();
}

void ArrivalDesk::deliver_waiting(Session& session, std::uint64_t cookie) {
  const std::optional<WaitingArrive> found = session.waiting.take(cookie);
  if (!found) return;
  Text text;
  if (found->notify) text = base::as_bytes(*found->notify);
  deliver(session, text, found->signal);
}

/// The transfer will never be complete: its notification's place goes back to the sender.
void ArrivalDesk::drop_waiting(Session& session, std::optional<std::uint64_t> cookie) {
  const std::optional<WaitingArrive> found = cookie ? session.waiting.take(*cookie) : std::nullopt;
  if (!found || base::planted(base::Planted::kCreditLost)) return;
  give_back(session, 1, found->notify ? found->notify->size() : 0);
}

/// A peer's part of what the agent may still hold of notifications of all.
std::uint64_t ArrivalDesk::room() const {
  const std::uint64_t held = uses_.inbox.notification_bytes();
  const std::uint64_t total = uses_.notification_bytes_total;
  return held >= total ? 0 : (total - held) / std::max<std::size_t>(uses_.sessions.all().size(), 1);
}

void ArrivalDesk::tell_credit(Session& session) {
  if (!session.notify_in.runs_low()) return;
  PeerCore& peer = *session.peer;
  const std::uint64_t left = room();
  const bool is_pinched = session.notify_in.left(left) < proto::kNotificationCostMax + kUntoldMax;
  peer.use().is_pinched.store(is_pinched, std::memory_order_seq_cst);
  // A thread that took some before it could see the mark left them untold.
  const Released::Sum untold = is_pinched ? peer.use().released.take() : Released::Sum{};
  if (untold.messages > 0) session.notify_in.on_release(untold.messages, untold.bytes);
  if (session.credit_owed || !session.notify_in.credit_due(left)) return;
  session.credit_owed = true;
  uses_.sessions.enlist(session);
}

void ArrivalDesk::give_back(Session& session, std::uint64_t messages, std::uint64_t bytes) {
  session.notify_in.on_release(messages, bytes);
  tell_credit(session);
}

void ArrivalDesk::release(PeerCore& peer) {
  if (!peer.session()) return;
  const Released::Sum all = peer.use().released.take();
  if (all.messages > 0) give_back(*peer.session(), all.messages, all.bytes);
}

bool ArrivalDesk::pump_credit(Session& session, std::size_t* work) {
  if (!session.credit_owed) return true;
  HeadArray buffer;
  const wire::Credit credit{.channel = wire::kNotifyChannel, .limits = take_credit(session)};
  if (!SessionLink::send_plain(session, Priority::kRealtime, wire::encode(credit, buffer), {})) return false;
  session.credit_owed = false;
  ++*work;
  return true;
}

void ArrivalDesk::forget(Session& session) {
  session.arrivals.clear([](std::uint64_t) {});
  session.waiting.clear();
}

}  // namespace hawser::agent
