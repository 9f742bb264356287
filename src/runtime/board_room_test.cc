#include "runtime/board_room.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/board_call.h"
#include "runtime/test_boards.h"
#include "runtime/test_ranks.h"

namespace hawser::runtime {
namespace {

class BoardLook final : public backend::View {
 public:
  BoardLook(std::span<const std::byte> bytes, int& held) : bytes_(bytes), held_(held) { ++held_; }
  ~BoardLook() override { let_go(); }
  std::span<const std::byte> bytes() const override { return bytes_; }
  std::uint64_t first() const override { return 0; }
  void let_go() override {
    if (std::exchange(holds_, false)) --held_;
  }

 private:
  const std::span<const std::byte> bytes_;
  int& held_;
  bool holds_ = true;
};

/// A barrier of one rank.
class BoardBarrier final : public BoardUser {
 public:
  BoardBarrier(BoardRoom& room, std::uint32_t rank, std::uint64_t turns)
      : room_(room), called_{.rank = place_of(room, rank), .size = room.size()}, turns_(turns) {}
  void begin_to_tell(MappedCall& its, Instant) override {
    letters = &its;
    how += "tells ";
  }
  std::uint64_t turns() const override { return turns_; }
  void begin_on_board(Board& board, std::uint64_t turn, Instant now) override {
    how += "board " + std::to_string(turn);
    call_ = std::make_unique<BoardCall>(board, called_, BoardCall::Buffers{}, turn, turn, 0);
    look(now);
    if (!is_over) room_.wait_for(*this);
  }
  void begin_by_messages(Instant) override { how += "messages"; }
  bool look(Instant now) override {
    using Step = BoardCall::Step;
    Step step = call_->go_on();
    if (step == Step::kMoved) {
      room_.ring(now);
      step = call_->go_on();
    }
    if (step != Step::kOver) return false;
    is_over = true;
    room_.leave(*this, call_->turn(), true, now);
    return true;
  }
  bool has_news() const override { return call_->has_news(); }
  bool awaits_one_on(int core) const override { return call_->awaits_one_on(core); }
  std::optional<std::uint32_t> out_of_sight() const { return call_->out_of_sight(); }
  /// All letters are there.
  void decide() {
    std::uint64_t turn = 0;
    const Result<bool> decided = room_.decide(&turn);
    ASSERT_TRUE(decided.has_value()) << decided.error().to_string();
    *decided ? begin_on_board(room_.board(), turn, kMoment) : begin_by_messages(kMoment);
  }

  MappedCall* letters = nullptr;
  std::string how;
  bool is_over = false;

 private:
  static std::uint32_t place_of(const BoardRoom& room, std::uint32_t rank) {
    std::uint32_t place = 0;
    while (room.rank_at(place) != rank) ++place;
    return place;
  }

  BoardRoom& room_;
  const schedule::Call called_;
  const std::uint64_t turns_;
  std::unique_ptr<BoardCall> call_;
};

/// All ranks' rooms, over one mailbox. BoardMemory is seen from the second time on that a rank asks for it.
class BoardRoomTest : public TestRanks {
 protected:
  static constexpr std::uint32_t kRanks = 3;

