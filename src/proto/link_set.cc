#include "proto/link_set.h"

#include <algorithm>
#include <numeric>

#include "base/planted.h"

namespace hawser::proto {
namespace {

// For the planted bug: links of users.
constexpr std::size_t kMixed = wire::Link(Priority::kRealtime, wire::kUserChannelMin).index();
constexpr std::size_t kMixedWith = wire::Link(Priority::kBulk, wire::kUserChannelMin + 1).index();

std::size_t lowest(LinkMask links) { return static_cast<std::size_t>(std::countr_zero(links)); }
std::size_t highest(LinkMask links) { return static_cast<std::size_t>(std::bit_width(links)) - 1; }

}  // namespace

std::optional<wire::Link> LinkSet::first_pending(LinkMask full) const {
  const LinkMask waiting = pending_ & ~full;
  if (waiting == 0) return std::nullopt;
  const bool urgent_first = overtaken_ < kOvertakingMax || full != 0;
  const std::size_t chosen =
      wire::index_of(wire::Link::at(urgent_first ? lowest(waiting) : highest(waiting)).priority());
  const LinkMask of_class =
      waiting & mask_below(wire::Link::kFirst[chosen + 1]) & ~mask_below(wire::Link::kFirst[chosen]);
  const LinkMask behind_last = of_class & ~mask_below(last_[chosen] + std::size_t{1});
  return wire::Link::at(lowest(behind_last != 0 ? behind_last : of_class));
}

std::size_t LinkSet::kept() const {
  return std::accumulate(out_.begin(), out_.end(), std::size_t{0},
                         [](std::size_t sum, const LinkSender& link) { return sum + link.kept(); });
}

Status LinkSet::on_ack(const wire::Ack& ack) {
  const Status fault = out_[ack.link.index()].on_ack(ack.up_to);
  look_at(ack.link);
  return fault;
}

Status LinkSet::on_received(const Numbers& received) {
  for (std::size_t each = 0; each < wire::kLinks; ++each) {
    if (Status fault = on_ack({.link = wire::Link::at(each), .up_to = received[each]}); !fault.ok()) return fault;
  }
  return {};
}

Status LinkSet::replay_from(const Numbers& received) {
  const bool forgets = base::planted(base::Planted::kClassForgotten);
  const std::size_t count = forgets ? wire::Link::kFirst[wire::index_of(Priority::kBulk)] : wire::kLinks;
  for (std::size_t each = 0; each < count; ++each) {
    const std::size_t taken_for = base::planted(base::Planted::kGroupsMixed) && each == kMixed ? kMixedWith : each;
    const Status fault = out_[each].replay_from(received[taken_for]);
    look_at(wire::Link::at(each));
    if (!fault.ok()) return fault;
  }
  return {};
}

LinkSet::Numbers LinkSet::received() const {
  Numbers all;
  std::ranges::transform(in_, all.begin(), [](const LinkReceiver& link) { return link.received(); });
  return all;
}

}  // namespace hawser::proto
