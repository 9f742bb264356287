#pragma once

// MessageDesk: what users send one another: notifications and messages on channels, with their credit.
//
// Thread rule: confined to the lane, but for the static functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/engine/channel_book.h"
#include "agent/engine/connector.h"
#include "agent/engine/news.h"
#include "agent/engine/service_table.h"
#include "agent/engine/session_link.h"
#include "agent/engine/session_table.h"
#include "agent/left_over.h"
#include "wire/session.h"

namespace hawser::agent {

class MessageDesk {
 public:
  /// What it works with; all of it outlives the desk.
  struct Uses {
    SessionTable& sessions;
    SessionLink& link;
    ChannelBook& channels;
    const ServiceTable& services;
    Connector& connector;
    PeerRegister& peers;
    News& news;
  };
  explicit MessageDesk(const Uses& uses) : uses_(uses) {}

  // Out.
  Status notify(Session& session, std::string_view text, Instant now);
  /// The number of the message. Nothing: messages of the channel that threads left have to go first.
  using Sending = std::optional<Result<std::uint64_t>>;
  Sending send(Session& session, std::uint32_t channel, std::span<const std::byte> bytes, Instant now);
  /// What a thread left that did not get the lane's lock.
  void take_left_over(LeftOver left, Instant now);
  /// Why there is no place at the peer. Any thread.
  static Status no_room_to_notify(const PeerCore& peer);
  static Status no_room(const PeerCore& peer, std::uint32_t channel);

  // Channels.
  Status open_channel(std::uint32_t channel, std::uint32_t credit, Priority priority = Priority::kRealtime);
  /// The user, or a service, is done with messages that came.
  void release(Session& session, std::uint32_t channel, std::uint32_t messages, std::uint64_t bytes);
  /// What the peer may send on all channels, for a greeting, which tells it.
  static std::vector<wire::Credit> take_credits(Session& session);
  static void credits_told(Session& session);

  // In. An error is the peer's.
  Status on_send(Session& session, const wire::Send& message, Instant now);
  Status on_credit(Session& session, const wire::Credit& credit);
  /// Channels of a service that has come: what peers may send on them.
  void give_channels(std::span<const OwnChannel> channels);

  /// These answer false when there is no room now: the session is looked at again after a pause, or when something
  /// moved.
  static bool pump_credits(Session& session, std::size_t* work);
  bool pump_unsent(Session& session, std::size_t* work);
  /// The session's paths are gone, and what was under way on them.
  static void forget(Session& session);

 private:
  bool push_left_over(Session& session, const LeftOver& left);
  /// Peers may send on a channel from now on.
  void give(std::uint32_t channel, const ChannelBook::Opened& how);

  const Uses uses_;
};

}  // namespace hawser::agent
