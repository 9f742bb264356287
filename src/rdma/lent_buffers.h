#pragma once

// LentBuffers: the buffers that this process gave out, by id, token and name, and those that were released while
// somebody was inside.
//
// A released buffer is taken out of the books at once; its memory goes when its region has closed. Until then all who
// release it again wait for that end: to be told that it is gone they would take for an end.
//
// Thread rule: thread-safe. Buffers are let go without the lock, for their end closes regions.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <hawser/agent.h>
#include <hawser/rdma.h>

#include "base/id128.h"
#include "base/mutex.h"
#include "rdma/batch.h"
#include "rdma/handle.h"
#include "rdma/messages.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

/// A buffer that was given out.
struct Owned {
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned();

  LocalMemory memory;
  Rights rights = Rights::kNone;
  Region region;      ///< Unlisted: only who has the handle knows of it.
  RemoteRange whole;  ///< As this agent sees it.
  RemoteBuffer handle;
};

/// Whom a release is acknowledged to, and until when: a batch of this process, or a peer.
struct Ack {
  std::shared_ptr<BatchCore> batch;
  Peer peer;
  std::uint64_t number = 0;
  Instant deadline;
};

class LentBuffers {
 public:
  struct Limits {
    std::size_t buffers = 0;   ///< Given out, or released with somebody inside.
    std::size_t releases = 0;  ///< That wait for one buffer's end.
  };
  explicit LentBuffers(Limits limits) : limits_(limits) {}

  /// The handle, where that id is lent so already; none: it may be lent. Else kInvalid or kBusy.
  Result<std::optional<RemoteBuffer>> find(std::uint64_t id, const LocalMemory& memory, const Lending& lending) const
      HAWSER_EXCLUDES(mutex_);
  /// Where two callers lend one id at once, the first one gets in, and the second one gets its handle.
  Result<RemoteBuffer> add(const std::shared_ptr<Owned>& owned) HAWSER_EXCLUDES(mutex_);
  std::size_t size() const HAWSER_EXCLUDES(mutex_);
  /// Null: it was released, or never was.
  std::shared_ptr<Owned> by_token(const base::Id128& token) const HAWSER_EXCLUDES(mutex_);
  std::optional<RemoteBuffer> by_name(const std::string& name) const HAWSER_EXCLUDES(mutex_);
  /// Once a release is acknowledged nobody is at the word: this is done under the lock under which it is taken out.
  Reply run_atomic(const Ask& ask) const HAWSER_EXCLUDES(mutex_);

  /// Takes `ack` for the end of that buffer, or refuses it and leaves it as it is. `*first` gets the buffer where this
  /// is the first release of it.
  Status release(const base::Id128& token, Ack& ack, std::shared_ptr<Owned>* first) HAWSER_EXCLUDES(mutex_);
  /// Buffers that were released and have not ended.
  std::vector<std::shared_ptr<Owned>> closing() const HAWSER_EXCLUDES(mutex_);
  /// Whether there are such, and somebody waits for one.
  bool has_closing() const HAWSER_EXCLUDES(mutex_);
  bool is_awaited() const HAWSER_EXCLUDES(mutex_);
  /// The region of a released buffer has closed, or not yet. Answers whom that has to be told; none: another thread
  /// told them.
  std::optional<std::vector<Ack>> take_due(const Owned& owned, bool has_closed, Instant now) HAWSER_EXCLUDES(mutex_);

  /// Empties all books.
  std::vector<std::shared_ptr<Owned>> take_all() HAWSER_EXCLUDES(mutex_);

 private:
  /// It stays when all who asked were told that it takes too long, for its memory must not go.
  struct Closing {
    std::shared_ptr<Owned> owned;
    std::vector<Ack> acks;
  };

  const Limits limits_;
  mutable base::Mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Owned>> by_id_ HAWSER_GUARDED_BY(mutex_);
  std::unordered_map<base::Id128, std::shared_ptr<Owned>> by_token_ HAWSER_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Owned>, std::less<>> by_name_ HAWSER_GUARDED_BY(mutex_);
  std::unordered_map<base::Id128, Closing> closings_ HAWSER_GUARDED_BY(mutex_);  ///< By their tokens.
};

}  // namespace rdma
HAWSER_NAMESPACE_END
