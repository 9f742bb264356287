#pragma once

// Landings: receives whose message was asked for, from the word that it is wanted to its last byte. The bytes come in
// parts; or this rank reads them in the sender's process where it can; or it lends the sender the memory where they go,
// where a path leads to it that gives the memory back at once.
//
// Thread rule: under the lane's lock. Lifetime: what it is made with outlives it.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/service.h"
#include "runtime/mail_desk.h"
#include "runtime/operation.h"

namespace hawser::runtime {

inline constexpr std::size_t kFetchPart = 256 * 1024;  ///< Read of one message in one go.
inline constexpr std::uint64_t kLendMin = 128 * 1024;  ///< Bytes of a message for which memory is lent.

/// Writes what the message has from `offset` on.
void put(const Receive& receive, std::uint64_t offset, std::span<const std::byte> from);

class Landings {
 public:
  /// Ends the operation, which must be nowhere else in the desk any more.
  using End = std::function<void(Operation& operation, const Status& status)>;
  Landings(agent::Carrier& carrier, End end) : carrier_(carrier), end_(std::move(end)) {}

  /// Has the bytes of the message that the sender calls `id` come: `address` is where they lie at the sender, or 0.
  void want(agent::Session& session, MailDesk& desk, Receive& receive, std::uint64_t id, std::uint64_t address,
            Instant now);
  /// The receive ends before its message is here. What comes for it is passed over.
  void forget(agent::Session& session, MailDesk& desk, Receive& receive, Instant now);
  /// Those of this world, in a fixed order.
  static std::vector<Receive*> of_world(const MailDesk& desk, std::uint64_t world);

  /// Reads the next part of the first message that is read. False: none is.
  bool fetch_next(agent::Session& session, MailDesk& desk);

  // What the sender says. An error is the sender's.
  Status on_part(MailDesk& desk, const wire::RuntimeMessage& message);
  Status on_taken(MailDesk& desk, const wire::RuntimeMessage& message);
  Status on_written(MailDesk& desk, const wire::RuntimeMessage& message);
  Status on_unwritten(agent::Session& session, MailDesk& desk, const wire::RuntimeMessage& message, Instant now);
  /// It has stopped the message of this number.
  void on_gone(MailDesk& desk, const wire::RuntimeMessage& message, const Status& why);
  /// The receive is about to end: nobody writes into its memory from now on.
  void take_back(Receive& receive);

 private:
  bool lend(agent::Session& session, MailDesk& desk, Receive& receive);
  void fetch_part(agent::Session& session, MailDesk& desk, Receive& receive);

  agent::Carrier& carrier_;
  const End end_;
  std::uint64_t next_ = 1;
};

}  // namespace hawser::runtime
