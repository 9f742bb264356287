#include "agent/check_options.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "proto/notify_credit.h"

namespace hawser::agent {
namespace {

AgentOptions good() { return {.name = "a"}; }

std::string refusal_of(const std::function<void(AgentOptions&)>& change) {
  AgentOptions options = good();
  change(options);
  const Status status = check_options(options);
  EXPECT_TRUE(status.ok() || status.code() == Code::kInvalid);
  return status.ok() ? "" : std::string(status.message());
}

TEST(CheckOptions, TakesTheDefaultOnes) { EXPECT_TRUE(check_options(good()).ok()); }

TEST(CheckOptions, ANameHas1To255BytesWithoutControlCharacters) {
  const auto named = [](std::string name) { return refusal_of([&](AgentOptions& its) { its.name = name; }); };
  EXPECT_EQ(named(std::string(255, 'x')), "");
  EXPECT_NE(named(std::string(256, 'x')).find("256 bytes"), std::string::npos);
  EXPECT_LT(named(std::string(256, 'x')).size(), 200u) << "no more than a line of it is told";
  EXPECT_NE(named(""), "");
  EXPECT_NE(named("a\nb").find("'a?b'"), std::string::npos);
}

TEST(CheckOptions, TimesArePositive) {
  EXPECT_NE(refusal_of([](AgentOptions& its) { its.heartbeat = {}; }).find("heartbeat"), std::string::npos);
  EXPECT_NE(refusal_of([](AgentOptions& its) { its.peer_timeout = Duration(-1); }).find("peer_timeout = -1 ns"),
            std::string::npos);
  EXPECT_NE(refusal_of([](AgentOptions& its) { its.default_deadline = {}; }), "");
  EXPECT_EQ(refusal_of([](AgentOptions& its) { its.default_deadline = Duration(1); }), "");
}

TEST(CheckOptions, LimitsLieWithinTheirBounds) {
  EXPECT_EQ(refusal_of([](AgentOptions& its) { its.limits.transfers = 1u << 24; }), "");
  EXPECT_NE(refusal_of([](AgentOptions& its) { its.limits.transfers = (1u << 24) + 1; }).find("limits.transfers"),
            std::string::npos);
  EXPECT_NE(refusal_of([](AgentOptions& its) { its.limits.peers = 0; }).find("limits.peers"), std::string::npos);
  EXPECT_EQ(refusal_of([](AgentOptions& its) { its.limits.notification_bytes = proto::kNotificationCostMax; }), "");
  EXPECT_NE(refusal_of([](AgentOptions& its) { its.limits.notification_bytes = proto::kNotificationCostMax - 1; }), "");
  EXPECT_EQ(refusal_of([](AgentOptions& its) { its.limits.peer_bytes = 16u << 20; }), "") << "the largest chunk";
  EXPECT_NE(refusal_of([](AgentOptions& its) { its.limits.peer_bytes = (16u << 20) - 1; }), "");
  EXPECT_NE(refusal_of([](AgentOptions& its) { its.limits.peer_connections = 0; }), "");
  EXPECT_NE(refusal_of([](AgentOptions& its) { its.limits.peer_operations = 0; }), "");
  EXPECT_NE(refusal_of([](AgentOptions& its) { its.limits.peer_regions = 0; }), "");
  EXPECT_EQ(refusal_of([](AgentOptions& its) { its.limits.grants = 1; }), "");
  EXPECT_NE(refusal_of([](AgentOptions& its) { its.limits.grants = 0; }).find("limits.grants"), std::string::npos);
}

TEST(CheckOptions, AnIdentityNeedsTls) {
  const auto with_identity = [](Security security) {
    return refusal_of([&](AgentOptions& its) {
      its.identity.folder = "somewhere";
      its.security = security;
    });
  };
  EXPECT_NE(with_identity(Security::kNone), "");
  EXPECT_EQ(with_identity(Security::kDefault), "");
}

}  // namespace
}  // namespace hawser::agent
