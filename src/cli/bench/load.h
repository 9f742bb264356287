#pragma once

// Load: blocks of this process and of the child, paired, as plans that are submitted over and over.
//
// Scattered loads have several plans over different blocks, taken in turn, so that none finds its bytes in a cache.
//
// Thread rule: one thread. Lifetime: not beyond its stage.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/bench/blocks.h"
#include "cli/bench/stage.h"

namespace hawser::cli::bench {

struct LoadShape {
  Operation operation = Operation::kWrite;
  std::uint64_t block_bytes = 0;
  std::uint64_t count = 1;        ///< Blocks in one plan.
  std::uint64_t arena_bytes = 0;  ///< 0: the blocks lie side by side in memory of just their size; else scattered.
  MemoryKind memory = MemoryKind::kAllocated;

  bool scattered() const { return arena_bytes != 0; }
  std::uint64_t bytes() const { return block_bytes * count; }
};

class Load {
 public:
  static Result<std::unique_ptr<Load>> prepare(Stage& stage, const LoadShape& shape);
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load();

  const LoadShape& shape() const { return shape_; }
  std::size_t plan_count() const { return plans_.size(); }
  const Plan& plan(std::size_t number) const { return plans_[number % plans_.size()]; }
  const Plan& next_plan() { return plans_[next_++ % plans_.size()]; }

  /// A plan of one range over the first `bytes` of both sides.
  Result<Plan> whole(std::uint64_t bytes);

  std::span<std::byte> local() const { return local_.bytes(); }
  const RemoteMemory& remote() const { return remote_; }
  const BlockList& local_blocks(std::size_t plan) const { return local_blocks_[plan]; }
  const BlockList& remote_blocks(std::size_t plan) const { return remote_blocks_[plan]; }

  /// Time of the very first submission, ns: mappings and connections included.
  std::int64_t cold_ns() const { return cold_ns_; }
  /// Writes (or has the child write) new bytes at the source, runs every plan once and compares sums. Adds to `bytes`
  /// what was verified; kCorrupt when something differs.
  Status verify(std::uint64_t* bytes);
  /// "shm" or "tcp": which backend moved the bytes, as the counters tell.
  std::string carried_by() const;

 private:
  Load(Stage& stage, LoadShape shape) : stage_(stage), shape_(shape) {}
  Status make_memory();
  Status make_plans();
  Status run_cold();
  /// All plans once, one after the other.
  Status run_all();
  Status renew_source();
  Result<std::uint64_t> remote_sum(const BlockList& blocks);

  Stage& stage_;
  LoadShape shape_;
  std::span<std::byte> own_;  ///< Mapped here when the memory is foreign to Hawser.
  Region local_;
  RemoteMemory remote_;
  std::vector<BlockList> local_blocks_, remote_blocks_;
  std::vector<Plan> plans_;
  std::size_t next_ = 0;
  std::int64_t cold_ns_ = 0;
  std::uint64_t seed_ = 100;
};

}  // namespace hawser::cli::bench
