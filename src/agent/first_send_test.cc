// The first message to a peer: its channels are told in its greeting.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include <hawser/hawser.h>

#include "agent/open.h"
#include "backend/tcp/factory.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::byte, 5> kBytes{};

Agent open(const std::string& name) {
  AgentOptions options{.name = name, .backends = {{"tcp", {}}}};
  options.log.level = LogLevel::kError;  // Agents leave while further streams open.
  return std::move(open_with(std::move(options), {backend::tcp_factory()}).value());
}

class FirstSend : public testing::Test {
 protected:
  FirstSend() {
    EXPECT_TRUE(driver_.attach(there_).ok());
    EXPECT_TRUE(there_.open_channel(17, 2).ok());
    peer_ = here_.add_peer(there_.card().value()).value();
  }

  Driver driver_ = Driver::start().value();
  Agent there_ = open("there"), here_ = open("here");
  Peer peer_;
};

TEST_F(FirstSend, IsTakenAfterConnect) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(peer_.connect(20s).ok());
    const Status sent = peer_.send(17, kBytes).error();
    ASSERT_TRUE(sent.ok()) << "after " << i << ": " << sent.to_string();
    EXPECT_TRUE(peer_.opened(17));
    EXPECT_FALSE(peer_.opened(18));
    here_ = open("here");
    peer_ = here_.add_peer(there_.card().value()).value();
  }
}

TEST_F(FirstSend, WithATimeoutNeedsNoConnect) {
  const Status sent = peer_.send(17, kBytes, 20s).error();
  EXPECT_TRUE(sent.ok()) << sent.to_string();
}

TEST_F(FirstSend, WithoutOneSaysWhatIsMissing) {
  const Status early = peer_.send(17, kBytes).error();
  EXPECT_EQ(early.code(), Code::kBusy);
  EXPECT_NE(early.to_string().find("has not greeted yet"), std::string::npos) << early.to_string();
  ASSERT_TRUE(peer_.connect(20s).ok());
  const Status closed = peer_.send(18, kBytes, 20ms).error();
  EXPECT_EQ(closed.code(), Code::kBusy);
  EXPECT_NE(closed.to_string().find("has not opened channel 18"), std::string::npos) << closed.to_string();
}

TEST_F(FirstSend, WaitsForRoomAndForAChannelThatIsOpenedMeanwhile) {
  ASSERT_TRUE(peer_.send(17, kBytes, 20s));
  ASSERT_TRUE(peer_.send(17, kBytes, 20s));
  const Status full = peer_.send(17, kBytes, 20ms).error();
  EXPECT_EQ(full.code(), Code::kBusy);
  EXPECT_NE(full.to_string().find("no room on channel 17"), std::string::npos) << full.to_string();
  while (!there_.take_message(17)) continue;
  while (!there_.take_message(17)) continue;
  EXPECT_TRUE(peer_.send(17, kBytes, 20s));
  ASSERT_TRUE(there_.open_channel(19, 2).ok());
  EXPECT_TRUE(peer_.send(19, kBytes, 20s));
}

}  // namespace
}  // namespace hawser::agent