  BoardRoomTest() {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      rooms_.push_back(std::make_unique<BoardRoom>(BoardRoom::Site{
          .world = 7,
          .rank = rank,
          .ranks = ranks_,
          .mailbox = &mailbox_,
          .memory = &known_[rank],
          .place = [this, rank](std::span<const std::byte> bytes) -> std::optional<agent::inner::MappedPlace> {
            if (bytes.data() != memories_[rank].bytes.data()) return std::nullopt;
            return agent::inner::MappedPlace{
                .region = {.index = rank, .generation = 1, .key = {1, 1}}, .region_size = kBoardBytes, .offset = 0};
          },
          .view = [this](const RankRegion& region) -> Result<std::unique_ptr<backend::View>> {
            if (asked_++ < kRanks * 2) return Status(Code::kBusy, "it is being asked for");
            return std::unique_ptr<backend::View>(std::make_unique<BoardLook>(memories_[region.rank].bytes, held_));
          }}));
      rooms_.back()->know_hosts({});
    }
  }
  ~BoardRoomTest() override {
    for (const auto& room : rooms_) room->close();
  }
  void give_memory() {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) rooms_[rank]->give_memory(memories_[rank].bytes, nullptr);
  }
  /// The next collective of that rank.
  BoardBarrier& begin(std::uint32_t rank) {
    users_.push_back(std::make_unique<BoardBarrier>(*rooms_[rank], rank, turns_));
    rooms_[rank]->enter(*users_.back(), kMoment);
    return *users_.back();
  }
  std::vector<BoardBarrier*> begin_all() {
    std::vector<BoardBarrier*> all;
    for (std::uint32_t place = 0; place < rooms_[0]->size(); ++place) all.push_back(&begin(rooms_[0]->rank_at(place)));
    return all;
  }
  static void exchange_letters(const std::vector<BoardBarrier*>& all) {
    for (BoardBarrier* const to : all) {
      for (std::size_t from = 0; from < all.size(); ++from) {
        std::ranges::copy(all[from]->letters->own_letter(),
                          to->letters->letters().subspan(from * wire::kBufferLetterSize).begin());
      }
    }
  }
  void decide(const std::vector<BoardBarrier*>& all) {
    exchange_letters(all);
    for (BoardBarrier* const each : all) each->decide();
    mailbox_.run_jobs(kMoment);
  }
  void open() {
    give_memory();
    decide(begin_all());
    decide(begin_all());
    while (mailbox_.expire(kMoment) > 0) {
    }
  }
  std::size_t bells(std::size_t rank) {
    return static_cast<std::size_t>(std::ranges::count_if(
        told(rank), [](const wire::RuntimeMessage& said) { return said.kind == wire::RuntimeKind::kBell; }));
  }

  std::array<BoardMemory, kRanks> memories_;
  std::array<MappedMemory, kRanks> known_;
  std::uint32_t asked_ = 0;
  std::uint64_t turns_ = 1;
  int held_ = 0;
  std::vector<std::unique_ptr<BoardRoom>> rooms_;
  std::vector<std::unique_ptr<BoardBarrier>> users_;
};

TEST_F(BoardRoomTest, OpensOnceAllSeeAllAndHoldsNothingOpenThen) {
  give_memory();
  const std::vector<BoardBarrier*> first = begin_all();
  decide(first);
  for (BoardBarrier* const each : first) EXPECT_EQ(each->how, "tells messages");
  const std::vector<BoardBarrier*> second = begin_all();
  decide(second);
  for (BoardBarrier* const each : second) EXPECT_EQ(each->how, "tells board 0");
  EXPECT_EQ(held_, 0);
  const std::vector<BoardBarrier*> third = begin_all();
  for (BoardBarrier* const each : third) EXPECT_EQ(each->how, "board 1");
}

TEST_F(BoardRoomTest, WithoutMemoryOfOneRankAllGoByMessagesAndTryEverMoreRarely) {
  for (std::uint32_t rank = 1; rank < kRanks; ++rank) rooms_[rank]->give_memory(memories_[rank].bytes, nullptr);
  int tries = 0;
  for (int i = 0; i < 16; ++i) {
    const std::vector<BoardBarrier*> all = begin_all();
    if (all[0]->letters != nullptr) {
      ++tries;
      decide(all);
    }
    for (BoardBarrier* const each : all) EXPECT_TRUE(each->how.ends_with("messages")) << each->how;
  }
  EXPECT_EQ(tries, 5);
}

TEST_F(BoardRoomTest, MatesOfAHostOpenTheirBoardsAlone) {
  for (const auto& room : rooms_) room->know_hosts({0, 1, 0});
  EXPECT_EQ(rooms_[2]->size(), 2U);
  EXPECT_EQ(rooms_[2]->rank_at(1), 2U);
  EXPECT_EQ(rooms_[1]->size(), 1U);
  asked_ = kRanks * 2 - rooms_[0]->size();  // There are fewer who ask.
  open();
  BoardBarrier& one = begin(0);
  EXPECT_EQ(one.how, "board 1");
  EXPECT_EQ(mailbox_.expire(kMoment), 0U);
  EXPECT_TRUE(mailbox_.prepare_sleep());
  BoardBarrier& other = begin(2);
  EXPECT_TRUE(other.is_over);
  EXPECT_EQ(bells(0), 1U);
  EXPECT_EQ(bells(1) + bells(2), 0U);
  EXPECT_EQ(rooms_[2]->unread(), std::vector<std::uint32_t>{0});
  rooms_[0]->on_bell(kMoment);
  EXPECT_TRUE(one.is_over);
}

