#include "runtime/watchers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/bytes.h"

namespace hawser::runtime {
namespace {

constexpr Instant kSaidAt = Instant::from_ns(1'000'000);
constexpr std::uint64_t kItsWorld = 7, kOtherWorld = 8;

/// Writes down what it hears.
class Listening final : public Watcher {
 public:
  void on_close(Instant) override { watchers->remove(world); }
  std::uint64_t family() const override { return its_family; }
  void on_down(const Peer&, const Status&) override {
    heard.emplace_back("down");
    if (goes) watchers->remove(world), watchers->remove_past(world);
    if (takes != 0) watchers->remove(takes), watchers->remove_past(takes);
  }
  void on_failed(const Peer&, std::uint32_t rank, bool is_dead) override {
    heard.emplace_back((is_dead ? "dead " : "failed ") + std::to_string(rank));
    if (goes) watchers->remove(world);
  }
  void on_left(const Peer&) override { heard.emplace_back("left"); }
  void on_revoke(const Peer&, const Status& why) override {
    heard.emplace_back("revoked: " + std::string(why.message()));
  }
  void on_agreement(const Peer&, const wire::RuntimeMessage&) override { heard.emplace_back("agreement"); }
  bool is_misfit(const wire::MessageEnvelope&) override { return false; }
  void on_misfit(const Peer&, const wire::MessageEnvelope&, Instant) override {}
  void on_checked(const Peer&, std::uint64_t number, Code, Instant) override {
    heard.emplace_back("over " + std::to_string(number));
  }
  void on_lost(const Peer&, std::span<const std::byte> lost, bool) override {
    heard.emplace_back("lost " + std::string(base::as_text(lost)));
  }
  void on_topology(const Peer&, std::string_view topology) override {
    heard.emplace_back("topology " + std::string(topology));
  }

  Watchers* watchers = nullptr;
  std::uint64_t world = kItsWorld, takes = 0, its_family = 0;
  bool goes = false;
  std::vector<std::string> heard;
};

using Heard = std::vector<std::string>;

class WatchersTest : public testing::Test {
 protected:
  WatchersTest() { its_.watchers = other_.watchers = &watchers_, other_.world = kOtherWorld; }
  void say(Word word) { watchers_.tell(by_, word.whole(), early_, kSaidAt); }

