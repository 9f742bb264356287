#include "runtime/recorder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/test_folder.h"

namespace hawser::runtime {
namespace {

using namespace std::chrono_literals;

Instant at(Duration time) { return Instant::from_ns(1'000'000) + time; }

FlightEntry operation(std::uint64_t number, std::string_view name = "all_reduce") {
  FlightEntry entry;
  entry.world = 7;
  entry.number = number;
  entry.count = 100 * number;
  entry.rank = 1;
  entry.size = 4;
  put_text(entry.operation, name);
  put_text(entry.world_name, "trainer");
  return entry;
}

class RecorderTest : public testing::Test {
 protected:
  Recorder open(const std::string& name = "one") {
    return Recorder::open(folder_.path(), name, {.world = "trainer", .rank = 1, .size = 4}, at(0s)).value();
  }
  Flight read(const std::string& name = "one") const { return read_flight(folder_.path(name + ".flight")).value(); }

  base::TestFolder folder_;
};

TEST_F(RecorderTest, WhatIsRecordedIsRead) {
  Recorder recorder = open();
  Flight flight = read();
  EXPECT_TRUE(flight.entries.empty());
  EXPECT_TRUE(flight.is_alive);
  EXPECT_EQ(flight.header.process, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(flight.header.rank, 1u);
  EXPECT_EQ(flight.header.size, 4u);
  EXPECT_EQ(text_of(flight.header.world_name), "trainer");

  const std::uint64_t first = recorder.begin(operation(1), at(1s));
  const std::uint64_t second = recorder.begin(operation(2, "barrier"), at(2s));
  recorder.end(first, Code::kOk, at(3s));
  flight = read();
  ASSERT_EQ(flight.entries.size(), 2u);
  EXPECT_EQ(flight.entries[0].state, FlightState::kEnded);
  EXPECT_EQ(flight.entries[0].ended_ns, at(3s).ns());
  EXPECT_EQ(flight.entries[0].count, 100u);
  EXPECT_EQ(flight.entries[1].state, FlightState::kBegun);
  EXPECT_EQ(flight.entries[1].begun_ns, at(2s).ns());
  EXPECT_EQ(text_of(flight.entries[1].operation), "barrier");
  recorder.end(second, Code::kDisconnected, at(4s));
  EXPECT_EQ(read().entries[1].code, static_cast<std::uint8_t>(Code::kDisconnected));
  EXPECT_NEAR(static_cast<double>(flight.wall_ns(at(2s).ns())), static_cast<double>(flight.header.opened_wall_ns) + 2e9,
              1);
}

TEST_F(RecorderTest, TheLastOnesStay) {
  Recorder recorder = open();
  const std::uint64_t first = recorder.begin(operation(1), at(0s));
  for (std::uint64_t i = 2; i <= kFlightEntries; ++i) recorder.begin(operation(i), at(1s));
  EXPECT_EQ(read().entries.front().number, 1u);
  recorder.begin(operation(kFlightEntries + 1), at(1s));
  recorder.end(first, Code::kOk, at(2s));  // Its place is another's by now.
  const Flight flight = read();
  ASSERT_EQ(flight.entries.size(), kFlightEntries);
  EXPECT_EQ(flight.entries.front().number, 2u);
  EXPECT_EQ(flight.entries.back().number, kFlightEntries + 1);
  EXPECT_EQ(flight.entries.back().state, FlightState::kBegun);
}

TEST_F(RecorderTest, LongNamesAreCut) {
  Recorder recorder = open();
  FlightEntry entry = operation(1, std::string(100, 'o'));
  put_text(entry.world_name, std::string(64, 'w'));
  recorder.begin(entry, at(0s));
  const Flight flight = read();
  EXPECT_EQ(text_of(flight.entries[0].operation), std::string(31, 'o'));
  EXPECT_EQ(text_of(flight.entries[0].world_name), std::string(63, 'w'));
}

TEST_F(RecorderTest, AFileOutlivesAProcessThatDies) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto recorder = Recorder::open(folder_.path(), "dead", {.world = "trainer", .rank = 2, .size = 4}, at(0s));
    if (!recorder) ::_exit(1);
    recorder->begin(operation(5), at(0s));
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const Flight flight = read("dead");
  EXPECT_FALSE(flight.is_alive);
  ASSERT_EQ(flight.entries.size(), 1u);
  EXPECT_EQ(flight.entries[0].number, 5u);
  // Its age is what it says itself: a newcomer lets it lie, though the file's own time is old.
  const timespec then{std::time(nullptr) - 7200, 0};
  const std::array<timespec, 2> times{then, then};
  ASSERT_EQ(::utimensat(AT_FDCWD, folder_.path("dead.flight").c_str(), times.data(), 0), 0);
  const Recorder next = open("next");
  EXPECT_EQ(list_flights(folder_.path()).size(), 2u);
}

TEST_F(RecorderTest, AFileGoesWithItsRecorder) {
  { const Recorder recorder = open(); }
  EXPECT_TRUE(list_flights(folder_.path()).empty());
}

TEST_F(RecorderTest, WhatIsNoneIsCorrupt) {
  {
    const Recorder recorder = open();
    ASSERT_EQ(::truncate(folder_.path("one.flight").c_str(), 100), 0);
    EXPECT_EQ(read_flight(folder_.path("one.flight")).error().code(), Code::kCorrupt);
    ASSERT_EQ(::truncate(folder_.path("one.flight").c_str(), 0), 0);
    ASSERT_EQ(::truncate(folder_.path("one.flight").c_str(), static_cast<off_t>(kFlightBytes)), 0);
    EXPECT_EQ(read_flight(folder_.path("one.flight")).error().code(), Code::kCorrupt);
  }
  EXPECT_EQ(read_flight(folder_.path("none.flight")).error().code(), Code::kNotFound);
}

TEST_F(RecorderTest, AReaderTakesNoEntryThatChanges) {
  Recorder recorder = open();
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (std::uint64_t i = 1; !is_over.load(std::memory_order_relaxed); ++i) recorder.begin(operation(i), at(0s));
  });
  for (int i = 0; i < 300; ++i) {
    for (const FlightEntry& entry : read().entries) {
      ASSERT_EQ(entry.count, 100 * entry.number);
      ASSERT_EQ(entry.stamp, entry.number);
    }
  }
  is_over = true;
  writer.join();
}

}  // namespace
}  // namespace hawser::runtime
