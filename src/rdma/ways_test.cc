#include "rdma/ways.h"

#include <gtest/gtest.h>

#include "rdma/test_agent.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

using agent::inner::Way;
using Lines = std::vector<std::string>;

BackendReport report(std::string name, bool open = true, Status cause = {}) {
  BackendReport made;
  made.name = std::move(name);
  made.open = open;
  made.cause = std::move(cause);
  return made;
}

TEST(Ways, EachBackendHasALine) {
  const Status shut(Code::kUnsupported, "no device"), refused(Code::kDenied, "another user");
  const std::vector<BackendReport> here = {report("verbs", false, shut), report("tcp"), report("shm"), report("quic")};
  const Lines told = {"verbs", "shm", "quic", "gds"};
  const std::vector<Way> tried = {{.backend = "shm", .why = refused}, {.backend = "quic", .why = {}}};
  EXPECT_EQ(way_lines(here, told, tried),
            (Lines{"verbs: not open here: no device", "tcp: the owner had not opened it when it made the handle",
                   "shm: another user", "quic: open at both ends",
                   "gds: the owner has it, this agent was opened without it"}));
}

TEST(Ways, ACauseIsTold) {
  const Status why = Status(Code::kDisconnected, "it was lost").because(Status(Code::kTimedOut, "no answer"));
  const std::vector<BackendReport> here = {report("tcp")};
  const Lines told = {"tcp"};
  EXPECT_EQ(way_lines(here, told, std::vector<Way>{{.backend = "tcp", .why = why}}),
            Lines{"tcp: it was lost (no answer)"});
}

TEST(Ways, BackendsWithinOneProcessAreNone) {
  const std::vector<BackendReport> here = {report("loopback"), report("file")};
  const Lines told = {"loopback", "self"};
  EXPECT_EQ(way_lines(here, told, {}), Lines{});
}

class WaysOfAnAgent : public ::testing::Test {
 protected:
  Agent agent_ = agent_of_no_backends("a");
  EngineId self_{.number = 1, .incarnation = agent_.incarnation()};
  Ways ways_{agent_, self_};
  RemoteBuffer buffer_ = foreign_buffer({"tcp"});
};

TEST_F(WaysOfAnAgent, AnEndForWantOfAWaySaysThem) {
  const Status told = ways_.with_ways(Status(Code::kUnsupported, "no way"), buffer_);
  EXPECT_EQ(told.message(), "no way");
  EXPECT_EQ(told.cause().message(), "ways to owner: tcp: the owner has it, this agent was opened without it");
}

TEST_F(WaysOfAnAgent, AnotherEndSaysNone) {
  EXPECT_TRUE(ways_.with_ways(Status(Code::kInvalid, "wrong"), buffer_).cause().ok());
  EXPECT_TRUE(ways_.with_ways(Status(Code::kTimedOut, "late"), RemoteBuffer()).cause().ok());
}

TEST_F(WaysOfAnAgent, ARefusedTransferMeansThatTheBufferWasReleased) {
  const Status told = ways_.of_transfer(Status(Code::kDenied, "no such region"), buffer_);
  EXPECT_EQ(told.message(), "buffer 42 of owner is not lent any more: somebody released it");
  EXPECT_EQ(told.cause().message(), "no such region");
  EXPECT_EQ(ways_.of_transfer(Status(Code::kCancelled, "cancelled"), buffer_).message(), "cancelled");
}

}  // namespace
}  // namespace rdma
HAWSER_NAMESPACE_END
