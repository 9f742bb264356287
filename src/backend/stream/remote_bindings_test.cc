#include "backend/stream/remote_bindings.h"

#include <gtest/gtest.h>

#include "backend/stream/chunk_limits.h"
#include "backend/stream/test_frames.h"

namespace hawser::backend::stream {
namespace {

RemoteRegionRef region(std::uint32_t index, std::uint32_t generation = 1) {
  RemoteRegionRef ref;
  ref.index = index;
  ref.generation = generation;
  ref.key = {7, 9};
  return ref;
}

TEST(RemoteBindings, EachRegionAndGenerationHasOneBinding) {
  RemoteBindings bindings;
  RemoteBinding* first = bindings.bind(region(3));
  EXPECT_EQ(bindings.bind(region(3)), first);
  EXPECT_NE(bindings.bind(region(3, 2)), first);
  EXPECT_EQ(bindings.count(), 2u);
  bindings.unbind(3, 1);
  EXPECT_EQ(bindings.count(), 1u);
  EXPECT_NE(bindings.bind(region(3))->bind.binding, 1u) << "a new binding has a new name";
}

TEST(RemoteBindings, AStreamCarriesBindOnceAndUnbindAfterIt) {
  RemoteBindings bindings;
  std::array<Outlet, 2> outlets;
  RemoteBinding* binding = bindings.bind(region(3));
  for (int i = 0; i < 2; ++i) RemoteBindings::announce(*binding, 0, outlets[0]);
  EXPECT_EQ(frames_of(outlets[0]).size(), 1u);
  bindings.unbind(3, 1);
  ASSERT_TRUE(bindings.has_unbinds());
  bindings.stage_unbinds(1, outlets[1]);
  EXPECT_FALSE(outlets[1].has_unsent()) << "that stream has never carried it";
  bindings.stage_unbinds(0, outlets[0]);
  const auto frames = frames_of(outlets[0]);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].head.type, wire::FrameType::kUnbind);
  EXPECT_EQ(frames[0].u32(0), 1u);
  EXPECT_FALSE(bindings.has_unbinds());
}

TEST(RemoteBindings, AStreamThatHasNoRoomOwesItsUnbind) {
  RemoteBindings bindings;
  Outlet outlet;
  RemoteBindings::announce(*bindings.bind(region(3)), 0, outlet);
  bindings.unbind(3, 1);
  const std::vector<std::byte> much(1024);
  while (outlet.has_room(kFrameRoom)) outlet.add_bytes(much);
  bindings.stage_unbinds(0, outlet);
  EXPECT_TRUE(bindings.has_unbinds());
  static_cast<void>(bytes_of(outlet));
  bindings.stage_unbinds(0, outlet);
  EXPECT_FALSE(bindings.has_unbinds());
}

TEST(RemoteBindings, ABindingLivesUntilItsLastChunkEnds) {
  RemoteBindings bindings;
  Outlet outlet;
  RemoteBinding* binding = bindings.bind(region(3));
  RemoteBindings::announce(*binding, 0, outlet);
  RemoteBindings::use(*binding);
  RemoteBindings::use(*binding);
  bindings.unbind(3, 1);
  bindings.release(*binding);
  EXPECT_FALSE(bindings.has_unbinds()) << "one chunk names it still";
  EXPECT_EQ(bindings.count(), 1u);
  bindings.release(*binding);
  EXPECT_TRUE(bindings.has_unbinds());
  EXPECT_EQ(bindings.count(), 0u);
}

TEST(RemoteBindings, WhatWasNeverAnnouncedIsNotUnbound) {
  RemoteBindings bindings;
  static_cast<void>(bindings.bind(region(3)));
  bindings.unbind(3, 1);
  bindings.unbind(4, 1);
  EXPECT_FALSE(bindings.has_unbinds());
}

}  // namespace
}  // namespace hawser::backend::stream
