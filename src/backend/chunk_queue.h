#pragma once

// ChunkQueue: the chunks that a port which copies by itself has taken and works on over its turns. Classes go by
// priority; within a class the transfers take turns, so a small one does not wait for a large one.
//
// Thread rule: confined to the port's lane. Lifetime: jobs stay at their address until erased; paths erase theirs
// before they go.

#include <array>
#include <cstdint>

#include "backend/backend.h"
#include "backend/chunk_copy.h"
#include "base/intrusive_list.h"
#include "base/slot_table.h"

namespace hawser::backend {

struct Job {
  base::ListHook hook;
  base::SlotId id;
  Path* path = nullptr;
  Chunk chunk;
  Cursor cursor;
};

class ChunkQueue {
 public:
  static constexpr std::uint32_t kJobsMax = 4096;  ///< Of one port. Paths have their own, lower limit.

  ChunkQueue() : jobs_(kJobsMax), flows_(kJobsMax) {}

  /// Null when the port has too many. The job is in no list: schedule() it, or let it wait in a list of its own.
  Job* make(Path& path, const Chunk& chunk);
  void schedule(Job& job);
  /// Null when it was erased.
  Job* get(base::SlotId id) { return jobs_.get(id); }
  /// What to work on now, or null. Stays the same until rotate(), erase() or schedule() of a higher class.
  Job* front();
  /// All bytes that were scheduled for the job's transfer while it was here: a hint.
  std::uint64_t transfer_bytes(const Job& job);
  /// The next transfer's turn.
  void rotate(const Job& job);
  void erase(Job& job);
  bool empty() const { return flows_.empty(); }

  /// `visit(Job&)` may erase the job it got.
  template <typename Visit>
  void for_each(Visit&& visit) {
    jobs_.for_each([&visit](base::SlotId, Job& job) { visit(job); });
  }

 private:
  struct Flow {
    base::ListHook hook;
    base::SlotId id;
    const Path* path = nullptr;
    std::uint64_t transfer = 0;
    std::uint64_t bytes = 0;
    base::IntrusiveList<Job, &Job::hook> jobs;
  };
  using Flows = base::IntrusiveList<Flow, &Flow::hook>;

  Flows& flows_of(const Job& job) { return classes_[static_cast<std::size_t>(job.chunk.priority) % kClasses]; }
  Flow* find(const Job& job);

  static constexpr std::size_t kClasses = 3;
  base::SlotTable<Job> jobs_;
  base::SlotTable<Flow> flows_;
  std::array<Flows, kClasses> classes_;
};

}  // namespace hawser::backend
