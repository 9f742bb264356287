#include "agent/engine/greeter.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "agent/engine/unacknowledged.h"
#include "base/bytes.h"
#include "base/planted.h"

namespace hawser::agent {

void Greeter::greet(Session& session, PathEntry& entry) {
  HeadArray buffer;
  const wire::Welcome welcome{.session = session.number,
                              .peer_session = session.peer_number,
                              .revision = uses_.cards.own_revision(),
                              .received = session.links.received(),
                              .notify = uses_.arrivals.take_credit(session),
                              .credits = {}};
  const std::string body = wire::encode_credits(MessageDesk::take_credits(session));
  const auto send = [&] { return entry.path->send_first(wire::encode(welcome, buffer), base::as_bytes(body)); };
  if (entry.answer_first) entry.answer_first = !send();
  entry.welcome_sent = !entry.answer_first && send();
  if (entry.welcome_sent) MessageDesk::credits_told(session);
}

void Greeter::greet_all(Session& session, Instant now) {
  for (PathEntry& entry : session.paths) {
    if (entry.up && !entry.welcome_sent) greet(session, entry);
  }
  choose_control(session, now);
}

/// The first greeted path in the agent's order of preference, unless one carries control already.
void Greeter::choose_control(Session& session, Instant now) {
  if (session.control() != nullptr) return;
  PathEntry* best = nullptr;
  for (PathEntry& entry : session.paths) {
    if (entry.up && entry.greeted && entry.welcome_sent && (best == nullptr || entry.backend < best->backend))
      best = &entry;
  }
  if (best == nullptr) return;
  const bool is_lossless = uses_.ports.traits(best->backend).lossless;
  if (Status replayed = session.links.replay_from(best->peer_received); !replayed.ok()) {
    uses_.connector.drop(session, replayed, now);
    return;
  }
  forget_adrift(session);
  uses_.services.on_control(session);
  session.control_serial = best->serial;
  session.peer->use().is_greeted.store(true, std::memory_order_release);
  session.links.set_lossless(is_lossless);
  uses_.news.note();
  uses_.sessions.enlist(session);
}

Status Greeter::on_welcome(Session& session, PathEntry& entry, const wire::Welcome& welcome, Instant now) {
  if (welcome.session == 0) return Status(Code::kCorrupt, "a Welcome of no session");
  const bool means_another = welcome.peer_session != 0 && welcome.peer_session != session.number;
  const bool known = session.peer_number != 0 && !base::planted(base::Planted::kRestartUnnoticed);
  const bool began_anew = known && session.peer_number != welcome.session;
  // It believes in a session that is over here. Our Welcome tells it so, and it will drop this path.
  // Or it is an old session of the peer, which is over there, too: a late word of it ends nothing here.
  if (means_another && (session.peer_number == 0 || began_anew)) return {};
  if (means_another || began_anew) {
    // It lives: that is no proof of a death, and so not of Scope::kPeer.
    uses_.connector.feed(session, proto::SessionEvent::kRestarted,
                         Status(Code::kDisconnected, "the peer forgot this session and began another one")
                             .with_scope(Scope::kPath)
                             .with_peer(session.peer->name),
                         now);
    return {};
  }
  session.peer_number = welcome.session;
  if (!std::exchange(entry.agreed, true)) on_agreed(session, entry, now);
  const bool answers = entry.greeted || base::planted(base::Planted::kWelcomeAnswered);
  if (answers) entry.welcome_sent = false;  // It lost its control path and greets again: it waits for an answer.
  entry.greeted = true;
  entry.peer_received = welcome.received;
  // Also where our messages go by another path and stay there: the peer lost one by which an Ack was under way.
  if (Status acked = session.links.on_received(welcome.received); !acked.ok()) return acked;
  if (Status bad = take_credits(session, welcome); !bad.ok()) return bad;
  uses_.exchange.follow(session, welcome.revision);
  choose_control(session, now);
  uses_.sessions.enlist(session);
  return {};
}

Status Greeter::take_credits(Session& session, const wire::Welcome& welcome) {
  session.peer->use().notify_out.on_credit(welcome.notify);
  const Result<std::vector<wire::Credit>> credits = wire::decode_credits(welcome.credits);
  if (!credits) return credits.error();
  for (const wire::Credit& credit : *credits) {
    if (Status bad = uses_.messages.on_credit(session, credit); !bad.ok()) return bad;
  }
  return {};
}

void Greeter::on_agreed(Session& session, PathEntry& entry, Instant now) {
  uses_.fences.on_fenced(session, entry.supersedes);  // One of another backend was dropped before the peer greeted.
  ++session.paths_agreed;
  const auto inlines = [this](const PathEntry& each) {
    return each.agreed && uses_.ports.traits(each.backend).inline_bytes_max > 0;
  };
  session.peer->use().moves_at_once.store(std::ranges::any_of(session.paths, inlines), std::memory_order_relaxed);
  session.fruitless.clear();
  entry.trial.begin(now, entry.carried);
  // Whichever end opened it, it came up in place of one lost path at most.
  uses_.fences.fence_soon(session, now);
  uses_.better.on_path_agreed(session, now);
}

void Greeter::tell_awaited(Session& session, Instant now) {
  PathEntry* const entry = session.awaits_peer() ? session.awaited() : nullptr;
  const std::uint64_t serial = entry == nullptr ? 0 : entry->serial;
  if (serial == session.awaited_serial) return;
  if (PathEntry* const told = session.find(session.awaited_serial)) told->path->set_awaited(false, now);
  session.awaited_serial = serial;
  if (entry != nullptr) entry->path->set_awaited(true, now);
}

}  // namespace hawser::agent
