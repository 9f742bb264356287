// Services by their channels and deadlines.

#include "agent/engine/service_table.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class HandService final : public Service {
 public:
  explicit HandService(std::uint32_t channel) : channels_{{{.id = channel, .window = 2}}} {}
  std::span<const OwnChannel> channels() const override { return channels_; }
  Status on_message(Session&, std::uint32_t, std::span<const std::byte>, Instant) override { return {}; }
  void on_control(Session&) override { ++controls; }
  bool pump(Session&, std::size_t* work) override {
    ++*work;
    return has_room;
  }
  void end(Session&, const Status& status) override { ended = status; }
  void on_closing(const Status& why, Instant) override { closing = why; }
  bool awaits(const Session&) const override { return false; }
  std::size_t left(const Session&) const override { return 0; }
  std::string_view name() const override { return "by hand"; }
  Instant next_deadline() const override { return deadline; }
  std::size_t expire(Instant) override {
    deadline = Instant::max();
    return 1;
  }
  bool prepare_sleep() override {
    deadline = later;
    return is_idle;
  }
  void describe(const Visitor&) const override {}

  bool is_idle = true;
  Instant later = Instant::max();
  bool has_room = true;
  int controls = 0;
  Status ended, closing;
  Instant deadline = Instant::max();

 private:
  std::array<OwnChannel, 1> channels_;
};

class ServiceTableTest : public ::testing::Test {
 protected:
  ServiceTableTest() {
    table_.add(one_);
    table_.add(two_);
  }
  Rig rig_;
  ChannelBook channels_;
  ServiceTable table_{channels_};
  HandService one_{1}, two_{2};
  Session& session_ = rig_.session_with(hand_peer("there"));
};

TEST_F(ServiceTableTest, AChannelLeadsToItsService) {
  EXPECT_EQ(table_.of(1), &one_);
  EXPECT_EQ(table_.of(2), &two_);
  EXPECT_EQ(table_.of(3), nullptr);
  EXPECT_EQ(table_.of(wire::kUserChannelMin), nullptr);
  EXPECT_EQ(one_.place(), 0u);
  EXPECT_EQ(two_.place(), 1u);
}

TEST_F(ServiceTableTest, OnlySessionsWithTenanciesArePumpedUntilOneHasNoRoom) {
  std::size_t work = 0;
  EXPECT_TRUE(table_.pump(session_, &work));
  EXPECT_EQ(work, 0u);
  session_.has_tenancies = true;
  EXPECT_TRUE(table_.pump(session_, &work));
  EXPECT_EQ(work, 2u);
  one_.has_room = false;
  EXPECT_FALSE(table_.pump(session_, &work));
  EXPECT_EQ(work, 3u);
}

TEST_F(ServiceTableTest, ThoseThatAreDueExpireAndTheNextDeadlineIsKnown) {
  one_.deadline = Instant::from_ns(1000);
  two_.deadline = Instant::from_ns(2000);
  table_.note_deadline();
  EXPECT_EQ(table_.next_deadline(), Instant::from_ns(1000));
  EXPECT_EQ(table_.expire(Instant::from_ns(999)), 0u);
  EXPECT_EQ(table_.expire(Instant::from_ns(1000)), 1u);
  EXPECT_EQ(table_.next_deadline(), Instant::from_ns(2000));
}

TEST_F(ServiceTableTest, AllHearOfTheSessionsEndAndOfItsPath) {
  table_.on_control(session_);
  table_.end(session_, Status(Code::kDisconnected, "gone"));
  for (const HandService* each : {&one_, &two_}) {
    EXPECT_EQ(each->controls, 1);
    EXPECT_EQ(each->ended.code(), Code::kDisconnected);
  }
}

TEST_F(ServiceTableTest, OneMayComeLater) {
  const std::span<Service* const> places = table_.places();
  EXPECT_EQ(places[2], nullptr);
  HandService three(3);
  table_.add(three);
  EXPECT_EQ(places[2], &three) << "sessions that are there see it";
  EXPECT_EQ(table_.all().size(), 3u);
  EXPECT_EQ(table_.of(3), &three);
  table_.close(Status(Code::kCancelled, "the agent closes"), Instant());
  EXPECT_EQ(one_.closing.code(), Code::kCancelled);
  EXPECT_EQ(three.closing.code(), Code::kCancelled);
}

TEST_F(ServiceTableTest, TheLaneSleepsOnceAllServicesMay) {
  one_.deadline = Instant::from_ns(3);
  one_.later = Instant::from_ns(9);
  table_.note_deadline();
  EXPECT_EQ(table_.next_deadline(), Instant::from_ns(3));
  EXPECT_TRUE(table_.prepare_sleep());
  EXPECT_EQ(table_.next_deadline(), Instant::from_ns(9)) << "what it waits for rings now";
  two_.is_idle = false;
  EXPECT_FALSE(table_.prepare_sleep());
}

}  // namespace
}  // namespace hawser::agent
