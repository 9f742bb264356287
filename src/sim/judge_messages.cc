// What was delivered, and what must hold at the end.

#include <algorithm>

#include <fmt/format.h>

#include "agent/inner_simulator.h"
#include "sim/judge.h"

namespace hawser::simulation {
namespace {

/// Which message of its channel this claims to be.
std::uint64_t number_of(const std::string& text) {
  const std::size_t first = text.find('/');
  const std::size_t second = first == std::string::npos ? first : text.find('/', first + 1);
  return second == std::string::npos ? 0 : std::strtoull(text.c_str() + second + 1, nullptr, 10);
}

}  // namespace

void Judge::on_notification(Life& life, const Notification& notification) {
  ++life.notes_taken;
  const std::uint64_t uid = uid_of(notification.text);
  Life* const from = life_of(notification.peer.incarnation());
  if (uid == 0 || from == nullptr) return fail(life, "a notification that nobody sent: " + notification.text);
  universe_.world.note("notified", life.name, uid);
  const auto at = by_uid_.find(uid);
  if (at == by_uid_.end()) {
    Bond& bond = from->bonds[&life];
    if (!bond.notes_sent.contains(uid))
      return fail(life, fmt::format("notification {} was not sent by {}", uid, from->name));
    if (!bond.notes_received.insert(uid).second) return fail(life, fmt::format("notification {} came twice", uid));
    return;
  }
  Move& move = *at->second;
  if (move.course->from != from || move.course->to != &life || !move.notify) {
    return fail(life, fmt::format("notification {} came from {} to the wrong place", uid, from->name));
  }
  if (move.notified)
    return fail(life, fmt::format("the notification of transfer {} from {} came twice", uid, from->name));
  move.notified = true;
  const bool tainted_by_later = move.course->last_writer > move.uid;
  if (move.course->write && !tainted_by_later && !all_landed(move)) {
    return fail(life, fmt::format("the notification of write {} from {} came before its bytes ({})", uid, from->name,
                                  move.final ? move.status.to_string() : "in flight"));
  }
  if (!move.course->write && !move.final && from->alive) {
    return fail(life, fmt::format("the notification of read {} by {} came before it was done", uid, from->name));
  }
}

void Judge::on_message(Life& life, const Message& message) {
  ++life.messages_taken;
  Life* const from = life_of(message.peer.incarnation());
  if (from == nullptr) return fail(life, "a message from nobody");
  Bond& bond = life.bonds[from];
  std::uint64_t& next = bond.received[message.channel];
  std::uint64_t number = next;
  if (bond.broken || from->bonds[&life].broken) {
    // Some may be lost then, but what comes is in order and whole.
    const std::uint64_t said = number_of(message.bytes);
    number = std::max(number, said);
  }
  next = number + 1;
  universe_.world.note("message", life.name, message.channel, number);
  bond.came[message.channel].insert(number);
  const std::string want = message_of(*from, message.channel, number, message.bytes.size());
  if (message.bytes == want) return;
  fail(life, fmt::format("channel {} from {}: expected message {}, got '{}'", message.channel, from->name, number,
                         message.bytes.substr(0, 24)));
}

void Judge::on_event(Life& life, const PeerEvent& event) {
  Life* const other = life_of(event.peer.incarnation());
  if (other == nullptr) return fail(life, "an event of a peer that never lived");
  universe_.world.note("event", life.name, static_cast<std::uint64_t>(event.kind), other->number);
  if (event.kind != PeerEvent::Kind::kDown) return;
  Bond& bond = life.bonds[other];
  if (!may_be_cut_off(life, *other, life.born)) {
    return fail(
        life, fmt::format("gave {} up, though nothing parted them for good: {}", other->name, event.cause.to_string()));
  }
  if (!bond.broken) bond.broken_at = universe_.world.now();
  bond.broken = true;
  check_acknowledged(life, *other, event);
}

void Judge::on_sent(Life& life, Life& to, std::uint32_t channel, std::uint64_t number) {
  Bond& bond = life.bonds[&to];
  auto session = std::ranges::find_if(
      bond.sessions, [&](const SentInSession& each) { return agent::inner::is_same(each.peer, bond.peer); });
  if (session == bond.sessions.end()) {
    bond.sessions.push_back({.peer = bond.peer, .channels = {}});
    session = bond.sessions.end() - 1;
  }
  const auto [at, is_first] = session->channels.try_emplace(channel);
  if (is_first) at->second.before = bond.sent[channel];
  ++bond.sent[channel];
  if (number != ++at->second.last) {
    fail(life, fmt::format("message {} on channel {} to {} was given the number {}", at->second.last, channel, to.name,
                           number));
  }
}

/// What the event says of a session that is over.
void Judge::check_acknowledged(Life& life, Life& other, const PeerEvent& event) {
  Bond& bond = life.bonds[&other];
  const auto session = std::ranges::find_if(
      bond.sessions, [&](const SentInSession& each) { return agent::inner::is_same(each.peer, event.peer); });
  const std::size_t used = session == bond.sessions.end() ? 0 : session->channels.size();
  if (event.acknowledged.size() != used) {
    return fail(life, fmt::format("{} is down, and {} channels are told of where {} were used", other.name,
                                  event.acknowledged.size(), used));
  }
  for (const Acknowledged& each : event.acknowledged) {
    const auto sent = session->channels.find(each.channel);
    if (sent == session->channels.end() || each.number > sent->second.last) {
      return fail(life, fmt::format("message {} on channel {} to {} is told as acknowledged, and was not sent",
                                    each.number, each.channel, other.name));
    }
    for (std::uint64_t i = 0; i < each.number; ++i) bond.claimed[each.channel].insert(sent->second.before + i);
    acknowledged_ += each.number;
    left_open_ += sent->second.last - each.number;
  }
  if (!other.alive) check_claims(life, other);
}

void Judge::check_claims(Life& from, Life& to) {
  Bond& back = to.bonds[&from];
  for (const auto& [channel, numbers] : from.bonds[&to].claimed) {
    for (const std::uint64_t number : numbers) {
      if (back.came[channel].contains(number)) continue;
      return fail(from, fmt::format("message {} on channel {} is told as acknowledged, and {} did not take it", number,
                                    channel, to.name));
    }
  }
}

void Judge::on_end(Life& life) {
  agent::inner::each_waiting_message(life.agent, [&](const Peer& peer, std::uint32_t channel, std::string_view bytes) {
    Life* const from = life_of(peer.incarnation());
    if (from != nullptr) life.bonds[from].came[channel].insert(number_of(std::string(bytes)));
  });
  for (const auto& [incarnation, from] : lives_) {
    if (from != &life && !failed()) check_claims(*from, life);
  }
}

bool Judge::settled(const std::vector<std::unique_ptr<Life>>& lives) {
  for (const auto& from : lives) {
    if (!from->alive) continue;
    if (!from->in_flight.empty() || !from->atomics.empty()) return false;
    for (auto& [to, bond] : from->bonds) {
      const auto back = to->bonds.find(from.get());
      if (!to->alive || bond.broken || (back != to->bonds.end() && back->second.broken)) continue;
      for (const auto& [channel, sent] : bond.sent) {
        if (sent > 0 && (back == to->bonds.end() || back->second.received[channel] != sent)) return false;
      }
      if (bond.notes_sent != bond.notes_received) return false;
    }
  }
  return std::all_of(moves_.begin(), moves_.end(), [](const Move& move) {
    const Course& course = *move.course;
    if (!move.final || !move.status.ok() || !course.from->alive || !course.to->alive) return true;
    const Bond& there = course.from->bonds[course.to];
    const Bond& back = course.to->bonds[course.from];
    if (there.broken || back.broken) return true;
    return (!move.notify || move.notified) && (!move.signal || move.bumped || course.to->words->closed);
  });
}

void Judge::check_pair(Life& from, Life& to, Bond& bond) {
  Bond& back = to.bonds[&from];
  if (bond.broken || back.broken) return;
  for (const auto& [channel, sent] : bond.sent) {
    if (back.received[channel] == sent) continue;
    return fail(to, fmt::format("channel {} from {}: {} messages were sent, {} came", channel, from.name, sent,
                                back.received[channel]));
  }
  if (bond.notes_sent.size() != bond.notes_received.size()) {
    return fail(to, fmt::format("{} of {} notifications without transfer came from {}", bond.notes_received.size(),
                                bond.notes_sent.size(), from.name));
  }
}

void Judge::check_settled(const std::vector<std::unique_ptr<Life>>& lives) {
  for (const auto& from : lives) {
    if (!from->alive) continue;
    if (!from->in_flight.empty()) {
      return fail(*from, fmt::format("{} transfers never ended, the first {}", from->in_flight.size(),
                                     from->in_flight.front()->uid));
    }
    for (auto& [to, bond] : from->bonds) {
      if (to->alive && !failed()) check_pair(*from, *to, bond);
    }
  }
  check_atomics_settled();
  for (const Move& move : moves_) {
    const Course& course = *move.course;
    if (!course.from->alive || !course.to->alive || !move.final || failed()) continue;
    if (move.queued && move.completions != 1) {
      return fail(*course.from, fmt::format("transfer {} ended and was reported {} times", move.uid, move.completions));
    }
    if (!move.status.ok() || course.from->bonds[course.to].broken || course.to->bonds[course.from].broken) continue;
    if (move.notify && !move.notified) {
      return fail(*course.to,
                  fmt::format("the notification of transfer {} from {} never came", move.uid, course.from->name));
    }
    if (move.signal && !move.bumped && !course.to->words->closed) {
      return fail(*course.to, fmt::format("the signal of transfer {} from {} never rose", move.uid, course.from->name));
    }
  }
}

/// Our memory is ours again since the last transfer ended.
void Judge::check_local(Life& life, const Course& course) {
  if (course.latest == nullptr || !course.latest->final) return;
  for (const Pair& pair : course.pairs) {
    if (pair.local->closed) continue;
    const auto bytes = pair.local->plot->bytes(pair.local_lease);
    if (std::equal(bytes.begin(), bytes.end(), pair.local->plot->expected(pair.local_lease).begin())) continue;
    return fail(life, fmt::format("{}+{} was touched after transfer {} had ended", pair.local->plot->name(),
                                  pair.local_lease.offset, course.latest->uid));
  }
}

/// What a good write brought stays until the next one, or until its region is closed.
void Judge::check_stays(const Course& course) {
  const Move* const latest = course.latest;
  if (!course.write || course.bait || course.tainted || latest == nullptr || !latest->final) return;
  for (const Pair& pair : course.pairs) {
    if (pair.remote->closed) continue;
    const auto bytes = pair.remote->plot->bytes(pair.remote_lease);
    if (std::equal(bytes.begin(), bytes.end(), pair.remote->plot->expected(pair.remote_lease).begin())) continue;
    return fail(*course.to, fmt::format("what write {} of {} brought to {}+{} did not stay", latest->uid,
                                        course.from->name, pair.remote->plot->name(), pair.remote_lease.offset));
  }
}

void Judge::check_memory(const std::vector<std::unique_ptr<Life>>& lives) {
  for (const auto& life : lives) {
    for (const auto& area : life->areas) {
      if (failed()) return;
      if (area.get() == life->words || area.get() == life->own_words) {
        if (!area->closed) continue;
      }
      if (!area->atomic_words.empty() && !area->closed) {
        check_atomic_memory(*life, *area);
        continue;
      }
      const auto at = area->closed ? area->plot->first_difference() : area->plot->first_fault();
      if (!at) continue;
      fail(*life,
           fmt::format("{}+{} was touched{}", area->plot->name(), *at, area->closed ? " after close said kOk" : ""));
    }
    for (const auto& course : life->courses) {
      if (course->write && course->tainted && !failed()) check_tainted(*course);
      if (!failed()) check_stays(*course);
      if (course->current == nullptr && !failed()) check_local(*life, *course);
    }
  }
}

}  // namespace hawser::simulation
