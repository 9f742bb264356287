#pragma once

// SelfBackend, SelfPort, SelfPath: what backends share whose paths lead from an agent to itself (loopback, file).
// Chunks wait in a ChunkQueue; what a path sends comes back on the same path. Such a backend adds how bytes are moved.
//
// Thread rule: port and paths are confined to their lane, the backend is thread-safe. Memory: a path holds kMessagesMax
// messages of kMessageBytesMax bytes together, at most. Lifetime: the context's references outlive all.

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/chunk_queue.h"
#include "backend/params.h"

namespace hawser::backend {

/// In words for errors: "`name` reaches `agent` only", "`name` reaches `regions` only".
struct SelfKind {
  std::string_view name, agent, regions;
};

class SelfPort;

class SelfBinding final : public Binding {
 public:
  explicit SelfBinding(std::shared_ptr<const RegionEntry> entry) : region(std::move(entry)) {}
  const std::shared_ptr<const RegionEntry> region;
};

inline const RegionEntry& region_of(const Chunk& chunk) {
  return *static_cast<const SelfBinding*>(chunk.target)->region;
}

class SelfPath : public Path {
 public:
  PathState state() const final { return is_up_ ? PathState::kUp : PathState::kDown; }
  Result<Binding*> bind(const RemoteRegionRef& region) final;
  void unbind(std::uint32_t index, std::uint32_t generation) final;
  bool send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) final;
  bool each_untaken(const SeeMessage& see) const final;
  bool each_whole_untaken(const SeeMessage& see) const final { return each_untaken(see); }
  PathCounters counters() const override;

  /// No further chunks; those that are here end with `why`. Then its port tells that it is down.
  void end(const Status& why);
  /// A chunk of those that `enqueue` took ended.
  void chunk_ended(const Chunk& chunk, const Status& status);
  /// The oldest message, moved into `out`; false when there is none.
  bool take(std::string* out);
  bool has_message() const { return !messages_.empty(); }
  /// After `end`: returns once nothing touches the memory of its chunks. In a port that closes, or after a bound, what
  /// is left touches it until `region_quiet` and `idle` say otherwise.
  virtual void let_go() {}

 protected:
  SelfPath(SelfPort& port, std::uint32_t chunks_max) : port_(port), chunks_max_(chunks_max) {}

  virtual bool reaches(const RegionEntry& region) const = 0;
  /// All its chunks end, now or as soon as nothing touches their memory.
  virtual void end_chunks(const Status& why) = 0;

  bool is_up() const { return is_up_; }
  bool has_chunks() const { return chunk_count_ > 0; }
  /// Puts chunks into the port's queue while there is room, and returns how many.
  std::uint32_t enqueue(std::span<const Chunk> chunks);
  void count_chunk(const Chunk& chunk) {
    ++counts_.chunks;
    (chunk.op == Operation::kWrite ? counts_.bytes_out : counts_.bytes_in) += chunk.bytes;
  }

 private:
  friend class SelfPort;
  static constexpr std::size_t kMessagesMax = 1024;
  static constexpr std::size_t kMessageBytesMax = 1u << 20;

  void tell_down();

  SelfPort& port_;
  const std::uint32_t chunks_max_;  ///< Taken and not ended.
  const base::Id128 session_ = base::random_id128();
  bool is_up_ = true, is_told_ = false;
  Status why_down_;
  std::uint32_t chunk_count_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<SelfBinding>> bindings_;  ///< By generation and index.
  std::deque<std::string> messages_;
  std::size_t message_bytes_ = 0;
  PathCounters counts_;
};

class SelfPort : public Port {
 public:
  Result<Path*> open_path(const PathTarget& target, Instant now) final;
  void release_path(Path* path) final;
  std::size_t poll(std::span<PortEvent> out) final;
  Instant next_deadline() const final { return Instant::max(); }
  void begin_close(Instant now) final;
  bool idle() const override { return is_closing_ && events_.empty(); }
  void describe(const WaitVisitor& visitor) const final;

  const Context& context() const { return context_; }
  const SelfKind& kind() const { return kind_; }
  ChunkQueue& queue() { return queue_; }
  void push(PortEvent::Kind kind, SelfPath& path, Status status, std::uint64_t cookie = 0);

 protected:
  SelfPort(const Context& context, const SelfKind& kind, std::string address)
      : context_(context), kind_(kind), address_(std::move(address)) {}
  virtual std::unique_ptr<SelfPath> make_path() = 0;
  bool is_closing() const { return is_closing_; }
  /// How much there is to poll.
  std::size_t news() const;

 private:
  friend class SelfPath;
  const Context context_;
  const SelfKind& kind_;
  const std::string address_;
  bool is_closing_ = false;
  ChunkQueue queue_;
  std::deque<PortEvent> events_;
  std::vector<std::unique_ptr<SelfPath>> paths_;
  std::vector<std::string> inbox_;            ///< What the last poll gave out.
  std::vector<const SelfPath*> inbox_paths_;  ///< For each of them, the path that brought it.
};

class SelfBackend : public Backend {
 public:
  const Traits& traits() const final { return traits_; }
  std::string address() const final;
  Status reachable(std::string_view peer_address) const final;
  Result<std::string> add_region(const RegionEntry&) final { return std::string(); }
  void remove_region(const RegionEntry&) final {}
  Params take_params() final { return std::exchange(params_, {}); }
  std::vector<std::string> warnings() const final { return warnings_; }

 protected:
  /// `kind` outlives it.
  SelfBackend(const Context& context, const SelfKind& kind, const ParamReader& read, std::vector<std::string> warnings);

  const Context context_;
  Traits traits_;  ///< The derived class completes it.

 private:
  const SelfKind& kind_;
  Params params_;
  const std::vector<std::string> warnings_;
};

}  // namespace hawser::backend
