// Mailbox: the short words that worlds say to one another.

#include <utility>

#include "base/bytes.h"
#include "base/planted.h"
#include "runtime/mailbox.h"

namespace hawser::runtime {

using base::planted;
using base::Planted;

void Mailbox::say_soon(const Peer& peer, wire::RuntimeMessage message, std::string text, Instant now) {
  Status gone;
  agent::Session* const session = peer.is_self() ? nullptr : carrier_.session_with(peer, &gone);
  if (session == nullptr) return;
  desk_of(*session).words.push_back({message, std::move(text)});
  carrier_.serve(*session, now);
}

void Mailbox::revoke(const Peer& peer, std::uint64_t world, const Status& why, Instant now) {
  std::string text(why.message().substr(0, wire::kRevokeTextMax));
  say_soon(peer, {.kind = wire::RuntimeKind::kRevoke, .world = world, .code = why.code()}, std::move(text), now);
}

void Mailbox::tell_failed(const Peer& peer, std::uint64_t world, std::uint32_t rank, bool is_dead, Instant now) {
  say_soon(peer, {.kind = wire::RuntimeKind::kFailed, .world = world, .rank = rank, .flag = is_dead}, {}, now);
}

void Mailbox::leave(const Peer& peer, std::uint64_t world, Instant now) {
  say_soon(peer, {.kind = wire::RuntimeKind::kLeft, .world = world}, {}, now);
}

void Mailbox::check(const Peer& peer, std::uint64_t world, std::uint64_t number, std::uint64_t digest, Instant now) {
  Status gone;
  const agent::Session* const session = carrier_.session_with(peer, &gone);
  const Desk* const desk = session == nullptr ? nullptr : known_desk(*session);
  if (desk != nullptr && desk->words.size() >= kChecksMax) return;  // It reads nothing. It is asked again later.
  say_soon(peer, {.kind = wire::RuntimeKind::kCheck, .world = world, .number = number, .digest = digest}, {}, now);
}

void Mailbox::ring(const Peer& peer, std::uint64_t world, Instant now) {
  say_soon(peer, {.kind = wire::RuntimeKind::kBell, .world = world}, {}, now);
}

void Mailbox::tell_over(const Peer& peer, std::uint64_t world, std::uint64_t number, Code code, Instant now) {
  say_soon(peer, {.kind = wire::RuntimeKind::kOver, .world = world, .code = code, .number = number}, {}, now);
}

/// Of a world that is not known yet nothing can be said: the peer asks again.
void Mailbox::on_check(agent::Session& session, const wire::RuntimeMessage& message, Instant now) {
  const Peer by = agent::inner::peer_of(session);
  const auto watcher = watchers_.find(message.world);
  if (watcher != watchers_.end()) return watcher->second->on_check(by, message.number, message.digest, now);
  if (closed_.contains(message.world)) tell_over(by, message.world, message.number, Code::kDisconnected, now);
}

/// A peer may have entered a world before this rank has: what it says is kept until then.
void Mailbox::on_word(agent::Session& session, const wire::RuntimeMessage& message) {
  const auto watcher = watchers_.find(message.world);
  if (watcher != watchers_.end()) return pass_on(*watcher->second, agent::inner::peer_of(session), message);
  const auto past = pasts_.find(message.world);
  if (past != pasts_.end()) return pass_on(*past->second, agent::inner::peer_of(session), message);
  if (closed_.contains(message.world) || planted(Planted::kEarlyWordsLost)) return;
  Desk& desk = desk_of(session);
  if (desk.early.size() >= kEarlyWordsMax) desk.early.pop_front();
  desk.early.push_back({message, std::string(base::as_text(message.body))});
}

void Mailbox::pass_on(Watcher& watcher, const Peer& by, const wire::RuntimeMessage& message) {
  switch (message.kind) {
    case wire::RuntimeKind::kLeft:
      return watcher.on_left(by);
    case wire::RuntimeKind::kFailed:
      return watcher.on_failed(by, message.rank, message.flag);
    case wire::RuntimeKind::kRevoke:
      return watcher.on_revoke(by, Status(message.code, std::string(base::as_text(message.body))));
    case wire::RuntimeKind::kOver:
      return watcher.on_over(by, message.number, message.code, carrier_.now());
    case wire::RuntimeKind::kLost:
      return watcher.on_lost(by, message.body, message.flag);
    case wire::RuntimeKind::kBell:
      return watcher.on_bell(by, carrier_.now());
    case wire::RuntimeKind::kTopology:
      return watcher.on_topology(by, base::as_text(message.body));
    default:
      return watcher.on_agreement(by, message);
  }
}

bool Mailbox::remove_watcher(std::uint64_t world) {
  if (watchers_.erase(world) == 0) return false;
  if (!planted(Planted::kClosedForgotten)) closed_.add(world);
  return true;
}

void Mailbox::add_watcher(std::uint64_t world, Watcher& watcher, std::span<const Peer> ranks) {
  watchers_.emplace(world, &watcher);
  for (const Peer& peer : ranks) {
    Status gone;
    agent::Session* const session = peer.is_self() ? nullptr : carrier_.session_with(peer, &gone);
    Desk* const desk = session == nullptr ? nullptr : known_desk(*session);
    if (desk == nullptr) continue;
    std::deque<Desk::Word> others;
    for (Desk::Word& word : std::exchange(desk->early, {})) {
      if (word.message.world != world) {
        others.push_back(std::move(word));
        continue;
      }
      word.message.body = base::as_bytes(word.text);
      pass_on(watcher, peer, word.message);
    }
    desk->early = std::move(others);
  }
}
}  // namespace hawser::runtime
