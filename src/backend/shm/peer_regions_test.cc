#include "backend/shm/peer_regions.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/shm/fork_list.h"

namespace hawser::backend::shm {
namespace {

constexpr std::size_t kBytes = 4096;

/// A path's book of regions; the test is the peer that answers.
class PeerRegionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = Gates::make(forks_, false);
    ASSERT_TRUE(made);
    gates_ = std::move(*made);
    auto mapped = PeerGates::map(gates_->peer_fd());
    ASSERT_TRUE(mapped);
    peer_gates_ = std::move(*mapped);
  }

  static RemoteRegionRef region(std::uint32_t index, std::uint64_t size = kBytes, CardKind kind = CardKind::kArena) {
    RemoteRegionRef made;
    made.index = index;
    made.generation = 1;
    made.size = size;
    static constexpr char kKinds[] = {0, 1, 2, 3};
    made.extra = std::string_view(kKinds + static_cast<int>(kind), 1);
    return made;
  }
  ShmBinding* bind(const RemoteRegionRef& wanted) {
    const auto found = regions_.bind(wanted, can_attach_);
    return found ? *found : nullptr;
  }
  /// How many requests go out now.
  std::size_t ask(Io io = Io::kDone) {
    const std::size_t before = asked_.size();
    regions_.ask([&](std::span<const std::byte> bytes) {
      if (io != Io::kDone) return io;
      const auto control = decode_control(bytes, {});
      asked_.push_back(std::get<Bind>(*control));
      return io;
    });
    return asked_.size() - before;
  }
  static Packet with_memory(std::size_t size) {
    Packet packet;
    auto file = make_sealed_file("test", size, false);
    EXPECT_TRUE(file);
    packet.fds[0] = std::move(*file);
    packet.fd_count = 1;
    return packet;
  }
  static Bound mapped(std::uint32_t request, std::uint64_t size = kBytes) {
    Bound answer;
    answer.request = request;
    answer.rights = Rights::kReadWrite;
    answer.size = size;
    return answer;
  }
  Result<ShmBinding*> take(Packet packet, const Bound& answer) {
    return regions_.take(packet, answer, {peer_gates_, can_attach_});
  }
  /// What comes of a region of a page for which the peer answers that.
  Status fate(Packet packet, Bound answer) {
    ShmBinding* const binding = bind(region(next_));
    ask();
    answer.request = asked_.back().request;
    const auto taken = take(std::move(packet), answer);
    EXPECT_TRUE(taken && *taken == binding);
    EXPECT_EQ(binding->state == ShmBinding::State::kFailed, !binding->status.ok());
    ++next_;
    return binding->status;
  }

  ForkList forks_;
  std::unique_ptr<Gates> gates_;
  PeerGates peer_gates_;
  PeerRegions regions_;
  Status can_attach_;
  std::vector<Bind> asked_;
  std::uint32_t next_ = 0;
};

TEST_F(PeerRegionsTest, ARegionIsAskedForOnceAndMapped) {
  ShmBinding* const binding = bind(region(3));
  ASSERT_NE(binding, nullptr);
  EXPECT_EQ(bind(region(3)), binding);
  EXPECT_EQ(binding->state, ShmBinding::State::kAsking);
  EXPECT_EQ(ask(), 1u);
  EXPECT_EQ(ask(), 0u);
  EXPECT_EQ(asked_[0].index, 3u);
  const auto taken = take(with_memory(2 * kBytes), [&] {
    Bound answer = mapped(asked_[0].request);
    answer.place = kBytes;
    return answer;
  }());
  ASSERT_TRUE(taken && *taken == binding) << "the answer";
  EXPECT_EQ(binding->state, ShmBinding::State::kMapped);
  EXPECT_EQ(binding->base, binding->mapping->base() + kBytes);
  EXPECT_EQ(binding->gate, peer_gates_.at(3));
  EXPECT_EQ(regions_.mapped().count, 1u);
  EXPECT_EQ(regions_.mapped().bytes, kBytes);
  EXPECT_TRUE(regions_.forget(3, 1)) << "nobody else has the mapping";
  EXPECT_EQ(regions_.mapped().count, 0u);
  EXPECT_FALSE(regions_.forget(3, 1));
}

TEST_F(PeerRegionsTest, SoManyRequestsAreUnderWayAndNoMore) {
  for (std::uint32_t i = 0; i <= PeerRegions::kAskedMax; ++i) ASSERT_NE(bind(region(i)), nullptr);
  EXPECT_EQ(ask(Io::kAgain), 0u) << "the socket has no room";
  EXPECT_EQ(ask(), PeerRegions::kAskedMax);
  EXPECT_EQ(ask(), 0u);
  ASSERT_TRUE(take(with_memory(kBytes), mapped(asked_[0].request)));
  EXPECT_EQ(ask(), 1u);
}

