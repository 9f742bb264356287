#pragma once

// Mover: moves the pieces of chunks between memory and files, by a Queue. A piece is cut into operations at what
// direct I/O asks for; short reads and writes go on where they stopped; a durable write ends after an fsync that covers
// it, and one fsync serves all that wait for it.
//
// Thread rule: confined to a lane; nothing here blocks but `drain`, `quiet_within` and the destructor. Lifetime: pieces
// and memory of a taken request are used until its end was given out by `poll`.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hawser/status.h>

#include "backend/backend.h"
#include "base/intrusive_list.h"
#include "base/slot_table.h"
#include "fileio/file.h"
#include "fileio/queue.h"

namespace hawser::fileio {

/// Bytes of one operation, at most.
inline constexpr std::uint64_t kOperationMax = 4u << 20;
/// Requests taken and not ended, at most.
inline constexpr std::uint32_t kRequestsMax = 256;

struct Request {
  hawser::Operation op = hawser::Operation::kRead;  ///< kRead: from the file into memory.
  std::shared_ptr<File> file;
  std::span<const backend::Piece> pieces;  ///< `remote` is the offset in the file, counted from `origin`.
  std::uint64_t origin = 0;
  std::uint64_t cookie = 0;
  bool durable = false;  ///< A write ends only once it is on the device.
};

struct Moved {
  std::uint64_t cookie = 0;
  std::uint64_t bytes = 0;  ///< Moved, also of one that failed.
  Status status;
};

/// Values only grow.
struct MoverCounters {
  std::uint64_t bytes_direct = 0, bytes_buffered = 0, operations = 0, syncs = 0;
  std::uint64_t short_results = 0;  ///< Operations that moved less than asked and were continued.
};

class Mover {
 public:
  Mover(std::unique_ptr<Queue> queue, std::uint32_t depth);
  ~Mover();

  bool has_room() const { return !tasks_.full(); }
  /// has_room() must hold.
  base::SlotId take(const Request& request);
  /// Starts what fits into the queue, at most about `buffered_max` bytes through the page cache (the kernel may copy
  /// those at once), takes in what ended. Returns how much was done.
  std::size_t turn(std::uint64_t buffered_max);
  std::size_t poll(std::span<Moved> out);
  bool has_ended() const { return !ended_.empty(); }
  /// It ends with `why` as soon as nothing in flight touches its memory. Nothing when it ended.
  void stop(base::SlotId task, const Status& why);
  /// Waits until nothing of these is in flight, for this long at most; they must have been stopped. False: the kernel
  /// still has some, and touches their memory.
  bool drain(std::span<const base::SlotId> tasks, Duration patience);
  /// Waits until nothing at all is in flight, for this long at most; all tasks must have been stopped. False: the
  /// kernel still has some, and touches their memory.
  bool quiet_within(Duration patience);
  /// True where the kernel has an operation on any of these bytes.
  bool touches(const std::byte* memory, std::uint64_t size) const;

  bool idle() const { return tasks_.empty() && ended_.empty(); }
  /// Nothing can be done before the queue's descriptor is readable.
  bool can_sleep() const;
  Queue& queue() { return *queue_; }
  const MoverCounters& counters() const { return counters_; }

 private:
  struct Task {
    Request request;
    std::size_t piece = 0;     ///< The next operation begins in this piece,
    std::uint64_t offset = 0;  ///< so many bytes in.
    std::uint32_t in_flight = 0;
    std::uint64_t moved = 0;
    bool stopped = false;
    bool syncing = false;  ///< All is written, an fsync is waited for.
    Status outcome;
    base::ListHook hook;  ///< In ready_: has operations to start.
    base::SlotId id;
  };
  /// A contiguous run of bytes that one operation moves, or what is left of it.
  struct Run {
    base::SlotId task;
    std::byte* memory = nullptr;
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    bool direct = false;
    bool waiting = false;  ///< Cut short or refused: to be started again.
  };
  struct Sync {
    std::shared_ptr<File> file;
    bool running = false;
    std::vector<base::SlotId> covered, waiting;
  };

  bool start_more(std::uint64_t* buffered_left);
  bool start_run(std::uint32_t place);
  Run next_run(Task& task) const;
  bool cut(const File& file, Run* run) const;
  bool all_started(const Task& task) const { return task.piece == task.request.pieces.size(); }
  void on_ended(const Ended& ended);
  void on_run_ended(std::uint32_t place, int result);
  void on_error(Task& task, Run& run, int error);
  void fail(Task& task, const Status& why);
  void release(std::uint32_t place);
  void settle(Task& task);
  void want_sync(Task& task);
  void start_syncs();
  void on_synced(std::size_t place, int result);
  void finish(Task& task);
  template <typename Done>
  bool wait_until(Done&& done, Duration patience);
  void await_end() const;

  std::unique_ptr<Queue> queue_;
  base::SlotTable<Task> tasks_;
  base::IntrusiveList<Task, &Task::hook> ready_;
  std::vector<Run> runs_;  ///< As many as may be in flight.
  std::vector<std::uint32_t> free_runs_;
  std::vector<std::uint32_t> again_;  ///< Runs to start again; they keep their place.
  std::vector<std::unique_ptr<Sync>> syncs_;
  std::vector<Moved> ended_;
  MoverCounters counters_;
  bool flush_due_ = false;
};

}  // namespace hawser::fileio
