#include "agent/directory_calls.h"

#include <algorithm>
#include <chrono>

#include "base/bytes.h"
#include "base/spin.h"
#include "wire/card.h"

namespace hawser::agent {
namespace {

/// Reads of our key at closing, while it changes each time.
constexpr int kUnpublishTries = 4;
constexpr Duration kUnpublishMax = std::chrono::milliseconds(200);
constexpr Duration kServerUnpublishMax = std::chrono::seconds(2);

}  // namespace

std::optional<DirectoryEvent> ask_directory(Directory& directory, Ticket ticket, const Clock& clock, Instant deadline,
                                            const std::function<void()>& rest) {
  std::optional<DirectoryEvent> answer;
  while (!(answer = directory.poll(ticket)) && clock.now() < deadline) {
    if (!directory.run_job(clock.now(), deadline)) rest();
  }
  if (!answer) directory.cancel(ticket);
  return answer;
}

std::optional<DirectoryEvent> ask_alone(Directory& directory, Ticket ticket, const Clock& clock, Instant deadline) {
  return ask_directory(directory, ticket, clock, deadline, [] { base::cpu_relax(); });
}

bool unpublish(Directory& directory, const std::string& key, const base::Id128& incarnation, const Clock& clock,
               Instant deadline) {
  // A server may be slow, and only this takes the card away while the directory is in use by others.
  const Instant enough = clock.now() + (directory.runs_itself() ? kServerUnpublishMax : kUnpublishMax);
  const auto run = [&](Ticket ticket) { return ask_alone(directory, ticket, clock, std::min(deadline, enough)); };
  for (int tries = 0; tries < kUnpublishTries; ++tries) {
    const auto there = run(directory.get(key));
    const bool is_found = there && there->status.ok() && !there->entries.empty();
    if (!is_found) return there || clock.now() >= enough;
    const DirectoryEntry& entry = there->entries.front();
    const Result<wire::CardSummary> card = wire::check_card(base::as_bytes(entry.value));
    if (!card || card->incarnation != incarnation) return true;
    // A successor of this name may publish just now: its card stays.
    const auto erased = run(directory.erase(key, {.if_version = entry.version}));
    if (!erased) return clock.now() >= enough;
    if (erased->status.code() != Code::kBusy) return true;
  }
  return true;
}

}  // namespace hawser::agent
