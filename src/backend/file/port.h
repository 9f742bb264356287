#pragma once

// FilePort: paths from an agent to its own files. Chunks wait in the port's queue, a few hundred at a time are moved by
// a fileio::Mover; messages come back on the path that sent them, so the backend can be an agent's only one.
//
// A chunk of a region that was closed starts nothing more and ends once nothing of it is in flight. When the agent
// closes, nobody waits here for the kernel: what it has is left to it, `region_quiet` tells of its memory as long as
// the agent has patience, and then the mover is left behind (fileio/leftovers.h). A path that is dropped for another
// cause waits for two seconds, so that a file system that hangs does not keep the agent's lane; what the kernel has
// then is left to it likewise.
//
// Thread rule: confined to its lane. Lifetime: the context's references outlive it.

#include <memory>
#include <string>

#include "backend/self_backend.h"
#include "fileio/mover.h"

namespace hawser::backend::file {

inline constexpr SelfKind kKind{.name = "file", .agent = "this agent's own files", .regions = "regions of files"};

class FilePort;

class FilePath final : public SelfPath {
 public:
  explicit FilePath(FilePort& port);

  Submitted submit(std::span<const Chunk> chunks, Instant now) override;
  void cancel(std::uint64_t transfer) override;
  PathCounters counters() const override;
  std::string describe() const override;
  void let_go() override;

 protected:
  bool reaches(const RegionEntry& region) const override { return region.file != nullptr; }
  void end_chunks(const Status& why) override;

 private:
  FilePort& port_;
};

class FilePort final : public SelfPort {
 public:
  FilePort(const Context& context, std::string address, std::unique_ptr<fileio::Queue> queue, std::uint32_t depth)
      : SelfPort(context, kKind, std::move(address)),
        mover_(std::make_unique<fileio::Mover>(std::move(queue), depth)),
        active_(fileio::kRequestsMax) {}
  ~FilePort() override;

  std::size_t turn(Instant now, const TurnBudget& budget) override;
  int wait_fd() const override { return mover_wait_fd_; }
  bool prepare_sleep() override;
  bool region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) override;
  bool idle() const override { return SelfPort::idle() && active_.empty(); }

  // For its paths.
  const fileio::Mover& mover() const { return *mover_; }
  fileio::Queue& io() { return mover_->queue(); }
  /// Feeds the mover and starts what may be started.
  std::size_t serve(std::uint64_t buffered_max);
  /// Chunks for which `matches(path, chunk)` holds end with `why`.
  template <typename Matches>
  void stop_chunks(Matches&& matches, const Status& why);
  /// Waits until the kernel has nothing of the path any more, within a bound and not when the port closes; then leaves
  /// it what it has, and region_quiet tells of it. Its chunks must have been stopped.
  void let_go(const FilePath& path);

 protected:
  std::unique_ptr<SelfPath> make_path() override { return std::make_unique<FilePath>(*this); }

 private:
  /// A chunk that the mover has.
  struct Active {
    FilePath* path = nullptr;  ///< Null: left to the kernel, its path is gone.
    Chunk chunk;               ///< Of no use without a path.
    RegionId file;
    base::SlotId task;
  };

  void feed();
  void collect();
  void stop_closed();
  bool memory_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) const;

  std::unique_ptr<fileio::Mover> mover_;
  const int mover_wait_fd_ = mover_->queue().wait_fd();
  base::SlotTable<Active> active_;
  std::uint32_t left_ = 0;  ///< Of those, left to the kernel.
};

}  // namespace hawser::backend::file
