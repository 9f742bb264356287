#include "backend/stream/message_reader.h"

#include <gtest/gtest.h>

#include <map>

#include "backend/stream/message_sender.h"
#include "backend/stream/test_frames.h"

namespace hawser::backend::stream {
namespace {

class MessageReaderTest : public testing::Test {
 protected:
  MessageReaderTest() {
    for (MachineStreams* streams : {&theirs_, &ours_}) {
      streams->open(1);
      streams->open(kOwn);
    }
    for (unsigned stream : {1U, kOwn}) sender_.open(stream);
  }
  bool send(wire::Link link, std::string_view words) { return sender_.send(link, {}, base::as_bytes(words)); }
  /// What the sender put on `stream` comes. False: senseless.
  bool come(unsigned stream) {
    const auto bytes = bytes_of(theirs_.outlet(stream));
    waiting_[stream].insert(waiting_[stream].end(), bytes.begin(), bytes.end());
    return go_on(stream);
  }
  bool go_on(unsigned stream) {
    Inlet& inlet = ours_.inlet(stream);
    std::span<const std::byte> left = waiting_[stream];
    bool good = true;
    while (good && !reader_.must_wait(stream)) {
      const bool was_held = reader_.take_held(stream);
      const Inlet::Next next = was_held ? Inlet::Next::kFrame : next_of(inlet, left);
      if (next == Inlet::Next::kMore) break;
      if (next == Inlet::Next::kPayload) {
        reader_.on_message_end(stream);
      } else if (was_held || !reader_.holds(stream, inlet.head())) {
        good = reader_.on_message(stream, inlet);
      }
    }
    waiting_[stream] = {left.begin(), left.end()};
    return good;
  }
  std::string told() {
    std::string words;
    std::array<PortEvent, 8> out;
    for (std::size_t count = events_.poll(out); count > 0; count = events_.poll(out)) {
      for (const PortEvent& event : std::span(out).first(count)) words += std::string(base::as_text(event.bytes)) + ";";
    }
    return words;
  }

  static constexpr unsigned kOwn = kStreamsMax;  // Of the first link, which is one of critical messages.
  LinkUse links_{true}, their_links_{true};
  MachineStreams ours_{2}, theirs_{2};
  EventQueue events_;
  MessageSender sender_{theirs_, their_links_, true};
  MessageReader reader_{ours_, links_, events_, nullptr};
  std::map<unsigned, std::vector<std::byte>> waiting_;
};

TEST_F(MessageReaderTest, AMessageWaitsForTheGreetingBeforeIt) {
  ASSERT_TRUE(sender_.send_first({}, base::as_bytes("welcome")));
  ASSERT_TRUE(send(Priority::kBulk, "bulk"));
  ASSERT_TRUE(come(1));
  EXPECT_TRUE(reader_.is_waiting(1));
  EXPECT_EQ(reader_.waiting(), 2u);
  EXPECT_FALSE(reader_.awaits_poll());
  EXPECT_EQ(told(), "");
  ASSERT_TRUE(come(0));
  ASSERT_TRUE(go_on(1));
  EXPECT_EQ(told(), "welcome;bulk;");
  EXPECT_EQ(reader_.waiting(), 0u);
  EXPECT_EQ(reader_.others(), 1u);
}

TEST_F(MessageReaderTest, AnEmptyMessageIsOne) {
  ASSERT_TRUE(send(Priority::kRealtime, ""));
  ASSERT_TRUE(come(0));
  EXPECT_EQ(told(), ";");
  EXPECT_EQ(reader_.count(), 1u);
}

TEST_F(MessageReaderTest, TheLastWaitsForTheOthers) {
  ASSERT_TRUE(send(wire::Link(Priority::kCritical), "link"));
  ASSERT_TRUE(sender_.send_last({}, base::as_bytes("goodbye")));
  ASSERT_TRUE(come(1));
  EXPECT_TRUE(reader_.awaits_others());
  ASSERT_TRUE(come(kOwn));
  ASSERT_TRUE(go_on(1));
  EXPECT_FALSE(reader_.awaits_others());
  EXPECT_EQ(told(), "link;goodbye;");
}

TEST_F(MessageReaderTest, AFullQueueHoldsTheFirstStreamUntilItIsPolled) {
  for (std::size_t i = 0; i < EventQueue::kMessagesMax; ++i) {
    EXPECT_FALSE(reader_.must_wait(0)) << i;
    ASSERT_TRUE(send(Priority::kRealtime, "."));
    ASSERT_TRUE(come(0));
  }
  EXPECT_TRUE(reader_.must_wait(0));
  EXPECT_TRUE(reader_.awaits_poll());
  EXPECT_FALSE(reader_.must_wait(1)) << "chunks go on there";
  static_cast<void>(told());
  EXPECT_FALSE(reader_.must_wait(0));
  EXPECT_FALSE(reader_.awaits_poll());
}

TEST_F(MessageReaderTest, ALinksStreamCarriesNoOther) {
  ASSERT_TRUE(send(wire::Link(Priority::kCritical), "link"));
  const auto bytes = bytes_of(theirs_.outlet(kOwn));
  const unsigned other = kOwn + 1;
  ours_.open(other);
  waiting_[other] = bytes;
  EXPECT_FALSE(go_on(other));
}

TEST_F(MessageReaderTest, BulkKeepsTheStreamOfItsFirst) {
  ASSERT_TRUE(send(Priority::kBulk, "bulk"));
  ASSERT_TRUE(come(1));
  EXPECT_TRUE(reader_.may_come_on(1));
  EXPECT_FALSE(reader_.may_come_on(2));
  EXPECT_TRUE(reader_.may_come_on(0));
}

TEST_F(MessageReaderTest, AMessageMayGoAsideAndAFlagThatNobodyKnowsIsSenseless) {
  ASSERT_TRUE(sender_.send(Priority::kRealtime, {}, base::as_bytes("aside"), Haste::kAside));
  std::vector<std::byte> bytes = bytes_of(theirs_.outlet(0));
  ASSERT_EQ(std::to_integer<unsigned>(bytes[1]) & wire::kFlagAside, wire::kFlagAside);
  waiting_[0] = bytes;
  ASSERT_TRUE(go_on(0));
  EXPECT_EQ(told(), "aside;");
  bytes[1] |= std::byte{2 * wire::kFlagAside};
  waiting_[0] = bytes;
  EXPECT_FALSE(go_on(0));
}

TEST_F(MessageReaderTest, ALinkOnTheFirstStreamIsNoted) {
  LinkUse links(true);
  MachineStreams theirs(2);
  MessageSender sender(theirs, their_links_, true);
  ASSERT_TRUE(sender.send(wire::Link(Priority::kCritical), {}, base::as_bytes("early")));
  waiting_[0] = bytes_of(theirs.outlet(0));
  ASSERT_TRUE(go_on(0));
  EXPECT_EQ(links_.take(), 1u << wire::Link(Priority::kCritical).index());
}

}  // namespace
}  // namespace hawser::backend::stream
