#include "backend/verbs/gpu/pointer.h"

#include <gtest/gtest.h>

#include "backend/verbs/gpu/gpu_driver_fake.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::uintptr_t kGpu = 0x7f0000000000;
constexpr std::uintptr_t kPinned = 0x100000;
constexpr std::uintptr_t kManaged = 0x200000;
constexpr Device kCuda3{DeviceKind::kCuda, 3};

class PointerTest : public testing::Test {
 protected:
  PointerTest() {
    gpu_.allocations = {{kGpu, {10000, 5, 3}},
                        {kPinned, {4096, 6, 1, MemoryKind::kPinnedHost}},
                        {kManaged, {4096, 7, 1, MemoryKind::kManaged}}};
  }
  GpuFake gpu_;
};

TEST_F(PointerTest, WithoutADriverAllIsHostMemory) {
  const PointerFacts facts = classify(nullptr, kGpu).value();
  EXPECT_EQ(facts.kind, MemoryKind::kHost);
  EXPECT_EQ(facts.device(), Device{});
}

TEST_F(PointerTest, GpuMemoryHasItsAllocation) {
  const PointerFacts facts = classify(&gpu_, kGpu + 5000).value();
  EXPECT_EQ(facts.kind, MemoryKind::kGpu);
  EXPECT_EQ(facts.device(), kCuda3);
  EXPECT_EQ(facts.buffer_id, 5u);
  EXPECT_EQ(facts.allocation, (AddressRange{kGpu, kGpu + 10000}));
}

TEST_F(PointerTest, HostMemoryThatCudaKnowsCountsAsHost) {
  const PointerFacts facts = classify(&gpu_, kPinned).value();
  EXPECT_EQ(facts.kind, MemoryKind::kPinnedHost);
  EXPECT_EQ(facts.device(), Device{});
  EXPECT_EQ(facts.ordinal, 1);
  EXPECT_TRUE(check_device(&gpu_, kPinned, 4096, Device{}).ok());
}

TEST_F(PointerTest, ARangeOfAnotherDeviceIsRefusedByName) {
  EXPECT_TRUE(check_device(&gpu_, kGpu, 10000, kCuda3).ok());
  const Status past_end = check_device(&gpu_, kGpu, 10001, kCuda3);
  EXPECT_EQ(past_end.code(), Code::kInvalid);
  EXPECT_NE(past_end.message().find("memory of the host, not of cuda:3"), std::string_view::npos);
  EXPECT_EQ(check_device(&gpu_, kGpu, 100, Device{}).code(), Code::kInvalid);
  EXPECT_EQ(check_device(&gpu_, kManaged, 100, Device{}).code(), Code::kUnsupported);
}

TEST_F(PointerTest, FailureOfEachCallIsTold) {
  int call = 0;
  for (int n = 1; n <= 2; ++n) {
    call = 0;
    gpu_.fails = [&] { return ++call == n; };
    EXPECT_EQ(classify(&gpu_, kGpu).error().code(), Code::kFailed);
  }
  call = 0;
  gpu_.fails = [&] { return ++call == 3; };
  EXPECT_TRUE(classify(&gpu_, kGpu).has_value());
}

}  // namespace
}  // namespace hawser::backend::verbs
