#pragma once

// MappedPort and MappedPath: the backend contract over mapped.h.
//
// Thread rule: the world's. Lifetime: as the contract says; the hub and the host outlive the port.

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/sim/mapped.h"

namespace hawser::sim {

class MappedBinding final : public backend::Binding {
 public:
  explicit MappedBinding(const backend::RemoteRegionRef& region)
      : index(region.index), generation(region.generation), key(region.key) {}
  const std::uint32_t index;
  const std::uint32_t generation;
  const base::Id128 key;
  bool was_asked_for = false;  ///< A first view is refused, as where the peer has yet to say where the region lies.
};

class MappedPath final : public backend::Path {
 public:
  MappedPath(MappedPort& port, std::shared_ptr<MappedLink> link, int end, Instant connect_deadline)
      : port_(port), link_(std::move(link)), end_(end), connect_deadline_(connect_deadline) {}
  ~MappedPath() override { *lives_ = false; }

  backend::PathState state() const override { return state_; }
  Result<backend::Binding*> bind(const backend::RemoteRegionRef& region) override;
  void unbind(std::uint32_t index, std::uint32_t generation) override;
  backend::Submitted submit(std::span<const backend::Chunk> chunks, Instant now) override;
  bool move_at_once(const backend::Chunk& chunk) override;
  Result<std::unique_ptr<backend::View>> view(backend::Binding& region) override;
  bool send(wire::Link link, std::span<const std::byte> head, std::span<const std::byte> body) override;
  bool each_untaken(const backend::SeeMessage& see) const override;
  bool each_whole_untaken(const backend::SeeMessage& see) const override;
  void stop_taking() override;
  bool can_fetch() const override;
  bool fetch(std::uint64_t address, std::span<std::byte> into) override;
  void cancel(std::uint64_t transfer) override;
  void give_up(const Status& why) override;
  PathCounters counters() const override;
  std::string describe() const override;

 private:
  friend class MappedPort;
  struct Work {
    backend::Chunk chunk;
    std::size_t piece = 0;
    std::uint64_t offset = 0;  ///< Within the piece.
  };
  MappedPort* peer() const { return link_->ports[1 - end_]; }
  bool peer_gone() const;
  /// Copies up to `budget` bytes of the first chunk in the queue; ends it when all is done or not allowed.
  std::uint64_t copy_some(std::uint64_t budget);
  /// Good: the piece is pinned and may be copied.
  Status enter(const Work& work, const backend::Piece& piece, std::byte** remote);
  std::uint64_t step(Work& work, std::uint64_t budget, Status* failed);
  void finish(const backend::Chunk& chunk, Status status);
  std::size_t read_ring();
  void go_down(const Status& why);
  void leave();
  void end_views();

  MappedPort& port_;
  const std::shared_ptr<MappedLink> link_;
  const int end_;
  const Instant connect_deadline_;
  backend::PathState state_ = backend::PathState::kConnecting;
  bool inbound_ = false;
  bool takes_ = true;  ///< Messages; see Path::stop_taking.
  std::vector<std::unique_ptr<MappedBinding>> bindings_;
  std::deque<Work> queue_;
  std::byte* remote_base_ = nullptr;  ///< Of the pinned piece.
  /// For its views, which may outlive it: it is up.
  const std::shared_ptr<bool> lives_ = std::make_shared<bool>(true);
  PathCounters counters_;
};

class MappedPort final : public backend::Port {
 public:
  MappedPort(const backend::Context& context, MappedHub& hub, std::shared_ptr<Host> host)
      : identity_(context.identity), regions_(context.regions), rng_(context.rng), hub_(hub), host_(std::move(host)) {}
  ~MappedPort() override;

  Result<backend::Path*> open_path(const backend::PathTarget& target, Instant now) override;
  void release_path(backend::Path* path) override;
  std::size_t turn(Instant now, const backend::TurnBudget& budget) override;
  std::size_t poll(std::span<backend::PortEvent> out) override;
  Instant next_deadline() const override;
  int wait_fd() const override { return -1; }
  bool prepare_sleep() override { return events_.empty() && knocks_.empty(); }
  bool region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) override;
  void begin_close(Instant now) override;
  bool idle() const override;
  void describe(const backend::WaitVisitor& visitor) const override;

  void knock(MappedKnock knock);
  const std::shared_ptr<Host>& host() const { return host_; }
  backend::RegionTable& regions() { return regions_; }
  bool listening() const { return listening_; }

 private:
  friend class MappedPath;
  struct Event {
    backend::PortEvent event;
    std::vector<std::byte> bytes;
    std::shared_ptr<MappedLink> link;  ///< The sender of a message learns here that it was taken.
    int from = 0;                      ///< The end that sent it.
  };
  void push(backend::PortEvent event) { events_.push_back({std::move(event), {}, nullptr}); }
  /// The agent is done with what the last poll gave it.
  void forget_handed_out();
  void answer(const MappedKnock& knock);
  void refuse(const MappedKnock& knock, const Status& why);
  void come_up(MappedPath& path);
  std::size_t watch(MappedPath& path, Instant now);

  const backend::Identity& identity_;
  backend::RegionTable& regions_;
  base::Rng rng_;
  MappedHub& hub_;
  const std::shared_ptr<Host> host_;
  bool listening_ = true;
  bool holds(const MappedLink& link, int holder_end, std::uint32_t index, std::uint32_t generation,
             std::string* holder) const;

  std::vector<std::unique_ptr<MappedPath>> paths_;
  /// Links that we left while the peer was inside of our memory: a path may go, a pin stays.
  std::vector<std::pair<std::shared_ptr<MappedLink>, int>> left_;
  std::vector<MappedKnock> knocks_;
  std::deque<Event> events_;
  std::vector<Event> handed_out_;  ///< Their bytes live until the next call.
};

}  // namespace hawser::sim
