#include "backend/verbs/path/pair_report.h"

#include <gtest/gtest.h>

#include "backend/verbs/path/test_pairs.h"

namespace hawser::backend::verbs {
namespace {

using PairReportTest = TwoPairs;

TEST_F(PairReportTest, OneThatIsNotConnectedHasNoAddressOfThePeer) {
  const std::string text = condition_of(*active);
  EXPECT_NE(text.find("to an address not told yet"), std::string::npos) << text;
  EXPECT_NE(text.find("absent, 0 in flight"), std::string::npos) << text;
  const QueuePairCounters counters = counters_of(*active);
  EXPECT_EQ(counters.peer_gid, "");
  EXPECT_EQ(counters.device, "mock0");
  EXPECT_GT(counters.mtu_bytes, 0u) << "the port's";
}

TEST_F(PairReportTest, OneThatIsReadySaysBothEnds) {
  connect();
  const std::string text = condition_of(*active);
  const std::string peer = passive->qp().gid().text();
  EXPECT_EQ(text.find("queue pair 0 (" + active->qp().nic().describe() + " to " + peer), 0u) << text;
  EXPECT_NE(text.find("ready, 0 in flight"), std::string::npos) << text;
  EXPECT_EQ(text.find("in vain"), std::string::npos) << text;
  const QueuePairCounters counters = counters_of(*active);
  EXPECT_EQ(counters.state, "ready");
  EXPECT_EQ(counters.epoch, 1u);
  EXPECT_EQ(counters.peer_gid, peer);
  EXPECT_EQ(counters.peer_number, passive->qp().number());
  EXPECT_NE(describe(*active).find("epoch 1, ready, 0 in flight, 0 operations, 0 errors, 0 reconnects"),
            std::string::npos)
      << describe(*active);
}

TEST_F(PairReportTest, WhatStandsAgainstItIsTold) {
  connect();
  active->fault(Status(Code::kDisconnected, "broken"), now);
  active->lost().add({Flight()}, 1, now, std::chrono::seconds(2));
  const std::string lost = condition_of(*active);
  EXPECT_NE(lost.find("backoff"), std::string::npos) << lost;
  EXPECT_NE(lost.find("1 lost with the last connection"), std::string::npos) << lost;
  active->hurry(now);
  active->fault(Status(Code::kDisconnected, "broken again"), now);
  const std::string vain = condition_of(*active);
  EXPECT_NE(vain.find("1 attempts in vain"), std::string::npos) << vain;
}

}  // namespace
}  // namespace hawser::backend::verbs
