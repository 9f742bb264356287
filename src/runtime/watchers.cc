#include "runtime/watchers.h"

#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/planted.h"

namespace hawser::runtime {
namespace {

using base::planted;
using base::Planted;

void pass_on(Watcher& watcher, const Peer& by, const wire::RuntimeMessage& word, Instant now) {
  switch (word.kind) {
    case wire::RuntimeKind::kLeft:
      return watcher.on_left(by);
    case wire::RuntimeKind::kFailed:
      return watcher.on_failed(by, word.rank, word.flag);
    case wire::RuntimeKind::kRevoke:
      return watcher.on_revoke(by, Status(word.code, std::string(base::as_text(word.body))));
    case wire::RuntimeKind::kChecked:
      return watcher.on_checked(by, word.number, word.code, now);
    case wire::RuntimeKind::kLost:
      return watcher.on_lost(by, word.body, word.flag);
    case wire::RuntimeKind::kBell:
      return watcher.on_bell(by, now);
    case wire::RuntimeKind::kTopology:
      return watcher.on_topology(by, base::as_text(word.body));
    default:
      return watcher.on_agreement(by, word);
  }
}

}  // namespace

Watcher* Watchers::find(std::uint64_t world) const {
  const auto found = known_.find(world);
  return found == known_.end() ? nullptr : found->second;
}

void Watchers::tell(const Peer& by, const wire::RuntimeMessage& word, EarlyWords& early, Instant now) {
  if (Watcher* const known = find(word.world)) return pass_on(*known, by, word, now);
  const auto past = past_.find(word.world);
  if (past != past_.end()) return pass_on(*past->second, by, word, now);
  if (is_closed(word.world) || planted(Planted::kEarlyWordsLost)) return;
  if (early.size() >= kEarlyWordsMax) early.pop_front();
  early.push_back({word, std::string(base::as_text(word.body))});
}

void Watchers::tell_early(std::uint64_t world, const Peer& by, EarlyWords& early, Instant now) {
  EarlyWords others;
  for (Word& word : std::exchange(early, {})) {
    if (word.message.world != world) {
      others.push_back(std::move(word));
    } else if (Watcher* const watcher = find(world)) {  // It may go meanwhile.
      pass_on(*watcher, by, word.whole(), now);
    }
  }
  early = std::move(others);
}

bool Watchers::remove(std::uint64_t world) {
  if (known_.erase(world) == 0) return false;
  if (!planted(Planted::kClosedForgotten)) closed_.add(world);
  return true;
}

void Watchers::for_each(const std::function<void(Watcher&)>& visit) const {
  const auto known = known_;  // They may go meanwhile.
  for (const auto& [world, watcher] : known) {
    if (known_.contains(world)) visit(*watcher);
  }
}

void Watchers::for_family(std::uint64_t family, const std::function<void(Watcher&)>& visit) const {
  for_each([&](Watcher& watcher) {
    if (watcher.family() == family || planted(Planted::kGuestsEndTogether)) visit(watcher);
  });
}

void Watchers::tell_decided(Instant now) {
  const auto known = known_;  // They may go meanwhile.
  for (const auto& [world, watcher] : known) {
    if (known_.contains(world)) watcher->on_decided(now);
  }
}

void Watchers::tell_down(const Peer& peer, const Status& why) {
  const auto known = known_;  // They may go meanwhile.
  for (const auto& [world, watcher] : known) {
    if (known_.contains(world)) watcher->on_down(peer, why);
  }
  const auto past = past_;
  for (const auto& [world, watcher] : past) {
    if (past_.contains(world)) watcher->on_down(peer, why);
  }
}

}  // namespace hawser::runtime
