#pragma once

// MessageRings: the messages of one path. It puts them into one ring of the link, those that are too large for a record
// in parts, and takes the peer's from the other. It rings the peer's doorbell itself.
//
// Nothing that the peer writes is trusted: it can spoil its own messages and end its path, nothing else.
//
// Thread rule: confined to the lane. Lifetime: from begin() on it borrows the link and the descriptor of the doorbell.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/backend.h"
#include "backend/shm/inbox.h"
#include "backend/shm/link.h"
#include "backend/shm/parts_sent.h"

namespace hawser::backend::shm {

class MessageRings {
 public:
  /// Bytes of one part: while the peer copies it out, the next one is copied in.
  static constexpr std::size_t kPartMax = 17 * 1024;
  /// Bytes of a message that came in parts.
  static constexpr std::size_t kAssemblyMax = kMessageMax + 1024;

  MessageRings() = default;
  /// Until then it neither sends nor takes anything.
  void begin(const Link& link, int peer_door);

  // ---- To the peer.

  /// kDone: all of it is in the ring, or the rest is kept for flush(). kFull: nothing was taken.
  Put send(std::span<const std::byte> head, std::span<const std::byte> body);
  /// Goes on with a message that is in the ring in part. kFull: some of it is still kept.
  Put flush();
  bool has_outbox() const { return !outbox_.empty(); }
  /// The peer has given back all that was put into the ring.
  bool is_drained() const { return producer_.is_drained(); }
  /// Calls `see` with the beginning of each message that the peer has not given back. False: the peer's word makes no
  /// sense.
  bool each_untaken(const SeeMessage& see) const;
  /// Shows whole messages, oldest first. It leaves out a message in parts of which the peer gave some back.
  bool each_whole_untaken(const SeeMessage& see) const;

  /// A send found the ring full, and none went since.
  bool has_refused() const { return refused_size_ != 0; }
  /// The send that was refused would be taken now. True once: then nothing has been refused.
  bool take_room();
  /// Before sleeping. False: the send that was refused would be taken now; else the peer rings once it is.
  bool await_room() { return producer_.await_room(refused_size_); }

  // ---- From the peer.

  enum class Took : std::uint8_t { kNothing, kMessage, kCorrupt };
  /// Before a series of take(): what was taken before has been dealt with.
  void begin_taking();
  /// The next message, if all of it has come and `inbox` has room for it. It stays until begin_taking(). A message that
  /// came in parts is the only one of its series, or the last one. kCorrupt: nothing more is taken.
  Took take(Inbox& inbox, std::span<const std::byte>* bytes);
  /// Whether there is something to take.
  bool ready() const { return is_readable() && consumer_.ready(); }
  bool is_readable() const { return takes_ && !is_broken_; }
  /// The agent has dealt with all messages that were taken: the peer may know, and write over them.
  void give_back();
  bool holds_taken() const { return takes_ && !holds_parts() && consumer_.holds_taken(); }
  /// Before sleeping: the peer rings for the next record. False: there is one already.
  bool arm() { return !is_readable() || consumer_.arm(); }
  /// Takes nothing more, and gives nothing back.
  void stop_taking() { takes_ = false; }
  /// The peer left, and may write on for ever: what it sent before fits into the ring, and no more is taken.
  void drain() { drain_left_ = line_count_; }

 private:
  Put put(RecordKind kind, std::span<const std::byte> head, std::span<const std::byte> body);
  Put send_in_parts(std::span<const std::byte> head, std::span<const std::byte> body);
  std::size_t part_max() const { return std::min<std::size_t>(kPartMax, producer_.record_max()); }
  bool fits_assembly(const Record& record);
  /// Parts of a message are given back with the last one: so they lie in the ring if the path is lost before that, and
  /// the producer can send the message again. A ring that has no room for that gives each part back at once.
  bool keeps_parts() const { return line_count_ * kLineSize >= 2 * kAssemblyMax; }
  /// It has parts of a message that is not complete.
  bool holds_parts() const { return keeps_parts() && assembled_ > 0 && !is_assembled_; }
  void count_drained();

  Link::Producer producer_;
  Link::Consumer consumer_;
  int peer_door_ = -1;
  std::uint64_t line_count_ = 0;

  std::string outbox_;
  std::size_t outbox_sent_ = 0;
  PartsSent parts_sent_;
  std::uint32_t refused_size_ = 0;  ///< How many bytes the record has that found no room; 0: there is none.

  std::unique_ptr<std::byte[]> assembly_;  ///< Of kAssemblyMax bytes, once a message came in parts.
  std::size_t assembled_ = 0;              ///< Bytes of the parts so far; of a whole message until begin_taking().
  bool is_assembled_ = false;
  bool is_broken_ = false;        ///< Not read any more.
  bool takes_ = true;             ///< See stop_taking.
  std::uint64_t drain_left_ = 0;  ///< Records still taken from a peer that left; 0: it is there.
};

}  // namespace hawser::backend::shm
