// Notifications and signals of peers, each once all its bytes are here.

#include "agent/engine/arrival_desk.h"

#include "agent/engine/test_rig.h"

namespace hawser::agent {
namespace {

class ArrivalDeskTest : public ::testing::Test {
 protected:
  static wire::Arrive notification(std::string_view text, std::uint64_t transfer = 0, std::uint32_t chunks = 0) {
    wire::Arrive arrive{.transfer = transfer, .chunks = chunks};
    arrive.notify = base::as_bytes(text);
    return arrive;
  }
  std::vector<std::string> take() {
    Notification all[8];
    std::vector<std::string> texts;
    for (std::size_t i = 0, count = rig_.inbox.take_notifications(all); i < count; ++i) {
      texts.emplace_back(all[i].text);
    }
    return texts;
  }

  Rig rig_;
  ArrivalDesk& desk_ = rig_.engine.arrivals();
  const std::shared_ptr<PeerCore> peer_ = hand_peer("there");
  HandPath& path_ = rig_.connect(peer_);
  Session& session_ = *peer_->session();
};

TEST_F(ArrivalDeskTest, ANotificationWaitsForTheChunksOfItsTransfer) {
  ASSERT_TRUE(desk_.on_chunk(session_, 1, 0).ok());
  ASSERT_TRUE(desk_.on_arrive(session_, notification("written", 1, 2)).ok());
  EXPECT_TRUE(take().empty());
  ASSERT_TRUE(desk_.on_chunk(session_, 1, 0).ok());
  EXPECT_TRUE(take().empty()) << "the same chunk counts once";
  ASSERT_TRUE(desk_.on_chunk(session_, 1, 1).ok());
  EXPECT_EQ(take(), std::vector<std::string>{"written"});
}

TEST_F(ArrivalDeskTest, OneWithoutATransferComesAtOnce) {
  ASSERT_TRUE(desk_.on_arrive(session_, notification("hello")).ok());
  EXPECT_EQ(take(), std::vector<std::string>{"hello"});
  EXPECT_EQ(session_.flow.notifications_received, 1u);
}

TEST_F(ArrivalDeskTest, OfACancelledTransferNothingComes) {
  ASSERT_TRUE(desk_.on_arrive(session_, notification("never", 1, 2)).ok());
  EXPECT_GT(rig_.inbox.notification_bytes(), 0u);
  ASSERT_TRUE(desk_.on_arrive(session_, {.transfer = 1, .cancelled = true}).ok());
  EXPECT_EQ(rig_.inbox.notification_bytes(), 0u) << "its place is free";
  ASSERT_TRUE(desk_.on_chunk(session_, 1, 0).ok());
  EXPECT_TRUE(take().empty());
}

TEST_F(ArrivalDeskTest, ASignalAddsToAWordThatThePeerMayWriteAndToNoOther) {
  std::uint64_t words[2] = {5, 0};
  backend::RegionEntry entry;
  entry.key = base::Id128{1, 2};
  entry.base = reinterpret_cast<std::byte*>(words);
  entry.size = sizeof words;
  entry.rights = Rights::kReadWrite;
  const auto region = rig_.regions.add(std::move(entry)).value();
  wire::Arrive arrive;
  arrive.signal = {
      .region = region->index, .generation = region->generation, .key = region->key, .offset = 0, .add = 3};
  ASSERT_TRUE(desk_.on_arrive(session_, arrive).ok());
  EXPECT_EQ(words[0], 8u);
  arrive.signal->offset = 16;  // Behind the last one.
  ASSERT_TRUE(desk_.on_arrive(session_, arrive).ok());
  arrive.signal->offset = 0;
  arrive.signal->key = base::Id128{1, 3};
  ASSERT_TRUE(desk_.on_arrive(session_, arrive).ok());
  EXPECT_EQ(words[0], 8u);
  EXPECT_EQ(words[1], 0u);
  EXPECT_EQ(session_.flow.errors, 2u);
}

TEST_F(ArrivalDeskTest, WhatIsBeyondItsCreditIsThePeersError) {
  const std::string large(4096, 'x');
  Status status;
  for (int i = 0; i < 100'000 && status.ok(); ++i) status = desk_.on_arrive(session_, notification(large));
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_LE(rig_.inbox.notification_bytes(), rig_.options.limits.notification_bytes_total);
}

TEST_F(ArrivalDeskTest, PlacesThatTheUserFreedAreTold) {
  const std::string large(4096, 'x');
  while (!session_.credit_owed) {
    ASSERT_TRUE(desk_.on_arrive(session_, notification(large)).ok());
    static_cast<void>(take());
    static_cast<void>(peer_->use().released.add(large.size()));
    desk_.release(*peer_);
  }
  path_.sent.clear();
  std::size_t work = 0;
  EXPECT_TRUE(desk_.pump_credit(session_, &work));
  EXPECT_EQ(path_.kinds_sent(), std::vector{wire::SessionKind::kCredit});
  EXPECT_FALSE(session_.credit_owed);
}

}  // namespace
}  // namespace hawser::agent
