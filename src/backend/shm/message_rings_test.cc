#include "backend/shm/message_rings.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/rng.h"

namespace hawser::backend::shm {
namespace {

using Took = MessageRings::Took;
constexpr std::uint32_t kRing = 128 * 1024;  // A record takes a quarter of it at most, and so a whole part.

/// Two ends of one link.
class MessageRingsTest : public ::testing::Test {
 protected:
  void SetUp() override { set_up(kRing); }
  void set_up(std::uint32_t ring_bytes) {
    base::Fd file;
    auto made = Link::make(ring_bytes, &file);
    ASSERT_TRUE(made);
    near_link_ = std::move(*made);
    auto adopted = Link::adopt(file.get(), ring_bytes);
    ASSERT_TRUE(adopted);
    far_link_ = std::move(*adopted);
    near_door_ = base::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    far_door_ = base::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    near_.begin(near_link_, far_door_.get());
    far_.begin(far_link_, near_door_.get());
  }

  Put send(std::string_view head, std::string_view body = "") {
    return near_.send(base::as_bytes(head), base::as_bytes(body));
  }
  /// What `far_` takes next, without begin_taking().
  Took take(std::string* message, std::size_t room = 2 * kMessageMax) {
    memory_.resize(room);
    Inbox inbox{memory_, 0};
    std::span<const std::byte> bytes;
    const Took took = far_.take(inbox, &bytes);
    if (took == Took::kMessage) *message = base::as_text(bytes);
    return took;
  }
  std::string next() {
    far_.begin_taking();
    std::string message;
    return take(&message) == Took::kMessage ? message : "nothing";
  }
  std::vector<std::string> untaken() const {
    std::vector<std::string> all;
    EXPECT_TRUE(near_.each_untaken([&](std::span<const std::byte> begin) { all.emplace_back(base::as_text(begin)); }));
    return all;
  }
  static std::uint64_t rings(const base::Fd& door) {
    eventfd_t count = 0;
    return ::eventfd_read(door.get(), &count) == 0 ? count : 0;
  }
  static std::string text(std::size_t size) {
    std::string made(size, '\0');
    for (std::size_t i = 0; i < size; ++i) made[i] = static_cast<char>(i * 31 + i / 251);
    return made;
  }

