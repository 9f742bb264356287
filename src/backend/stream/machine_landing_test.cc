#include "backend/stream/machine_landing.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "backend/stream/machine_driver.h"
#include "base/bytes.h"

namespace hawser::backend::stream {
namespace {

/// One machine writes to the region of another.
class MachineLandingTest : public testing::Test {
 protected:
  MachineLandingTest() {
    RegionEntry entry;
    entry.key = {7, 9};
    entry.base = memory_.data();
    entry.size = memory_.size();
    entry.rights = Rights::kReadWrite;
    region_ = regions_.add(std::move(entry)).value();
    RemoteRegionRef ref;
    ref.index = region_->index;
    ref.generation = region_->generation;
    ref.key = region_->key;
    const Piece piece{source_.data(), 0, source_.size()};
    const Chunk chunk{.op = Operation::kWrite,
                      .covered = true,
                      .target = from_.bind(ref),
                      .pieces = {&piece, 1},
                      .bytes = source_.size()};
    EXPECT_EQ(from_.submit({&chunk, 1}), 1u);
    sent_ = drain(from_, 0);
  }
  std::span<const std::byte> sent(std::size_t from) const { return std::span(sent_).subspan(from); }
  std::size_t arrivals() {
    std::array<PortEvent, 8> out;
    std::size_t arrived = 0;
    for (const PortEvent& event : std::span(out).first(events_.poll(out))) {
      arrived += event.kind == PortEvent::Kind::kArrival ? 1 : 0;
    }
    return arrived;
  }

  std::vector<std::byte> source_ = std::vector<std::byte>(3000, std::byte{1}), memory_ = std::vector<std::byte>(3000);
  RegionTable regions_{4}, none_{1};
  EventQueue events_, unused_;
  Machine from_{none_, unused_, nullptr, {.peer = "peer"}};
  Machine to_{regions_, events_, nullptr, {.peer = "peer"}};
  std::shared_ptr<const RegionEntry> region_;
  std::vector<std::byte> sent_;
  MachineLanding landing_{to_, 0};
};

TEST_F(MachineLandingTest, TakesFramesAndPayloadAndTheMachineActsOnThem) {
  EXPECT_EQ(landing_.place(sent(0).first(1000)), 1000u);
  EXPECT_EQ(arrivals(), 0u);
  EXPECT_EQ(landing_.place(sent(1000)), sent_.size() - 1000);
  EXPECT_EQ(memory_, source_);
  EXPECT_EQ(arrivals(), 1u);
  EXPECT_TRUE(landing_.status().ok());
}

TEST_F(MachineLandingTest, PutsNothingIntoARegionThatWasLetGo) {
  EXPECT_EQ(landing_.place(sent(0).first(1000)), 1000u);
  const std::vector<std::byte> before = memory_;
  EXPECT_NE(before, std::vector<std::byte>(3000));
  regions_.close(region_->index, region_->generation);
  EXPECT_TRUE(to_.region_quiet(region_->index, region_->generation));
  EXPECT_EQ(landing_.place(sent(1000)), sent_.size() - 1000) << "they go nowhere";
  EXPECT_EQ(memory_, before);
  EXPECT_EQ(arrivals(), 0u);
}

TEST_F(MachineLandingTest, TakesNothingBehindWhatIsWrong) {
  std::vector<std::byte> wrong(64, std::byte{0xff});
  EXPECT_GT(landing_.place(wrong), 0u);
  EXPECT_EQ(landing_.status().code(), Code::kCorrupt);
  EXPECT_EQ(landing_.place(sent(0)), 0u);
}

TEST_F(MachineLandingTest, TakesNoMoreThanTheMachineWants) {
  std::size_t offered = 0, taken = 0;
  for (int i = 0; i < 100 && offered == taken; ++i) {  // Until the lane would have to poll.
    const std::vector<std::byte> text(kMessageMax, std::byte{'x'});
    ASSERT_TRUE(from_.send(Priority::kRealtime, text, {}));
    const std::vector<std::byte> bytes = drain(from_, 0);
    offered += bytes.size();
    taken += landing_.place(bytes);
  }
  EXPECT_LT(taken, offered);
  EXPECT_TRUE(landing_.status().ok());
  EXPECT_FALSE(to_.wants(0));
}

}  // namespace
}  // namespace hawser::backend::stream
