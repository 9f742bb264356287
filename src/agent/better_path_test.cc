// A peer whose better path is lost goes on by another backend, and comes back to the better one once it is there again.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/open.h"
#include "backend/tcp/factory.h"
#include "backend/test_wrapped.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

/// A device that can be taken away and given back.
struct Removable {
  std::atomic<bool> is_away = false;
  std::atomic<int> opened = 0;  ///< Attempts to open a path.
  std::atomic<std::uint64_t> bytes_out = 0;
};

/// The port of another backend, as long as the device is there.
class DevicePort final : public backend::WrappedPort {
 public:
  DevicePort(std::unique_ptr<backend::Port> inner, Removable& device)
      : WrappedPort(std::move(inner)), device_(device) {}

  Result<backend::Path*> open_path(const backend::PathTarget& target, Instant now) override {
    ++device_.opened;
    if (device_.is_away) return Status(Code::kDisconnected, "the device is away").with_scope(Scope::kPath);
    Result<backend::Path*> path = WrappedPort::open_path(target, now);
    if (path) paths_.push_back(*path);
    return path;
  }
  void release_path(backend::Path* path) override {
    std::erase(paths_, path);
    WrappedPort::release_path(path);
  }
  std::size_t turn(Instant now, const backend::TurnBudget& budget) override {
    std::uint64_t bytes = 0;
    for (backend::Path* path : paths_) {
      bytes += path->counters().bytes_out;
      if (!device_.is_away || path->state() == backend::PathState::kDown) continue;
      path->give_up(Status(Code::kDisconnected, "the device went away").with_scope(Scope::kPath));
    }
    device_.bytes_out = bytes;
    return WrappedPort::turn(now, budget);
  }

 private:
  Removable& device_;
  std::vector<backend::Path*> paths_;  ///< Opened here.
};

class DeviceBackend final : public backend::WrappedBackend {
 public:
  DeviceBackend(std::unique_ptr<backend::Backend> inner, Removable& device)
      : WrappedBackend(std::move(inner)), device_(device) {}
  Result<std::unique_ptr<backend::Port>> open_port() override {
    auto port = WrappedBackend::open_port();
    if (!port) return port.error();
    return std::unique_ptr<backend::Port>(new DevicePort(*std::move(port), device_));
  }

 private:
  Removable& device_;
};

backend::Factory device_factory(Removable& device) {
  return backend::wrapping("device", 50, backend::tcp_factory(), [&device](std::unique_ptr<backend::Backend> inner) {
    return std::make_unique<DeviceBackend>(std::move(inner), device);
  });
}

Agent open(const std::string& name, Removable& device) {
  AgentOptions options;
  options.name = name;
  options.backends = {{"device", {}}, {"tcp", {}}};
  return std::move(open_with(std::move(options), {device_factory(device), backend::tcp_factory()}).value());
}

class BetterPath : public testing::Test {
 protected:
  BetterPath() {
    std::fill(source_.begin(), source_.end(), std::byte{5});
    from_ = here_.add_region({.name = "source", .bytes = source_}).value();
    to_ = there_.add_region({.name = "target", .bytes = target_}).value();
    EXPECT_TRUE(driver_.attach(there_).ok());
    peer_ = here_.add_peer(there_.card().value()).value();
    const LocalRange from = from_.range(0, source_.size());
    const RemoteRange to = peer_.range("target", 0, target_.size());
    plan_ = here_.plan_write(peer_, {&from, 1}, {&to, 1}).value();
  }

  /// Whether the one plan's bytes went over the device. The rest of what a path does is too little to be taken for it.
  bool goes_by_device() {
    static_cast<void>(here_.poll());
    const std::uint64_t before = device_.bytes_out;
    std::fill(target_.begin(), target_.end(), std::byte{0});
    Transfer sent = plan_.submit().value();
    const Status status = sent.wait(20s);
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(target_, source_);
    static_cast<void>(here_.poll());
    return device_.bytes_out >= before + source_.size();
  }

  bool eventually_by_device(bool wanted) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < end) {
      if (goes_by_device() == wanted) return true;
      static_cast<void>(here_.poll());
    }
    return false;
  }

  Removable device_, other_end_;
  std::vector<std::byte> source_ = std::vector<std::byte>(1 << 16), target_ = std::vector<std::byte>(1 << 16);
  Driver driver_ = Driver::start().value();
  Agent there_ = open("there", other_end_);
  Agent here_ = open("here", device_);
  Region from_, to_;
  Peer peer_;
  Plan plan_;
};

TEST_F(BetterPath, IsTakenAgainOnceItIsBack) {
  ASSERT_TRUE(goes_by_device());
  device_.is_away = true;
  ASSERT_TRUE(eventually_by_device(false)) << "the device is away";
  device_.is_away = false;
  EXPECT_TRUE(eventually_by_device(true)) << "the plan stayed on the socket";
}

TEST_F(BetterPath, IsTriedInPausesThatGrow) {
  ASSERT_TRUE(goes_by_device());
  device_.is_away = true;
  ASSERT_TRUE(eventually_by_device(false));
  const int before = device_.opened;
  const auto end = std::chrono::steady_clock::now() + 4s;
  while (std::chrono::steady_clock::now() < end) {
    static_cast<void>(here_.poll());
    std::this_thread::yield();
  }
  EXPECT_GE(device_.opened - before, 1);
  EXPECT_LE(device_.opened - before, 5) << "pauses of 1, 2, 4 s, less up to a half";
}

TEST_F(BetterPath, ReconnectTriesItAtOnce) {
  ASSERT_TRUE(goes_by_device());
  EXPECT_TRUE(peer_.reconnect().ok());
  EXPECT_EQ(device_.opened, 1) << "it is in use: there is nothing better to try";
  device_.is_away = true;
  ASSERT_TRUE(eventually_by_device(false));
  // Each call is a try, while the pauses between the agent's own are seconds.
  const int before = device_.opened;
  constexpr int kCalls = 20;
  for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(peer_.reconnect().ok());
  EXPECT_GE(device_.opened - before, kCalls);
  EXPECT_EQ(peer_.state(), PeerState::kUp);
  EXPECT_FALSE(goes_by_device());
  device_.is_away = false;
  ASSERT_TRUE(peer_.reconnect().ok());
  const auto asked = std::chrono::steady_clock::now();
  EXPECT_TRUE(eventually_by_device(true));
  EXPECT_LT(std::chrono::steady_clock::now() - asked, 10s);
}

}  // namespace
}  // namespace hawser::agent
