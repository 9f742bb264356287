#include "agent/region_closer.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "agent/test_regions.h"

namespace hawser::agent {
namespace {

using std::chrono::milliseconds;

class RegionCloserTest : public testing::Test, protected TestRegions, public RegionCloser::Users {
 protected:
  RegionCloserTest() : TestRegions(100) {}
  void SetUp() override {
    open("test", backend_);
    card_.open({.name = name_});
  }

  // As users of regions.
  void take_submissions(Instant) override { ++submissions_taken_; }
  void end_use(const LocalRegion& region, Instant) override {
    EXPECT_GT(submissions_taken_, 0) << "what was submitted before is there to be ended";
    ended_.push_back(region.entry->index);
  }
  void forget(const backend::RegionEntry& region) override { forgotten_.push_back(region.index); }
  void card_changed() override { ++card_changes_; }

  std::shared_ptr<LocalRegion> add(std::string name = "") {
    auto entry = std::make_shared<backend::RegionEntry>();
    entry->name = std::move(name);
    entry->size = memory_.size();
    entry->base = memory_.data();
    EXPECT_TRUE(names_.take("test", std::span(&entry, 1), &wrong_).ok());
    EXPECT_TRUE(table_.add(std::span(&entry, 1)).ok());
    EXPECT_TRUE(backend_->add_region(*entry));
    auto region = std::make_shared<LocalRegion>(std::shared_ptr<Core>(), entry, false);
    const InLaneGuard guard(lane_);
    book_.add(region);
    OwnCard::Told told{.entry = entry, .extras = {}};
    card_.add_regions({&told, 1});
    return region;
  }
  Status close(const std::shared_ptr<LocalRegion>& region, Duration timeout = milliseconds(10)) {
    return closer_.close(std::span(&region, 1), timeout);
  }
  TestPort& port() { return port_of(backends_[0]); }

