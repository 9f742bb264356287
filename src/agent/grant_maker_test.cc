// Making grants, and ending them: the maker, the ends and the closer on books without an agent.

#include "agent/grant_maker.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>

#include "agent/test_regions.h"
#include "base/bytes.h"

namespace hawser::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class GrantMakerTest : public testing::Test,
                       protected TestRegions,
                       public TestRegistrarHost,
                       public RegionCloser::Users {
 protected:
  GrantMakerTest() : TestRegions(10) {}
  void SetUp() override {
    card_.open({.name = name_});
    checking_->its_traits.checks_holder = true;
    open("checking", checking_);
    open("rdma", rdma_);
    identity_.name = name_;
    identity_.incarnation = {1, 2};
    parent_ = add_parent();
  }
  void TearDown() override {
    const InLaneGuard guard(lane_);
    grants_.clear();
  }

  // As the agent.
  void card_changed() override { ++card_changes_; }
  void take_submissions(Instant) override {}
  void end_use(const LocalRegion&, Instant) override {}
  void forget(const backend::RegionEntry&) override {}

  std::shared_ptr<LocalRegion> add_parent() {
    auto entry = std::make_shared<backend::RegionEntry>();
    entry->name = "r";
    entry->base = memory_.data();
    entry->size = memory_.size();
    entry->rights = Rights::kReadWrite;
    entry->listed = false;
    RegionRegistrar::Registered made = registrar_.add("add_region", std::span(&entry, 1), false);
    EXPECT_TRUE(made.status.ok()) << made.status.to_string();
    return made.regions.front();
  }
  Result<std::shared_ptr<const GrantCore>> grant(GrantWish wish) { return maker_.make(parent_, wish); }
  static wire::Grant told(const GrantCore& its) { return *wire::decode_grant(base::as_bytes(its.bytes)); }
  static bool has(const TestBackend& backend, const GrantCore& its) {
    return backend.regions.contains(its.region->entry->index);
  }
  std::size_t count() {
    const InLaneGuard guard(lane_);
    return grants_.count();
  }
  void turn() {
    {
      const InLaneGuard guard(lane_);
      if (lane_.clock.now() >= ends_.next_deadline()) ends_.turn(lane_.clock.now());
    }
    if (ends_.has_jobs()) ends_.run_jobs(lane_.clock.now());
  }

  std::array<std::byte, 4096> memory_{};
  std::shared_ptr<TestBackend> checking_ = std::make_shared<TestBackend>("c"),
                               rdma_ = std::make_shared<TestBackend>("rkey");
  backend::Identity identity_;
  int card_changes_ = 0;
  RegionRegistrar registrar_ = make_registrar(*this, true);
  RegionCloser closer_{parts_of_closer(*this)};
  GrantEnds ends_{lane_, table_, grants_, closer_};
  GrantMaker maker_{{.lane = lane_,
                     .clock = lane_.clock,
                     .life = life_,
                     .identity = identity_,
                     .backends = backends_,
                     .registrar = registrar_,
                     .closer = closer_,
                     .book = grants_,
                     .ends = ends_}};
  std::shared_ptr<LocalRegion> parent_;
};

constexpr GrantWish kWish{.offset = 512, .size = 1024, .rights = Rights::kWrite, .expiry = seconds(5)};

TEST_F(GrantMakerTest, AGrantIsAnUnlistedRegionOfItsOwn) {
  const std::uint64_t revision = card_.revision();
  const int wakes = lane_.wakes;
  const auto made = grant(kWish).value();
  const backend::RegionEntry& entry = *made->region->entry;
  EXPECT_EQ(entry.base, memory_.data() + 512);
  EXPECT_EQ(entry.size, 1024u);
  EXPECT_EQ(entry.rights, Rights::kWrite);
  EXPECT_NE(entry.key, parent_->entry->key);
  EXPECT_TRUE(entry.is_grant);
  EXPECT_EQ(card_.revision(), revision);
  EXPECT_EQ(card_changes_, 0);
  EXPECT_GT(lane_.wakes, wakes) << "who sleeps must not sleep beyond its expiry";
  const wire::Grant its = told(*made);
  EXPECT_EQ(its.owner, identity_.incarnation);
  EXPECT_EQ(its.key, entry.key);
  EXPECT_EQ(its.size, 1024u);
  EXPECT_EQ(its.lifetime_ms, 5000u);
  EXPECT_EQ(its.extras, (std::vector<std::pair<std::string, std::string>>{{"checking", "c"}, {"rdma", "rkey"}}));
}

