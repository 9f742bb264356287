#pragma once

// WaitingArrives: what a peer said of transfers whose chunks are not all here yet: their notifications and signals.
//
// They take room in the inbox already, so that visible bytes never wait for it. Bounded by the peer's credit.
//
// Thread rule: confined to the lane. Lifetime: the inbox outlives it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "agent/inbox.h"
#include "proto/notify_credit.h"
#include "wire/session.h"

namespace hawser::agent {

struct WaitingArrive {
  std::optional<std::string> notify;
  std::optional<wire::SignalBump> signal;

  std::uint64_t cost() const { return proto::notification_cost(notify ? notify->size() : 0); }
};

class WaitingArrives {
 public:
  explicit WaitingArrives(Inbox& inbox) : inbox_(inbox) {}
  WaitingArrives(const WaitingArrives&) = delete;
  WaitingArrives& operator=(const WaitingArrives&) = delete;
  ~WaitingArrives() { clear(); }

  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }

  /// A number for one that may have to wait.
  std::uint64_t next_cookie() { return next_cookie_++; }
  void put(std::uint64_t cookie, WaitingArrive arrive) {
    inbox_.reserve(arrive.cost());
    waiting_.emplace(cookie, std::move(arrive));
  }
  std::optional<WaitingArrive> take(std::uint64_t cookie) {
    const auto found = waiting_.find(cookie);
    if (found == waiting_.end()) return std::nullopt;
    std::optional<WaitingArrive> taken = std::move(found->second);
    inbox_.unreserve(taken->cost());
    waiting_.erase(found);
    return taken;
  }
  void clear() {
    for (const auto& [cookie, arrive] : waiting_) inbox_.unreserve(arrive.cost());
    waiting_.clear();
  }

 private:
  Inbox& inbox_;
  std::map<std::uint64_t, WaitingArrive> waiting_;
  std::uint64_t next_cookie_ = 1;
};

}  // namespace hawser::agent
