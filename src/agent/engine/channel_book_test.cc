// The channels that are open, and what sessions get of them.

#include "agent/engine/channel_book.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

TEST(ChannelBook, TheUserMayOpenSoManyBesideTheServices) {
  ChannelBook book;
  book.add_own(1, {.credit = 4});
  for (std::uint32_t i = 0; i < kChannelsMax; ++i) {
    const Result<bool> opened = book.open(wire::kUserChannelMin + i, {.credit = 8});
    ASSERT_TRUE(opened && *opened) << i;
  }
  const Result<bool> again = book.open(wire::kUserChannelMin, {.credit = 16});
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again);
  const Result<bool> beyond = book.open(wire::kUserChannelMin + kChannelsMax, {.credit = 8});
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code(), Code::kBusy);
}

TEST(ChannelBook, ASessionThatBeginsOwesThePeerCreditForEach) {
  ChannelBook book;
  book.add_own(1, {.credit = 4});
  ASSERT_TRUE(book.open(wire::kUserChannelMin, {.credit = 8}));
  Rig rig;
  Session& session = rig.session_with(hand_peer("there"));
  session.channels.clear();
  book.give_all(session);
  ASSERT_EQ(session.channels.size(), 2u);
  for (auto& [id, channel] : session.channels) {
    EXPECT_TRUE(channel.credit_owed);
    EXPECT_EQ(channel.in->take_limits().messages, id == 1 ? 4u : 8u);
  }
}

TEST(ChannelBook, AWindowHasRoomForItsMessagesAtTheirLargest) {
  const wire::CreditLimits window = channel_window(3);
  EXPECT_EQ(window.messages, 3u);
  EXPECT_EQ(window.bytes, 3 * kMessageMax);
}

}  // namespace
}  // namespace hawser::agent