TEST_F(GrantMakerTest, OneForAPeerIsKeptFromBackendsThatCannotTellPeersApart) {
  GrantWish wish = kWish;
  wish.holder = {9, 9};
  const auto made = grant(wish).value();
  EXPECT_TRUE(has(*checking_, *made));
  EXPECT_FALSE(has(*rdma_, *made));
  EXPECT_EQ(told(*made).holder, wish.holder);
  EXPECT_EQ(told(*made).extras.size(), 1u);
  checking_->its_traits.checks_holder = false;
  const Status refused = grant(wish).error();
  EXPECT_EQ(refused.code(), Code::kUnsupported) << refused.to_string();
  EXPECT_EQ(count(), 1u);
  EXPECT_EQ(table_.count(), 2u) << "nothing is left of it";
  checking_->its_traits.checks_holder = checking_->its_traits.self_only = true;
  EXPECT_EQ(grant(wish).error().code(), Code::kUnsupported) << "it leads to no peer";
  EXPECT_TRUE(grant(kWish));
}

TEST_F(GrantMakerTest, ItsTimeIsExact) {
  const auto made = grant({.size = 8, .rights = Rights::kRead, .expiry = milliseconds(10)}).value();
  const std::uint32_t index = made->region->entry->index, generation = made->region->entry->generation;
  const Instant begun = lane_.clock.now();
  lane_.clock.now_ = begun + milliseconds(10) - Duration(1);
  turn();
  EXPECT_TRUE(table_.is_open(index, generation));
  lane_.clock.now_ = begun + milliseconds(10);
  {
    const InLaneGuard guard(lane_);
    EXPECT_EQ(ends_.turn(lane_.clock.now()), 1u);
  }
  EXPECT_FALSE(table_.is_open(index, generation)) << "before the turn serves anybody";
  EXPECT_EQ(made->region->state.load(), RegionState::kOpen);
  turn();
  EXPECT_EQ(made->region->state.load(), RegionState::kClosed);
  EXPECT_FALSE(has(*rdma_, *made));
  EXPECT_EQ(count(), 0u);
  EXPECT_EQ(ends_.next_deadline(), Instant::max());
}

TEST_F(GrantMakerTest, OneInUseIsClosedOnceItIsQuiet) {
  const auto made = grant({.size = 8, .rights = Rights::kRead, .expiry = milliseconds(10)}).value();
  port_of(backends_[0]).touched.insert(made->region->entry->index);
  lane_.clock.now_ = lane_.clock.now() + milliseconds(10);
  turn();
  EXPECT_EQ(made->region->state.load(), RegionState::kClosing);
  EXPECT_EQ(closer_.close(std::span(&parent_, 1), milliseconds(5)).code(), Code::kTimedOut);
  EXPECT_NE(parent_->state.load(), RegionState::kClosed) << "its memory is in use by the grant";
  port_of(backends_[0]).touched.clear();
  EXPECT_TRUE(closer_.close(std::span(&parent_, 1), milliseconds(5)).ok());
  EXPECT_EQ(made->region->state.load(), RegionState::kClosed);
  EXPECT_EQ(parent_->state.load(), RegionState::kClosed);
}

TEST_F(GrantMakerTest, ARegionClosesWithItsGrants) {
  std::vector<std::shared_ptr<const GrantCore>> grants;
  for (int i = 0; i < 4; ++i) grants.push_back(grant(kWish).value());
  EXPECT_EQ(grant(kWish).error().code(), Code::kBusy) << "the book of the test has room for four";
  const std::shared_ptr<LocalRegion> first = grants[0]->region;
  EXPECT_TRUE(closer_.close(std::span(&first, 1), milliseconds(0)).ok());
  EXPECT_EQ(parent_->state.load(), RegionState::kOpen) << "a grant that is revoked ends itself alone";
  EXPECT_TRUE(closer_.close(std::span(&parent_, 1), milliseconds(0)).ok());
  for (const auto& each : grants) EXPECT_EQ(each->region->state.load(), RegionState::kClosed);
  EXPECT_TRUE(book_.all().empty());
  EXPECT_EQ(table_.count(), 0u);
  EXPECT_EQ(count(), 0u);
  EXPECT_EQ(grant(kWish).error().code(), Code::kInvalid);
}

TEST_F(GrantMakerTest, ADroppedRegionWaitsForItsGrants) {
  const auto made = grant(kWish).value();
  port_of(backends_[0]).touched.insert(made->region->entry->index);
  closer_.drop(parent_);
  EXPECT_EQ(parent_->state.load(), RegionState::kClosing);
  port_of(backends_[0]).touched.clear();
  closer_.sweep();
  closer_.sweep();
  EXPECT_EQ(made->region->state.load(), RegionState::kClosed);
  EXPECT_EQ(parent_->state.load(), RegionState::kClosed);
}

TEST_F(GrantMakerTest, TheEndOfAnAgentGivesUpGrantsInUse) {
  const auto used = grant(kWish).value(), quiet = grant(kWish).value();
  port_of(backends_[0]).touched.insert(used->region->entry->index);
  RegionCloser::Abandoned all;
  {
    const InLaneGuard guard(lane_);
    all = closer_.abandon();
  }
  EXPECT_EQ(all.quiet, RegionBook::Regions{quiet->region});
  EXPECT_EQ(all.left, (RegionBook::Regions{used->region, parent_})) << "and with them what they are parts of";
  EXPECT_EQ(closer_.close(std::span(&parent_, 1), milliseconds(0)).code(), Code::kTimedOut);
}

