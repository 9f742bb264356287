#pragma once

// ChannelCredits: what one peer lets this agent send on its channels. A place is taken before a message goes to the
// lane, so a thread that sends need not wait for whoever holds the lane.
//
// An epoch is one session with the peer: places that were taken in one are of no worth in the next.
//
// Thread rule: thread-safe. Memory: 16 bytes, for every known peer has one, and an entry for each channel that the peer
// has opened: kUsersMax of users at most, and the library's own.

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include <hawser/status.h>
#include <hawser/transfer.h>

#include "base/spin.h"
#include "proto/credit.h"
#include "wire/session.h"

namespace hawser::agent {

class ChannelCredits {
 public:
  enum class Taken : std::uint8_t { kYes, kNotOpen, kNoRoom };
  /// What the sender has to know of the place that it took.
  struct Ticket {
    std::uint32_t epoch = 0;
    Priority priority = Priority::kRealtime;  ///< The channel's.
  };

  static constexpr std::size_t kUsersMax = 1024;

  Taken try_take(std::uint32_t channel, std::size_t bytes, Ticket* ticket) {
    const base::SpinGuard guard(lock_);
    Open* const open = find(channel);
    if (open == nullptr) return Taken::kNotOpen;
    *ticket = {.epoch = epoch_, .priority = open->priority};
    return open->credit.try_take(bytes) ? Taken::kYes : Taken::kNoRoom;
  }
  /// What was taken is not sent.
  void give_back(std::uint32_t channel, std::size_t bytes) {
    const base::SpinGuard guard(lock_);
    if (Open* const open = find(channel)) open->credit.give_back(bytes);
  }
  /// The peer told how much it takes. Whether that is more than before. kCorrupt: it opens more channels than any may,
  /// or gives one another class.
  Result<bool> on_credit(const wire::Credit& credit);
  bool is_open(std::uint32_t channel) const {
    const base::SpinGuard guard(lock_);
    return find(channel) != nullptr;
  }
  /// Nothing: it is not open.
  std::optional<proto::CreditSender> state(std::uint32_t channel) const {
    const base::SpinGuard guard(lock_);
    const Open* const open = find(channel);
    return open == nullptr ? std::nullopt : std::optional(open->credit);
  }
  std::uint32_t epoch() const {
    const base::SpinGuard guard(lock_);
    return epoch_;
  }
  /// The session is over.
  void clear() {
    const base::SpinGuard guard(lock_);
    all_.reset();
    ++epoch_;
  }

 private:
  struct Open {
    proto::CreditSender credit;
    Priority priority = Priority::kRealtime;
  };
  using All = std::map<std::uint32_t, Open>;
  std::size_t users() const HAWSER_REQUIRES(lock_) {
    const auto own = std::distance(all_->begin(), all_->lower_bound(wire::kUserChannelMin));
    return all_->size() - static_cast<std::size_t>(own);
  }
  Open* find(std::uint32_t channel) const HAWSER_REQUIRES(lock_) {
    if (all_ == nullptr) return nullptr;
    const auto at = all_->find(channel);
    return at == all_->end() ? nullptr : &at->second;
  }

  std::unique_ptr<All> all_ HAWSER_GUARDED_BY(lock_);  ///< Null until one is open.
  std::uint32_t epoch_ HAWSER_GUARDED_BY(lock_) = 0;
  mutable base::SpinLock lock_;
};

}  // namespace hawser::agent
