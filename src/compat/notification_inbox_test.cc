// An agent that sends to itself.

#include "compat/notification_inbox.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compat/notification_sender.h"
#include "compat/test_peers.h"

namespace hawser::compat {
namespace {

struct NotificationInboxTest : ::testing::Test {
  void send(std::string_view text) {
    const Status status = sender.send(
        self, text, [this](Duration) { own.agent.poll(); }, [] {});
    ASSERT_TRUE(status.ok()) << status.to_string();
    for (int turn = 0; turn < 100; ++turn) own.agent.poll();
  }
  std::vector<std::string> take() {
    NotificationMap into;
    inbox.take(own.agent, into);
    return into["a"];
  }

  TestAgent own{"a"};
  Peer self = own.agent.self();
  NotificationSender sender;
  base::Logger log{LogOptions{}};
  NotificationInbox inbox{log};
};

TEST_F(NotificationInboxTest, NothingIsThereAtFirst) {
  EXPECT_FALSE(inbox.may_have(own.agent));
  NotificationMap into;
  inbox.take(own.agent, into);
  EXPECT_TRUE(into.empty());
}

TEST_F(NotificationInboxTest, GivesThemInTheirOrder) {
  for (const char* text : {"one", "two", "three"}) send(text);
  EXPECT_TRUE(inbox.may_have(own.agent));
  EXPECT_EQ(take(), (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_FALSE(inbox.may_have(own.agent));
}

TEST_F(NotificationInboxTest, PutsTogetherWhatCameInParts) {
  const std::string text(3 * kMessageMax, 'x');
  send(text);
  EXPECT_TRUE(inbox.may_have(own.agent));
  EXPECT_EQ(take(), std::vector<std::string>{text});
  EXPECT_FALSE(inbox.may_have(own.agent));
}

}  // namespace
}  // namespace hawser::compat
