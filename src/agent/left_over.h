#pragma once

// LeftOver: what a thread that did not get the lane's lock leaves to the lane's holder: a message, a notification, or
// room in the inbox that its user has freed. Its place at the peer was taken before.
//
// Thread rule: a value.

#include <cstdint>
#include <memory>
#include <string>

namespace hawser::agent {

struct PeerCore;

inline constexpr std::size_t kLeftOverMax = 1024;  ///< In one lane; beyond, its holder is waited for.

struct LeftOver {
  enum class Kind : std::uint8_t { kMessage, kNotification, kRelease };
  std::shared_ptr<PeerCore> peer;
  std::string bytes;  ///< Of a message or notification.
  Kind kind = Kind::kMessage;
  std::uint32_t channel = 0;
  std::uint32_t epoch = 0;     ///< Of the session (ChannelCredits); a notification has none.
  std::uint32_t messages = 0;  ///< kRelease: so many, of so many bytes in all.
  std::uint64_t freed = 0;
};

}  // namespace hawser::agent
