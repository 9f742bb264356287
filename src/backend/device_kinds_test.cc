// Sets of kinds of memory.

#include "backend/device_kinds.h"

#include <gtest/gtest.h>

#include "backend/backend.h"

namespace hawser::backend {
namespace {

TEST(DeviceKinds, HasWhatItWasGiven) {
  DeviceKinds kinds{DeviceKind::kHost};
  EXPECT_TRUE(kinds.has(DeviceKind::kHost));
  EXPECT_FALSE(kinds.has(DeviceKind::kCuda));
  kinds.add(DeviceKind::kCuda);
  EXPECT_TRUE(kinds.has(DeviceKind::kCuda));
  EXPECT_EQ(kinds, (DeviceKinds{DeviceKind::kCuda, DeviceKind::kHost}));
}

TEST(DeviceKinds, NoSetHasAKindThatNothingHereKnows) {
  const DeviceKinds all{DeviceKind::kHost, DeviceKind::kCuda, DeviceKind::kFile, DeviceKind::kObject,
                        DeviceKind::kBlock};
  for (const int number : {0, 6, 31, 32, 33, 65535}) EXPECT_FALSE(all.has(static_cast<DeviceKind>(number))) << number;
}

TEST(DeviceKinds, ABackendReachesTheHostsMemoryUnlessItSaysOtherwise) {
  EXPECT_EQ(Traits().reaches, DeviceKinds{DeviceKind::kHost});
}

}  // namespace
}  // namespace hawser::backend
