#pragma once

// ShmPort: all paths of one agent over shared memory, its listening socket, and who may still be in its regions.
//
// Few paths are hot: their rings are looked at in every turn. The others have a doorbell, so a thousand idle paths cost
// nothing. The kernel is asked for doorbells, sockets and dead peers every kLookInterval only.
//
// Thread rule: confined to its lane. Lifetime: the backend outlives it.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/chunk_queue.h"
#include "backend/shm/mover.h"
#include "backend/shm/options.h"
#include "backend/shm/path.h"
#include "backend/shm/served_regions.h"
#include "backend/shm/shared.h"
#include "backend/shm/visitors.h"
#include "backend/shm/watches.h"
#include "base/events.h"

namespace hawser::backend::shm {

class ShmPort final : public Port {
 public:
  static Result<std::unique_ptr<Port>> make(const Shared& shared);
  ~ShmPort() override;

  Result<Path*> open_path(const PathTarget& target, Instant now) override;
  void release_path(Path* path) override;
  std::size_t turn(Instant now, const TurnBudget& budget) override;
  std::size_t poll(std::span<PortEvent> out) override;
  bool has_news(Instant) override {
    return has_message() || events_taken_ != events_.size() || !queue_.empty() || !senders_.empty() ||
           !unmaps_.empty() || !draining_.empty();
  }
  Instant next_deadline() const override;
  int wait_fd() const override { return watches_.fd(); }
  bool prepare_sleep() override;
  void regions_closing(std::span<const RegionId> ids) override;
  bool region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) override;
  void begin_close(Instant now) override;
  void describe(const WaitVisitor& visitor) const override;
  bool idle() const override;
  std::optional<AdmissionCounters> admissions() const override { return visitors_.counters(); }

  // For its paths.
  const Shared& shared() const { return shared_; }
  const Options& options() const { return shared_.options; }
  ChunkQueue& queue() { return queue_; }
  ServedRegions& served() { return served_; }
  void push(PortEvent event) { events_.push_back(std::move(event)); }
  const Watches& watches() const { return watches_; }
  void make_hot(ShmPath& path);
  void note_blocked(ShmPath& path);
  void note_outbox(ShmPath& path) { senders_.push_back(&path); }
  void note_draining(ShmPath& path) { draining_.push_back(&path); }
  void unmap_later(Mapping mapping);
  /// Ends another path of this session: its opener has replaced it.
  void supersede(const base::Id128& session, const base::Id128& incarnation);
  CrossMover& cross_mover();
  bool is_closing() const { return is_closing_; }
  /// Of the turn; while the agent rests, of its last one.
  Instant now() const { return now_; }
  /// A path has a heartbeat to look after then.
  void heartbeat_at(Instant at) { heartbeat_at_ = std::min(heartbeat_at_, at); }
  /// Whether a path that is polled has something to read.
  bool has_message() const {
    return std::any_of(hot_.begin(), hot_.end(), [](const ShmPath* path) { return path->has_message(); });
  }
  /// Whether some came or went a little ago, so that more are likely: then copies look for them more often.
  bool expects_messages() const { return now_ < messages_until_; }
  void note_message() { messages_until_ = now_ + kMessagesLast; }
  /// Bytes that submits may still copy at once in this turn although jobs wait.
  std::uint64_t& beside_jobs_left() { return beside_jobs_left_; }

 private:
  ShmPort(const Shared& shared, base::Epoll epoll);

  std::size_t look(Instant now);
  void on_event(const Watch& watch, std::uint32_t events);
  std::size_t copy(const TurnBudget& budget);
  std::size_t flush();
  std::size_t unblock();
  std::size_t unmap_some();
  void check_deadlines(Instant now);
  void bury_ghosts();
  void watch_peers(Instant now);
  /// Whether somebody may be entering that region just now.
  bool is_enterable(const RegionId& id) const;
  void cool_one();
  void forget(ShmPath& path);
  std::size_t take_events(std::span<PortEvent> out);
  std::size_t drain(std::span<PortEvent> out, std::size_t paths, Inbox& inbox);

  /// Makes a path of a visitor.
  Status admit(ForkFd& socket, Packet& packet, const Open& open);

  static constexpr Duration kLookInterval = std::chrono::microseconds(100);
  static constexpr Duration kMessagesLast = std::chrono::milliseconds(1);
  static constexpr unsigned kTurnsPerLook = 256;                  ///< At most, when `now` stands still.
  static constexpr std::uint64_t kBesideJobsPerTurn = 64 * 1024;  ///< Bytes.
  static constexpr std::size_t kInboxBytes = 128 * 1024;
  static constexpr std::size_t kUnmapStep = 8u << 20;  ///< Bytes unmapped in one turn: about half a millisecond.

  const Shared shared_;
  Watches watches_;
  Visitors visitors_;
  Instant now_;
  ServedRegions served_;
  Instant looked_at_ = Instant::min();
  Instant messages_until_ = Instant::min();
  unsigned turns_ = 0;
  std::uint64_t beside_jobs_left_ = kBesideJobsPerTurn;
  bool has_slept_ = false;
  bool is_closing_ = false;
  Instant heartbeat_at_ = Instant::max();  ///< The earliest of all paths.

  std::vector<ShmPath*> hot_;
  std::size_t hand_ = 0;       ///< Where cooling looks next.
  std::size_t poll_next_ = 0;  ///< Which hot path is polled first.
  ChunkQueue queue_;
  std::vector<PortEvent> events_;
  std::size_t events_taken_ = 0;
  std::unique_ptr<std::byte[]> inbox_;

  std::vector<std::unique_ptr<ShmPath>> paths_;
  std::vector<std::unique_ptr<ShmPath>> ghosts_;
  std::vector<ShmPath*> senders_;  ///< With parts of a message left.
  std::vector<ShmPath*> blocked_;  ///< With a refused send.
  std::vector<ShmPath*> draining_;
  std::vector<ShmPath*> connecting_;
  std::vector<Mapping> unmaps_;
  std::unique_ptr<CrossMover> cross_mover_;
};

}  // namespace hawser::backend::shm
