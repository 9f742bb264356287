// Handles by several threads at once: what is released while others use it or look at its note.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "api/handles.h"

namespace hawser::api {
namespace {

struct Owner final : Object {
  static constexpr std::uint8_t kKind = 1;
  static constexpr std::string_view kName = "owner";
};

/// As a request: writes what it moved, then notes that it is finished.
struct Job final : Object {
  static constexpr std::uint8_t kKind = 2;
  static constexpr std::string_view kName = "job";
  explicit Job(std::uint64_t* its_bytes) : bytes(its_bytes) {}
  ~Job() override { note->store(0, std::memory_order_release); }
  void placed(Note& its_note) override { note = &its_note; }
  void finish(std::uint64_t owner, std::uint64_t value) {
    *bytes = value;
    note->store(owner, std::memory_order_release);
  }
  std::uint64_t* const bytes;
  Note* note = nullptr;
};

// As in the library: tables are never destroyed, because the handlers of forks know them.
Handles& table() {
  static Handles* const its = new Handles;
  return *its;
}

constexpr int kRounds = 2000;

TEST(HandlesThreads, WhoSeesANoteSeesWhatStoodBeforeIt) {
  const std::uint64_t owner = table().add("test", std::make_unique<Owner>()).value();
  std::vector<std::uint64_t> bytes(kRounds);
  std::vector<std::atomic<std::uint64_t>> jobs(kRounds);
  std::atomic<int> seen{0};
  std::vector<std::thread> pollers;
  for (int i = 0; i < 2; ++i) {
    pollers.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        std::uint64_t job = 0;
        while ((job = jobs[round].load(std::memory_order_acquire)) == 0) std::this_thread::yield();
        while (!table().has_noted<Job>(job, owner)) std::this_thread::yield();
        EXPECT_EQ(bytes[round], static_cast<std::uint64_t>(round) + 1);
        seen.fetch_add(1, std::memory_order_release);
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t job = table().add("test", std::make_unique<Job>(&bytes[round])).value();
    jobs[round].store(job, std::memory_order_release);
    table().find<Job>("test", job).value()->finish(owner, static_cast<std::uint64_t>(round) + 1);
    while (seen.load(std::memory_order_acquire) < 2 * (round + 1)) std::this_thread::yield();
    EXPECT_TRUE(table().release<Job>("test", job).ok());
    EXPECT_FALSE(table().has_noted<Job>(job, owner));
  }
  for (std::thread& each : pollers) each.join();
  EXPECT_TRUE(table().release<Owner>("test", owner).ok());
}

// Wrong use, which must be harmless: looks at handles that another thread releases at that moment, in places that are
// used again at once. A job that never finished is never seen as finished.
TEST(HandlesThreads, NotesOfHandlesThatAreReleasedMeanwhile) {
  const std::uint64_t owner = table().add("test", std::make_unique<Owner>()).value();
  std::array<std::uint64_t, 2> bytes{};
  std::atomic<std::uint64_t> finished{0}, unfinished{0};
  std::atomic<bool> stop{false};
  std::thread poller([&] {
    while (!stop.load(std::memory_order_acquire)) {
      (void)table().has_noted<Job>(finished.load(std::memory_order_acquire), owner);
      EXPECT_FALSE(table().has_noted<Job>(unfinished.load(std::memory_order_acquire), owner));
      if (auto job = table().find<Job>("test", finished.load(std::memory_order_acquire))) (void)(*job)->bytes;
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    for (auto* const which : {&finished, &unfinished}) {
      auto& place = bytes[which == &finished ? 0 : 1];
      const std::uint64_t job = table().add("test", std::make_unique<Job>(&place)).value();
      which->store(job, std::memory_order_release);
      if (which == &finished) table().find<Job>("test", job).value()->finish(owner, 1);
    }
    EXPECT_TRUE(table().release<Job>("test", finished.load()).ok());
    EXPECT_TRUE(table().release<Job>("test", unfinished.load()).ok());
  }
  stop.store(true, std::memory_order_release);
  poller.join();
  EXPECT_TRUE(table().release<Owner>("test", owner).ok());
}

}  // namespace
}  // namespace hawser::api
