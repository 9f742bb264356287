// Paths that were lost with writes under way, and what comes in their place. Without agents: src/agent/fences_test.cc
// has whole ones.

#include "agent/engine/fences.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class FencesOfSession : public ::testing::Test {
 protected:
  FencesOfSession() {
    constexpr std::string_view kBoth[] = {"first", "second"};
    Rig::give_card(*peer_, kBoth);
    session_.paths.reserve(4);  // References to entries stay good.
  }
  PathEntry& up(std::size_t backend) {
    PathEntry& entry = opener_.enter(session_, backend, rig_.first.port->make());
    entry.up = entry.agreed = true;
    entry.session = base::Id128{9, entry.serial};
    return entry;
  }
  PathEntry lose(PathEntry& entry) {
    PathEntry lost = std::move(entry);
    lost.unsettled = true;
    session_.paths.erase(session_.paths.begin() + (&entry - session_.paths.data()));
    fences_.on_lost(session_, lost, rig_.now());
    return lost;
  }

  Rig rig_;
  PathIndex index_;
  PathOpener opener_{rig_.engine.ports(), index_, rig_.engine.reach()};
  SessionTimers timers_;
  base::Rng rng_{1};
  Fences fences_{{.ports = rig_.engine.ports(),
                  .reach = rig_.engine.reach(),
                  .opener = opener_,
                  .timers = timers_,
                  .rng = rng_,
                  .peer_timeout = 5s}};
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  Session session_{peer_, {.share = 1 << 16}, rig_.inbox, {}};

  ~FencesOfSession() override {
    for (SessionAlarm& alarm : session_.alarms) timers_.clear(alarm);
  }
};

TEST_F(FencesOfSession, OnlyAWriteThatMayStillLandHasToBeFenced) {
  PathEntry& entry = up(0);
  auto& path = static_cast<HandPath&>(*entry.path);
  Slot& slot = rig_.slot_of(rig_.plan_of(peer_));
  backend::PortEvent event;
  event.status = Status(Code::kDisconnected, "lost").with_buffer(BufferState::kUnknown);
  fences_.note_end(&entry, slot, event);
  EXPECT_FALSE(entry.unsettled) << "the path is up";
  path.is_down = true;
  event.status = event.status.with_buffer(BufferState::kUntouched);
  fences_.note_end(&entry, slot, event);
  EXPECT_FALSE(entry.unsettled) << "nothing of it was sent";
  slot.plan->operation = Operation::kRead;
  event.status = event.status.with_buffer(BufferState::kUnknown);
  fences_.note_end(&entry, slot, event);
  EXPECT_FALSE(entry.unsettled) << "a read lands here";
  slot.plan->operation = Operation::kWrite;
  fences_.note_end(&entry, slot, event);
  EXPECT_TRUE(entry.unsettled);
}

TEST_F(FencesOfSession, APathIsOpenedInThePlaceOfTheLostOneByWhatWorks) {
  PathEntry& first = up(0);
  up(1);
  const PathEntry lost = lose(first);
  fences_.fence_soon(session_, rig_.now());
  EXPECT_TRUE(session_.alarms.is_set(SessionTimer::kFence));
  ASSERT_TRUE(fences_.fence(session_, rig_.now()).ok());
  ASSERT_EQ(rig_.second.port->opened.size(), 1u) << "the second backend works";
  EXPECT_EQ(rig_.second.port->opened.front().supersedes, lost.session);
  fences_.on_fenced(session_, base::Id128{1, 1});
  EXPECT_FALSE(session_.lost.empty());
  fences_.on_fenced(session_, lost.session);
  EXPECT_TRUE(session_.lost.empty());
  EXPECT_FALSE(session_.alarms.is_set(SessionTimer::kFence));
}

TEST_F(FencesOfSession, ThePeerIsGivenUpWhenItsTimeIsOver) {
  PathEntry& first = up(0);
  up(1);
  lose(first);
  EXPECT_TRUE(fences_.fence(session_, rig_.now() + 5s - 1ns).ok());
  EXPECT_EQ(fences_.fence(session_, rig_.now() + 5s).code(), Code::kTimedOut);
}

TEST_F(FencesOfSession, WithoutAnyPathTheNextOneFences) {
  lose(up(0));
  EXPECT_TRUE(fences_.fence(session_, rig_.now() + 10s).ok());
  EXPECT_TRUE(rig_.first.port->opened.empty());
  fences_.forget(session_);
  EXPECT_TRUE(session_.lost.empty());
}

}  // namespace
}  // namespace hawser::agent
