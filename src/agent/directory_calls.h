#pragma once

// Calls to a directory that wait for the answer, and what an agent keeps under its own key at its end.
//
// Thread rule: thread-safe, as directories are.

#include <functional>
#include <optional>
#include <string>

#include <hawser/directory.h>
#include <hawser/time.h>

#include "base/id128.h"

namespace hawser::agent {

/// The answer, or nothing at the deadline; then the request is taken back. The caller does the directory's work while
/// there is some, and else `rest`.
std::optional<DirectoryEvent> ask_directory(Directory& directory, Ticket ticket, const Clock& clock, Instant deadline,
                                            const std::function<void()>& rest);
/// For a time when no lane turns: before the agent is open, or after.
std::optional<DirectoryEvent> ask_alone(Directory& directory, Ticket ticket, const Clock& clock, Instant deadline);

/// Takes the agent's card out of the directory, unless that under its key is of another incarnation. Waits for 200 ms
/// at most, at a server 2 s. False: `deadline` came before that, and it may be tried again.
bool unpublish(Directory& directory, const std::string& key, const base::Id128& incarnation, const Clock& clock,
               Instant deadline);

}  // namespace hawser::agent
