#include "backend/verbs/gpu/registration_gpu.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <vector>

#include "backend/verbs/gpu/gpu_driver_fake.h"
#include "backend/verbs/memory/registration_fake.h"
#include "base/test_folder.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::uintptr_t kGpu = 0x7f0000000000;

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

Wanted wanted(std::uintptr_t address, std::size_t size) { return {.address = address, .size = size}; }

class GpuMemoryTest : public testing::Test {
 protected:
  GpuMemoryTest() : fake_(std::make_shared<MemoryFake>()), domain_(Domain::open(fake_, "mock0").value()) {
    fake_->is_device_memory = [this](std::uint64_t address) { return gpu_.find(address) != nullptr; };
    gpu_.allocations = {{kGpu, {3 << 20, 1}}};
  }
  ~GpuMemoryTest() override {
    domain_.reset();
    EXPECT_EQ(fake_->alive(), 0);
    EXPECT_EQ(fake_->violations, 0);
  }
  GpuMemory memory(GpuPath path = GpuPath::kDmabuf) { return {domain_, &gpu_, {.path = path}}; }

  GpuFake gpu_;
  std::shared_ptr<MemoryFake> fake_;
  std::shared_ptr<Domain> domain_;
};

TEST_F(GpuMemoryTest, C15_RegistersTheWholeAllocationUnderItsOwnAddress) {
  GpuMemory memory = this->memory();
  const auto made = memory.make(wanted(kGpu + 12345, 100)).value();
  ASSERT_EQ(made.size(), 1u);
  const Registration& one = *made[0].registration;
  EXPECT_EQ(one.kind(), RegistrationKind::kDmabuf);
  EXPECT_TRUE(one.covers(kGpu, 3 << 20));
  EXPECT_EQ(one.keys(kGpu + 12345, 100).iova, kGpu + 12345);
  EXPECT_EQ(made[0].generation, 1u);
  ASSERT_EQ(fake_->asked.size(), 1u);
  EXPECT_EQ(fake_->asked[0].offset, 0u);
  EXPECT_EQ(fake_->asked[0].address, kGpu);
  EXPECT_EQ(gpu_.synchronised, 1);
}

TEST_F(GpuMemoryTest, C15_AnUnalignedAllocationIsRoundedToWholePages) {
  gpu_.allocations = {{kGpu + 512, {1000, 1}}};
  GpuMemory memory = this->memory();
  const auto made = memory.make(wanted(kGpu + 515, 7)).value();
  EXPECT_EQ(gpu_.exported, (std::vector<AddressRange>{{kGpu, kGpu + 4096}}));
  EXPECT_EQ(fake_->asked[0].address, kGpu);
  EXPECT_EQ(fake_->asked[0].size, 4096u);
  const Registration& one = *made[0].registration;
  EXPECT_TRUE(one.covers(kGpu + 512, 1000));
  EXPECT_FALSE(one.covers(kGpu + 511, 1)) << "the page's rest is somebody else's";
  EXPECT_EQ(one.keys(kGpu + 515, 7).iova, kGpu + 515);
}

