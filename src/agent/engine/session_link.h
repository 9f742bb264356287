#pragma once

// SessionLink: how a session's messages leave, and which of those that come are to be read.
//
// Messages go by the session's control path, each once, and in order within a link: proto/link_set.h keeps them until
// the peer has them.
//
// Thread rule: confined to the lane.

#include <array>
#include <cstddef>
#include <span>

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/engine/ports.h"
#include "agent/engine/session_table.h"
#include "agent/session.h"
#include "wire/session.h"

namespace hawser::agent {

using HeadArray = std::array<std::byte, wire::kHeadMax>;

class SessionLink {
 public:
  SessionLink(SessionTable& sessions, Ports& ports) : sessions_(sessions), ports_(ports) {}

  /// Sends a reliable message, the next one of its link, or keeps it until there is a path with room. False: too many
  /// of its link wait.
  bool push(Session& session, wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body);
  /// Sends one that is not kept, and for which nobody waits. False: there is no path with room now.
  static bool send_plain(Session& session, wire::Link link, std::span<const std::byte> head,
                         std::span<const std::byte> body);
  /// Sends what was kept. False: no room for all of it.
  static bool pump(Session& session, std::size_t* work);
  /// Sends an acknowledgement that has waited for company long enough. False: no room.
  static bool pump_ack(Session& session, Instant now, std::size_t* work);

  /// True where a reliable message that came on this path (null: it is gone) is to be read. An error is the peer's.
  Result<bool> receive(Session& session, PathEntry* entry, const wire::Envelope& envelope, std::size_t size);
  /// After it was read: whether an acknowledgement is owed.
  void note_read(Session& session, wire::Link link, Instant now);

 private:
  static bool send_next(Session& session, backend::Path& path);
  static bool send_pending(Session& session, wire::Link link, backend::Path& path);
  static void acknowledged(Session& session, wire::Link link);

  SessionTable& sessions_;
  Ports& ports_;
};

}  // namespace hawser::agent
