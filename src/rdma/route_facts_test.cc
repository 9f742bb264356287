#include "rdma/route_facts.h"

#include <gtest/gtest.h>

#include "rdma/test_agent.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

class RouteFactsTest : public ::testing::Test {
 protected:
  TestOwner here_{"here"}, there_{"there"};
  Routes routes_{here_.agent, here_.self, here_.lent};
  Ways ways_{here_.agent, here_.self};
  RouteFacts facts_{{.agent = here_.agent, .self = here_.self, .routes = routes_, .ways = ways_}};
  RemoteBuffer own_ = here_.lend(7).value();
  LocalMemory foreign_ = there_.memory;
};

TEST_F(RouteFactsTest, AnEmptyHandleHasNone) {
  EXPECT_EQ(facts_.transport_info(RemoteBuffer()).error().code(), Code::kInvalid);
  EXPECT_EQ(facts_.queue_pair_info(RemoteBuffer(), here_.memory).error().code(), Code::kInvalid);
  EXPECT_EQ(facts_.explain(RemoteBuffer(), here_.memory), "an empty handle: it was never made\n");
}

TEST_F(RouteFactsTest, ABufferOfThisProcessIsReachedInPlace) {
  const TransportInfo info = facts_.transport_info(own_).value();
  EXPECT_EQ(info.backend, "self");
  EXPECT_EQ(info.level, TransportLevel::kMemory);
  EXPECT_EQ(facts_.explain(own_, here_.memory), "buffer 7 of here is this process's own: copied in place\n");
}

TEST_F(RouteFactsTest, WithoutVerbsThereIsNoQueuePair) {
  EXPECT_EQ(facts_.queue_pair_info(own_, here_.memory).error().code(), Code::kUnsupported);
}

TEST_F(RouteFactsTest, MemoryOfAnotherEngineIsRefused) {
  there_.self.number = 2;
  EXPECT_EQ(facts_.explain(own_, there_.memory_of(there_.memory.bytes())),
            "the local memory is registered with another backend\n");
}

TEST_F(RouteFactsTest, AWayThatLeadsNowhereIsExplained) {
  const std::string text = facts_.explain(foreign_buffer({"tcp"}), LocalMemory());
  EXPECT_TRUE(text.starts_with("buffer 42 of owner: ")) << text;
  EXPECT_TRUE(text.ends_with("  tcp: the owner has it, this agent was opened without it\n")) << text;
}

}  // namespace
}  // namespace rdma
HAWSER_NAMESPACE_END
