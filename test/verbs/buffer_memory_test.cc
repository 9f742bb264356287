// When remote buffers let memory go that a device is slow to forget, or that something else still uses. Whole agents
// over a fabric in memory.

#include <sys/mman.h>

#include <atomic>
#include <thread>

#include <gmock/gmock.h>

#include <hawser/rdma.h>

#include "mock_agents.h"

namespace hawser::mock_agents {
namespace {

using namespace std::chrono_literals;
using rdma::LocalMemory;
using rdma::OpType;

constexpr std::size_t kSize = 4096;
constexpr std::size_t kLarge = 1u << 30;  ///< A device forgets it by a thread of its own.

class BufferMemory : public testing::Test {
 protected:
  bool serve_until(const std::function<bool()>& done) {
    return poll_until({&a_, &b_}, [&] {
      if (user_) (void)user_->serve();
      (void)owner_->serve();
      return done();
    });
  }
  static void wait_for(const std::atomic<bool>& flag) {
    const Instant end = Clock::steady().now() + 5s;
    while (!flag && Clock::steady().now() < end) std::this_thread::yield();
  }

  MockWorld world_;
  Agent a_ = world_.open("a", "mock0"), b_ = world_.open("b", "mock1");
  std::optional<rdma::Backend> user_ = must(rdma::Backend::open(a_, {.thread = false}));
  std::optional<rdma::Backend> owner_ = must(rdma::Backend::open(b_, {.thread = false}));
};

class LargeMemory : public BufferMemory {
 protected:
  LargeMemory() : at_(::mmap(nullptr, kLarge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~LargeMemory() override { ::munmap(at_, kLarge); }
  /// Nothing else holds it.
  LocalMemory registered() {
    auto owner = std::make_shared<int>(1);
    held_ = owner;
    return must(user_->local_memory({static_cast<std::byte*>(at_), kLarge}, std::move(owner)));
  }
  void hold_deregistrations() {
    world_.before_dereg = [go = go_] { wait_for(*go); };
  }

  void* const at_;
  std::weak_ptr<int> held_;
  /// The last memory is deregistered after this object: with the agents.
  const std::shared_ptr<std::atomic<bool>> go_ = std::make_shared<std::atomic<bool>>(false);
};

TEST_F(LargeMemory, IsLetGoOnceTheDeviceHasForgottenIt) {
  const int before = world_.counts().mrs;
  LocalMemory memory = registered();
  hold_deregistrations();
  memory = LocalMemory();
  EXPECT_FALSE(held_.expired()) << "the device may still touch it";
  *go_ = true;
  EXPECT_TRUE(serve_until([&] { return held_.expired(); }));
  EXPECT_EQ(world_.counts().mrs, before);
}

TEST_F(LargeMemory, OfAReleasedBufferIsLetGo) {
  const int before = world_.counts().mrs;
  const rdma::RemoteBuffer buffer = must(user_->request_buffer(1, registered()));
  hold_deregistrations();
  const rdma::Batch released = must(user_->release(buffer, 20s));
  EXPECT_FALSE(released.done());
  *go_ = true;
  EXPECT_TRUE(serve_until([&] { return released.done() && held_.expired(); }));
  EXPECT_TRUE(released.status().ok()) << released.status().to_string();
  EXPECT_EQ(world_.counts().mrs, before);
}

TEST_F(LargeMemory, IsLetGoByTheEndOfItsBackend) {
  LocalMemory memory = registered();
  hold_deregistrations();
  memory = LocalMemory();
  EXPECT_FALSE(held_.expired());
  *go_ = true;
  user_.reset();
  EXPECT_TRUE(held_.expired());
}

TEST_F(LargeMemory, IsLetGoAfterTheEndOfItsBackend) {
  LocalMemory memory = registered();
  user_.reset();
  memory = LocalMemory();
  EXPECT_TRUE(held_.expired());
}

// An operation goes by any key of its bytes, so one who lets go of the same memory may have to wait for it.
TEST_F(BufferMemory, IsLetGoOnceWhatGoesByItsKeyHasEnded) {
  std::vector<std::byte> target(kSize), source(kSize, std::byte{7});
  const rdma::RemoteBuffer buffer = must(owner_->request_buffer(1, must(owner_->local_memory(target))));
  const LocalMemory first = must(user_->local_memory(source));
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> held = owner;
  LocalMemory twin = must(user_->local_memory(source, std::move(owner)));
  const auto write = [&] {
    const auto remote = must(rdma::RemoteBuffer::decode(buffer.encode()));
    return must(user_->submit({{.type = OpType::kWriteFromLocal, .local = first, .remote = remote}}, 20s));
  };
  const rdma::Batch met = write();
  ASSERT_TRUE(serve_until([&] { return met.done(); }));
  ASSERT_TRUE(met.status().ok()) << met.status().to_string();
  world_.with([](auto& fabric) { fabric.hold = true; });
  const rdma::Batch batch = write();
  twin = LocalMemory();
  EXPECT_FALSE(batch.done());
  world_.with([](auto& fabric) {
    fabric.hold = false;
    fabric.deliver();
  });
  EXPECT_TRUE(serve_until([&] { return batch.done() && held.expired(); }));
  EXPECT_TRUE(batch.status().ok()) << batch.status().to_string();
}

}  // namespace
}  // namespace hawser::mock_agents
