// What holders tell of grants for one transfer, without agents, paths or sockets.

#include "agent/grant_service.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "agent/peer_core.h"
#include "agent/session.h"
#include "agent/test_regions.h"
#include "base/bytes.h"

namespace hawser::agent {
namespace {

class GrantServiceTest : public testing::Test, protected TestRegions, public RegionCloser::Users, public Carrier {
 protected:
  GrantServiceTest() : TestRegions(10) {}
  ~GrantServiceTest() override { peer_->use().session.reset(); }

  // As the engine.
  Sent carry(Session&, std::uint32_t channel, std::span<const std::byte> bytes, std::span<const std::byte>) override {
    EXPECT_EQ(channel, wire::kGrantChannel);
    if (answer_ == Sent::kYes) said_.emplace_back(base::as_text(bytes));
    return answer_;
  }
  void release_message(Session&, std::uint32_t, std::size_t bytes) override { released_ += bytes; }
  void serve(Session&, Instant) override { ++served_; }
  Session* session_with(const Peer&, Status*) override { return is_gone_ ? nullptr : peer_->session(); }
  bool can_fetch(Session&) const override { return false; }
  bool fetch(Session&, std::uint64_t, std::span<std::byte>) override { return false; }
  Instant now() const override { return {}; }
  void note_deadline() override { ++deadlines_; }
  void note_end() override {}
  // As users of regions.
  void take_submissions(Instant) override {}
  void end_use(const LocalRegion&, Instant) override {}
  void forget(const backend::RegionEntry&) override {}
  void card_changed() override {}

  std::shared_ptr<LocalRegion> grant(bool is_single_use, base::Id128 holder = {}) {
    auto entry = std::make_shared<backend::RegionEntry>();
    entry->key = {5, 6};
    entry->size = 8;
    entry->holder = holder;
    if (is_single_use) entry->once = std::make_shared<backend::SingleUse>();
    EXPECT_TRUE(table_.add(std::span(&entry, 1)).ok());
    auto made = std::make_shared<LocalRegion>(std::shared_ptr<Core>(), entry, false);
    const InLaneGuard guard(lane_);
    EXPECT_TRUE(grants_.begin(*parent_).ok());
    EXPECT_TRUE(grants_.add(parent_, made, Instant::max()));
    return made;
  }
  static wire::GrantUsed used(const LocalRegion& grant) {
    return {.index = grant.entry->index, .generation = grant.entry->generation, .key = grant.entry->key};
  }
  Status hear(const wire::GrantUsed& what) {
    wire::GrantUsedBuffer buffer;
    return service_.on_message(*peer_->session(), wire::kGrantChannel, wire::encode(what, buffer), {});
  }
  bool is_open(const LocalRegion& grant) const { return table_.is_open(grant.entry->index, grant.entry->generation); }
  bool pump() { return service_.pump(*peer_->session(), &work_); }
  std::size_t turn() {
    const InLaneGuard guard(lane_);
    return ends_.turn({});
  }