TEST_F(PeerRegionsTest, WhatWasForgottenIsNotAskedForAndItsAnswerIsPassedOver) {
  ASSERT_NE(bind(region(1)), nullptr);
  ASSERT_NE(bind(region(2)), nullptr);
  EXPECT_FALSE(regions_.forget(1, 1));
  EXPECT_EQ(ask(), 1u);
  EXPECT_EQ(asked_[0].index, 2u);
  EXPECT_TRUE(regions_.forget_all().size() == 1);
  const auto taken = take(with_memory(kBytes), mapped(asked_[0].request));
  ASSERT_TRUE(taken);
  EXPECT_EQ(*taken, nullptr);
}

TEST_F(PeerRegionsTest, AnAnswerThatNobodyAskedForEndsThePath) {
  EXPECT_EQ(take(with_memory(kBytes), mapped(1)).error().code(), Code::kCorrupt);
  ASSERT_NE(bind(region(1)), nullptr);
  ask();
  ASSERT_TRUE(take(with_memory(kBytes), mapped(asked_[0].request)));
  EXPECT_EQ(take(with_memory(kBytes), mapped(asked_[0].request)).error().code(), Code::kCorrupt) << "a second time";
}

TEST_F(PeerRegionsTest, WhatThePeerSaysIsChecked) {
  EXPECT_TRUE(fate(with_memory(kBytes), mapped(0)).ok());
  EXPECT_EQ(fate(with_memory(kBytes), mapped(0, kBytes + 1)).code(), Code::kCorrupt) << "its card says another size";
  EXPECT_EQ(fate(Packet(), mapped(0)).code(), Code::kCorrupt) << "without memory";
  EXPECT_EQ(fate(with_memory(kBytes - 1), mapped(0)).code(), Code::kCorrupt) << "it ends behind its file";
  Bound behind = mapped(0);
  behind.place = 1;
  EXPECT_EQ(fate(with_memory(kBytes), behind).code(), Code::kCorrupt) << "one byte behind its file";
  EXPECT_TRUE(fate(with_memory(kBytes + 1), behind).ok());
  Bound refused = mapped(0);
  refused.code = Code::kDenied;
  refused.reason = "closed";
  const Status denied = fate(Packet(), refused);
  EXPECT_EQ(denied.code(), Code::kDenied);
  EXPECT_NE(std::string(denied.advice()).find("card"), std::string::npos);
}

TEST_F(PeerRegionsTest, AnIndexBeyondTheGatesIsCorrupt) {
  for (const std::uint32_t beyond : {0u, 1u}) {
    ShmBinding* const binding = bind(region(kGateCount - 1 + beyond));
    ask();
    ASSERT_TRUE(take(with_memory(kBytes), mapped(asked_.back().request)));
    EXPECT_EQ(binding->status.code(), beyond == 0 ? Code::kOk : Code::kCorrupt);
  }
}

TEST_F(PeerRegionsTest, ForeignMemoryWantsCrossMemoryAttach) {
  ASSERT_NE(bind(region(1, kBytes, CardKind::kForeign)), nullptr);
  ask();
  Bound foreign = mapped(asked_[0].request);
  foreign.kind = MemoryKind::kForeign;
  foreign.place = 0x1000;
  const auto taken = take(Packet(), foreign);
  ASSERT_TRUE(taken);
  EXPECT_EQ((*taken)->state, ShmBinding::State::kForeign);
  EXPECT_EQ((*taken)->address, 0x1000u);
  can_attach_ = Status(Code::kUnsupported, "attach=false");
  for (const CardKind kind : {CardKind::kForeign, CardKind::kAdopted}) {
    EXPECT_EQ(regions_.bind(region(2, kBytes, kind), can_attach_).error().code(), Code::kUnsupported);
  }
  EXPECT_NE(bind(region(2, kBytes, CardKind::kArena)), nullptr);
  foreign.kind = MemoryKind::kAdopted;
  EXPECT_EQ(fate(with_memory(kBytes), foreign).code(), Code::kUnsupported) << "its card said that it can be mapped";
}

TEST_F(PeerRegionsTest, WhatShmDoesNotReachIsRefusedAtOnce) {
  EXPECT_EQ(regions_.bind(region(1, kBytes, CardKind::kNone), can_attach_).error().code(), Code::kUnsupported);
  RemoteRegionRef elsewhere = region(1);
  elsewhere.device.kind = DeviceKind::kCuda;
  EXPECT_EQ(regions_.bind(elsewhere, can_attach_).error().code(), Code::kUnsupported);
  EXPECT_EQ(ask(), 0u);
}

TEST_F(PeerRegionsTest, ARegionThatFailedSaysWhyAgain) {
  ASSERT_NE(bind(region(1)), nullptr);
  ask();
  ASSERT_TRUE(take(Packet(), mapped(asked_[0].request)));
  EXPECT_EQ(regions_.bind(region(1), can_attach_).error().code(), Code::kCorrupt);
  EXPECT_EQ(ask(), 0u);
}

}  // namespace
}  // namespace hawser::backend::shm
