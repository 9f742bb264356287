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
#include "backend/test_removable.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

using backend::Removable;

Agent open(const std::string& name, const std::shared_ptr<Removable>& device) {
  device->counts_bytes = true;
  AgentOptions options;
  options.name = name;
  options.backends = {{"device", {}}, {"tcp", {}}};
  const backend::Factory tcp = backend::tcp_factory();
  return std::move(open_with(std::move(options), {backend::removable_factory("device", 50, tcp, device), tcp}).value());
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
    const std::uint64_t before = device_->bytes_out;
    std::fill(target_.begin(), target_.end(), std::byte{0});
    Transfer sent = plan_.submit().value();
    const Status status = sent.wait(20s);
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_EQ(target_, source_);
    static_cast<void>(here_.poll());
    return device_->bytes_out >= before + source_.size();
  }

  bool eventually_by_device(bool wanted) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < end) {
      if (goes_by_device() == wanted) return true;
      static_cast<void>(here_.poll());
    }
    return false;
  }

  /// Attempts to open a path by the device while nothing else is done.
  int tries_within(Duration time) {
    const int before = device_->opened;
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      static_cast<void>(here_.poll());
      std::this_thread::yield();
    }
    return device_->opened - before;
  }

  const std::shared_ptr<Removable> device_ = std::make_shared<Removable>();
  const std::shared_ptr<Removable> other_end_ = std::make_shared<Removable>();
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
  device_->is_away = true;
  ASSERT_TRUE(eventually_by_device(false)) << "the device is away";
  device_->is_away = false;
  EXPECT_TRUE(eventually_by_device(true)) << "the plan stayed on the socket";
}

TEST_F(BetterPath, IsTriedInPausesThatGrow) {
  ASSERT_TRUE(goes_by_device());
  device_->is_away = true;
  ASSERT_TRUE(eventually_by_device(false));
  const int tries = tries_within(4s);
  EXPECT_GE(tries, 1);
  EXPECT_LE(tries, 5) << "pauses of 1, 2, 4 s, less up to a half";
}

TEST_F(BetterPath, OneThatBreaksOnceAgreedUponIsNoneToBeginWith) {
  device_->is_brittle = true;
  EXPECT_FALSE(goes_by_device()) << "the lesser one has its turn";
}

TEST_F(BetterPath, OneThatBreaksOnceAgreedUponIsTriedInPausesThatGrow) {
  ASSERT_TRUE(goes_by_device());
  device_->is_brittle = true;
  device_->is_away = true;
  ASSERT_TRUE(eventually_by_device(false));
  device_->is_away = false;
  const int tries = tries_within(6s);
  EXPECT_GE(tries, 1);
  EXPECT_LE(tries, 3) << "pauses of 1, 2, 4, 8 s, less up to a half";
  device_->is_brittle = false;
  ASSERT_TRUE(peer_.reconnect().ok());
  EXPECT_TRUE(eventually_by_device(true));
}

TEST_F(BetterPath, ReconnectTriesItAtOnce) {
  ASSERT_TRUE(goes_by_device());
  EXPECT_TRUE(peer_.reconnect().ok());
  EXPECT_EQ(device_->opened, 1) << "it is in use: there is nothing better to try";
  device_->is_away = true;
  ASSERT_TRUE(eventually_by_device(false));
  // Each call is a try, while the pauses between the agent's own are seconds.
  const int before = device_->opened;
  constexpr int kCalls = 20;
  for (int i = 0; i < kCalls; ++i) ASSERT_TRUE(peer_.reconnect().ok());
  EXPECT_GE(device_->opened - before, kCalls);
  EXPECT_EQ(peer_.state(), PeerState::kUp);
  EXPECT_FALSE(goes_by_device());
  device_->is_away = false;
  ASSERT_TRUE(peer_.reconnect().ok());
  const auto asked = std::chrono::steady_clock::now();
  EXPECT_TRUE(eventually_by_device(true));
  EXPECT_LT(std::chrono::steady_clock::now() - asked, 10s);
}

}  // namespace
}  // namespace hawser::agent