  std::array<std::byte, 64> memory_{};
  std::shared_ptr<TestBackend> backend_ = std::make_shared<TestBackend>();
  int submissions_taken_ = 0, card_changes_ = 0;
  std::vector<std::uint32_t> ended_, forgotten_;
  RegionCloser closer_{parts_of_closer(*this)};
};

TEST_F(RegionCloserTest, ClosesAtOnceWhatNobodyUses) {
  const auto region = add("r");
  const std::uint32_t index = region->entry->index;
  const std::uint64_t revision = card_.revision();
  ASSERT_TRUE(close(region).ok());
  EXPECT_EQ(region->state.load(), RegionState::kClosed);
  EXPECT_EQ(lane_.waits, 0);
  EXPECT_EQ(port().closing, std::vector<std::uint32_t>{index});
  EXPECT_EQ(ended_, std::vector<std::uint32_t>{index});
  EXPECT_EQ(forgotten_, std::vector<std::uint32_t>{index});
  EXPECT_TRUE(backend_->regions.empty());
  EXPECT_TRUE(book_.all().empty());
  EXPECT_EQ(table_.count(), 0u);
  EXPECT_EQ(card_.revision(), revision + 1);
  EXPECT_EQ(card_changes_, 1);
  const auto again = add("r");  // Its name is free.
  EXPECT_TRUE(close(again).ok());
  EXPECT_TRUE(close(again).ok()) << "closing a closed one changes nothing";
  EXPECT_EQ(card_changes_, 2);
}

TEST_F(RegionCloserTest, WaitsForWhoUsesItAndSaysWho) {
  const auto region = add("r");
  const std::pair<std::uint32_t*, std::string> users[] = {{&region->users, "1 transfers of this agent"},
                                                          {&region->watchers, "1 threads that wait for a word"},
                                                          {&region->newcomers, "a backend that is being added"}};
  for (const auto& [count, who] : users) {
    *count = 1;
    const Status used = close(region);
    EXPECT_EQ(used.code(), Code::kTimedOut);
    EXPECT_NE(used.to_string().find(who), std::string::npos) << used.to_string();
    *count = 0;
  }
  port().touched.insert(region->entry->index);
  EXPECT_NE(close(region).to_string().find("a peer"), std::string::npos);
  EXPECT_EQ(card_changes_, 1) << "it began to close once";
  EXPECT_EQ(names_.take("test", {}, &wrong_).code(), Code::kOk);
  EXPECT_EQ(book_.all().size(), 1u);
  EXPECT_TRUE(book_.open().empty());
  lane_.meanwhile = [&] { port().touched.clear(); };
  EXPECT_TRUE(close(region).ok());
  EXPECT_EQ(table_.count(), 0u);
}

TEST_F(RegionCloserTest, OfSeveralEachThatCanBeIsClosed) {
  const std::vector<std::shared_ptr<LocalRegion>> all{add(), add(), add()};
  port().touched.insert(all[1]->entry->index);
  EXPECT_EQ(closer_.close(all, milliseconds(3)).code(), Code::kTimedOut);
  EXPECT_EQ(all[0]->state.load(), RegionState::kClosed);
  EXPECT_EQ(all[1]->state.load(), RegionState::kClosing);
  EXPECT_EQ(all[2]->state.load(), RegionState::kClosed);
}

TEST_F(RegionCloserTest, MoreThanAreClosedAtOnceAreClosedInTurns) {
  std::vector<std::shared_ptr<LocalRegion>> all;
  for (int i = 0; i < 65; ++i) all.push_back(add());
  EXPECT_TRUE(closer_.close(all, milliseconds(3)).ok());
  EXPECT_EQ(card_changes_, 2) << "64 and one";
  EXPECT_EQ(table_.count(), 0u);
}

TEST_F(RegionCloserTest, ThoseWhoWaitForAWordOfItLookAgain) {
  const auto region = add();
  region->watchers = 1;
  (void)close(region, Duration::zero());
  EXPECT_EQ(lane_.tidings, 1);
}

TEST_F(RegionCloserTest, ABackendThatLetsGoSlowlyDoesItWithoutTheLane) {
  backend_->its_traits.lets_go_slowly = true;
  const auto region = add();
  bool was_locked = true;
  backend_->meanwhile = [&] { was_locked = lane_.is_locked; };
  EXPECT_TRUE(close(region).ok());
  EXPECT_FALSE(was_locked);
  EXPECT_EQ(backend_->let_go_of.size(), 1u);
  const auto used = add();
  used->users = 1;
  (void)close(used, Duration::zero());
  EXPECT_EQ(backend_->let_go_of.size(), 1u) << "not while a transfer uses it";
}

TEST_F(RegionCloserTest, OneThatWasDroppedInUseIsSweptLater) {
  auto region = add();
  const auto entry = region->entry;
  region->users = 1;
  LocalRegion& its = *region;
  closer_.drop(std::move(region));
  ASSERT_TRUE(closer_.has_dropped());
  std::size_t told = 0;
  closer_.describe([&](const Waiting& each) { told = each.count; });
  EXPECT_EQ(told, 1u);
  const Instant first = closer_.next_deadline();
  EXPECT_EQ(closer_.turn(first), 0u);
  ASSERT_TRUE(closer_.has_jobs());
  lane_.clock.now_ = first;
  closer_.run_jobs(first);
  EXPECT_EQ(closer_.next_deadline(), first + milliseconds(2)) << "twice as long after each look";
  its.users = 0;
  (void)closer_.turn(first);
  closer_.run_jobs(first);
  EXPECT_FALSE(closer_.has_dropped());
  EXPECT_EQ(table_.count(), 0u);
  EXPECT_TRUE(backend_->regions.empty());
}

TEST_F(RegionCloserTest, OneThatNobodyUsesIsDroppedAtOnce) {
  closer_.drop(add());
  EXPECT_FALSE(closer_.has_dropped());
  EXPECT_EQ(table_.count(), 0u);
}

TEST_F(RegionCloserTest, TheEndOfTheAgentLeavesWhatIsUsed) {
  const auto quiet = add("quiet"), used = add("used"), closed = add("closed");
  ASSERT_TRUE(close(closed).ok());
  (void)close(quiet, Duration::zero());
  port().touched.insert(used->entry->index);
  closer_.drop(used);
  RegionCloser::Abandoned abandoned;
  {
    const InLaneGuard guard(lane_);
    abandoned = closer_.abandon();
    life_.end();
  }
  closer_.release(abandoned);
  EXPECT_EQ(abandoned.left, RegionBook::Regions{used});
  EXPECT_FALSE(closer_.has_dropped());
  const Status left = close(used);
  EXPECT_EQ(left.code(), Code::kTimedOut);
  EXPECT_NE(left.to_string().find("still used by a peer when its agent was closed"), std::string::npos)
      << left.to_string();
  EXPECT_EQ(lane_.waits, 0) << "nobody can tell when that ends, so nobody waits";
  closer_.drop(used);
  EXPECT_FALSE(closer_.has_dropped()) << "nothing is swept any more";
}

}  // namespace
}  // namespace hawser::agent
