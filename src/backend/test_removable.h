#pragma once

// A device that can be taken away and given back, for tests and the simulator: the paths of a backend that needs it end
// then, and no new one opens or stays open. So sessions go on by a lesser backend, and come back.
//
// Thread rule: the port's is its lane's; Removable's fields may be set and read by any thread. Lifetime: Removable is
// shared by those who look at it.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/test_wrapped.h"

namespace hawser::backend {

struct Removable {
  std::atomic<bool> is_away = false;
  std::atomic<bool> is_brittle = false;      ///< Each path ends once the first message has come by it.
  std::atomic<int> opened = 0;               ///< Attempts to open a path.
  bool counts_bytes = false;                 ///< Set before the backend opens: asking each path in each turn costs.
  std::atomic<std::uint64_t> bytes_out = 0;  ///< Where they are counted: of the paths that are there, at the last turn.
};

class RemovablePort final : public WrappedPort {
 public:
  RemovablePort(std::unique_ptr<Port> inner, std::shared_ptr<Removable> device)
      : WrappedPort(std::move(inner)), device_(std::move(device)) {}

  Result<Path*> open_path(const PathTarget& target, Instant now) override {
    ++device_->opened;
    if (device_->is_away) return gone();
    Result<Path*> path = WrappedPort::open_path(target, now);
    if (path) paths_.push_back(*path);
    return path;
  }
  void release_path(Path* path) override {
    std::erase(paths_, path);
    std::erase(broken_, path);
    WrappedPort::release_path(path);
  }
  std::size_t turn(Instant now, const TurnBudget& budget) override {
    if (device_->counts_bytes) count_bytes();
    const std::vector<Path*>& ending = device_->is_away ? paths_ : broken_;
    for (Path* path : ending) {
      if (path->state() != PathState::kDown) path->give_up(gone());
    }
    return WrappedPort::turn(now, budget);
  }
  std::size_t poll(std::span<PortEvent> out) override {
    const std::size_t count = WrappedPort::poll(out);
    for (const PortEvent& event : out.first(count)) {  // Those that a peer opened are heard of here.
      const bool is_new = event.kind == PortEvent::Kind::kPathUp && std::ranges::count(paths_, event.path) == 0;
      if (is_new) paths_.push_back(event.path);
      if (device_->is_brittle && event.kind == PortEvent::Kind::kMessage) broken_.push_back(event.path);
    }
    return count;
  }
  bool prepare_sleep() override {
    // One that came up in this turn must end in the next.
    const bool is_over = std::ranges::all_of(device_->is_away ? paths_ : broken_,
                                             [](const Path* path) { return path->state() == PathState::kDown; });
    return is_over && WrappedPort::prepare_sleep();
  }

 private:
  void count_bytes() {
    std::uint64_t bytes = 0;
    for (const Path* path : paths_) bytes += path->counters().bytes_out;
    device_->bytes_out = bytes;
  }
  static Status gone() { return Status(Code::kDisconnected, "the device went away").with_scope(Scope::kPath); }

  const std::shared_ptr<Removable> device_;
  std::vector<Path*> paths_;
  std::vector<Path*> broken_;  ///< Of these, those that end in the next turn.
};

class RemovableBackend final : public WrappedBackend {
 public:
  RemovableBackend(std::unique_ptr<Backend> inner, std::shared_ptr<Removable> device)
      : WrappedBackend(std::move(inner)), device_(std::move(device)) {}
  Result<std::unique_ptr<Port>> open_port() override {
    auto port = WrappedBackend::open_port();
    if (!port) return port.error();
    return std::unique_ptr<Port>(new RemovablePort(*std::move(port), device_));
  }

 private:
  const std::shared_ptr<Removable> device_;
};

/// The backend that `inner` opens, by this name, as long as the device is there.
/// The name is borrowed for ever.
inline Factory removable_factory(std::string_view name, int rank, const Factory& inner,
                                 std::shared_ptr<Removable> device) {
  return wrapping(name, rank, inner, [device = std::move(device)](std::unique_ptr<Backend> opened) {
    return std::make_unique<RemovableBackend>(std::move(opened), device);
  });
}

}  // namespace hawser::backend
