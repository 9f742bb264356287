// Remote buffers in GPU memory, between whole agents over a fabric in memory and a fake driver. No GPU was at hand:
// what a real one does is not shown here.

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include <gmock/gmock.h>

#include <hawser/rdma.h>

#include "backend/verbs/gpu/gpu_driver_fake.h"
#include "backend/verbs/mock/mock_verbs.h"
#include "mock_agents.h"

namespace hawser::mock_agents {
namespace {

using namespace std::chrono_literals;
using backend::verbs::GpuFake;
using rdma::LocalMemory;
using rdma::Op;
using rdma::OpType;
using testing::HasSubstr;

constexpr std::size_t kBytes = 64 * 1024;
constexpr Device kGpu{DeviceKind::kCuda, 0};

/// Memory that stands for a GPU's.
struct GpuBytes {
  GpuBytes() : data(static_cast<std::byte*>(std::aligned_alloc(4096, kBytes))) {
    std::fill_n(data, kBytes, std::byte{0xdd});
  }
  ~GpuBytes() { std::free(data); }
  GpuBytes(const GpuBytes&) = delete;
  GpuBytes& operator=(const GpuBytes&) = delete;
  std::span<std::byte> bytes() const { return {data, kBytes}; }
  bool holds(std::uintptr_t at) const { return at - reinterpret_cast<std::uintptr_t>(data) < kBytes; }
  std::byte* data;
};

class GpuBuffers : public testing::Test {
 protected:
  GpuBuffers() {
    fabric.is_gpu_memory = [this](std::uintptr_t at) { return a_gpu.holds(at) || b_gpu.holds(at); };
    for (const GpuBytes* each : {&a_gpu, &b_gpu}) {
      driver->allocations[reinterpret_cast<std::uintptr_t>(each->data)] = {.size = kBytes, .buffer_id = 1};
    }
    a = open("a", "mock0");
    b = open("b", "mock1");
    user.emplace(must(rdma::Backend::open(a, {.thread = false})));
    owner.emplace(must(rdma::Backend::open(b, {.thread = false})));
  }
  ~GpuBuffers() override {
    user.reset();
    owner.reset();
  }
  Agent open(const std::string& name, const std::string& device) {
    AgentOptions options;
    options.name = name;
    options.backends = {loopback(), verbs({{"devices", device}})};
    options.log.level = LogLevel::kError;
    auto over = backend::verbs::mock_backend(fabric, std::make_shared<backend::verbs::MockVerbs>(fabric),
                                             {.driver = driver, .sysfs_root = "/none"});
    return must(agent::open_with(std::move(options), {backend::loopback_factory(), std::move(over)}));
  }
  Status run(rdma::Backend& from, const Op& op) {
    const rdma::Batch batch = must(from.submit({op}, 20s));
    EXPECT_TRUE(poll_until({&a, &b}, [&] {
      (void)user->serve();
      (void)owner->serve();
      return batch.done();
    }));
    return batch.status();
  }
  Status run(const Op& op) { return run(*user, op); }
  /// As another process would have it.
  static rdma::RemoteBuffer sent(const rdma::RemoteBuffer& buffer) {
    return must(rdma::RemoteBuffer::decode(buffer.encode()));
  }

  GpuBytes a_gpu, b_gpu;
  std::shared_ptr<GpuFake> driver = std::make_shared<GpuFake>();
  backend::verbs::MockFabric fabric{{"mock0", "mock1"}};
  Agent a, b;
  std::optional<rdma::Backend> user, owner;
};

TEST_F(GpuBuffers, AreWrittenAndReadFromGpuAndFromHost) {
  const LocalMemory theirs = must(owner->local_memory(b_gpu.bytes(), {}, true, kGpu));
  EXPECT_EQ(theirs.device(), kGpu);
  const rdma::RemoteBuffer buffer = sent(must(owner->request_buffer(1, theirs)));
  const LocalMemory ours = must(user->local_memory(a_gpu.bytes(), {}, true, kGpu));
  std::iota(reinterpret_cast<std::uint8_t*>(a_gpu.data), reinterpret_cast<std::uint8_t*>(a_gpu.data) + kBytes, 3);
  for (const std::size_t size : {1u, 33u, 4096u, 50'000u}) {
    std::fill_n(b_gpu.data, kBytes, std::byte{0xdd});
    const Op write{.type = OpType::kWriteFromLocal, .local = must(ours.slice(7, size)), .remote = buffer};
    const Status status = run(write);
    ASSERT_TRUE(status.ok()) << status.to_string();
    EXPECT_TRUE(std::equal(a_gpu.data + 7, a_gpu.data + 7 + size, b_gpu.data));
    EXPECT_EQ(b_gpu.data[size], std::byte{0xdd});
  }
  std::vector<std::byte> host(50'000);
  const LocalMemory into = must(user->local_memory(host));
  ASSERT_TRUE(run({.type = OpType::kReadIntoLocal, .local = into, .remote = must(buffer.slice(0, 50'000))}).ok());
  EXPECT_TRUE(std::equal(host.begin(), host.end(), b_gpu.data));
  EXPECT_EQ(fabric.gpu_bytes_inlined, 0u) << "the processor must not read them";
  EXPECT_EQ(must(user->transport_info(buffer)).backend, "verbs");
}

TEST_F(GpuBuffers, WhatTheProcessorWouldDoThereIsRefusedAndTouchesNothing) {
  const LocalMemory theirs = must(owner->local_memory(b_gpu.bytes(), {}, true, kGpu));
  const rdma::RemoteBuffer mine = must(owner->request_buffer(1, theirs)), buffer = sent(mine);
  const Status far = run({.type = OpType::kFetchAdd, .remote = must(buffer.slice(8, 8)), .value = 1});
  EXPECT_EQ(far.code(), Code::kUnsupported) << far.to_string();
  EXPECT_THAT(far.to_string(), HasSubstr("cuda:0"));
  const Status own = run(*owner, {.type = OpType::kFetchAdd, .remote = must(mine.slice(8, 8)), .value = 1});
  EXPECT_EQ(own.code(), Code::kUnsupported) << own.to_string();
  std::vector<std::byte> host(kBytes);
  const LocalMemory into = must(owner->local_memory(host));
  const Status copied = run(*owner, {.type = OpType::kReadIntoLocal, .local = into, .remote = mine});
  EXPECT_EQ(copied.code(), Code::kUnsupported) << copied.to_string();
  EXPECT_TRUE(std::all_of(b_gpu.data, b_gpu.data + kBytes, [](std::byte each) { return each == std::byte{0xdd}; }));
}

TEST_F(GpuBuffers, NeedABackendThatReachesThem) {
  Agent bare = must(agent::open_with({.name = "bare"}, {backend::loopback_factory()}));
  rdma::Backend without = must(rdma::Backend::open(bare, {.thread = false}));
  const Status refused = without.local_memory(a_gpu.bytes(), {}, true, kGpu).error();
  EXPECT_EQ(refused.code(), Code::kUnsupported) << refused.to_string();
  EXPECT_THAT(refused.to_string(), HasSubstr("cuda:0"));
}

}  // namespace
}  // namespace hawser::mock_agents
