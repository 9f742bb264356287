#include "runtime/landings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/test_carrier.h"

namespace hawser::runtime {
namespace {

using wire::RuntimeKind;

class LandingsTest : public testing::Test {
 protected:
  static constexpr Instant kAt = Instant::from_ns(5);

  LandingsTest() {
    receive_.data = into_.data();
    receive_.capacity = into_.size();
    receive_.pattern.world = 1;
  }
  ~LandingsTest() override { receive_.fetch_hook.unlink(); }

  void want(std::uint64_t bytes, std::uint64_t address = 0) {
    receive_.got.bytes = bytes;
    landings_.want(*session_, desk_, receive_, 40, address, kAt);
  }
  Status hear_part(std::uint64_t offset, std::size_t size) {
    const std::string body(size, 'p');
    return landings_.on_part(
        desk_,
        {.kind = RuntimeKind::kPart, .landing = receive_.landing, .offset = offset, .body = base::as_bytes(body)});
  }
  const std::list<Word>& words() { return desk_.of(Priority::kRealtime).words; }

  TestCarrier carrier_;
  TestSession session_;
  MailDesk desk_;
  std::vector<Status> ends_;
  Landings landings_{carrier_, [this](Operation&, const Status& status) { ends_.push_back(status); }};
  std::vector<std::byte> into_ = std::vector<std::byte>(2 * kFetchPart);
  Receive receive_;
};

TEST_F(LandingsTest, AMessageIsGrantedAndComesInParts) {
  want(10);
  ASSERT_EQ(words().size(), 1U);
  EXPECT_EQ(words().front().message.kind, RuntimeKind::kGrant);
  EXPECT_EQ(words().front().message.id, 40U);
  EXPECT_TRUE(hear_part(0, 6).ok());
  EXPECT_TRUE(ends_.empty());
  EXPECT_TRUE(hear_part(6, 4).ok());
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_TRUE(ends_[0].ok());
  EXPECT_EQ(into_[9], std::byte{'p'});
  EXPECT_EQ(into_[10], std::byte{0});
  EXPECT_TRUE(hear_part(10, 1).ok()) << "nobody lands there any more";
}

TEST_F(LandingsTest, AnEmptyMessageIsThereOnceItIsWanted) {
  want(0);
  EXPECT_EQ(ends_.size(), 1U);
  EXPECT_TRUE(desk_.landing.empty());
  EXPECT_EQ(words().size(), 1U) << "its sender waits for the grant";
}

TEST_F(LandingsTest, PartsThatDoNotFollowEachOtherAreTheSendersError) {
  want(10);
  EXPECT_EQ(hear_part(1, 2).code(), Code::kCorrupt);
  EXPECT_EQ(hear_part(0, 11).code(), Code::kCorrupt);
  EXPECT_TRUE(hear_part(0, 2).ok());
  EXPECT_EQ(hear_part(0, 2).code(), Code::kCorrupt);
}

TEST_F(LandingsTest, WhatCanBeReadIsReadInStepsAndTaken) {
  carrier_.fetches = true;
  const std::vector<std::byte> source(kFetchPart + 1, std::byte{3});
  want(source.size(), reinterpret_cast<std::uintptr_t>(source.data()));
  EXPECT_TRUE(words().empty());
  EXPECT_EQ(hear_part(0, 1).code(), Code::kCorrupt) << "it was not granted";
  EXPECT_TRUE(landings_.fetch_next(*session_, desk_));
  EXPECT_TRUE(words().empty());
  const wire::RuntimeMessage taken{.kind = RuntimeKind::kTaken, .landing = receive_.landing};
  EXPECT_EQ(landings_.on_taken(desk_, taken).code(), Code::kCorrupt) << "it was not read";
  EXPECT_TRUE(landings_.fetch_next(*session_, desk_));
  EXPECT_FALSE(landings_.fetch_next(*session_, desk_));
  ASSERT_EQ(words().size(), 1U);
  EXPECT_EQ(words().front().message.kind, RuntimeKind::kFetched);
  EXPECT_TRUE(ends_.empty()) << "until the sender has said that it was there all the time";
  EXPECT_TRUE(landings_.on_taken(desk_, taken).ok());
  EXPECT_EQ(ends_.size(), 1U);
  EXPECT_EQ(into_[kFetchPart], std::byte{3});
}

TEST_F(LandingsTest, WhatCannotBeReadIsGrantedFromItsBeginning) {
  carrier_.fetches = true;
  const std::vector<std::byte> source(kFetchPart + 1);
  want(source.size(), reinterpret_cast<std::uintptr_t>(source.data()));
  EXPECT_TRUE(landings_.fetch_next(*session_, desk_));
  carrier_.fetches = false;
  EXPECT_TRUE(landings_.fetch_next(*session_, desk_));
  ASSERT_EQ(words().size(), 1U);
  EXPECT_EQ(words().front().message.kind, RuntimeKind::kGrant);
  EXPECT_TRUE(hear_part(0, 8).ok());
}

TEST_F(LandingsTest, WhoStopsWhileItReadsTellsTheSender) {
  carrier_.fetches = true;
  const std::vector<std::byte> source(8);
  want(source.size(), reinterpret_cast<std::uintptr_t>(source.data()));
  landings_.forget(*session_, desk_, receive_, kAt);
  ASSERT_EQ(words().size(), 1U);
  EXPECT_EQ(words().front().message.kind, RuntimeKind::kFetched);
  EXPECT_TRUE(desk_.landing.empty());
}

TEST_F(LandingsTest, AMessageThatItsSenderStoppedEndsTheReceive) {
  want(10);
  landings_.on_gone(desk_, {.kind = RuntimeKind::kGone, .id = 41}, Status(Code::kCancelled, "another one"));
  EXPECT_TRUE(ends_.empty());
  landings_.on_gone(desk_, {.kind = RuntimeKind::kGone, .id = 40}, Status(Code::kCancelled, "the sender stopped it"));
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(ends_[0].code(), Code::kCancelled);
}

TEST_F(LandingsTest, ThoseOfOneWorldComeInTheOrderOfTheirNumbers) {
  Receive second, other;
  second.pattern.world = 1;
  other.pattern.world = 2;
  second.got.bytes = other.got.bytes = 4;
  want(4);
  landings_.want(*session_, desk_, second, 41, 0, kAt);
  landings_.want(*session_, desk_, other, 42, 0, kAt);
  EXPECT_EQ(Landings::of_world(desk_, 1), (std::vector<Receive*>{&receive_, &second}));
}

TEST_F(LandingsTest, MemoryIsLentForALargeMessageUntilItIsWritten) {
  carrier_.quits = true;
  want(kLendMin);
  ASSERT_EQ(words().size(), 1U);
  EXPECT_EQ(words().front().message.kind, RuntimeKind::kLend);
  ASSERT_EQ(carrier_.lent.size(), 1U);
  EXPECT_EQ(carrier_.lent[0].data(), into_.data());
  EXPECT_EQ(carrier_.lent[0].size(), kLendMin);
  EXPECT_EQ(hear_part(0, 1).code(), Code::kCorrupt) << "it was not granted";
  const wire::RuntimeMessage written{.kind = RuntimeKind::kWritten, .landing = receive_.landing};
  EXPECT_TRUE(landings_.on_written(desk_, written).ok());
  EXPECT_EQ(carrier_.taken_back.size(), 1U);
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_TRUE(ends_[0].ok());
  EXPECT_EQ(receive_.received, kLendMin);
  EXPECT_TRUE(landings_.on_written(desk_, written).ok()) << "nobody lands there any more";
}

TEST_F(LandingsTest, NothingIsLentForASmallerMessageOrOneInPiecesOrOverAnotherPath) {
  carrier_.quits = true;
  want(kLendMin - 1);
  EXPECT_EQ(words().back().message.kind, RuntimeKind::kGrant);
  EXPECT_EQ(landings_.on_written(desk_, {.kind = RuntimeKind::kWritten, .landing = receive_.landing}).code(),
            Code::kCorrupt);
  landings_.forget(*session_, desk_, receive_, kAt);
  carrier_.quits = false;
  want(kLendMin);
  EXPECT_EQ(words().back().message.kind, RuntimeKind::kGrant);
  EXPECT_TRUE(carrier_.lent.empty());
}

TEST_F(LandingsTest, WhatIsNotWrittenIsTakenBackAndGranted) {
  carrier_.quits = true;
  want(kLendMin);
  const wire::RuntimeMessage unwritten{.kind = RuntimeKind::kUnwritten, .id = 40, .landing = receive_.landing};
  EXPECT_TRUE(landings_.on_unwritten(*session_, desk_, unwritten, kAt).ok());
  EXPECT_EQ(carrier_.taken_back.size(), 1U);
  EXPECT_EQ(words().back().message.kind, RuntimeKind::kGrant);
  EXPECT_TRUE(hear_part(0, 10).ok()) << "it comes in parts now";
  EXPECT_EQ(landings_.on_unwritten(*session_, desk_, unwritten, kAt).code(), Code::kCorrupt);
}

TEST_F(LandingsTest, WhoStopsTakesItsMemoryBackAndLetsTheSenderGo) {
  carrier_.quits = true;
  want(kLendMin);
  landings_.forget(*session_, desk_, receive_, kAt);
  EXPECT_EQ(carrier_.taken_back.size(), 1U);
  EXPECT_EQ(words().size(), 1U) << "the sender finds out";
  const wire::RuntimeMessage unwritten{.kind = RuntimeKind::kUnwritten, .id = 40, .landing = receive_.landing};
  EXPECT_TRUE(landings_.on_unwritten(*session_, desk_, unwritten, kAt).ok());
  EXPECT_EQ(words().back().message.kind, RuntimeKind::kFetched);
}

TEST_F(LandingsTest, MemoryOfAMessageThatItsSenderStoppedIsTakenBack) {
  carrier_.quits = true;
  want(kLendMin);
  landings_.on_gone(desk_, {.kind = RuntimeKind::kGone, .id = 40}, Status(Code::kCancelled, "gone"));
  EXPECT_EQ(carrier_.taken_back.size(), 1U);
  EXPECT_EQ(ends_.size(), 1U);
}

}  // namespace
}  // namespace hawser::runtime
