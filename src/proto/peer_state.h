#pragma once

// The life of an agent's session to one incarnation of a peer, as a table: (state, event) -> next state and what to
// do. The agent feeds events about the session as a whole: a path that goes while another is up is not one of them.
//
// Down is final: a peer that comes back after it is met as a new session, and one that still believes in the old
// session is refused.
//
// Thread rule: one thread at a time; the table is constant.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <hawser/peer.h>

namespace hawser::proto {

enum class SessionState : std::uint8_t {
  kKnown = 0,       ///< Its card is here; nobody asked for it yet.
  kConnecting = 1,  ///< A path is being opened.
  kUp = 2,
  kSuspect = 3,  ///< Up, but heartbeats are missing.
  kBackoff = 4,  ///< Waiting to open a path again.
  kDown = 5,
};
inline constexpr std::size_t kSessionStates = 6;

enum class SessionEvent : std::uint8_t {
  kWant = 0,         ///< A transfer, message or Peer::connect needs it.
  kPathUp = 1,       ///< A path is up: ours, or one that the peer opened.
  kPathLost = 2,     ///< The last path (or the attempt to open one) is gone; opening one again may work.
  kPeerDead = 3,     ///< Proven: its process is gone. docs/errors.md lists the proofs.
  kRestarted = 4,    ///< Another incarnation answered, or its card says so.
  kDenied = 5,       ///< It refused us.
  kDeadline = 6,     ///< The time for connecting is over.
  kMissed = 7,       ///< The detector suspects it.
  kHeard = 8,        ///< It was heard again.
  kBye = 9,          ///< It said goodbye.
  kInvalidate = 10,  ///< The user forgets it, or the agent closes.
  kBackoffOver = 11,
  kRefused = 12,      ///< The attempt to open a path was refused by a host, and from here that proves no death.
  kUnreachable = 13,  ///< No backend leads to the peer from here. That says nothing of the peer.
};
inline constexpr std::size_t kSessionEvents = 14;

enum class SessionAction : std::uint8_t {
  kNone = 0,
  kArmDeadline = 1,   ///< Start the time for connecting (AgentOptions::peer_timeout).
  kDisarm = 2,        ///< Stop deadline and backoff.
  kOpenPath = 3,      ///< Open a path, superseding the last session.
  kStartBackoff = 4,  ///< Draw the next pause; if no time is left for one, feed kDeadline.
  kGreet = 5,         ///< Send a Welcome on the new path; replay once the peer's is there.
  kReportUp = 6,
  kReportSuspect = 7,
  kReportDown = 8,
  kFailTransfers = 9,  ///< End what is in flight or asked for, with the event's cause.
  kSendBye = 10,
  kReleasePaths = 11,     ///< Close and drop all paths, the one of this event included.
  kReportUnreached = 12,  ///< Tell those that wait for the peer why no path leads to it.
  kOpenBeside = 13,       ///< Open a path in place of one on which the peer is silent, while that stays.
};

std::string_view to_string(SessionState state);
std::string_view to_string(SessionEvent event);
std::string_view to_string(SessionAction action);

inline constexpr std::size_t kSessionActionsMax = 5;

struct SessionStep {
  SessionState next = SessionState::kKnown;
  std::uint8_t count = 0;
  std::array<SessionAction, kSessionActionsMax> actions{};

  /// In the order in which to do them.
  std::span<const SessionAction> to_do() const { return std::span(actions).first(count); }
};

/// The whole machine.
const SessionStep& step(SessionState state, SessionEvent event);

class SessionMachine {
 public:
  SessionState state() const { return state_; }
  /// Whether it has ever been up.
  bool was_up() const { return was_up_; }
  /// As users see it: a session that was up and is being mended is suspect, and so is one that was refused. One that
  /// was neither is known.
  PeerState public_state() const;
  /// Moves on and tells what to do.
  std::span<const SessionAction> on(SessionEvent event);

 private:
  SessionState state_ = SessionState::kKnown;
  bool was_up_ = false;
  bool was_refused_ = false;  ///< Since it was up last.
};

/// The table as text, one line per state and event that does anything; for docs and `describe`.
std::string session_table();

}  // namespace hawser::proto
