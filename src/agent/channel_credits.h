#pragma once

// ChannelCredits: what one peer lets this agent send on its channels. A place is taken before a message goes to the
// lane, so a thread that sends need not wait for whoever holds the lane. With it a message takes its number: they rise
// by one in each channel, in the order in which messages go to the link.
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
#include <utility>
#include <vector>

#include <hawser/status.h>
#include <hawser/transfer.h>

#include "base/spin.h"
#include "proto/credit.h"
#include "wire/session.h"

namespace hawser::agent {

class ChannelCredits {
 public:
  enum class Taken : std::uint8_t {
    kYes,
    kNotOpen,
    kNoRoom,
    kBehind,   ///< Messages of the channel that threads left must go first.
    kNotLeft,  ///< There is no room where it was to be left.
  };
  /// What the sender has to know of the place that it took.
  struct Ticket {
    std::uint32_t epoch = 0;
    Priority priority = Priority::kRealtime;  ///< The channel's.
    std::uint64_t number = 0;                 ///< The message's: how many the channel took in this session, with it.
  };
  /// Of one channel.
  struct Numbered {
    std::uint64_t last = 0;  ///< The number that was given last; 0: none.
    std::uint32_t left = 0;  ///< So many of the last ones were left to the lane's holder and have not gone to the link.
  };

  static constexpr std::size_t kUsersMax = 1024;

  /// For the lane's holder, who sends it now: numbers rise in the order in which messages go to the link.
  Taken try_take(std::uint32_t channel, std::size_t bytes, Ticket* ticket) {
    const base::SpinGuard guard(lock_);
    Open* const open = find(channel);
    if (open == nullptr) return Taken::kNotOpen;
    if (open->left != 0) return Taken::kBehind;
    return take(*open, bytes, ticket);
  }
  /// For a thread that leaves it to the lane's holder. `leave(ticket)` puts it into the queue, or answers false; it is
  /// called under the lock, so that messages lie there in the order of their numbers. It must not wait.
  template <typename Leave>
  Taken try_leave(std::uint32_t channel, std::size_t bytes, Ticket* ticket, Leave leave) {
    const base::SpinGuard guard(lock_);
    Open* const open = find(channel);
    if (open == nullptr) return Taken::kNotOpen;
    if (const Taken taken = take(*open, bytes, ticket); taken != Taken::kYes) return taken;
    if (!leave(*ticket)) {
      open->credit.give_back(bytes);
      return Taken::kNotLeft;
    }
    ++open->left;
    return Taken::kYes;
  }
  /// One that was left has gone to the link. Of this session.
  void note_gone(std::uint32_t channel) {
    const base::SpinGuard guard(lock_);
    Open* const open = find(channel);
    if (open != nullptr && open->left > 0) --open->left;
  }
  /// What the lane's holder took is not sent. False: a thread has left a later one meanwhile, so it cannot be taken
  /// back: it counts as left, too, in front of that one.
  bool give_back(std::uint32_t channel, std::size_t bytes, const Ticket& ticket) {
    const base::SpinGuard guard(lock_);
    Open* const open = find(channel);
    if (open == nullptr || epoch_ != ticket.epoch) return true;
    if (open->credit.taken().messages != ticket.number) {
      ++open->left;
      return false;
    }
    open->credit.give_back(bytes);
    return true;
  }
  /// For each channel of users on which this agent sent anything in this session. Channels come in rising order.
  std::vector<std::pair<std::uint32_t, Numbered>> numbered() const;
  Numbered numbered(std::uint32_t channel) const {
    const base::SpinGuard guard(lock_);
    const Open* const open = find(channel);
    return open == nullptr ? Numbered() : numbers_of(*open);
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
    std::uint32_t left = 0;
  };
  Taken take(Open& open, std::size_t bytes, Ticket* ticket) HAWSER_REQUIRES(lock_) {
    if (!open.credit.try_take(bytes)) return Taken::kNoRoom;
    *ticket = {.epoch = epoch_, .priority = open.priority, .number = open.credit.taken().messages};
    return Taken::kYes;
  }
  static Numbered numbers_of(const Open& open) { return {.last = open.credit.taken().messages, .left = open.left}; }
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