TEST_F(BoardRoomTest, OfOneWithTwoTurnsBothAreTakenAtItsBeginningAndEndWithIt) {
  turns_ = 2;
  open();
  BoardBarrier& one = begin(0);
  BoardBarrier& two = begin(0);
  EXPECT_EQ(one.how, "board 2");
  EXPECT_EQ(two.how, "board 4");
  rooms_[0]->rest(one);
  EXPECT_EQ(rooms_[0]->unread(), (std::vector<std::uint32_t>{0, 1, 2}));
  for (const std::uint32_t rank : {1U, 2U, 1U, 2U}) EXPECT_TRUE(begin(rank).how.starts_with("board"));
  mailbox_.expire(kMoment);
  EXPECT_FALSE(one.is_over) << "one that rests is not looked at";
  EXPECT_TRUE(two.is_over);
  EXPECT_TRUE(one.look(kMoment));
  mailbox_.expire(kMoment);
  EXPECT_TRUE(rooms_[0]->unread().empty());
}

TEST_F(BoardRoomTest, WhatBeginsBeforeATryIsDecidedGoesAsAllDo) {
  give_memory();
  decide(begin_all());
  const std::vector<BoardBarrier*> second = begin_all();
  BoardBarrier& early = begin(0);
  BoardBarrier& earlier = begin(0);
  EXPECT_EQ(early.how, "");
  rooms_[0]->forget(earlier);
  decide(second);
  EXPECT_EQ(early.how, "board 1");
  EXPECT_EQ(earlier.how, "");
  EXPECT_EQ(begin(1).how, "board 1");
}

TEST_F(BoardRoomTest, ABoardCanBeLookedAtBeforeItsOwnerHasDecided) {
  give_memory();
  decide(begin_all());
  const std::vector<BoardBarrier*> second = begin_all();
  exchange_letters(second);
  second[0]->decide();
  EXPECT_FALSE(second[0]->is_over);
  EXPECT_EQ(second[0]->out_of_sight(), std::nullopt);
  second[1]->decide();
  second[2]->decide();
  EXPECT_TRUE(second[2]->is_over);
}

TEST_F(BoardRoomTest, ATryThatFailsHoldsNothingOpen) {
  give_memory();
  decide(begin_all());
  const std::vector<BoardBarrier*> second = begin_all();
  EXPECT_EQ(held_, 6);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) rooms_[rank]->forget(*second[rank]);
  EXPECT_EQ(held_, 0);
}

TEST_F(BoardRoomTest, OneThatWaitsLooksInEachTurnUntilItHasAskedForABell) {
  open();
  BoardBarrier& one = begin(0);
  EXPECT_EQ(mailbox_.next_deadline(), Instant());
  EXPECT_EQ(mailbox_.expire(kMoment), 0U);
  EXPECT_TRUE(mailbox_.prepare_sleep());
  EXPECT_NE(mailbox_.next_deadline(), Instant());
  BoardBarrier& two = begin(1);
  EXPECT_EQ(bells(0), 1U);
  EXPECT_FALSE(one.is_over);
  rooms_[0]->on_bell(kMoment);
  EXPECT_FALSE(one.is_over);  // Not all are there: it asks anew.
  EXPECT_EQ(mailbox_.expire(kMoment), 0U);
  EXPECT_TRUE(mailbox_.prepare_sleep());
  BoardBarrier& three = begin(2);
  EXPECT_TRUE(three.is_over);
  EXPECT_EQ(bells(0), 2U);
  EXPECT_EQ(bells(1), 1U);
  rooms_[0]->on_bell(kMoment);
  rooms_[1]->on_bell(kMoment);
  EXPECT_TRUE(one.is_over);
  EXPECT_TRUE(two.is_over);
  EXPECT_NE(mailbox_.next_deadline(), Instant());
}

