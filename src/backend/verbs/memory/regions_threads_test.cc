// A large region is registered with several devices at a time, and deregistered by a thread of its own. In wall time.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backend/verbs/memory/regions.h"
#include "backend/verbs/memory/registration_fake.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::size_t kLarge = 64 * 1024;
constexpr auto kPatience = std::chrono::seconds(20);

/// Registers from any thread, and waits in there until `meet` threads are, if they come at all.
class ThreadedFake final : public MemoryFake {
 public:
  ThreadedFake() : MemoryFake({"mock0", "mock1", "mock2"}) {}
  int meet = 1;
  int most = 0;  ///< Threads that were in there at a time.
  std::vector<std::thread::id> registered_by, ended_by;

  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t size, int access) override {
    enter();
    const std::lock_guard lock(mutex_);
    --inside_;
    registered_by.push_back(std::this_thread::get_id());
    return MemoryFake::reg_mr(pd, address, size, access);
  }
  std::function<void()> before_end;  ///< Of a registration, by its thread.
  int dereg_mr(ibv_mr* mr) override {
    if (before_end) before_end();
    const std::lock_guard lock(mutex_);
    ended_by.push_back(std::this_thread::get_id());
    return MemoryFake::dereg_mr(mr);
  }

 private:
  void enter() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    {
      const std::lock_guard lock(mutex_);
      most = std::max(most, ++inside_);
    }
    for (bool met = false; !met && std::chrono::steady_clock::now() < end;) {
      std::this_thread::yield();
      const std::lock_guard lock(mutex_);
      met = most >= meet;
    }
  }
  std::mutex mutex_;
  int inside_ = 0;
};

class RegionsThreads : public testing::Test {
 protected:
  RegionsThreads() : fake_(std::make_shared<ThreadedFake>()), memory_(kLarge) {
    for (const char* name : {"mock0", "mock1", "mock2"}) {
      nics_.push_back(std::make_shared<Nic>(std::make_shared<NicDevice>(Domain::open(fake_, name).value())));
    }
  }
  ~RegionsThreads() override {
    nics_.clear();
    EXPECT_EQ(fake_->alive(), 0);
    EXPECT_EQ(fake_->violations, 0);
  }
  RegionEntry entry(std::size_t size) {
    RegionEntry made;
    made.index = 3;
    made.generation = 1;
    made.base = memory_.data();
    made.size = size;
    made.rights = Rights::kReadWrite;
    return made;
  }
  RegionsOptions threads(unsigned count) const { return {.threads = count, .large_bytes = kLarge}; }

  std::shared_ptr<ThreadedFake> fake_;
  std::vector<std::byte> memory_;
  std::vector<std::shared_ptr<Nic>> nics_;
};

TEST_F(RegionsThreads, ALargeRegionIsRegisteredWithAllDevicesAtATime) {
  Regions regions(nics_, threads(8));
  fake_->meet = 3;
  ASSERT_TRUE(regions.add(entry(kLarge)).has_value());
  EXPECT_EQ(fake_->most, 3);
  EXPECT_EQ(fake_->memories, 3);
  regions.remove(3, 1);
  EXPECT_EQ(fake_->memories, 0);
}

TEST_F(RegionsThreads, ASmallOneAndOneThreadNeedNoOthers) {
  for (const auto& [count, size] : {std::pair{8u, kLarge - 1}, std::pair{1u, kLarge}}) {
    Regions regions(nics_, threads(count));
    ASSERT_TRUE(regions.add(entry(size)).has_value());
    EXPECT_TRUE(regions.retire(3, 1));
  }
  EXPECT_EQ(fake_->most, 1);
  for (const auto* ids : {&fake_->registered_by, &fake_->ended_by}) {
    EXPECT_EQ(ids->size(), 6u);
    for (const std::thread::id& id : *ids) EXPECT_EQ(id, std::this_thread::get_id());
  }
}

TEST_F(RegionsThreads, WhatFailsOnOneDeviceIsFreedOnAll) {
  for (const char* name : {"mock0", "mock1", "mock2"}) {
    fake_->fail_device = name;
    fake_->fail_errno = ENOMEM;
    fake_->most = 0;
    fake_->meet = 3;
    Regions regions(nics_, threads(8));
    const Result<std::string> failed = regions.add(entry(kLarge));
    ASSERT_FALSE(failed.has_value()) << name;
    EXPECT_EQ(failed.error().code(), Code::kBusy);
    EXPECT_EQ(failed.error().device(), name);
    EXPECT_EQ(fake_->memories, 0) << name;
    EXPECT_EQ(regions.count(), 0u);
  }
  fake_->fail_device.clear();
  Regions regions(nics_, threads(8));
  EXPECT_TRUE(regions.add(entry(kLarge)).has_value()) << "a failure is not for good";
}

TEST_F(RegionsThreads, ALargeRegionIsDeregisteredByAThreadOfItsOwn) {
  Regions regions(nics_, threads(2));
  ASSERT_TRUE(regions.add(entry(kLarge)).has_value());
  EXPECT_FALSE(regions.retire(3, 1)) << "who asks has a lane to look after";
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!regions.retire(3, 1)) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::yield();
  }
  EXPECT_EQ(fake_->memories, 0);
  EXPECT_TRUE(regions.retire(3, 1)) << "and again";
  for (const std::thread::id& id : fake_->ended_by) EXPECT_NE(id, std::this_thread::get_id());
  ASSERT_TRUE(regions.add(entry(kLarge)).has_value());
  EXPECT_FALSE(regions.retire(3, 1));
  regions.remove(3, 1);
  EXPECT_EQ(fake_->memories, 0) << "this one waits";
  ASSERT_TRUE(regions.add(entry(kLarge)).has_value());
  EXPECT_FALSE(regions.retire(3, 1)) << "the end of all regions waits, too";
}

TEST_F(RegionsThreads, ARegionThatAnotherThreadDeregistersIsNotGoneYet) {
  Regions regions(nics_, threads(1));
  ASSERT_TRUE(regions.add(entry(kLarge)).has_value());
  std::atomic<bool> is_inside = false, may_end = false;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  fake_->before_end = [&] {
    is_inside = true;
    while (!may_end && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  };
  bool is_gone = false;
  std::thread other([&] { is_gone = regions.retire(3, 1); });
  while (!is_inside && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_FALSE(regions.retire(3, 1));
  EXPECT_EQ(fake_->memories, 3);
  EXPECT_TRUE(regions.retire(4, 1)) << "another region is nothing to it";
  may_end = true;
  other.join();
  EXPECT_TRUE(is_gone);
  EXPECT_TRUE(regions.retire(3, 1));
  EXPECT_EQ(fake_->memories, 0);
}

}  // namespace
}  // namespace hawser::backend::verbs
