#include "agent/status_teller.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include <hawser/hawser.h>
#include <nlohmann/json.hpp>

#include "agent/core.h"
#include "agent/open.h"
#include "backend/shm/factory.h"
#include "base/inside.h"
#include "base/test_folder.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class StatusTellerTest : public testing::Test {
 protected:
  Agent open(const std::string& name, const std::string& page) {
    AgentOptions options{.name = name, .backends = {{"shm", {}}}, .status_page = page};
    options.log = {.level = LogLevel::kWarn, .sink = [this](LogLevel, std::string_view line) {
                     const std::lock_guard lock(mutex_);
                     lines_.emplace_back(line);
                   }};
    return open_with(std::move(options), {backend::shm_factory()}).value();
  }
  /// What the page of this agent says; null: there is none.
  nlohmann::json status(const std::string& name) const {
    for (const std::string& page : base::list_status_pages(folder_)) {
      auto json = nlohmann::json::parse(base::read_status_page(page).value().text);
      if (json["agent"] == name) return json;
    }
    return nullptr;
  }
  /// As if so much time had passed.
  static void tell(Agent& agent, Duration later = StatusTeller::kPeriod) {
    Core& core = *core_of(agent);
    core.lane.lock();
    core.status_teller.turn(core.now() + later);
    core.lane.unlock();
  }

  const base::TestFolder root_;
  const std::string folder_ = root_.path();
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(StatusTellerTest, AllAgentsTellAtTheSameMoments) {
  const Agent one = open("one", folder_);
  const Instant now = core_of(one)->now();
  const Instant next = StatusTeller::next_beat(now);
  EXPECT_GT(next, now);
  EXPECT_LE(next, now + StatusTeller::kPeriod);
  EXPECT_EQ(StatusTeller::next_beat(next - 1ns), next);
  EXPECT_EQ(StatusTeller::next_beat(next), next + StatusTeller::kPeriod);
  Core& core = *core_of(one);
  core.lane.lock();
  core.status_teller.turn(next - 1ns);
  EXPECT_EQ(core.status_teller.next_deadline(), next);
  core.status_teller.turn(next);
  EXPECT_EQ(core.status_teller.next_deadline(), next + StatusTeller::kPeriod);
  core.lane.unlock();
}

TEST_F(StatusTellerTest, AnAgentHasItsPageFromItsOpeningToItsEnd) {
  {
    const Agent agent = open("one", folder_);
    EXPECT_EQ(status("one")["sessions"], 0u);
    EXPECT_EQ(status("one")["schema"], "hawser.status/1");
  }
  EXPECT_TRUE(base::list_status_pages(folder_).empty());
  EXPECT_TRUE(lines_.empty());
}

TEST_F(StatusTellerTest, OffMeansNone) {
  const Agent agent = open("one", "off");
  EXPECT_TRUE(base::list_status_pages(folder_).empty());
  EXPECT_TRUE(lines_.empty());
}

TEST_F(StatusTellerTest, WhereThereCanBeNoneTheLogSaysWhyAndTheAgentWorks) {
  const std::string file = folder_ + "/file";
  std::ofstream(file) << "x";
  const Agent agent = open("one", file);
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("no status page"), std::string::npos) << lines_[0];
  EXPECT_NE(lines_[0].find(file), std::string::npos) << lines_[0];
  // A folder that others may enter is not trusted.
  const std::string open_folder = folder_ + "/open";
  fs::create_directory(open_folder);
  ASSERT_EQ(::chmod(open_folder.c_str(), 0777), 0);
  const Agent other = open("two", open_folder);
  EXPECT_EQ(lines_.size(), 2u);
  EXPECT_TRUE(base::list_status_pages(open_folder).empty());
}

TEST_F(StatusTellerTest, APageTellsOfPeersPathsAndTransfers) {
  Agent here = open("here", folder_), there = open("there", folder_);
  const Region from = here.allocate({.name = "from", .size = 4096}).value();
  const Region to = there.allocate({.name = "to", .size = 4096}).value();
  const Peer peer = here.add_peer(there.card().value()).value();
  const LocalRange local = from.range(0, 4096);
  const RemoteRange remote = peer.range("to", 0, 4096);
  const Plan plan = here.plan_write(peer, {&local, 1}, {&remote, 1}).value();
  Transfer sent = plan.submit({.deadline = 10s}).value();
  tell(here);
  EXPECT_EQ(status("here")["in_flight"], 1u);
  ASSERT_GE(status("here")["waiting"].size(), 1u);
  EXPECT_EQ(status("here")["waiting"][0]["peer"], "there");
  const Instant end = Clock::steady().now() + 10s;
  while (!sent.done() && Clock::steady().now() < end) {
    (void)here.poll();
    (void)there.poll();
  }
  ASSERT_TRUE(sent.wait(1s).ok());
  tell(here);
  const nlohmann::json told = status("here");
  EXPECT_EQ(told["in_flight"], 0u);
  EXPECT_EQ(told["bytes_written"], 4096u);
  EXPECT_EQ(told["transfers"], 1u);
  ASSERT_EQ(told["peers"].size(), 1u);
  EXPECT_EQ(told["peers"][0]["peer"], "there");
  EXPECT_EQ(told["peers"][0]["paths"][0]["backend"], "shm");
}