TEST_F(BoardRoomTest, OneThatWaitsOnACoreTellsTheOthersAndKnowsWhoIsThere) {
  constexpr int kCore = 1000;  // None that the test runs on.
  EXPECT_FALSE(rooms_[0]->wait_on(kCore)) << "nothing is open yet";
  open();
  EXPECT_FALSE(rooms_[0]->wait_on(kCore)) << "it waits for nobody";
  begin(0);
  EXPECT_FALSE(rooms_[0]->wait_on(kCore)) << "nobody else is there";
  begin(1);
  EXPECT_FALSE(rooms_[1]->wait_on(kCore)) << "rank 0 is there, and has come";
  rooms_[2]->wait_on(kCore);
  EXPECT_TRUE(rooms_[0]->wait_on(kCore));
  EXPECT_TRUE(rooms_[1]->wait_on(kCore));
}

TEST_F(BoardRoomTest, WhoIsAboutToSleepLooksOnceMore) {
  open();
  begin(0);
  begin(1);
  BoardBarrier& three = begin(2);
  ASSERT_TRUE(three.is_over);
  EXPECT_FALSE(mailbox_.prepare_sleep());  // All is there.
  EXPECT_EQ(mailbox_.expire(kMoment), 2U);
  EXPECT_TRUE(mailbox_.prepare_sleep());
}

TEST_F(BoardRoomTest, WhoGoesOnByItselfTakesTheNextTurnOnceItIsOpen) {
  give_memory();
  decide(begin_all());
  EXPECT_FALSE(rooms_[0]->is_open());
  const std::vector<BoardBarrier*> second = begin_all();
  EXPECT_FALSE(rooms_[0]->is_open()) << "it is not decided";
  BoardBarrier& held = begin(0);
  exchange_letters(second);
  for (BoardBarrier* const each : second) each->decide();
  EXPECT_FALSE(rooms_[0]->is_open()) << "another one comes first";
  mailbox_.run_jobs(kMoment);
  EXPECT_EQ(held.how, "board 1");
  ASSERT_TRUE(rooms_[0]->is_open());
  EXPECT_EQ(rooms_[0]->take_turns(2), 2U);
  EXPECT_EQ(begin(0).how, "board 4");
  rooms_[0]->end_well(2, 2, kMoment);
  EXPECT_EQ(rooms_[0]->unread_of_good_ones(), (std::vector<std::uint32_t>{0, 1, 2}));
}

// One that ended badly may wait for mates that never come to it.
TEST_F(BoardRoomTest, WhatEndedWellIsStillToBeReadByOthers) {
  open();
  begin(1);
  begin(2);
  EXPECT_TRUE(begin(0).is_over);
  EXPECT_EQ(rooms_[0]->unread_of_good_ones(), (std::vector<std::uint32_t>{1, 2}));
  BoardBarrier& bad = begin(0);
  mailbox_.expire(kMoment);
  EXPECT_TRUE(rooms_[0]->unread_of_good_ones().empty());
  EXPECT_EQ(rooms_[0]->unread(), (std::vector<std::uint32_t>{0, 1, 2}));
  rooms_[0]->leave(bad, 2, false, kMoment);
  EXPECT_EQ(rooms_[0]->unread(), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_TRUE(rooms_[0]->unread_of_good_ones().empty());
}

TEST_F(BoardRoomTest, WhatWasWrittenIsReadOnceAllHaveEnded) {
  EXPECT_TRUE(rooms_[0]->unread().empty());
  open();
  begin(1);
  begin(2);
  const BoardBarrier& last = begin(0);
  EXPECT_TRUE(last.is_over);
  EXPECT_EQ(rooms_[0]->unread(), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(mailbox_.expire(kMoment), 2U);
  EXPECT_TRUE(rooms_[0]->unread().empty());
}

}  // namespace
}  // namespace hawser::runtime
