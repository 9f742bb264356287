#include "agent/engine/channel_book.h"

#include <string>

#include "agent/peer_core.h"
#include "agent/session.h"

namespace hawser::agent {

wire::CreditLimits channel_window(std::uint32_t credit) {
  return {.messages = credit, .bytes = std::uint64_t{credit} * kMessageMax};
}

void ChannelBook::add_own(std::uint32_t channel, const Opened& how) {
  if (open_.emplace(channel, how).second) ++own_;
}

Result<bool> ChannelBook::open(std::uint32_t channel, const Opened& how) {
  const auto before = open_.find(channel);
  if (before != open_.end()) {
    if (before->second.priority == how.priority) return false;
    return Status(Code::kInvalid, "open_channel: channel " + std::to_string(channel) +
                                      " is open in another class: a channel's class stays as it is");
  }
  if (open_.size() - own_ >= kChannelsMax) {
    return Status(Code::kBusy, "open_channel: " + std::to_string(kChannelsMax) + " channels are open");
  }
  open_.emplace(channel, how);
  return true;
}

void ChannelBook::give_all(Session& session) const {
  for (const auto& [channel, how] : open_) give(session, channel, how);
}

void ChannelBook::give(Session& session, std::uint32_t channel, const Opened& how) {
  ChannelState& state = session.channels[channel];
  state.in.emplace(channel_window(how.credit));
  state.priority = how.priority;
  state.credit_owed = true;
}

}  // namespace hawser::agent