TEST_F(StatusTellerTest, WhileNothingChangesATextStaysForAWhile) {
  Agent here = open("here", folder_), there = open("there", "off");
  const auto told_at = [&] { return status("here")["at_ns"].get<std::int64_t>(); };
  tell(here);
  const std::int64_t first = told_at();
  tell(here, StatusTeller::kQuietPeriod / 2);
  EXPECT_EQ(told_at(), first) << "nothing changed";
  tell(here, StatusTeller::kQuietPeriod + StatusTeller::kPeriod);
  EXPECT_GT(told_at(), first) << "the text is old";
  // Then whatever changes is told at the next look: a session, a wait, a transfer.
  const std::int64_t before = told_at();
  const Region from = here.allocate({.name = "from", .size = 4096}).value();
  const Region to = there.allocate({.name = "to", .size = 4096}).value();
  const Peer peer = here.add_peer(there.card().value()).value();
  const LocalRange local = from.range(0, 4096);
  const RemoteRange remote = peer.range("to", 0, 4096);
  Transfer sent = here.plan_write(peer, {&local, 1}, {&remote, 1}).value().submit({.deadline = 10s}).value();
  tell(here, StatusTeller::kQuietPeriod + 2 * StatusTeller::kPeriod);
  const std::int64_t during = told_at();
  EXPECT_GT(during, before);
  tell(here, StatusTeller::kQuietPeriod + 3 * StatusTeller::kPeriod);
  EXPECT_GT(told_at(), during) << "somebody waits";
  const Instant end = Clock::steady().now() + 10s;
  while (!sent.done() && Clock::steady().now() < end) {
    (void)here.poll();
    (void)there.poll();
  }
  ASSERT_TRUE(sent.wait(1s).ok());
  tell(here, StatusTeller::kQuietPeriod + 4 * StatusTeller::kPeriod);
  EXPECT_EQ(status("here")["transfers"], 1u);
}

TEST_F(StatusTellerTest, OfManyPeersItTellsOfThoseThatMovedMost) {
  Agent here = open("here", folder_);
  const Region from = here.allocate({.name = "from", .size = 4096}).value();
  std::vector<Agent> others;
  for (std::size_t i = 0; i <= StatusTeller::kRowsMax; ++i) {
    Agent& other = others.emplace_back(open(std::string(200, '\xff') + std::to_string(i), "off"));
    const Region to = other.allocate({.name = "to", .size = 4096}).value();
    const Peer peer = here.add_peer(other.card().value()).value();
    const LocalRange local = from.range(0, i + 1);
    const RemoteRange remote = peer.range("to", 0, i + 1);
    const Plan plan = here.plan_write(peer, {&local, 1}, {&remote, 1}).value();
    Transfer sent = plan.submit({.deadline = 10s}).value();
    const Instant end = Clock::steady().now() + 10s;
    while (!sent.done() && Clock::steady().now() < end) {
      (void)here.poll();
      (void)other.poll();
    }
    ASSERT_TRUE(sent.wait(1s).ok());
  }
  Duration best = Duration::max();
  for (int i = 0; i < 20; ++i) {
    const Instant before = Clock::steady().now();
    tell(here);
    best = std::min(best, Clock::steady().now() - before);
  }
  RecordProperty("best_us_of_20", static_cast<int>(best / 1us));
  const nlohmann::json told = status("here");
  EXPECT_EQ(told["sessions"], StatusTeller::kRowsMax + 1);
  ASSERT_EQ(told["peers"].size(), StatusTeller::kRowsMax);
  EXPECT_EQ(told["peers"].front()["bytes_written"], StatusTeller::kRowsMax + 1);
  EXPECT_EQ(told["peers"].back()["bytes_written"], 2u);
}

}  // namespace
}  // namespace hawser::agent
