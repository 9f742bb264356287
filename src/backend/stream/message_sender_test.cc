#include "backend/stream/message_sender.h"

#include <gtest/gtest.h>

#include "backend/stream/test_frames.h"

namespace hawser::backend::stream {
namespace {

std::span<const std::byte> text(std::string_view words) { return base::as_bytes(words); }

class MessageSenderTest : public testing::Test {
 protected:
  void open(unsigned stream) {
    streams_.open(stream);
    sender_.open(stream);
  }
  bool send(wire::Link link, std::size_t size = 10) {
    const std::vector<std::byte> body(size);
    return sender_.send(link, {}, body);
  }
  std::vector<TestFrame> frames(unsigned stream) { return frames_of(streams_.outlet(stream)); }

  MachineStreams streams_{2};
  LinkUse links_{false};
  MessageSender sender_{streams_, links_, false};
};

TEST_F(MessageSenderTest, HeadAndBodyAreOneMessage) {
  ASSERT_TRUE(sender_.send(Priority::kRealtime, text("head "), text("body")));
  const auto all = frames(0);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(base::as_text(all[0].payload), "head body");
  EXPECT_TRUE(all[0].meta.empty()) << "on the first stream the order is that of the bytes";
  EXPECT_EQ(sender_.count(), 1u);
}

TEST_F(MessageSenderTest, BulkTellsHowManyUrgentOnesAreBeforeIt) {
  open(1);
  ASSERT_TRUE(send(Priority::kRealtime));
  ASSERT_TRUE(send(Priority::kCritical));
  ASSERT_TRUE(send(Priority::kBulk));
  const auto bulk = frames(1);
  ASSERT_EQ(bulk.size(), 1u);
  ASSERT_EQ(bulk[0].meta.size(), wire::kAheadSize);
  EXPECT_EQ(bulk[0].u32(0), 2u);
  EXPECT_EQ(sender_.others(), 1u);
}

TEST_F(MessageSenderTest, TheLastMessageComesAfterAllOthersAndEndsThem) {
  open(1);
  ASSERT_TRUE(send(Priority::kRealtime));
  ASSERT_TRUE(send(Priority::kBulk));
  ASSERT_TRUE(sender_.send_last({}, text("goodbye")));
  const auto all = frames(1);
  ASSERT_EQ(all.size(), 2u);
  ASSERT_EQ(all[1].meta.size(), wire::kLastSize);
  EXPECT_EQ(all[1].u32(0), 1u);
  EXPECT_EQ(all[1].u32(2), 1u);
  EXPECT_NE(all[1].head.flags & wire::kFlagLastMessage, 0);
  EXPECT_FALSE(send(Priority::kRealtime));
  EXPECT_FALSE(send(Priority::kBulk));
}

TEST_F(MessageSenderTest, WithoutRoomNothingGoes) {
  while (streams_.outlet(0).has_room(wire::lead_size(0) + wire::padded(1024))) ASSERT_TRUE(send(Priority::kBulk, 1024));
  const std::uint64_t count = sender_.count();
  EXPECT_FALSE(send(Priority::kBulk, 1024));
  EXPECT_EQ(sender_.count(), count);
}

TEST_F(MessageSenderTest, AChunkHasItsTurnAfterSoMuchBulk) {
  open(1);
  constexpr std::size_t kSize = 1024;
  for (std::size_t sent = 0; sent < kMessagesAhead; sent += kSize) {
    EXPECT_FALSE(sender_.takes_turns(1)) << sent;
    ASSERT_TRUE(send(Priority::kBulk, kSize));
    static_cast<void>(frames(1));
  }
  EXPECT_FALSE(sender_.takes_turns(0)) << "no bulk is there";
  EXPECT_TRUE(sender_.takes_turns(1));
  EXPECT_FALSE(sender_.takes_turns(1)) << "told once";
}

TEST(MessageSender, ALinkGetsAStreamOfItsOwn) {
  MachineStreams streams(2);
  LinkUse links(true);
  MessageSender sender(streams, links, true);
  const wire::Link link(Priority::kCritical);
  ASSERT_TRUE(sender.send_first({}, text("welcome")));
  ASSERT_TRUE(sender.send(link, {}, text("first")));
  EXPECT_EQ(frames_of(streams.outlet(0)).size(), 2u);
  EXPECT_EQ(links.take(), 1u << link.index()) << "the path opens its stream";
  streams.open(stream_of(link));
  sender.open(stream_of(link));
  ASSERT_TRUE(sender.send(link, {}, text("second")));
  const auto own = frames_of(streams.outlet(stream_of(link)));
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].u32(0), 2u) << "after the greeting, and what the link sent before";
}

}  // namespace
}  // namespace hawser::backend::stream
