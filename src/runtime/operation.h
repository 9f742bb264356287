#pragma once

// One send or receive of a rank, from its start to its end. A handle of the user shares it, or a collective owns it.
//
// Thread rule: under the lane's lock, but for `final` and `moves`, and for what is constant once it is true.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>

#include <hawser/peer.h>
#include <hawser/status.h>
#include <hawser/transfer.h>

#include "base/intrusive_list.h"
#include "base/timer_heap.h"
#include "runtime/made_buffer.h"
#include "runtime/pieces.h"
#include "wire/runtime.h"

namespace hawser::runtime {

struct Arrived;
struct Operation;
struct Receive;

class Listener {
 public:
  /// A receive that it owns has got a message, whose bytes may still have to come. Called as on_end is.
  virtual void on_matched(Receive&) {}
  /// One that it owns has ended. Called from within the mailbox: it begins nothing there.
  virtual void on_end(Operation&) {}
  /// The deadline of one that consists of several has come.
  virtual void on_late(Operation&, Instant) {}
  /// One that consists of several is to end with `why`, unless it is over.
  virtual void on_cancel(Operation&, const Status&, Instant) {}

 protected:
  ~Listener() = default;
};

enum class OperationKind : std::uint8_t { kSend, kReceive, kSeveral };

struct Operation {
  explicit Operation(OperationKind its_kind) : kind(its_kind) {}
  virtual ~Operation() = default;
  /// Bytes that came and have no other place, once it has ended.
  virtual std::span<const std::byte> made_bytes() const { return {}; }
  /// By which it went, once it has ended. Empty: it is no collective.
  virtual std::string_view algorithm_name() const { return {}; }

  const OperationKind kind;

  std::atomic<bool> final{false};
  /// One that consists of several: how often it got further on boards. Any thread may look.
  std::atomic<std::uint32_t> moves{0};
  Status status;
  Listener* listener = nullptr;     ///< Null: a user's.
  std::shared_ptr<Operation> self;  ///< A user's keeps itself while it is under way.
  base::TimerHook alarm;            ///< Its deadline.
  bool is_counted = false;          ///< Among those that the mailbox has under way.
  /// A thread waits for it from its begin on: nobody else need look for its end. Any thread may look.
  std::atomic<bool> is_waited{false};
  bool is_standing = false;  ///< The world's own, there as long as the world is: it is not among them.
};

struct Send final : Operation {
  Send() : Operation(OperationKind::kSend) {}

  Peer to;
  wire::MessageEnvelope envelope;
  /// What lies together from `offset` on.
  std::span<const std::byte> run(std::uint64_t offset) const {
    if (pieces != nullptr) return pieces->run(offset);
    return {data + offset, static_cast<std::size_t>(envelope.bytes - offset)};
  }

  const std::byte* data = nullptr;
  std::unique_ptr<const Pieces> pieces;  ///< Where the bytes lie, if not all at `data`.
  std::uint64_t id = 0;                  ///< Names it at the receiver, once it asked.
  std::uint64_t landing = 0;             ///< Where the receiver wants it.
  std::uint64_t sent = 0;                ///< Bytes.
  std::uint64_t write = 0;               ///< The carrier's number of the write into what the receiver lent. 0: none.
  std::uint64_t written = 0;             ///< Bytes of it that are there.
  Priority priority = Priority::kRealtime;
  bool is_asked = false;
  bool is_readable = false;   ///< The receiver was told where it lies.
  bool is_unwritten = false;  ///< The receiver was told that it cannot be written.
  Arrived* kept = nullptr;    ///< To oneself, and nobody wants it yet.
  base::ListHook hook;        ///< In the line of those whose turn it is not yet, or of those whose bytes go out.
};

/// Who and what a receive waits for.
struct Pattern {
  std::uint64_t world = 0;
  wire::MessageUse use = wire::MessageUse::kUser;
  const void* source = nullptr;                              ///< Of a peer (see source_of); null: any of `members`.
  const std::unordered_set<const void*>* members = nullptr;  ///< Outlives the receive. Null: any peer at all.
  std::optional<std::uint64_t> tag;                          ///< None: any.
};

struct Receive final : Operation {
  Receive() : Operation(OperationKind::kReceive) {}
  std::span<const std::byte> made_bytes() const override { return {own.get(), own == nullptr ? 0 : received}; }

  /// Where bytes from `offset` on can go together.
  std::span<std::byte> run(std::uint64_t offset) const {
    if (pieces == nullptr) return {data + offset, static_cast<std::size_t>(capacity - offset)};
    const std::span<const std::byte> its = pieces->run(offset);
    return {const_cast<std::byte*>(its.data()), its.size()};  // The user gave them to be written.
  }

  Pattern pattern;
  std::byte* data = nullptr;
  std::unique_ptr<const Pieces> pieces;  ///< Where the bytes go, if not all to `data`.
  std::uint64_t capacity = 0;
  bool has_buffer = true;                 ///< Otherwise one is made of the message's size.
  bool is_exact = false;                  ///< A shorter message is an error, too.
  std::optional<std::uint64_t> digest;    ///< A message with another one is an error.
  const BufferSource* buffers = nullptr;  ///< Makes it. It outlives the operation. Null: the heap.
  MadeBuffer own;                         ///< The buffer that was made.

  // What came.
  Peer from;
  wire::MessageEnvelope got;
  std::uint64_t received = 0;
  std::uint64_t asked_id = 0;      ///< The sender's number of a message that was asked for,
  std::uint64_t landing = 0;       ///< and ours, under which its bytes come.
  std::uint64_t address = 0;       ///< Where they are read in the sender's process. 0: they come in parts.
  base::ListHook fetch_hook;       ///< Among those that are being read.
  std::optional<wire::Lent> lent;  ///< The memory, while the sender may write into it.

  std::uint64_t order = 0;  ///< Among those that wait.
  base::ListHook hook;      ///< In the matcher's lists, or among those whose bytes come in.
};

/// A message that nobody wanted when it came.
struct Arrived {
  Peer from;
  const void* source = nullptr;
  wire::MessageEnvelope envelope;
  std::unique_ptr<std::byte[]> bytes;  ///< Null: they wait at the sender,
  std::uint64_t id = 0;                ///< as the message of this number,
  std::uint64_t address = 0;           ///< at this address of its process,
  Send* own = nullptr;                 ///< or here, in a send to oneself.
  Priority priority = Priority::kRealtime;
  std::uint64_t order = 0;
  base::ListHook bucket_hook, use_hook;
};

}  // namespace hawser::runtime
