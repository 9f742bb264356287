#include <gtest/gtest.h>
#include <hawser/topology.h>

namespace hawser {
namespace {

TEST(Topology, TextsAreReadAndWritten) {
  for (const char* text : {"full", "hypercube", "regular:4", "edges:0-1,1-2", "edges:"}) {
    const Result<Topology> read = parse_topology(text);
    ASSERT_TRUE(read.has_value()) << text;
    EXPECT_EQ(to_string(*read), text);
  }
  for (const char* text : {"", "cube", "regular", "regular:", "regular:-2", "regular:4x", "edges:0", "edges:0-1,",
                           "edges:0-1,,1-2", "edges:a-b", "full "}) {
    const Result<Topology> read = parse_topology(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().code(), Code::kInvalid);
  }
}

}  // namespace
}  // namespace hawser
