#pragma once

// MailDesk: what one rank's mailbox keeps of one peer: for each class of messages what waits to go out, and what was
// sent and is not free yet; and which messages are being received.
//
// Thread rule: under the lane's lock. A list links what is there, and does not own it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

#include <hawser/transfer.h>

#include "agent/service.h"
#include "base/intrusive_list.h"
#include "runtime/last_words.h"
#include "runtime/operation.h"
#include "runtime/word.h"
#include "wire/runtime.h"
#include "wire/session.h"

namespace hawser::runtime {

/// A message of so many bytes goes out without being asked for.
inline constexpr std::size_t kEagerMax = wire::kRuntimeBodyMax;
/// A rank keeps so many bytes that nobody wants yet of each sender and class,
inline constexpr std::size_t kEagerWindow = std::size_t{4} << 20;
inline constexpr std::size_t kEagerMessages = 16'384;  ///< and so many messages.

/// What goes and comes in one class.
struct ClassDesk {
  std::list<Word> words;                            ///< Grants and the like, which go first.
  base::IntrusiveList<Send, &Send::hook> line;      ///< To be announced, in order.
  base::IntrusiveList<Send, &Send::hook> streams;   ///< Granted: their bytes go out in turns.
  std::size_t eager_bytes = 0, eager_messages = 0;  ///< Sent, and not freed by the peer yet.
  std::size_t kept_bytes = 0, kept_messages = 0;    ///< The peer sent them, and nobody wants them yet.
  std::size_t freed_bytes = 0, freed_messages = 0;  ///< The peer has to be told.
  std::list<Word> last_words;                       ///< They go behind what is in line.

  /// Whether a message of so many bytes may go at once.
  bool may_send(std::uint64_t bytes) const {
    return bytes <= kEagerMax && eager_bytes + bytes <= kEagerWindow && eager_messages < kEagerMessages;
  }
  void note_sent(std::size_t bytes) {
    eager_bytes += bytes;
    ++eager_messages;
  }
  /// False: so much was not sent.
  bool note_freed_by_peer(std::size_t bytes, std::size_t messages);
  /// Whether a message of so many bytes that the peer sent may wait here.
  bool may_keep(std::size_t bytes) const {
    return kept_bytes + bytes <= kEagerWindow && kept_messages < kEagerMessages;
  }
  void note_kept(std::size_t bytes) {
    kept_bytes += bytes;
    ++kept_messages;
  }
  /// One that was kept was taken or dropped.
  void note_taken(std::size_t bytes);
  /// One of the peer's messages takes no room any more.
  void note_freed(std::size_t bytes) {
    freed_bytes += bytes;
    ++freed_messages;
  }
  /// So much is free that the peer should hear of it now.
  bool owes_freed() const { return freed_bytes > kEagerWindow / 4 || freed_messages > kEagerMessages / 4; }
  /// The session is over. What is in line has been ended before.
  void forget();
};

struct MailDesk final : agent::Tenancy {
  std::array<ClassDesk, wire::kClasses> classes;
  std::unordered_map<std::uint64_t, Send*> asked;  ///< By id.
  std::unordered_map<std::uint64_t, Receive*> landing;
  base::IntrusiveList<Receive, &Receive::fetch_hook> fetches;  ///< Of these the ones that are being read.
  std::unordered_map<std::uint64_t, Arrived*> kept_asks;       ///< By the peer's number.
  std::uint64_t writing = 0;                                   ///< Bytes under way into memory that the peer has lent.
  EarlyWords early;
  LastWords last;

  ClassDesk& of(Priority priority) { return classes[wire::index_of(priority)]; }
  /// Those that wait to be said.
  std::size_t words() const;
  /// Nothing waits to be said, but for messages that the peer has not wanted yet.
  bool is_silent() const {
    return words() == 0 && std::ranges::all_of(classes, [](const ClassDesk& each) { return each.line.empty(); });
  }
  /// Said before what is in line, by the class that holds back nothing.
  void say(const wire::RuntimeMessage& word) { of(Priority::kRealtime).words.push_back({word, {}}); }
  /// The session is over. Sends and receives have been ended before.
  void forget();
};

}  // namespace hawser::runtime
