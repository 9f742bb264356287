#pragma once

// Waiting for what a directory answers, for faces whose callers do not make a directory's progress themselves.
//
// Thread rule: any thread; several may wait on one directory.

#include <poll.h>

#include <algorithm>
#include <optional>

#include <hawser/directory.h>
#include <hawser/time.h>

namespace hawser::api {

/// The next event of `ticket`, or nothing when there was none until `deadline` (of the steady clock). Looks once, and
/// does one piece of the directory's work, even when the deadline is over.
inline std::optional<DirectoryEvent> next_event(Directory& directory, Ticket ticket, Instant deadline) {
  constexpr int kNapMaxMs = 8;  // Nobody rings when a folder or another's handle changes, so it is looked at.
  for (int nap_ms = 1;;) {
    if (std::optional<DirectoryEvent> event = directory.poll(ticket)) return event;
    const Instant now = Clock::steady().now();
    const bool worked = directory.run_job(now, deadline);
    if (now >= deadline) return directory.poll(ticket);
    if (worked || directory.runs_itself()) continue;  // Such a directory has waited in run_job.
    ::poll(nullptr, 0, nap_ms);
    nap_ms = std::min(2 * nap_ms, kNapMaxMs);
  }
}

}  // namespace hawser::api