  const std::shared_ptr<LocalRegion> parent_ =
      std::make_shared<LocalRegion>(std::shared_ptr<Core>(), std::make_shared<backend::RegionEntry>(), false);
  const std::shared_ptr<TestBackend> backend_ = std::make_shared<TestBackend>();
  RegionCloser closer_{parts_of_closer(*this)};
  GrantEnds ends_{lane_, table_, grants_, closer_};
  GrantService service_{*this, grants_, ends_};
  Inbox inbox_{16};
  std::array<Service*, 1> services_{&service_};
  std::shared_ptr<PeerCore> peer_ = [this] {
    auto peer = std::make_shared<PeerCore>(std::weak_ptr<Core>(), "peer", base::Id128{3, 4});
    peer->use().session = std::make_unique<Session>(peer, proto::NotifyLimits{}, inbox_, services_);
    return peer;
  }();
  Sent answer_ = Sent::kYes;
  std::vector<std::string> said_;
  std::size_t released_ = 0, work_ = 0;
  int served_ = 0, deadlines_ = 0;
  bool is_gone_ = false;
};

TEST_F(GrantServiceTest, AHolderTellsItsOwnerOfTheEndOnce) {
  const wire::GrantUsed what{.index = 7, .generation = 2, .key = {1, 2}};
  const auto use = service_.make_use(peer_, what);
  EXPECT_FALSE(use->has_begun());
  use->begin();
  EXPECT_TRUE(use->has_begun());
  EXPECT_EQ(service_.next_deadline(), Instant::max());
  use->end();
  EXPECT_EQ(deadlines_, 1);
  EXPECT_TRUE(said_.empty()) << "the session may be about to end";
  EXPECT_EQ(service_.next_deadline(), Instant::min());
  EXPECT_EQ(service_.expire({}), 1u);
  EXPECT_EQ(served_, 1);
  answer_ = Sent::kNoRoom;
  EXPECT_FALSE(pump());
  EXPECT_EQ(service_.left(*peer_->session()), 1u);
  answer_ = Sent::kNoCredit;
  EXPECT_TRUE(pump());
  answer_ = Sent::kYes;
  EXPECT_TRUE(pump());
  EXPECT_TRUE(pump());
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(wire::decode_grant_used(base::as_bytes(said_[0])).value().index, 7u);
  EXPECT_EQ(service_.left(*peer_->session()), 0u);
  EXPECT_EQ(service_.expire({}), 0u);
}

TEST_F(GrantServiceTest, AnOwnerThatTakesNothingCostsABoundedMemory) {
  answer_ = Sent::kNoCredit;
  const auto use = service_.make_use(peer_, {.index = 7, .generation = 2, .key = {1, 2}});
  for (std::size_t i = 0; i < kGrantEndsMax; ++i) use->end();
  service_.expire({});
  EXPECT_EQ(service_.left(*peer_->session()), kGrantEndsMax);
  use->end();
  EXPECT_EQ(service_.expire({}), 1u);
  EXPECT_EQ(service_.left(*peer_->session()), kGrantEndsMax);
  answer_ = Sent::kYes;
  EXPECT_TRUE(pump());
  EXPECT_EQ(said_.size(), kGrantEndsMax);
}

TEST_F(GrantServiceTest, NobodyIsToldOnceTheOwnerIsGone) {
  const auto use = service_.make_use(peer_, {.index = 7, .generation = 2, .key = {1, 2}});
  use->end();
  is_gone_ = true;
  EXPECT_EQ(service_.expire({}), 1u);
  EXPECT_EQ(served_, 0);
  is_gone_ = false;
  use->end();
  service_.expire({});
  service_.end(*peer_->session(), Status(Code::kDisconnected, "gone"));
  EXPECT_EQ(service_.left(*peer_->session()), 0u);
  EXPECT_TRUE(pump());
  EXPECT_TRUE(said_.empty());
}

TEST_F(GrantServiceTest, TheOwnerEndsAGrantForOneTransfer) {
  const auto once = grant(true);
  EXPECT_TRUE(hear(used(*once)).ok());
  EXPECT_FALSE(is_open(*once)) << "refused from now on";
  EXPECT_TRUE(hear(used(*once)).ok()) << "said twice";
  EXPECT_EQ(released_, 2 * wire::kGrantUsedSize);
  ASSERT_TRUE(ends_.has_jobs());
  ends_.run_jobs({});
  EXPECT_EQ(once->state.load(), RegionState::kClosed);
  EXPECT_EQ(parent_->grants, 0u);
  EXPECT_TRUE(hear(used(*once)).ok()) << "and after its end";
}

TEST_F(GrantServiceTest, AGrantOfThePeerAloneIsClosedByTheNextTurn) {
  const auto mine = grant(true, {3, 4});
  EXPECT_TRUE(hear(used(*mine)).ok());
  EXPECT_FALSE(is_open(*mine)) << "refused from now on";
  EXPECT_TRUE(mine->entry->once->is_over());
  EXPECT_FALSE(ends_.has_jobs());
  EXPECT_EQ(ends_.next_deadline(), Instant::min());
  EXPECT_EQ(turn(), 1u);
  EXPECT_EQ(mine->state.load(), RegionState::kClosed);
  EXPECT_FALSE(ends_.has_jobs());
  EXPECT_EQ(ends_.next_deadline(), Instant::max());
  EXPECT_EQ(parent_->grants, 0u);
}

TEST_F(GrantServiceTest, AHolderThatLiesAndIsInsideIsWaitedFor) {
  open("a backend", backend_);
  const auto mine = grant(true, {3, 4});
  port_of(backends_[0]).touched.insert(mine->entry->index);
  EXPECT_TRUE(hear(used(*mine)).ok());
  EXPECT_EQ(turn(), 1u);
  EXPECT_EQ(mine->state.load(), RegionState::kClosing);
  ASSERT_TRUE(ends_.has_jobs());
  ends_.run_jobs({});
  EXPECT_EQ(mine->state.load(), RegionState::kClosing);
  port_of(backends_[0]).touched.clear();
  closer_.sweep();
  EXPECT_EQ(mine->state.load(), RegionState::kClosed);
}

TEST_F(GrantServiceTest, ABackendThatLetsGoSlowlyIsWaitedForByAJob) {
  backend_->its_traits.lets_go_slowly = true;
  open("a backend", backend_);
  const auto mine = grant(true, {3, 4});
  EXPECT_TRUE(hear(used(*mine)).ok());
  EXPECT_EQ(turn(), 1u);
  EXPECT_EQ(mine->state.load(), RegionState::kOpen) << "no turn waits for a device";
  ASSERT_TRUE(ends_.has_jobs());
  ends_.run_jobs({});
  EXPECT_EQ(mine->state.load(), RegionState::kClosed);
}

TEST_F(GrantServiceTest, AGrantThatWasUsedIsNotUsedByAnotherHandle) {
  const wire::GrantUsed what{.index = 7, .generation = 2, .key = {1, 2}};
  const auto was_used = [&] {
    const base::MutexLock lock(peer_->use().mutex);
    return peer_->use().given(7).used == what.generation;
  };
  const auto first = service_.make_use(peer_, what, was_used());
  EXPECT_FALSE(first->has_begun());
  EXPECT_FALSE(was_used());
  first->begin();
  ASSERT_TRUE(was_used());
  EXPECT_TRUE(service_.make_use(peer_, what, was_used())->has_begun());
}

TEST_F(GrantServiceTest, APeerEndsNoGrantThatIsNotItsToEnd) {
  const auto lasting = grant(false), once = grant(true), anothers = grant(true, {8, 8});
  EXPECT_TRUE(hear(used(*lasting)).ok());
  wire::GrantUsed wrong = used(*once);
  wrong.key.lo ^= 1;
  EXPECT_TRUE(hear(wrong).ok());
  EXPECT_TRUE(hear(used(*anothers)).ok());
  wrong = used(*once);
  ++wrong.generation;
  EXPECT_TRUE(hear(wrong).ok());
  EXPECT_TRUE(is_open(*lasting) && is_open(*once) && is_open(*anothers));
  EXPECT_FALSE(ends_.has_jobs());
  EXPECT_EQ(service_.on_message(*peer_->session(), wire::kGrantChannel, {}, {}).code(), Code::kCorrupt);
}

}  // namespace
}  // namespace hawser::agent
