#include "backend/stream/machine_streams.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace hawser::backend::stream {
namespace {

TEST(MachineStreams, BulkLeavesTheFirstStreamOnceAnotherIsOpen) {
  MachineStreams streams(3);
  EXPECT_TRUE(streams.carries_bulk(0));
  streams.open(2);
  EXPECT_FALSE(streams.carries_bulk(0));
  EXPECT_TRUE(streams.carries_bulk(2));
}

TEST(MachineStreams, AnOnlyStreamCarriesAll) {
  MachineStreams streams(1);
  EXPECT_TRUE(streams.carries_bulk(0));
  EXPECT_EQ(streams.outlets().size(), 1u);
}

TEST(MachineStreams, ALinksStreamIsNotOneOfOperations) {
  MachineStreams streams(2);
  const unsigned link = stream_of(wire::Link(Priority::kCritical));
  streams.open(link);
  EXPECT_TRUE(streams.carries_bulk(0)) << "it carries messages only";
  streams.outlet(link).add_bytes(base::as_bytes("word"));
  EXPECT_TRUE(streams.has_unsent_links());
  EXPECT_FALSE(streams.has_unsent());
  streams.outlet(1).add_bytes(base::as_bytes("word"));
  EXPECT_TRUE(streams.has_unsent());
  streams.clear();
  EXPECT_FALSE(streams.has_unsent());
  EXPECT_FALSE(streams.has_unsent_links());
}

TEST(MachineStreamsDeathTest, APathHasOneToEightStreams) {
  EXPECT_EQ(MachineStreams(kStreamsMax).outlets().size(), kStreamsMax);
  EXPECT_DEATH(MachineStreams(kStreamsMax + 1), "1 to 8 streams");
  EXPECT_DEATH(MachineStreams(0), "1 to 8 streams");
}

}  // namespace
}  // namespace hawser::backend::stream
