#pragma once

// LeftOver: what a thread that did not get the lane's lock leaves to an agent's driver: a message, a notification, or
// room in the inbox that the user has freed. The sender took the place at the peer before.
//
// Thread rule: a value.

#include <cstdint>
#include <memory>
#include <string>

#include <hawser/transfer.h>

namespace hawser::agent {

struct PeerCore;

inline constexpr std::size_t kLeftOverMax = 1024;  ///< In one lane; beyond, a sender waits for the lane's lock.

struct LeftOver {
  enum class Kind : std::uint8_t { kMessage, kNotification, kRelease };
  std::shared_ptr<PeerCore> peer;
  std::string bytes;  ///< The message or notification.
  Kind kind = Kind::kMessage;
  std::uint32_t channel = 0;
  Priority priority = Priority::kRealtime;  ///< The class in which it goes. A notification has no channel, 0.
  std::uint32_t epoch = 0;                  ///< Names the session (ChannelCredits); a notification has none.
  std::uint32_t messages = 0;               ///< kRelease: so many, of so many bytes in all.
  std::uint64_t freed = 0;
};

}  // namespace hawser::agent
