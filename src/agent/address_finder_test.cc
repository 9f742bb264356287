#include "agent/address_finder.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "agent/card_intake.h"
#include "agent/test_lane.h"
#include "wire/card.h"

namespace hawser::agent {
namespace {

using std::chrono::milliseconds;

class AddressFinderTest : public testing::Test, public AddressFinder::Strangers {
 protected:
  // As the engine.
  Result<std::string> resolve(std::string_view address, Instant) override {
    EXPECT_FALSE(lane_.is_locked) << "a name server may take its time";
    if (address == "nowhere:1") return Status(Code::kNotFound, "no such host");
    return "resolved " + std::string(address);
  }
  Result<std::uint64_t> open(std::string_view address, std::string_view, const AdmissionTicket& ticket,
                             Instant) override {
    EXPECT_TRUE(lane_.is_locked);
    opened_ = address;
    ticket_ = ticket;
    if (!open_refusal_.ok()) return open_refusal_;
    open_.insert(++numbers_);
    return numbers_;
  }
  AddressFinder::Found take(std::uint64_t number) override {
    EXPECT_TRUE(open_.contains(number));
    if (!failure_.ok()) return failure_;
    return lane_.clock.now() >= answers_at_ ? peer_ : nullptr;
  }
  void drop(std::uint64_t number) override { open_.erase(number); }
  void want_card(const std::shared_ptr<PeerCore>& peer) override { wanted_ = peer; }
  std::uint64_t open_better_path(const std::shared_ptr<PeerCore>&, Instant deadline) override {
    better_until_ = deadline;
    return better_serial_;
  }
  bool is_opening(const std::shared_ptr<PeerCore>&, std::uint64_t serial) override {
    EXPECT_EQ(serial, better_serial_);
    return lane_.clock.now() < better_up_at_;
  }

  void give_card() {
    wire::Card card;
    card.name = "p";
    card.incarnation = peer_->incarnation;
    card.revision = 1;
    const base::MutexLock lock(peer_->use().mutex);
    peer_->use().card = std::make_unique<CardStore>();
    EXPECT_TRUE(peer_->use().card->take(std::move(card)));
  }
  AddressFinder::Found find(std::string_view address = "host:1") {
    return finder_.find("p", address, lane_.clock.now() + milliseconds(100));
  }
  Instant in(int ms) const { return lane_.clock.now() + milliseconds(ms); }

  TestLane lane_;
  std::shared_ptr<PeerCore> peer_ = std::make_shared<PeerCore>(std::weak_ptr<Core>(), "p", base::Id128{1, 2});
  std::shared_ptr<PeerCore> wanted_;
  std::string opened_;
  AdmissionTicket ticket_;
  Status open_refusal_, failure_;
  Instant answers_at_, better_up_at_, better_until_;
  std::uint64_t numbers_ = 0, better_serial_ = 0;
  std::set<std::uint64_t> open_;  ///< Strangers that nobody dropped.
  AddressFinder finder_{lane_, lane_.clock, *this};
};

TEST_F(AddressFinderTest, GreetsWhoIsThereAndWaitsForItsCard) {
  answers_at_ = in(20);
  lane_.meanwhile = [&] {
    if (lane_.clock.now() >= answers_at_ + milliseconds(10)) give_card();
  };
  const auto found = find();
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_EQ(*found, peer_);
  EXPECT_EQ(wanted_, peer_);
  EXPECT_EQ(opened_, "resolved host:1");
  EXPECT_TRUE(open_.empty());
}

TEST_F(AddressFinderTest, ABetterPathIsWaitedForAQuarterOfASecondAtMost) {
  give_card();
  better_serial_ = 5;
  better_up_at_ = in(30);
  ASSERT_TRUE(finder_.find("p", "host:1", in(10'000)));
  EXPECT_GE(lane_.clock.now(), better_up_at_);
  EXPECT_LT(lane_.clock.now(), better_up_at_ + milliseconds(2));
  better_up_at_ = Instant::max();
  const Instant begun = lane_.clock.now();
  ASSERT_TRUE(finder_.find("p", "host:1", in(10'000))) << "it is only better than the one there is";
  EXPECT_EQ(lane_.clock.now(), begun + milliseconds(250));
}

TEST_F(AddressFinderTest, NobodyThereIsTimedOutAndLeavesNothingOpen) {
  answers_at_ = Instant::max();
  const Status silent = find().error();
  EXPECT_EQ(silent.code(), Code::kTimedOut);
  EXPECT_NE(silent.to_string().find("'p@host:1' did not answer in time"), std::string::npos) << silent.to_string();
  EXPECT_TRUE(open_.empty());
}

TEST_F(AddressFinderTest, APeerWithoutACardIsTimedOut) {
  const Status silent = find().error();
  EXPECT_EQ(silent.code(), Code::kTimedOut);
  EXPECT_NE(silent.to_string().find("did not send its card"), std::string::npos) << silent.to_string();
}

TEST_F(AddressFinderTest, APeerThatGoesDownMeanwhileIsGone) {
  lane_.meanwhile = [&] { peer_->state = PeerState::kDown; };
  EXPECT_EQ(find().error().code(), Code::kDisconnected);
}

TEST_F(AddressFinderTest, ErrorsNameTheAddress) {
  failure_ = Status(Code::kDenied, "the ticket is wrong");
  const Status denied = find().error();
  EXPECT_EQ(denied.code(), Code::kDenied);
  EXPECT_NE(denied.to_string().find("'p@host:1' cannot be reached"), std::string::npos) << denied.to_string();
  EXPECT_TRUE(open_.empty());
  failure_ = Status(Code::kUnsupported, "it speaks version 9").with_advice("upgrade");
  EXPECT_EQ(find().error().advice(), "upgrade");
  open_refusal_ = Status(Code::kBusy, "too many strangers");
  EXPECT_EQ(find().error().code(), Code::kBusy);
  EXPECT_EQ(find("nowhere:1").error().code(), Code::kNotFound);
  EXPECT_EQ(find("host:1#no ticket").error().code(), Code::kInvalid);
}

TEST_F(AddressFinderTest, ATicketGoesWithTheConnectionAndNotIntoTheAddress) {
  give_card();
  AdmissionTicket ticket;
  ticket.admission = {5, 6};
  ticket.public_key[0] = std::byte{1};
  ASSERT_TRUE(find("host:1#" + to_string(ticket)));
  EXPECT_EQ(opened_, "resolved host:1");
  EXPECT_EQ(ticket_.admission, ticket.admission);
}

}  // namespace
}  // namespace hawser::agent
