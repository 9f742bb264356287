#include "agent/directory_finder.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "agent/directory_calls.h"
#include "agent/peer_status.h"
#include "base/bytes.h"
#include "base/try.h"

namespace hawser::agent {
namespace {

constexpr Duration kLookAtDirectoryAgain = std::chrono::milliseconds(10);

}  // namespace

DirectoryFinder::Found DirectoryFinder::look(std::string_view name, Instant deadline, Status* why_not) {
  Directory& directory = *its_.options.directory;
  const auto rest = [&] { its_.lane.pause(std::min(deadline, its_.clock.now() + kLookAtDirectoryAgain)); };
  const Ticket ticket = directory.get(its_.options.directory_prefix + std::string(name));
  const auto answer = ask_directory(directory, ticket, its_.clock, deadline, rest);
  if (!answer) return std::shared_ptr<PeerCore>();
  *why_not = answer->status;
  if (!answer->status.ok() || answer->entries.empty()) return std::shared_ptr<PeerCore>();
  const DirectoryEntry& entry = answer->entries.front();
  HAWSER_TRY_ASSIGN(const wire::CardSummary card, wire::check_card(base::as_bytes(entry.value)));
  if (const std::optional<Status> death = its_.peers.judge(card.incarnation, entry.version)) {
    *why_not = Status(Code::kNotFound, "the card in the directory is that of incarnation " + to_hex(card.incarnation) +
                                           ", which has died")
                   .because(*death);
    return std::shared_ptr<PeerCore>();
  }
  HAWSER_TRY_ASSIGN(std::shared_ptr<PeerCore> peer, its_.intake.take(base::as_bytes(entry.value)));
  if (peer->state.load(std::memory_order_acquire) != PeerState::kDown) return peer;
  *why_not = Status(Code::kNotFound, "its card is that of an incarnation which is down").because(down_status(*peer));
  return std::shared_ptr<PeerCore>();  // A successor may publish its own.
}

DirectoryFinder::Found DirectoryFinder::find(std::string_view name, Instant deadline) {
  Status last(Code::kTimedOut, "it did not answer");
  for (;;) {
    HAWSER_TRY(its_.life.usable("find_peer"));  // The agent may be closed meanwhile.
    HAWSER_TRY_ASSIGN(std::shared_ptr<PeerCore> found, look(name, deadline, &last));
    if (found != nullptr) return found;
    if (its_.clock.now() >= deadline) return not_found(name, last);
    its_.lane.pause(std::min(deadline, its_.clock.now() + kLookAtDirectoryAgain));
  }
}

Status DirectoryFinder::not_found(std::string_view name, const Status& last) const {
  const std::string kind(its_.options.directory->kind());
  if (last.ok() || last.code() == Code::kNotFound) {
    return Status(Code::kNotFound,
                  "find_peer: '" + std::string(name) + "' did not appear in the " + kind + " directory in time")
        .with_peer(name)
        .because(last)
        .with_advice("check that the peer runs and uses the same directory and prefix");
  }
  // Nothing is known of the peer: it is the directory that failed.
  std::string trouble;
  for (const std::string& warning : its_.options.directory->warnings()) {
    trouble += (trouble.empty() ? "" : "; ") + warning;
  }
  const bool is_silent = last.code() == Code::kTimedOut && !trouble.empty();
  return Status(last.code(), "find_peer: the " + kind + " directory cannot be asked for '" + std::string(name) + "'")
      .because(is_silent ? Status(last.code(), trouble) : last)
      .with_advice(last.advice().empty() ? "check that the directory can be reached: hawser doctor" : last.advice());
}

}  // namespace hawser::agent