  Link near_link_, far_link_;
  base::Fd near_door_, far_door_;
  MessageRings near_, far_;
  std::vector<std::byte> memory_;
};

TEST_F(MessageRingsTest, AMessageIsItsHeadAndItsBody) {
  EXPECT_EQ(send("head ", "body"), Put::kDone);
  EXPECT_EQ(send("second"), Put::kDone);
  EXPECT_TRUE(far_.ready());
  EXPECT_EQ(next(), "head body");
  EXPECT_EQ(next(), "second");
  EXPECT_EQ(next(), "nothing");
}

TEST_F(MessageRingsTest, BeforeItBeginsThereIsNothing) {
  MessageRings rings;
  EXPECT_FALSE(rings.has_outbox() || rings.has_refused() || rings.holds_taken());
}

TEST_F(MessageRingsTest, BeyondAPartAMessageComesInPartsAndTakesNoRoomOfTheInbox) {
  for (const std::size_t beyond : {0, 1}) {
    const std::string sent = text(MessageRings::kPartMax + beyond);
    ASSERT_EQ(send(sent.substr(0, 20), sent.substr(20)), Put::kDone);
    far_.begin_taking();
    std::string message;
    EXPECT_EQ(take(&message, 0), beyond == 0 ? Took::kNothing : Took::kMessage);
    if (beyond == 0) message = next();
    EXPECT_TRUE(message == sent);
    EXPECT_EQ(next(), "nothing");
  }
}

TEST_F(MessageRingsTest, TheRestOfAMessageThatFindsTooLittleRoomIsKept) {
  const std::string first = text(kMessageMax), second = text(kMessageMax - 1);
  ASSERT_EQ(send(first), Put::kDone);
  ASSERT_FALSE(near_.has_outbox());
  ASSERT_EQ(send(second.substr(0, 100), second.substr(100)), Put::kDone);
  EXPECT_TRUE(near_.has_outbox());
  EXPECT_EQ(send("waits"), Put::kFull) << "it would overtake";
  EXPECT_EQ(near_.flush(), Put::kFull);
  EXPECT_EQ(untaken(), std::vector<std::string>(2, text(kLinePayload)));
  EXPECT_TRUE(next() == first);
  EXPECT_EQ(next(), "nothing") << "not all of it has come";
  EXPECT_EQ(near_.flush(), Put::kDone);
  EXPECT_FALSE(near_.has_outbox());
  EXPECT_TRUE(next() == second);
  far_.give_back();
  EXPECT_TRUE(untaken().empty());
  EXPECT_EQ(send("goes"), Put::kDone);
}

TEST_F(MessageRingsTest, AFullRingTakesNothingUntilAQuarterIsFree) {
  const std::string each = text(1'000);
  std::size_t count = 0;
  while (send(each) == Put::kDone) ++count;
  EXPECT_GE(count, kRing / 1'100);
  EXPECT_TRUE(near_.has_refused());
  EXPECT_FALSE(near_.take_room());
  EXPECT_TRUE(next() == each);
  far_.give_back();
  EXPECT_FALSE(near_.take_room()) << "one record is free";
  for (std::size_t i = 0; i < count / 4 + 1; ++i) EXPECT_TRUE(next() == each);
  far_.give_back();
  EXPECT_TRUE(near_.take_room());
  EXPECT_FALSE(near_.has_refused());
  EXPECT_EQ(send(each), Put::kDone);
}

TEST_F(MessageRingsTest, WhoSleepsIsRungOnce) {
  ASSERT_EQ(send("not asleep"), Put::kDone);
  EXPECT_EQ(rings(far_door_), 0u);
  EXPECT_FALSE(far_.arm()) << "there is a message";
  EXPECT_EQ(next(), "not asleep");
  EXPECT_TRUE(far_.arm());
  ASSERT_EQ(send("one"), Put::kDone);
  ASSERT_EQ(send("two"), Put::kDone);
  EXPECT_EQ(rings(far_door_), 1u);
}

TEST_F(MessageRingsTest, WhoWaitsForRoomIsRung) {
  const std::string each = text(1'000);
  while (send(each) == Put::kDone) continue;
  ASSERT_TRUE(near_.await_room());
  while (next() != "nothing") continue;
  EXPECT_EQ(rings(near_door_), 1u);
}

TEST_F(MessageRingsTest, PartsWaitUntilWhatWasTakenIsDealtWith) {
  const std::string large = text(MessageRings::kPartMax + 1);
  ASSERT_EQ(send("small"), Put::kDone);
  ASSERT_EQ(send(large), Put::kDone);
  ASSERT_EQ(send("after"), Put::kDone);
  far_.begin_taking();
  std::string message;
  EXPECT_EQ(take(&message), Took::kMessage);
  EXPECT_EQ(take(&message), Took::kNothing);
  far_.begin_taking();
  EXPECT_EQ(take(&message), Took::kMessage);
  EXPECT_TRUE(message == large);
  EXPECT_EQ(take(&message), Took::kNothing) << "its memory is that of the parts";
  EXPECT_EQ(next(), "after");
}

/// A ring that has room for a message in parts whatever else.
class LargeRings : public MessageRingsTest {
 protected:
  void SetUp() override { set_up(256 * 1024); }
  std::vector<std::string> whole() const {
    std::vector<std::string> all;
    EXPECT_TRUE(near_.each_whole_untaken([&](auto message) { all.emplace_back(base::as_text(message)); }));
    return all;
  }
  /// And those that each_untaken shows are the same ones.
  void expect_whole(const std::vector<std::string>& expected) const {
    EXPECT_TRUE(whole() == expected);
    std::vector<std::string> begins = untaken(), shown;
    for (const std::string& each : expected) shown.push_back(each.substr(0, kLinePayload));
    std::ranges::sort(begins);
    std::ranges::sort(shown);
    EXPECT_EQ(begins, shown);
  }
};

TEST_F(LargeRings, UntakenMessagesAreShownWhole) {
  base::Rng rng(1);
  std::deque<std::string> sent;
  for (int round = 0; round < 2000; ++round) {
    std::string message = std::to_string(round) + text(rng.below(rng.chance(0.1) ? kMessageMax - 8 : 500));
    if (send(message.substr(0, 2), message.substr(2)) == Put::kDone) sent.push_back(std::move(message));
    if (rng.chance(0.02)) expect_whole({sent.begin(), sent.end()});
    for (std::uint64_t left = rng.below(4); left > 0; --left) {
      const std::string got = next();
      far_.give_back();
      if (got == "nothing") break;
      ASSERT_TRUE(got == sent.front());
      sent.pop_front();
    }
    static_cast<void>(near_.flush());
  }
  EXPECT_FALSE(sent.empty());
  expect_whole({sent.begin(), sent.end()});
}

TEST_F(LargeRings, OfAMessageInPartsNothingIsGivenBackBeforeItsEnd) {
  const std::string large = text(kMessageMax);
  std::vector<std::string> sent;
  while (!near_.has_outbox()) {
    ASSERT_EQ(send(large), Put::kDone);
    sent.push_back(large);
  }
  expect_whole(sent);  // The rest of the last one is not in the ring.
  while (next() != "nothing") sent.erase(sent.begin());
  far_.give_back();
  EXPECT_EQ(sent.size(), 1u);
  EXPECT_FALSE(far_.holds_taken()) << "who sleeps has nothing to give back";
  expect_whole(sent);
  EXPECT_EQ(near_.flush(), Put::kDone);
  expect_whole(sent);
  EXPECT_TRUE(next() == large);
  EXPECT_TRUE(far_.holds_taken());
  far_.give_back();
  expect_whole({});
}

TEST_F(LargeRings, AProducerThatWaitsForRoomIsRungThoughPartsAreHeld) {
  const std::string small = text(1'000), large = text(kMessageMax);
  for (int behind = 0; behind < 70; ++behind) {  // Wherever in the ring it begins.
    while (send(small) == Put::kDone) continue;
    for (int i = 0; i < 3 + behind; ++i) EXPECT_TRUE(next() == small);
    far_.give_back();
    static_cast<void>(rings(near_door_));
    const bool is_sent = send(large) == Put::kDone;
    EXPECT_TRUE(is_sent || behind < 15);
    const bool waits = near_.flush() == Put::kFull && near_.await_room();
    std::string got;
    while ((got = next()) == small) continue;
    far_.give_back();
    if (!waits) continue;
    EXPECT_EQ(rings(near_door_), 1u) << behind;
    EXPECT_EQ(near_.flush(), Put::kDone);
    EXPECT_TRUE(next() == large);
  }
}

TEST_F(MessageRingsTest, InASmallRingAMessageOfWhichPartsWereGivenBackIsNotWhole) {
  const std::string first = text(kMessageMax), second = text(kMessageMax - 1);
  ASSERT_EQ(send(first), Put::kDone);
  ASSERT_EQ(send(second), Put::kDone);
  EXPECT_TRUE(next() == first);
  EXPECT_EQ(next(), "nothing");
  EXPECT_EQ(untaken().size(), 1u);
  ASSERT_EQ(near_.flush(), Put::kDone);
  ASSERT_EQ(send("after"), Put::kDone);
  std::vector<std::string> whole;
  EXPECT_TRUE(near_.each_whole_untaken([&](auto message) { whole.emplace_back(base::as_text(message)); }));
  EXPECT_EQ(whole, std::vector<std::string>{"after"});
}

TEST_F(MessageRingsTest, WhoStopsTakingGivesNothingBack) {
  ASSERT_EQ(send("one"), Put::kDone);
  ASSERT_EQ(send("two"), Put::kDone);
  EXPECT_EQ(next(), "one");
  far_.stop_taking();
  EXPECT_EQ(next(), "nothing");
  EXPECT_FALSE(far_.ready());
  EXPECT_EQ(untaken(), (std::vector<std::string>{"one", "two"})) << "of `one` nobody said that it was dealt with";
}

TEST_F(MessageRingsTest, OfAPeerThatLeftNoMoreIsTakenThanTheRingHolds) {
  far_.drain();
  std::size_t taken = 0;
  for (; taken < 2 * kRing / kLineSize && send("again") == Put::kDone; ++taken) {
    if (next() == "nothing") break;
  }
  EXPECT_EQ(taken, kRing / kLineSize);
}

TEST_F(MessageRingsTest, PartsBeyondTheLongestMessageAreCorrupt) {
  for (const std::size_t beyond : {0, 1}) {
    SetUp();
    far_ = MessageRings();
    far_.begin(far_link_, near_door_.get());
    Link::Producer hostile = near_link_.producer();
    std::string message;
    std::size_t left = MessageRings::kAssemblyMax + beyond;
    Took took = Took::kNothing;
    for (std::size_t size = 0; left > 0; left -= size) {
      size = std::min<std::size_t>(left, 8'000);
      const std::string part = text(size);
      ASSERT_EQ(hostile.put(left == size ? RecordKind::kLast : RecordKind::kFragment, base::as_bytes(part), {}),
                Put::kDone);
      far_.begin_taking();
      took = take(&message);
    }
    EXPECT_EQ(took, beyond == 0 ? Took::kMessage : Took::kCorrupt);
    EXPECT_EQ(message.size(), beyond == 0 ? MessageRings::kAssemblyMax : 0);
    EXPECT_EQ(far_.is_readable(), beyond == 0) << "nothing more is taken from a ring that is corrupt";
  }
}

TEST_F(MessageRingsTest, AWholeMessageAmidPartsIsCorrupt) {
  Link::Producer hostile = near_link_.producer();
  ASSERT_EQ(hostile.put(RecordKind::kFragment, base::as_bytes("part"), {}), Put::kDone);
  ASSERT_EQ(hostile.put(RecordKind::kMessage, base::as_bytes("whole"), {}), Put::kDone);
  far_.begin_taking();
  std::string message;
  EXPECT_EQ(take(&message), Took::kCorrupt);
  EXPECT_EQ(next(), "nothing");
}

}  // namespace
}  // namespace hawser::backend::shm
