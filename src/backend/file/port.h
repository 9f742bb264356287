#pragma once

// FilePort: paths from an agent to its own files. Chunks wait in a ChunkQueue, a few hundred at a time are moved by a
// fileio::Mover; messages come back on the path that sent them, so the backend can be an agent's only one.
//
// A chunk of a region that was closed starts nothing more and ends once nothing of it is in flight.
//
// Thread rule: confined to its lane. Lifetime: the context's references outlive it.

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend/backend.h"
#include "backend/chunk_queue.h"
#include "backend/self_messages.h"
#include "fileio/mover.h"

namespace hawser::backend::file {

class FilePort;

class FileBinding final : public Binding {
 public:
  explicit FileBinding(std::shared_ptr<const RegionEntry> entry) : region(std::move(entry)) {}
  const std::shared_ptr<const RegionEntry> region;
};

class FilePath final : public Path {
 public:
  explicit FilePath(FilePort& port) : port_(port), session_(base::random_id128()) {}

  PathState state() const override { return is_up_ ? PathState::kUp : PathState::kDown; }
  Result<Binding*> bind(const RemoteRegionRef& region) override;
  void unbind(std::uint32_t index, std::uint32_t generation) override;
  Submitted submit(std::span<const Chunk> chunks, Instant now) override;
  bool send(Priority priority, std::span<const std::byte> head, std::span<const std::byte> body) override;
  void cancel(std::uint64_t transfer) override;
  PathCounters counters() const override;
  std::string describe() const override;

  const base::Id128& session() const { return session_; }
  bool take(std::string* out);
  bool has_message() const { return !messages_.empty(); }
  /// No further chunks; those that are here end with `why`.
  void end(const Status& why);
  /// Its last chunk ended: it is to be told once that it is down.
  bool take_down(Status* why);
  void count_ended(const Chunk& chunk, const Status& status);

 private:
  static constexpr std::uint32_t kChunksMax = 256;  ///< Taken and not ended.

  FilePort& port_;
  const base::Id128 session_;
  bool is_up_ = true, down_told_ = false;
  Status down_status_;
  std::uint32_t chunk_count_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<FileBinding>> bindings_;  ///< By generation and index.
  SelfMessages messages_;
  PathCounters counts_;
};

class FilePort final : public Port {
 public:
  FilePort(const Context& context, std::string address, std::unique_ptr<fileio::Queue> queue, std::uint32_t depth)
      : context_(context),
        address_(std::move(address)),
        mover_(std::move(queue), depth),
        active_(fileio::kRequestsMax) {}

  Result<Path*> open_path(const PathTarget& target, Instant now) override;
  void release_path(Path* path) override;
  std::size_t turn(Instant now, const TurnBudget& budget) override;
  std::size_t poll(std::span<PortEvent> out) override;
  Instant next_deadline() const override { return Instant::max(); }
  int wait_fd() const override { return mover_wait_fd_; }
  bool prepare_sleep() override;
  bool region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) override;
  void begin_close(Instant now) override;
  bool idle() const override { return is_closing_ && events_.empty() && active_.empty(); }

  // For its paths.
  const Context& context() const { return context_; }
  ChunkQueue& queue() { return queue_; }
  const fileio::Mover& mover() const { return mover_; }
  fileio::Queue& io() { return mover_.queue(); }
  /// Feeds the mover and starts what may be started.
  std::size_t serve(std::uint64_t buffered_max);
  /// Chunks for which `matches(path, chunk)` holds end with `why`.
  template <typename Matches>
  std::uint32_t stop_chunks(Matches&& matches, const Status& why);

 private:
  /// A chunk that the mover has.
  struct Active {
    FilePath* path = nullptr;
    Chunk chunk;
    base::SlotId task;
  };

  void feed();
  void collect();
  void stop_closed();
  void end_chunk(FilePath& path, const Chunk& chunk, const Status& status);
  void tell_down();

  const Context context_;
  const std::string address_;
  fileio::Mover mover_;
  const int mover_wait_fd_ = mover_.queue().wait_fd();
  base::SlotTable<Active> active_;
  ChunkQueue queue_;
  bool is_closing_ = false;
  std::deque<PortEvent> events_;
  std::vector<std::unique_ptr<FilePath>> paths_;
  std::vector<std::string> inbox_;  ///< What the last poll gave out.
};

}  // namespace hawser::backend::file
