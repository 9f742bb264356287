#include "agent/engine/channel_book.h"

#include <string>

#include "agent/peer_core.h"
#include "agent/session.h"

namespace hawser::agent {

wire::CreditLimits channel_window(std::uint32_t credit) {
  return {.messages = credit, .bytes = std::uint64_t{credit} * kMessageMax};
}

void ChannelBook::add_own(std::uint32_t channel, std::uint32_t window) {
  if (open_.emplace(channel, window).second) ++own_;
}

Result<bool> ChannelBook::open(std::uint32_t channel, std::uint32_t credit) {
  if (open_.contains(channel)) return false;
  if (open_.size() - own_ >= kChannelsMax) {
    return Status(Code::kBusy, "open_channel: " + std::to_string(kChannelsMax) + " channels are open");
  }
  open_.emplace(channel, credit);
  return true;
}

void ChannelBook::give_all(Session& session) const {
  for (const auto& [channel, credit] : open_) give(session, channel, credit);
}

void ChannelBook::give(Session& session, std::uint32_t channel, std::uint32_t credit) {
  ChannelState& state = session.channels[channel];
  state.in.emplace(channel_window(credit));
  state.credit_owed = true;
}

}  // namespace hawser::agent
