#include "proto/credit.h"

#include <algorithm>

#include "base/check.h"

namespace hawser::proto {
namespace {

/// Rounded down, so that a window of a few messages is told in full once all were taken.
constexpr std::uint64_t quarter(std::uint64_t window) { return std::max<std::uint64_t>(window / 4, 1); }

}  // namespace

void CreditSender::give_back(std::size_t bytes) {
  HAWSER_ASSERT(sent_.messages > 0 && sent_.bytes >= bytes, "more credit given back than was taken");
  sent_.messages -= 1;
  sent_.bytes -= bytes;
}

bool CreditSender::on_credit(const CreditLimits& limits) {
  const bool more = limits.messages > limits_.messages || limits.bytes > limits_.bytes;
  limits_.messages = std::max(limits_.messages, limits.messages);
  limits_.bytes = std::max(limits_.bytes, limits.bytes);
  return more;
}

bool CreditReceiver::on_release(std::uint64_t messages, std::uint64_t bytes) {
  HAWSER_ASSERT(waiting_messages() >= messages && waiting_bytes() >= bytes, "more released than was received");
  released_.messages += messages;
  released_.bytes += bytes;
  return credit_due();
}

bool CreditReceiver::credit_due() const {
  const std::uint64_t freed_messages = released_.messages + window_.messages - told_.messages;
  const std::uint64_t freed_bytes = released_.bytes + window_.bytes - told_.bytes;
  if (freed_messages == 0) return false;
  // Without the last clause a window of little more than one message could stand still: the sender waits for room for a
  // large one, the receiver for a quarter to be freed.
  return freed_messages >= quarter(window_.messages) || freed_bytes >= quarter(window_.bytes) ||
         (freed_bytes > 0 && told_.bytes - received_.bytes < wire::kOwnMessageMax);
}

CreditLimits CreditReceiver::take_limits() {
  told_ = {released_.messages + window_.messages, released_.bytes + window_.bytes};
  return told_;
}

}  // namespace hawser::proto
