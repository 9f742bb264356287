#pragma once

// Outbox: how a rank's messages and words go out to one peer: which class's turn it is, what goes at once and what is
// asked for, and what a granted message sends of its bytes in each turn.
//
// Thread rule: under the lane's lock. Lifetime: what it is made with outlives it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "agent/service.h"
#include "runtime/landings.h"
#include "runtime/mail_desk.h"
#include "runtime/operation.h"

namespace hawser::runtime {

inline constexpr std::size_t kPieceMin = 16 * 1024;                   ///< Smaller pieces are sent together.
inline constexpr std::uint64_t kWriteChunk = std::uint64_t{1} << 20;  ///< Of a message, written at once;
inline constexpr std::uint64_t kWritesMax = std::uint64_t{4} << 20;   ///< of all of them, under way to one peer.
inline constexpr int kPartsAtOnce = 4;  ///< Of large messages, sent to one peer on one channel in one turn.

/// The message's bytes from `offset` on, as many as there is room for.
void take(const Send& send, std::uint64_t offset, std::span<std::byte> into);

class Outbox {
 public:
  /// `landings`: reads what is to be read, in its turn.
  Outbox(agent::Carrier& carrier, Landings& landings, Landings::End end)
      : carrier_(carrier), landings_(landings), end_(std::move(end)) {}

  /// Sends what waits, as far as there is room. False: there is none for some class. A class that waits holds back no
  /// other one.
  bool pump(agent::Session& session, MailDesk& desk, std::size_t* work);
  /// Says that there is this message, and sends it along if it is small. What was in line before it is said already.
  agent::Sent announce(agent::Session& session, MailDesk& desk, Send& send);
  /// The send ends before its message is through. The peer is told, if it knows of it.
  void forget(agent::Session& session, MailDesk& desk, Send& send, Instant now);
  /// The user's sends of this world that are not through, in a fixed order.
  static std::vector<Send*> of_world(MailDesk& desk, std::uint64_t world);

  // What the receiver says. An error is the receiver's.
  Status on_grant(agent::Session& session, MailDesk& desk, const wire::RuntimeMessage& message, Instant now);
  Status on_fetched(agent::Session& session, MailDesk& desk, const wire::RuntimeMessage& message, Instant now);
  Status on_lend(agent::Service& service, agent::Session& session, MailDesk& desk, const wire::RuntimeMessage& message,
                 Instant now);
  /// So many bytes of the message of this number were written, or not. See Service::on_written.
  void on_written(agent::Session& session, MailDesk& desk, std::uint64_t id, std::uint64_t bytes, const Status& status,
                  Instant now);
  /// The send is about to end: nothing reads its memory from now on.
  void end_write(MailDesk& desk, Send& send);

 private:
  void give_up_write(agent::Session& session, MailDesk& desk, Send& send, Instant now);
  agent::Sent write_next(agent::Session& session, MailDesk& desk, Send& send);
  agent::Sent say(agent::Session& session, Priority priority, const wire::RuntimeMessage& message);
  agent::Sent say_all(agent::Session& session, std::list<Word>& words, Priority priority, std::size_t* work);
  std::span<const std::byte> together(const Send& send, std::uint64_t offset, std::size_t size);
  agent::Sent announce_all(agent::Session& session, MailDesk& desk, Priority priority, std::size_t* work);
  agent::Sent tell_freed(agent::Session& session, MailDesk& desk);
  agent::Sent send_part(agent::Session& session, MailDesk& desk, Send& send);
  agent::Sent send_parts(agent::Session& session, MailDesk& desk, std::span<ClassDesk> classes, std::size_t* work);
  agent::Sent pump_urgent(agent::Session& session, MailDesk& desk, Priority priority, std::size_t* work);
  agent::Sent pump_bulk(agent::Session& session, MailDesk& desk, std::size_t* work);

  agent::Carrier& carrier_;
  Landings& landings_;
  const Landings::End end_;
  std::uint64_t next_id_ = 1;
  std::vector<std::byte> gathered_;  ///< Of one message in pieces, while it is said.
};

}  // namespace hawser::runtime
