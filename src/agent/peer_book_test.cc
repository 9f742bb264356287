#include "agent/peer_book.h"

#include <gtest/gtest.h>

namespace hawser::agent {
namespace {

class PeerBookTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kLimit = 3;
  void SetUp() override { book_.open(std::make_shared<PeerCore>(std::weak_ptr<Core>(), "self", base::Id128{1, 1})); }
  static backend::Identity who(std::string name, std::uint64_t number) {
    return {.name = std::move(name), .incarnation = {0, number}, .born = number};
  }
  PeerBook book_{"self", kLimit};
};

TEST_F(PeerBookTest, KnowsItselfAndTellsOfOthersOnly) {
  EXPECT_TRUE(book_.self()->is_self);
  EXPECT_EQ(book_.known({1, 1}), book_.self());
  EXPECT_TRUE(book_.all().empty());
}

TEST_F(PeerBookTest, MeetingTwiceGivesOnePeerWithTheLaterBirth) {
  const auto first = *book_.meet(who("a", 7));
  backend::Identity later = who("a", 7);
  later.born = 9;
  EXPECT_EQ(*book_.meet(later), first);
  EXPECT_EQ(first->born(), 9u);
  EXPECT_EQ(book_.all().size(), 1u);
  EXPECT_EQ(book_.known({0, 7}), first);
  EXPECT_EQ(book_.known({0, 8}), nullptr);
}

TEST_F(PeerBookTest, HoldsAsManyAsTheLimitAndRefusesOneMore) {
  ASSERT_TRUE(book_.meet(who("a", 1)));
  ASSERT_TRUE(book_.meet(who("b", 2)));
  const Status refused = book_.meet(who("c", 3)).error();
  EXPECT_EQ(refused.code(), Code::kBusy);
  EXPECT_NE(refused.to_string().find("limits.peers = 3"), std::string::npos) << refused.to_string();
  EXPECT_TRUE(book_.meet(who("b", 2))) << "one that is known needs no place";
  book_.forget(*book_.known({0, 1}));
  EXPECT_TRUE(book_.meet(who("c", 3)));
}

TEST_F(PeerBookTest, ForgettingAnEarlierPeerKeepsThatWhichWasMetSince) {
  const auto first = *book_.meet(who("a", 7));
  book_.forget(*first);
  const auto second = *book_.meet(who("a", 7));
  EXPECT_NE(first, second);
  book_.forget(*first);
  EXPECT_EQ(book_.known({0, 7}), second);
  book_.forget_all();
  EXPECT_EQ(book_.known({0, 7}), nullptr);
}

TEST_F(PeerBookTest, RemembersTheDeadUntilTheyLive) {
  const auto peer = *book_.meet(who("a", 7));
  EXPECT_FALSE(book_.judge(peer->incarnation, 1));
  book_.note_death(*peer, Status(Code::kDisconnected, "killed"));
  const std::optional<Status> death = book_.judge(peer->incarnation, 1);
  ASSERT_TRUE(death);
  EXPECT_NE(death->to_string().find("killed"), std::string::npos);
  book_.note_life(*peer);
  EXPECT_FALSE(book_.judge(peer->incarnation, 1));
}

TEST_F(PeerBookTest, ItsOwnAgentDoesNotDie) {
  book_.note_death(*book_.self(), Status(Code::kDisconnected, "the agent closed"));
  EXPECT_FALSE(book_.judge(book_.self()->incarnation, 1));
}

}  // namespace
}  // namespace hawser::agent
