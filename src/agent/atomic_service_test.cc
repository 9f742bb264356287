// Atomic operations as a service, without agents, paths or sockets: a carrier by hand stands in for the engine.

#include "agent/atomic_service.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <utility>
#include <vector>

#include "agent/peer_core.h"
#include "agent/session.h"

namespace hawser::agent {
namespace {

Instant at(std::int64_t ms) { return Instant::from_ns(ms * 1'000'000); }

struct Word {
  std::uint32_t channel = 0;
  std::vector<std::byte> bytes;
};

class HandCarrier final : public Carrier {
 public:
  Sent carry(Session&, std::uint32_t channel, std::span<const std::byte> bytes, std::span<const std::byte>) override {
    if (answer == Sent::kYes) said.push_back({channel, {bytes.begin(), bytes.end()}});
    return answer;
  }
  void release_message(Session&, std::uint32_t channel, std::size_t bytes) override {
    released.emplace_back(channel, bytes);
  }
  void serve(Session&, Instant) override { ++served; }
  Session* session_with(const Peer&, Status*) override { return nullptr; }
  bool can_fetch(Session&) const override { return false; }
  bool fetch(Session&, std::uint64_t, std::span<std::byte>) override { return false; }
  Instant now() const override { return {}; }
  void note_deadline() override {}
  void note_end() override { ++ended; }

  Sent answer = Sent::kYes;
  std::vector<Word> said;
  std::vector<std::pair<std::uint32_t, std::size_t>> released;
  int served = 0, ended = 0;
};

/// One agent's service, and a session with a peer.
class AtomicServiceTest : public ::testing::Test {
 protected:
  AtomicServiceTest() {
    backend::RegionEntry entry;
    entry.key = base::Id128{1, 2};
    entry.base = reinterpret_cast<std::byte*>(words_.data());
    entry.size = sizeof words_;
    entry.rights = Rights::kReadWrite;
    region_ = regions_.add(std::move(entry)).value();
  }

  std::shared_ptr<AtomicCore> ask(std::int64_t deadline_ms = 100) {
    auto op = std::make_shared<AtomicCore>();
    op->peer = peer_;
    op->submitted = at(1);
    op->deadline = at(deadline_ms);
    op->ask = {.kind = wire::AtomicKind::kFetchAdd,
               .region = region_->index,
               .generation = region_->generation,
               .key = region_->key,
               .offset = 8,
               .operand = 5};
    status_ = service_.start(session(), op, at(1));
    return op;
  }
  Session& session() { return *peer_->session(); }
  bool pump() {
    std::size_t work = 0;
    return service_.pump(session(), &work);
  }
  Status hear(std::uint32_t channel, std::span<const std::byte> bytes) {
    return service_.on_message(session(), channel, bytes, at(2));
  }
  Status answer(const wire::AtomicAnswer& its) {
    wire::AtomicBuffer buffer;
    return hear(wire::kAtomicAnswerChannel, wire::encode(its, buffer));
  }

