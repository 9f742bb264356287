#pragma once

// LeftOver: what a thread that did not get the lane's lock leaves to an agent's driver: a message, a notification,
// room in the inbox that the user has freed, or what a service is to begin. The sender of a message took the place at
// the peer before.
//
// Thread rule: a value.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <hawser/status.h>
#include <hawser/time.h>
#include <hawser/transfer.h>

namespace hawser::agent {

struct PeerCore;

inline constexpr std::size_t kLeftOverMax = 1024;  ///< In one lane; beyond, a sender waits for the lane's lock.

/// Begins something, under the lane's lock, unless `refused` says why the agent does no more: then it only ends what it
/// was to begin.
using Beginning = std::function<void(Instant now, const Status& refused)>;

struct LeftOver {
  enum class Kind : std::uint8_t { kMessage, kNotification, kRelease, kBeginning };
  std::shared_ptr<PeerCore> peer;
  std::string bytes;  ///< The message or notification.
  Kind kind = Kind::kMessage;
  std::uint32_t channel = 0;
  Priority priority = Priority::kRealtime;  ///< The class in which it goes. A notification has no channel, 0.
  std::uint32_t epoch = 0;                  ///< Names the session (ChannelCredits); a notification has none.
  std::uint32_t messages = 0;               ///< kRelease: so many, of so many bytes in all.
  std::uint64_t freed = 0;
  Beginning begin;  ///< kBeginning, which has nothing else.
};

}  // namespace hawser::agent