TEST_F(GpuMemoryTest, C15_ARangeMaySpanMappings) {
  constexpr std::size_t kMapping = 2 << 20;
  gpu_.allocations = {{kGpu, {kMapping, 1}}, {kGpu + kMapping, {kMapping, 2}}, {kGpu + 2 * kMapping, {kMapping, 3}}};
  GpuMemory memory = this->memory();
  MrCache cache(memory);
  const auto made = cache.acquire(wanted(kGpu + kMapping - 1, kMapping + 2)).value();
  ASSERT_EQ(made.size(), 3u);
  EXPECT_EQ(gpu_.exported.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(made[i]->address(), kGpu + i * kMapping);
  EXPECT_EQ(cache.acquire(wanted(kGpu, 3 * kMapping)).value(), made) << "found again, piece by piece";
  MrReader reader(cache);
  EXPECT_EQ(reader.find(kGpu + kMapping - 1, kMapping + 2).size, 1u);
  EXPECT_EQ(reader.find(kGpu + kMapping, kMapping + 1).size, kMapping);
}

TEST_F(GpuMemoryTest, C15_DescriptorCountIsConstantOverTenThousandRegistrations) {
  GpuMemory memory = this->memory();
  const std::size_t before = open_descriptors();
  std::vector<MemorySource::Made> kept;
  for (int i = 0; i < 10000; ++i) kept.push_back(memory.make(wanted(kGpu, 100)).value().front());
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(fake_->memories, 10000);
  EXPECT_NE(fake_->asked.front().inode, fake_->asked.back().inode) << "each was a descriptor of its own";
}

TEST_F(GpuMemoryTest, MemoryFreedAndAllocatedAgainIsRegisteredAgain) {
  GpuMemory memory = this->memory();
  MrCache cache(memory);
  const auto old = cache.acquire(wanted(kGpu, 100)).value();
  EXPECT_EQ(cache.acquire(wanted(kGpu, 100)).value(), old);
  gpu_.allocations[kGpu].buffer_id = 2;
  EXPECT_NE(cache.acquire(wanted(kGpu, 100)).value(), old);
  EXPECT_EQ(cache.counters().stale, 1u);
  gpu_.on_export = [this] { ++gpu_.allocations[kGpu].buffer_id; };
  gpu_.allocations[kGpu].buffer_id = 10;
  EXPECT_EQ(cache.acquire(wanted(kGpu, 100)).error().code(), Code::kInvalid) << "it was freed meanwhile";
  EXPECT_EQ(cache.counters().count, 0u);
}

TEST_F(GpuMemoryTest, HostMemoryGoesTheHostsWay) {
  std::vector<char> host(100);
  const auto address = reinterpret_cast<std::uintptr_t>(host.data());
  GpuMemory memory = this->memory(GpuPath::kNone);
  EXPECT_EQ(memory.make(wanted(address, 100)).value()[0].registration->kind(), RegistrationKind::kHost);
  gpu_.allocations[address] = {100, 9, 0, MemoryKind::kPinnedHost};
  EXPECT_EQ(memory.make(wanted(address, 100)).value()[0].registration->kind(), RegistrationKind::kHost);
  gpu_.allocations[address].kind = MemoryKind::kManaged;
  EXPECT_EQ(memory.make(wanted(address, 100)).error().code(), Code::kUnsupported);
  GpuMemory without_driver(domain_, nullptr, {});
  EXPECT_EQ(without_driver.make(wanted(address, 100)).value()[0].registration->kind(), RegistrationKind::kHost);
}

TEST_F(GpuMemoryTest, WithoutDmabufsPeerMemoryIsTriedOnce) {
  gpu_.dmabufs = false;
  GpuMemory memory = this->memory();
  const auto made = memory.make(wanted(kGpu + 5, 100)).value();
  EXPECT_EQ(made[0].registration->kind(), RegistrationKind::kPeerMemory);
  EXPECT_TRUE(made[0].registration->covers(kGpu, 3 << 20));
  EXPECT_EQ(memory.path(), GpuPath::kPeerMemory);
  EXPECT_EQ(memory.downgrade().message(), "no dmabufs");
  ASSERT_EQ(fake_->asked.size(), 2u);
  EXPECT_EQ(fake_->asked[0].size, 4096u) << "the probe is a page";
  (void)memory.make(wanted(kGpu, 100)).value();
  EXPECT_EQ(fake_->asked.size(), 3u);
}

TEST_F(GpuMemoryTest, WhereNothingWorksItSaysWhy) {
  gpu_.dmabufs = false;
  fake_->refuse_device_memory = true;
  GpuMemory memory = this->memory();
  EXPECT_EQ(memory.make(wanted(kGpu, 100)).error().message(), "no dmabufs");
  const int calls = fake_->call;
  EXPECT_FALSE(memory.make(wanted(kGpu, 100)));
  EXPECT_EQ(fake_->call, calls) << "peer memory is not tried again";
  GpuMemory peer_only = this->memory(GpuPath::kPeerMemory);
  const Status status = peer_only.make(wanted(kGpu, 100)).error();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_NE(status.to_string().find("peer memory"), std::string::npos) << status.to_string();
  GpuMemory off = this->memory(GpuPath::kNone);
  EXPECT_EQ(off.make(wanted(kGpu, 100)).error().code(), Code::kUnsupported);
}

TEST_F(GpuMemoryTest, AnAllocationLargerThanTheDeviceTakesIsRegisteredInParts) {
  fake_->attributes.max_mr_size = 1 << 20;
  domain_ = Domain::open(fake_, "mock0").value();
  GpuMemory memory = this->memory();
  const auto made = memory.make(wanted(kGpu + 100, 8192)).value();
  EXPECT_EQ(gpu_.exported, (std::vector<AddressRange>{{kGpu, kGpu + 3 * 4096}}));
  EXPECT_TRUE(made[0].registration->covers(kGpu + 100, 8192));
  EXPECT_FALSE(made[0].registration->covers(kGpu, 1));
}

TEST_F(GpuMemoryTest, PlansByWhatThereIs) {
  const base::TestFolder sysfs;
  const auto plan = [&](GpuDriver* driver, GpuDirect mode) {
    return plan_gpu_direct(*domain_, driver, mode, sysfs.path());
  };
  EXPECT_EQ(plan(&gpu_, GpuDirect::kAuto).value().path, GpuPath::kDmabuf);
  EXPECT_TRUE(plan(&gpu_, GpuDirect::kRequire).value().downgrade.ok());
  EXPECT_EQ(plan(&gpu_, GpuDirect::kOff).value().path, GpuPath::kNone);
  EXPECT_TRUE(plan(&gpu_, GpuDirect::kOff).value().downgrade.ok());
  EXPECT_EQ(plan(nullptr, GpuDirect::kAuto).value().downgrade.message(), "there is no CUDA driver");
  EXPECT_EQ(plan(nullptr, GpuDirect::kRequire).error().code(), Code::kUnsupported);
  gpu_.dmabufs = false;
  EXPECT_EQ(plan(&gpu_, GpuDirect::kAuto).value().path, GpuPath::kDmabuf) << "asking would initialise the driver";
  EXPECT_EQ(plan(&gpu_, GpuDirect::kRequire).error().cause().message(), "cuda:0 exports no dmabufs");
  gpu_.dmabufs = true;
  fake_->refuse_dmabuf = true;
  EXPECT_EQ(plan(&gpu_, GpuDirect::kAuto).value().path, GpuPath::kNone);
  const Status required = plan(&gpu_, GpuDirect::kRequire).error();
  EXPECT_NE(required.to_string().find("mock0 registers no dmabufs"), std::string::npos) << required.to_string();
  std::filesystem::create_directories(sysfs.path() + "/module/nvidia_peermem");
  EXPECT_EQ(plan(&gpu_, GpuDirect::kRequire).value().path, GpuPath::kPeerMemory);
  EXPECT_FALSE(plan(&gpu_, GpuDirect::kAuto).value().downgrade.ok());
  gpu_.gpus = 0;
  fake_->refuse_dmabuf = false;
  EXPECT_EQ(plan(&gpu_, GpuDirect::kRequire).error().cause().message(), "there is no GPU");
}

TEST(GpuMemory, FailureOfEachCallLeaksNothing) {
  const std::size_t descriptors = open_descriptors();
  const int calls = fail_each_call<MemoryFake>([](const std::shared_ptr<MemoryFake>& fake) {
    GpuFake gpu;
    gpu.allocations = {{kGpu, {4096, 1}}, {kGpu + 4096, {8192, 2}}};
    gpu.fails = [&fake] { return fake->fails(); };
    const Result<std::shared_ptr<Domain>> domain = Domain::open(fake, "mock0");
    if (!domain) return false;
    const Result<GpuDirectPlan> plan = plan_gpu_direct(**domain, &gpu, GpuDirect::kRequire, "/nowhere");
    if (!plan) return false;
    GpuMemory memory(*domain, &gpu, *plan);
    MrCache cache(memory);
    return cache.acquire(wanted(kGpu, 12288)).has_value();
  });
  EXPECT_EQ(calls, 4 + 3 + 2 * 5);
  EXPECT_EQ(open_descriptors(), descriptors);
}

}  // namespace
}  // namespace hawser::backend::verbs