  Peer by_;
  Watchers watchers_;
  EarlyWords early_;
  Listening its_, other_;
};

TEST_F(WatchersTest, EachWordGoesToItsWorldsWatcher) {
  watchers_.add(kItsWorld, its_);
  watchers_.add(kOtherWorld, other_);
  say(failed_word(kItsWorld, 3, false));
  say(failed_word(kItsWorld, 4, true));
  say(left_word(kOtherWorld));
  say(revoke_word(kItsWorld, Status(Code::kDenied, "no more")));
  say(checked_word(kItsWorld, 5, Code::kInvalid));
  say({{.kind = wire::RuntimeKind::kLost, .world = kItsWorld}, "two"});
  say({{.kind = wire::RuntimeKind::kTopology, .world = kItsWorld}, "ring"});
  say({{.kind = wire::RuntimeKind::kAgree, .world = kItsWorld}, {}});
  EXPECT_EQ(its_.heard,
            (Heard{"failed 3", "dead 4", "revoked: no more", "over 5", "lost two", "topology ring", "agreement"}));
  EXPECT_EQ(other_.heard, Heard{"left"});
  EXPECT_TRUE(early_.empty());
}

TEST_F(WatchersTest, WhatIsSaidOfAWorldBeforeItIsEnteredIsHeardThen) {
  say(revoke_word(kItsWorld, Status(Code::kDenied, "a text that is too long for a short string's own memory")));
  say(left_word(kOtherWorld));
  say(failed_word(kItsWorld, 1, false));
  watchers_.add(kItsWorld, its_);
  watchers_.tell_early(kItsWorld, by_, early_, kSaidAt);
  EXPECT_EQ(its_.heard, (Heard{"revoked: a text that is too long for a short string's own memory", "failed 1"}));
  ASSERT_EQ(early_.size(), 1U) << "the other world's waits on";
  watchers_.add(kOtherWorld, other_);
  watchers_.tell_early(kOtherWorld, by_, early_, kSaidAt);
  EXPECT_EQ(other_.heard, Heard{"left"});
}

TEST_F(WatchersTest, EarlyWordsAreBoundedAndTheOldestGo) {
  for (std::uint32_t rank = 0; rank <= kEarlyWordsMax; ++rank) say(failed_word(kItsWorld, rank, false));
  EXPECT_EQ(early_.size(), kEarlyWordsMax);
  watchers_.add(kItsWorld, its_);
  watchers_.tell_early(kItsWorld, by_, early_, kSaidAt);
  ASSERT_EQ(its_.heard.size(), kEarlyWordsMax);
  EXPECT_EQ(its_.heard.front(), "failed 1");
  EXPECT_EQ(its_.heard.back(), "failed " + std::to_string(kEarlyWordsMax));
}

TEST_F(WatchersTest, AWatcherThatGoesInAnEarlyWordHearsNoMore) {
  its_.goes = true;
  say(failed_word(kItsWorld, 1, false));
  say(failed_word(kItsWorld, 2, false));
  watchers_.add(kItsWorld, its_);
  watchers_.tell_early(kItsWorld, by_, early_, kSaidAt);
  EXPECT_EQ(its_.heard, Heard{"failed 1"});
  EXPECT_TRUE(early_.empty());
}

TEST_F(WatchersTest, OfAClosedWorldNothingIsKept) {
  watchers_.add(kItsWorld, its_);
  EXPECT_FALSE(watchers_.is_closed(kItsWorld));
  EXPECT_TRUE(watchers_.remove(kItsWorld));
  EXPECT_FALSE(watchers_.remove(kItsWorld)) << "once";
  EXPECT_TRUE(watchers_.is_closed(kItsWorld));
  EXPECT_EQ(watchers_.find(kItsWorld), nullptr);
  say(left_word(kItsWorld));
  EXPECT_TRUE(early_.empty());
  EXPECT_TRUE(its_.heard.empty());
}

TEST_F(WatchersTest, AnAgreementOfAClosedWorldGoesOn) {
  watchers_.add(kItsWorld, its_);
  watchers_.remove(kItsWorld);
  watchers_.add_past(kItsWorld, its_);
  say({{.kind = wire::RuntimeKind::kAgree, .world = kItsWorld}, {}});
  watchers_.tell_down(by_, Status(Code::kDisconnected, "it is gone"));
  EXPECT_EQ(its_.heard, (Heard{"agreement", "down"}));
  watchers_.remove_past(kItsWorld);
  say({{.kind = wire::RuntimeKind::kAgree, .world = kItsWorld}, {}});
  EXPECT_EQ(its_.heard.size(), 2U);
}

TEST_F(WatchersTest, AllHearThatAPeerFailedThoughTheyGoMeanwhile) {
  its_.goes = true;
  its_.takes = kOtherWorld;
  watchers_.add(kItsWorld, its_);
  watchers_.add(kOtherWorld, other_);
  watchers_.tell_down(by_, Status(Code::kDisconnected, "it is gone"));
  EXPECT_EQ(its_.heard, Heard{"down"});
  EXPECT_TRUE(other_.heard.empty()) << "it was closed by the first";
}

TEST_F(WatchersTest, AFamilyIsVisitedThoughItsWorldsGoMeanwhile) {
  its_.its_family = 3, other_.its_family = 4;
  watchers_.add(kItsWorld, its_);
  watchers_.add(kOtherWorld, other_);
  watchers_.for_family(3, [](Watcher& each) { each.on_close(kSaidAt); });
  EXPECT_TRUE(watchers_.is_closed(kItsWorld));
  EXPECT_EQ(watchers_.find(kOtherWorld), &other_);
  EXPECT_TRUE(watchers_.has_known(kItsWorld) && watchers_.has_known(kOtherWorld));
  EXPECT_FALSE(watchers_.has_known(99));
  watchers_.for_each([](Watcher& each) { each.on_agent_closing(Status(Code::kCancelled, "it closes"), kSaidAt); });
  EXPECT_TRUE(watchers_.is_closed(kOtherWorld));
}

TEST_F(WatchersTest, CloseAllClosesEach) {
  watchers_.add(kItsWorld, its_);
  watchers_.add(kOtherWorld, other_);
  watchers_.close_all(kSaidAt);
  EXPECT_TRUE(watchers_.is_closed(kItsWorld));
  EXPECT_TRUE(watchers_.is_closed(kOtherWorld));
}

}  // namespace
}  // namespace hawser::runtime
