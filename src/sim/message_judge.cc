#include "sim/message_judge.h"

#include <algorithm>
#include <cstdlib>
#include <span>

#include <fmt/format.h>

#include "agent/inner_simulator.h"

namespace hawser::simulation {
namespace {

/// Which message of its channel this claims to be.
std::uint64_t number_of(const std::string& text) {
  const std::size_t first = text.find('/');
  const std::size_t second = first == std::string::npos ? first : text.find('/', first + 1);
  return second == std::string::npos ? 0 : std::strtoull(text.c_str() + second + 1, nullptr, 10);
}

}  // namespace

std::string message_of(const Life& from, std::uint32_t channel, std::uint64_t number, std::size_t size) {
  std::string text = fmt::format("{}/{}/{}/", from.number, channel, number);
  const std::size_t head = text.size();
  text.resize(std::max(size, head));
  const std::span<char> rest(text.data() + head, text.size() - head);
  fill_pattern(std::as_writable_bytes(rest), from.number * 1000 + channel, number);
  return text;
}

Life* MessageJudge::life_of(const Incarnation& incarnation) const {
  const auto at = uses_.lives.find(incarnation);
  return at == uses_.lives.end() ? nullptr : at->second;
}

void MessageJudge::on_message(Life& life, const Message& message) {
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
  uses_.universe.world.note("message", life.name, message.channel, number);
  bond.came[message.channel].insert(number);
  const std::string want = message_of(*from, message.channel, number, message.bytes.size());
  if (message.bytes == want) return;
  fail(life, fmt::format("channel {} from {}: expected message {}, got '{}'", message.channel, from->name, number,
                         message.bytes.substr(0, 24)));
}

void MessageJudge::on_event(Life& life, const PeerEvent& event) {
  Life* const other = life_of(event.peer.incarnation());
  if (other == nullptr) return fail(life, "an event of a peer that never lived");
  uses_.universe.world.note("event", life.name, static_cast<std::uint64_t>(event.kind), other->number);
  if (event.kind != PeerEvent::Kind::kDown) return;
  Bond& bond = life.bonds[other];
  if (!uses_.reasons.may_be_cut_off(life, *other, life.born)) {
    return fail(
        life, fmt::format("gave {} up, though nothing parted them for good: {}", other->name, event.cause.to_string()));
  }
  if (!bond.broken) bond.broken_at = uses_.universe.world.now();
  bond.broken = true;
  check_acknowledged(life, *other, event);
}

void MessageJudge::on_sent(Life& life, Life& to, std::uint32_t channel, std::uint64_t number) {
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
void MessageJudge::check_acknowledged(Life& life, Life& other, const PeerEvent& event) {
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

void MessageJudge::check_claims(Life& from, Life& to) {
  Bond& back = to.bonds[&from];
  for (const auto& [channel, numbers] : from.bonds[&to].claimed) {
    for (const std::uint64_t number : numbers) {
      if (back.came[channel].contains(number)) continue;
      return fail(from, fmt::format("message {} on channel {} is told as acknowledged, and {} did not take it", number,
                                    channel, to.name));
    }
  }
}

void MessageJudge::on_end(Life& life) {
  agent::inner::each_waiting_message(life.agent, [&](const Peer& peer, std::uint32_t channel, std::string_view bytes) {
    Life* const from = life_of(peer.incarnation());
    if (from != nullptr) life.bonds[from].came[channel].insert(number_of(std::string(bytes)));
  });
  for (const auto& [incarnation, from] : uses_.lives) {
    if (from != &life && !failed()) check_claims(*from, life);
  }
}

void MessageJudge::on_note(Life& life, Life& from, std::uint64_t uid) {
  Bond& bond = from.bonds[&life];
  if (!bond.notes_sent.contains(uid)) {
    return fail(life, fmt::format("notification {} was not sent by {}", uid, from.name));
  }
  if (!bond.notes_received.insert(uid).second) fail(life, fmt::format("notification {} came twice", uid));
}

bool MessageJudge::is_settled(Life& from) {
  for (auto& [to, bond] : from.bonds) {
    const auto back = to->bonds.find(&from);
    if (!to->alive || bond.broken || (back != to->bonds.end() && back->second.broken)) continue;
    for (const auto& [channel, sent] : bond.sent) {
      if (sent > 0 && (back == to->bonds.end() || back->second.received[channel] != sent)) return false;
    }
    if (bond.notes_sent != bond.notes_received) return false;
  }
  return true;
}

void MessageJudge::check_settled(Life& from) {
  for (auto& [to, bond] : from.bonds) {
    if (to->alive && !failed()) check_pair(from, *to, bond);
  }
}

void MessageJudge::check_pair(Life& from, Life& to, Bond& bond) {
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

}  // namespace hawser::simulation
