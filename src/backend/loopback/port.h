#pragma once

// LoopbackPort: paths from an agent to itself. What a path sends comes back on the same path.
//
// A chunk is copied while its region's entry stands in the table; each part of a large one looks again. All of it
// happens under the lane's lock, so a closed region is quiet as soon as its closer can ask.
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

namespace hawser::backend::loopback {

class LoopbackPort;

class LoopbackBinding final : public Binding {
 public:
  explicit LoopbackBinding(std::shared_ptr<const RegionEntry> entry) : region(std::move(entry)) {}
  const std::shared_ptr<const RegionEntry> region;
};

class LoopbackPath final : public Path {
 public:
  explicit LoopbackPath(LoopbackPort& port) : port_(port), session_(base::random_id128()) {}

  PathState state() const override { return is_up_ ? PathState::kUp : PathState::kDown; }
  Result<Binding*> bind(const RemoteRegionRef& region) override;
  void unbind(std::uint32_t index, std::uint32_t generation) override;
  Submitted submit(std::span<const Chunk> chunks, Instant now) override;
  bool send(Priority priority, std::span<const std::byte> head, std::span<const std::byte> body) override;
  void cancel(std::uint64_t transfer) override;
  PathCounters counters() const override;
  std::string describe() const override { return "loopback within this process"; }

  base::Id128 session() const { return session_; }
  /// Works on a job, ends it when it is finished, and returns the bytes copied.
  std::uint64_t work(Job& job, std::uint64_t limit);
  /// Ends all chunks, then tells that it is down.
  void end(const Status& why);
  /// The oldest message, moved into `out`; false when there is none.
  bool take(std::string* out);
  bool has_message() const { return !messages_.empty(); }

 private:
  std::uint32_t copy_at_once(std::span<const Chunk> chunks);
  void end_job(Job& job, const Status& status);
  void count_chunk(const Chunk& chunk);

  static constexpr std::uint32_t kJobsMax = 64;            ///< Chunks taken and not ended.
  static constexpr std::uint64_t kAtOnceMax = 256 * 1024;  ///< Bytes copied by one submit.

  LoopbackPort& port_;
  const base::Id128 session_;
  bool is_up_ = true;
  std::uint32_t job_count_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<LoopbackBinding>> bindings_;  ///< By generation and index.
  SelfMessages messages_;
  PathCounters counts_;
};

class LoopbackPort final : public Port {
 public:
  LoopbackPort(const Context& context, std::string address, std::uint64_t inline_bytes_max)
      : context_(context), address_(std::move(address)), inline_bytes_max_(inline_bytes_max) {}

  Result<Path*> open_path(const PathTarget& target, Instant now) override;
  void release_path(Path* path) override;
  std::size_t turn(Instant now, const TurnBudget& budget) override;
  std::size_t poll(std::span<PortEvent> out) override;
  Instant next_deadline() const override { return Instant::max(); }
  int wait_fd() const override { return -1; }
  bool prepare_sleep() override;
  bool region_quiet(std::uint32_t, std::uint32_t, std::string*) override { return true; }
  void begin_close(Instant now) override;
  bool idle() const override { return is_closing_ && events_.empty(); }

  // For its paths.
  const Context& context() const { return context_; }
  std::uint64_t inline_bytes_max() const { return inline_bytes_max_; }
  ChunkQueue& queue() { return queue_; }
  void push(PortEvent event) { events_.push_back(std::move(event)); }

 private:
  const Context context_;
  const std::string address_;
  const std::uint64_t inline_bytes_max_;
  bool is_closing_ = false;
  ChunkQueue queue_;
  std::deque<PortEvent> events_;
  std::vector<std::unique_ptr<LoopbackPath>> paths_;
  std::vector<std::string> inbox_;  ///< What the last poll gave out.
};

}  // namespace hawser::backend::loopback
