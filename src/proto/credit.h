#pragma once

// Credit of one channel to one peer: how many messages and bytes may wait unread at the receiver. Limits are totals
// since the session began, so a repeated or overtaken Credit does no harm.
//
// Thread rule: one thread at a time.

#include <cstddef>
#include <cstdint>

#include "wire/session.h"

namespace hawser::proto {

using wire::CreditLimits;

class CreditSender {
 public:
  CreditSender() = default;
  explicit CreditSender(const CreditLimits& limits) : limits_(limits) {}

  /// Takes one message's place at the receiver. False: there is none now (kBusy).
  bool try_take(std::size_t bytes) {
    if (sent_.messages >= limits_.messages || bytes > limits_.bytes - sent_.bytes) return false;
    sent_.messages += 1;
    sent_.bytes += bytes;
    return true;
  }
  /// Undoes a try_take whose message was never handed to the link.
  void give_back(std::size_t bytes);
  /// True when there is more room than before. Limits only grow: an older one is ignored.
  bool on_credit(const CreditLimits& limits);

  const CreditLimits& taken() const { return sent_; }
  const CreditLimits& limits() const { return limits_; }

 private:
  CreditLimits sent_;
  CreditLimits limits_;
};

class CreditReceiver {
 public:
  explicit CreditReceiver(const CreditLimits& window) : window_(window), told_(window) {}

  /// A message came in. False: the peer sent more than it was allowed (kCorrupt); it is not counted then.
  bool on_receive(std::size_t bytes) {
    if (received_.messages >= told_.messages || bytes > told_.bytes - received_.bytes) return false;
    received_.messages += 1;
    received_.bytes += bytes;
    return true;
  }
  /// The user took a message. True: a Credit is due.
  bool on_release(std::size_t bytes) { return on_release(1, bytes); }
  /// So many, of so many bytes in all.
  bool on_release(std::uint64_t messages, std::uint64_t bytes);
  /// A quarter of the window has been freed since the last Credit; or something was, and what is left might be too
  /// little for a message of the largest size.
  bool credit_due() const;
  /// What to put in a Credit or Welcome that is on its way now.
  CreditLimits take_limits();
  /// The last limits given out.
  const CreditLimits& limits() const { return told_; }

  const CreditLimits& received() const { return received_; }
  std::uint64_t waiting_messages() const { return received_.messages - released_.messages; }
  std::uint64_t waiting_bytes() const { return received_.bytes - released_.bytes; }

 private:
  CreditLimits window_;
  CreditLimits told_;
  CreditLimits received_;
  CreditLimits released_;
};

}  // namespace hawser::proto
