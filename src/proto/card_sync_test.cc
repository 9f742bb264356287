#include "proto/card_sync.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace hawser::proto {
namespace {

using Asker = CardAsker::State;
using Teller = CardTeller::State;

/// One in each state.
CardAsker asker_in(Asker state) {
  CardAsker asker;
  if (state != Asker::kContent) asker.want();
  if (state == Asker::kAsked) asker.asked();
  return asker;
}

TEST(CardAsker, EachStateAndEvent) {
  struct Row {
    Asker from;
    std::function<void(CardAsker&)> event;
    Asker to;
  };
  const auto want = [](CardAsker& its) { its.want(); };
  const auto asked = [](CardAsker& its) { its.asked(); };
  const auto came = [](CardAsker& its) { its.came(); };
  const std::vector<Row> rows = {{Asker::kContent, want, Asker::kWanted},  {Asker::kContent, asked, Asker::kContent},
                                 {Asker::kContent, came, Asker::kContent}, {Asker::kWanted, want, Asker::kWanted},
                                 {Asker::kWanted, asked, Asker::kAsked},   {Asker::kWanted, came, Asker::kContent},
                                 {Asker::kAsked, want, Asker::kWanted},    {Asker::kAsked, asked, Asker::kAsked},
                                 {Asker::kAsked, came, Asker::kContent}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CardAsker asker = asker_in(rows[i].from);
    rows[i].event(asker);
    EXPECT_EQ(asker.state(), rows[i].to) << "row " << i;
    EXPECT_EQ(asker.must_ask(), rows[i].to == Asker::kWanted) << "row " << i;
  }
}

TEST(CardAsker, FollowsWhoseCardIsHereOnceAndThenWhatIsNewer) {
  CardAsker asker;
  EXPECT_FALSE(asker.follow(0, 5)) << "nothing is known of it: nobody wants it";
  EXPECT_TRUE(asker.follow(5, 5)) << "once, so that it tells of changes";
  asker.asked();
  asker.came();
  EXPECT_FALSE(asker.follow(5, 5));
  EXPECT_FALSE(asker.follow(5, 4)) << "an old word";
  EXPECT_TRUE(asker.follow(5, 6));
}

CardTeller teller_in(Teller state) {
  CardTeller teller;
  if (state == Teller::kStranger) return teller;
  teller.request(1, state == Teller::kCurrent ? 1 : 2);
  if (state == Teller::kSending) teller.made("card", 2);
  return teller;
}

TEST(CardTeller, EachStateAndEvent) {
  struct Row {
    Teller from;
    std::function<void(CardTeller&)> event;
    Teller to;
  };
  const auto same = [](CardTeller& its) { its.request(7, 7); };
  const auto lacks = [](CardTeller& its) { its.request(6, 7); };
  const auto change = [](CardTeller& its) { (void)its.change(); };
  const auto cut = [](CardTeller& its) { its.cut(); };
  const auto made = [](CardTeller& its) { its.made("delta", 3); };
  const auto failed = [](CardTeller& its) { its.failed(); };
  const auto part = [](CardTeller& its) { its.sent(3, 2); };
  const auto all = [](CardTeller& its) { its.sent(4, 2); };
  const auto all_but_changed = [](CardTeller& its) { its.sent(4, 3); };
  const std::vector<Row> rows = {{Teller::kStranger, same, Teller::kCurrent},
                                 {Teller::kStranger, lacks, Teller::kDue},
                                 {Teller::kStranger, change, Teller::kStranger},
                                 {Teller::kStranger, cut, Teller::kStranger},
                                 {Teller::kStranger, made, Teller::kStranger},
                                 {Teller::kStranger, failed, Teller::kStranger},
                                 {Teller::kStranger, all, Teller::kStranger},
                                 {Teller::kCurrent, same, Teller::kCurrent},
                                 {Teller::kCurrent, lacks, Teller::kDue},
                                 {Teller::kCurrent, change, Teller::kDue},
                                 {Teller::kCurrent, cut, Teller::kCurrent},
                                 {Teller::kCurrent, made, Teller::kCurrent},
                                 {Teller::kCurrent, failed, Teller::kCurrent},
                                 {Teller::kCurrent, all, Teller::kCurrent},
                                 {Teller::kDue, same, Teller::kCurrent},
                                 {Teller::kDue, lacks, Teller::kDue},
                                 {Teller::kDue, change, Teller::kDue},
                                 {Teller::kDue, cut, Teller::kCurrent},
                                 {Teller::kDue, made, Teller::kSending},
                                 {Teller::kDue, failed, Teller::kCurrent},
                                 {Teller::kDue, all, Teller::kDue},
                                 {Teller::kSending, same, Teller::kCurrent},
                                 {Teller::kSending, lacks, Teller::kDue},
                                 {Teller::kSending, change, Teller::kSending},
                                 {Teller::kSending, cut, Teller::kCurrent},
                                 {Teller::kSending, made, Teller::kSending},
                                 {Teller::kSending, failed, Teller::kSending},
                                 {Teller::kSending, part, Teller::kSending},
                                 {Teller::kSending, all, Teller::kCurrent},
                                 {Teller::kSending, all_but_changed, Teller::kDue}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CardTeller teller = teller_in(rows[i].from);
    ASSERT_EQ(teller.state(), rows[i].from) << "row " << i;
    rows[i].event(teller);
    EXPECT_EQ(teller.state(), rows[i].to) << "row " << i;
    EXPECT_EQ(teller.must_make(), rows[i].to == Teller::kDue) << "row " << i;
    EXPECT_EQ(teller.is_sending(), rows[i].to == Teller::kSending) << "row " << i;
  }
}

TEST(CardAsker, ACheckIsAnsweredThoughNothingChanged) {
  CardAsker asker;
  asker.check();
  EXPECT_TRUE(asker.must_ask());
  EXPECT_EQ(asker.since(7), 6u) << "the peer says nothing to who has all";
  EXPECT_EQ(asker.since(0), 0u);
  asker.came();
  EXPECT_TRUE(asker.must_ask()) << "what came was under way before";
  asker.asked(asker.since(7));
  EXPECT_EQ(asker.since(7), 7u);
  EXPECT_FALSE(asker.is_answer(7)) << "told by the peer itself, after what is known here";
  EXPECT_TRUE(asker.is_answer(6));
  EXPECT_FALSE(asker.is_answer(6)) << "once";
  asker.check();
  asker.asked(6);
  EXPECT_TRUE(asker.is_answer(0)) << "all of it, where the peer keeps no changes from then on";
  asker.want();
  asker.asked(6);
  EXPECT_FALSE(asker.is_answer(6)) << "no check";
}

TEST(CardTeller, GivesOutACardInParts) {
  CardTeller teller;
  teller.request(1, 4);
  EXPECT_EQ(teller.told(), 1u);
  teller.made("0123456789", 4);
  std::string all;
  std::vector<std::size_t> offsets;
  while (teller.is_sending()) {
    EXPECT_EQ(teller.total(), 10u);
    const auto part = teller.part(4);
    offsets.push_back(teller.offset());
    all.append(reinterpret_cast<const char*>(part.data()), part.size());
    teller.sent(part.size(), 4);
  }
  EXPECT_EQ(all, "0123456789");
  EXPECT_EQ(offsets, (std::vector<std::size_t>{0, 4, 8}));
  EXPECT_EQ(teller.told(), 4u);
  EXPECT_TRUE(teller.change());
  EXPECT_FALSE(teller.change()) << "one card tells of all that changed until it is made";
}

}  // namespace
}  // namespace hawser::proto