TEST_F(GrantMakerTest, AGrantThatIsHeldUpDoesNotCostItsRegionTheMemory) {
  std::shared_ptr<backend::Arena> arena = backend::Arena::create(4096, Rights::kReadWrite, HugePages::kOff).value();
  void* const memory = arena->bytes().data();
  auto entry = std::make_shared<backend::RegionEntry>();
  entry->base = arena->bytes().data();
  entry->size = 4096;
  entry->rights = Rights::kReadWrite;
  entry->arena = std::move(arena);
  std::shared_ptr<LocalRegion> region = registrar_.add("allocate", std::span(&entry, 1), false).regions.front();
  std::shared_ptr<LocalRegion> granted = maker_.make(region, kWish).value()->region;
  port_of(backends_[0]).touched.insert(granted->entry->index);
  const Status held = closer_.close(std::span(&granted, 1), milliseconds(1));
  EXPECT_EQ(held.code(), Code::kTimedOut);
  EXPECT_NE(held.to_string().find("call revoke again"), std::string::npos) << held.to_string();
  port_of(backends_[0]).touched.clear();
  EXPECT_TRUE(closer_.close(std::span(&region, 1), milliseconds(1)).ok());
  granted.reset();
  region.reset();
  EXPECT_EQ(::msync(memory, 4096, MS_ASYNC), 0) << "the test holds it still";
  entry.reset();
  EXPECT_EQ(::msync(memory, 4096, MS_ASYNC), -1) << "it is given back";
}

TEST_F(GrantMakerTest, AnUnlistedRegionIsToldAsAGrantOfAllOfIt) {
  const wire::Grant its = *wire::decode_grant(base::as_bytes(maker_.tell_whole(*parent_).value()));
  EXPECT_EQ(its.owner, identity_.incarnation);
  EXPECT_EQ(its.key, parent_->entry->key);
  EXPECT_EQ(its.index, parent_->entry->index);
  EXPECT_EQ(its.size, memory_.size());
  EXPECT_EQ(its.rights, Rights::kReadWrite);
  EXPECT_EQ(its.lifetime_ms, 0u);
  EXPECT_TRUE(its.holder.is_zero());
  EXPECT_FALSE(its.single_use);
  EXPECT_EQ(its.extras, (std::vector<std::pair<std::string, std::string>>{{"checking", "c"}, {"rdma", "rkey"}}));
  EXPECT_EQ(count(), 0u) << "nothing was registered for it";
  EXPECT_EQ(table_.count(), 1u);
  ASSERT_TRUE(closer_.close(std::span(&parent_, 1), milliseconds(0)).ok());
  EXPECT_EQ(maker_.tell_whole(*parent_).error().code(), Code::kInvalid);
}

TEST_F(GrantMakerTest, ARegionThatIsListedOrGivesNoRightIsToldAsNoGrant) {
  auto listed = std::make_shared<backend::RegionEntry>(), locked = std::make_shared<backend::RegionEntry>();
  listed->rights = Rights::kReadWrite;
  locked->listed = false;
  for (const auto& entry : {listed, locked}) {
    entry->base = memory_.data();
    entry->size = memory_.size();
    const auto region = registrar_.add("add_region", std::span(&entry, 1), false).regions.front();
    EXPECT_EQ(maker_.tell_whole(*region).error().code(), Code::kInvalid);
  }
}

TEST_F(GrantMakerTest, GpuMemoryIsNotGranted) {
  auto entry = std::make_shared<backend::RegionEntry>();
  entry->base = memory_.data();
  entry->size = memory_.size();
  entry->rights = Rights::kReadWrite;
  entry->device = {.kind = DeviceKind::kCuda, .ordinal = 1};
  const auto gpu = registrar_.add("add_region", std::span(&entry, 1), false).regions.front();
  const Status refused = maker_.make(gpu, kWish).error();
  EXPECT_EQ(refused.code(), Code::kUnsupported);
  EXPECT_NE(refused.message().find("cuda:1"), std::string_view::npos) << refused.to_string();
}

TEST_F(GrantMakerTest, TheLongestTime) {
  const auto of = [&](Duration expiry) { return grant({.size = 8, .rights = Rights::kRead, .expiry = expiry}); };
  EXPECT_EQ(told(*of(Duration::max()).value()).lifetime_ms, 0u);
  EXPECT_EQ(told(*of(milliseconds(wire::kGrantLifetimeMax)).value()).lifetime_ms, wire::kGrantLifetimeMax);
  EXPECT_EQ(of(milliseconds(wire::kGrantLifetimeMax) + Duration(1)).error().code(), Code::kInvalid);
  EXPECT_EQ(told(*of(Duration(1)).value()).lifetime_ms, 1u) << "rounded up";
}

}  // namespace
}  // namespace hawser::agent
