#include "sim/device.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "backend/test_wrapped.h"

namespace hawser::simulation {
namespace {

Status gone() { return Status(Code::kDisconnected, "the device went away").with_scope(Scope::kPath); }

class DevicePort final : public backend::WrappedPort {
 public:
  DevicePort(std::unique_ptr<backend::Port> inner, std::shared_ptr<Device> device)
      : WrappedPort(std::move(inner)), device_(std::move(device)) {}

  Result<backend::Path*> open_path(const backend::PathTarget& target, Instant now) override {
    if (device_->is_away) return gone();
    Result<backend::Path*> path = WrappedPort::open_path(target, now);
    if (path) paths_.push_back(*path);
    return path;
  }
  void release_path(backend::Path* path) override {
    std::erase(paths_, path);
    WrappedPort::release_path(path);
  }
  std::size_t turn(Instant now, const backend::TurnBudget& budget) override {
    if (device_->is_away) {
      for (backend::Path* path : paths_) {
        if (path->state() != backend::PathState::kDown) path->give_up(gone());
      }
    }
    return WrappedPort::turn(now, budget);
  }
  std::size_t poll(std::span<backend::PortEvent> out) override {
    const std::size_t count = WrappedPort::poll(out);
    for (const backend::PortEvent& event : out.first(count)) {  // Those that a peer opened are heard of here.
      const bool is_new = event.kind == backend::PortEvent::Kind::kPathUp &&
                          std::find(paths_.begin(), paths_.end(), event.path) == paths_.end();
      if (is_new) paths_.push_back(event.path);
    }
    return count;
  }
  bool prepare_sleep() override {
    // One that came up in this turn must end in the next.
    const bool is_over = std::all_of(paths_.begin(), paths_.end(), [this](const backend::Path* path) {
      return !device_->is_away || path->state() == backend::PathState::kDown;
    });
    return is_over && WrappedPort::prepare_sleep();
  }

 private:
  const std::shared_ptr<Device> device_;
  std::vector<backend::Path*> paths_;
};

class DeviceBackend final : public backend::WrappedBackend {
 public:
  DeviceBackend(std::unique_ptr<backend::Backend> inner, std::shared_ptr<Device> device)
      : WrappedBackend(std::move(inner)), device_(std::move(device)) {}
  Result<std::unique_ptr<backend::Port>> open_port() override {
    auto port = WrappedBackend::open_port();
    if (!port) return port.error();
    return std::unique_ptr<backend::Port>(new DevicePort(*std::move(port), device_));
  }

 private:
  const std::shared_ptr<Device> device_;
};

}  // namespace

backend::Factory device_factory(const backend::Factory& inner, std::shared_ptr<Device> device) {
  return backend::wrapping(inner.name, inner.default_rank, inner, [device](std::unique_ptr<backend::Backend> opened) {
    return std::make_unique<DeviceBackend>(std::move(opened), device);
  });
}

}  // namespace hawser::simulation