  std::array<std::uint64_t, 4> words_{};
  backend::RegionTable regions_{16};
  Inbox inbox_{16};
  HandCarrier carrier_;
  AtomicService service_{carrier_, regions_, inbox_};
  std::array<Service*, 1> services_{&service_};
  std::shared_ptr<PeerCore> peer_ = [this] {
    auto peer = std::make_shared<PeerCore>(std::weak_ptr<Core>(), "peer", base::Id128{3, 4});
    peer->use().session = std::make_unique<Session>(peer, proto::NotifyLimits{}, inbox_, services_);
    return peer;
  }();
  std::shared_ptr<const backend::RegionEntry> region_;
  Status status_;
  // A session and its peer own each other.
  struct Parting {
    std::shared_ptr<PeerCore>& peer;
    ~Parting() { peer->use().session.reset(); }
  } parting_{peer_};
};

TEST_F(AtomicServiceTest, AnAskGoesOutOnceAndEndsWithItsAnswer) {
  const auto op = ask();
  ASSERT_TRUE(status_.ok());
  EXPECT_EQ(carrier_.served, 1);
  EXPECT_TRUE(service_.awaits(session()));
  EXPECT_EQ(service_.next_deadline(), at(100));
  ASSERT_TRUE(pump());
  ASSERT_TRUE(pump());
  ASSERT_EQ(carrier_.said.size(), 1u);
  EXPECT_EQ(carrier_.said[0].channel, wire::kAtomicChannel);
  ASSERT_TRUE(answer({.id = op->ask.id, .found = 7}).ok());
  EXPECT_TRUE(op->final);
  EXPECT_TRUE(op->status.ok());
  EXPECT_EQ(op->found, 7u);
  EXPECT_EQ(service_.left(session()), 0u);
  EXPECT_EQ(service_.next_deadline(), Instant::max());
  // Once more: it is over, and only its place goes back.
  ASSERT_TRUE(answer({.id = op->ask.id, .found = 9}).ok());
  EXPECT_EQ(op->found, 7u);
  EXPECT_EQ(carrier_.released.size(), 2u);
}

TEST_F(AtomicServiceTest, WhatFindsNoRoomIsSentLater) {
  (void)ask();
  carrier_.answer = Sent::kNoRoom;
  EXPECT_FALSE(pump());
  carrier_.answer = Sent::kNoCredit;
  EXPECT_TRUE(pump()) << "the peer's word makes it go on";
  carrier_.answer = Sent::kYes;
  EXPECT_TRUE(pump());
  EXPECT_EQ(carrier_.said.size(), 1u);
}

TEST_F(AtomicServiceTest, TheOwnerDoesWhatItIsAskedAndAnswers) {
  words_[1] = 40;
  const auto op = ask();
  ASSERT_TRUE(pump());
  const std::vector<std::byte> asked = carrier_.said[0].bytes;
  const std::uint64_t arrivals = inbox_.arrivals();
  ASSERT_TRUE(hear(wire::kAtomicChannel, asked).ok());
  EXPECT_EQ(words_[1], 45u);
  EXPECT_GT(inbox_.arrivals(), arrivals) << "somebody may wait for the word";
  ASSERT_TRUE(pump());
  ASSERT_EQ(carrier_.said.size(), 2u);
  EXPECT_EQ(carrier_.said[1].channel, wire::kAtomicAnswerChannel);
  ASSERT_EQ(carrier_.released.size(), 1u);
  EXPECT_EQ(carrier_.released[0], std::make_pair(wire::kAtomicChannel, asked.size()));
  ASSERT_TRUE(hear(wire::kAtomicAnswerChannel, carrier_.said[1].bytes).ok());
  EXPECT_EQ(op->found, 40u);
}

TEST_F(AtomicServiceTest, AnAskThatMayNotBeTouchesNothing) {
  const auto refused = [&](wire::AtomicAsk ask) {
    wire::AtomicBuffer buffer;
    carrier_.said.clear();
    EXPECT_TRUE(hear(wire::kAtomicChannel, wire::encode(ask, buffer)).ok());
    EXPECT_TRUE(pump());
    return wire::decode_atomic_answer(carrier_.said.at(0).bytes).value().code;
  };
  const wire::AtomicAsk good = ask()->ask;
  ASSERT_TRUE(pump());
  wire::AtomicAsk bad = good;
  bad.key = base::Id128{9, 9};
  EXPECT_NE(refused(bad), Code::kOk);
  bad = good;
  bad.generation += 1;
  EXPECT_NE(refused(bad), Code::kOk);
  bad = good;
  bad.offset = 25;
  EXPECT_EQ(refused(bad), Code::kInvalid);
  bad.offset = 4;
  EXPECT_EQ(refused(bad), Code::kInvalid) << "not aligned";
  bad.offset = 24;
  EXPECT_EQ(refused(bad), Code::kOk) << "the last word";
  words_[3] = 0;
  EXPECT_EQ(words_, (std::array<std::uint64_t, 4>{}));
  const std::array<std::byte, 3> noise{};
  EXPECT_EQ(hear(wire::kAtomicChannel, noise).code(), Code::kCorrupt);
  EXPECT_EQ(hear(wire::kAtomicAnswerChannel, noise).code(), Code::kCorrupt);
}

TEST_F(AtomicServiceTest, ARefusalLeavesTheWordUntouchedAndSaysSo) {
  const auto op = ask();
  ASSERT_TRUE(pump());
  ASSERT_TRUE(answer({.id = op->ask.id, .code = Code::kDenied}).ok());
  EXPECT_EQ(op->status.code(), Code::kDenied);
  EXPECT_EQ(op->status.buffer(), BufferState::kUntouched);
  EXPECT_EQ(op->status.peer(), "peer");
}

TEST_F(AtomicServiceTest, WhatIsOverdueIsUnknownOnlyIfItWasSent) {
  const auto sent = ask(100);
  ASSERT_TRUE(pump());
  const auto unsent = ask(50);
  EXPECT_EQ(service_.next_deadline(), at(50));
  EXPECT_EQ(service_.expire(at(49)), 0u);
  EXPECT_EQ(service_.expire(at(50)), 1u);
  EXPECT_EQ(unsent->status.code(), Code::kTimedOut);
  EXPECT_EQ(unsent->status.buffer(), BufferState::kUntouched);
  EXPECT_FALSE(sent->final);
  EXPECT_EQ(service_.expire(at(100)), 1u);
  EXPECT_EQ(sent->status.buffer(), BufferState::kUnknown);
  ASSERT_TRUE(pump());
  EXPECT_EQ(carrier_.said.size(), 1u) << "what ended before it was sent stays here";
}

TEST_F(AtomicServiceTest, ACancelledOneLeavesNothingBehind) {
  const auto op = ask();
  service_.cancel(session(), *op, at(2));
  EXPECT_EQ(op->status.code(), Code::kCancelled);
  EXPECT_EQ(service_.left(session()), 0u);
  service_.cancel(session(), *op, at(2));
  EXPECT_EQ(carrier_.ended, 1);
}

TEST_F(AtomicServiceTest, SoManyAreTakenAndNoMore) {
  std::vector<std::shared_ptr<AtomicCore>> all;
  std::set<std::uint64_t> ids;
  for (std::size_t i = 0; i < kAtomicsMax; ++i) {
    all.push_back(ask());
    ASSERT_TRUE(status_.ok()) << i;
    ids.insert(all.back()->ask.id);
  }
  EXPECT_EQ(ids.size(), kAtomicsMax);
  (void)ask();
  EXPECT_EQ(status_.code(), Code::kBusy);
  ASSERT_TRUE(pump());
  ASSERT_TRUE(answer({.id = all[9]->ask.id}).ok());
  (void)ask();
  EXPECT_TRUE(status_.ok()) << "one has ended";
}

TEST_F(AtomicServiceTest, TheEndOfTheSessionEndsAll) {
  const auto sent = ask();
  ASSERT_TRUE(pump());
  const auto unsent = ask();
  service_.end(session(), Status(Code::kDisconnected, "gone"));
  EXPECT_EQ(sent->status.code(), Code::kDisconnected);
  EXPECT_EQ(sent->status.buffer(), BufferState::kUnknown);
  EXPECT_EQ(unsent->status.buffer(), BufferState::kUntouched);
  EXPECT_EQ(service_.left(session()), 0u);
}

TEST_F(AtomicServiceTest, TellsWhoWaitsForWhom) {
  const auto one = ask(100), other = ask(80);
  std::vector<Waiting> all;
  service_.describe([&](const Waiting& each) { all.push_back(each); });
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].who, "atomics");
  EXPECT_EQ(all[0].peer, "peer");
  EXPECT_EQ(all[0].count, 2u);
  EXPECT_EQ(all[0].since, at(1));
  EXPECT_EQ(all[0].until, at(80));
}

TEST_F(AtomicServiceTest, ASessionThatNobodyAsksCostsNothing) {
  EXPECT_TRUE(pump());
  EXPECT_FALSE(service_.awaits(session()));
  service_.end(session(), Status(Code::kDisconnected, "gone"));
  EXPECT_EQ(session().tenancies[0], nullptr);
}

}  // namespace
}  // namespace hawser::agent
