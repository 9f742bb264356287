// What is left of peers that are gone and of agents that are closed: nothing, and nobody waits for them.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/core.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "backend/tcp/factory.h"
#include "base/inside.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

Agent open_by_tcp(const std::string& name) {
  return std::move(open_with({.name = name, .backends = {tcp()}}, {backend::tcp_factory()}).value());
}

TEST(Closing, WhoWaitsForAQueueIsLetGo) {
  Agent agent = std::move(open_with({.name = "a"}, {backend::loopback_factory()}).value());
  CompletionQueue queue = agent.make_queue().value();
  std::size_t taken = 9;
  std::thread waiting([&] {
    std::array<Completion, 4> out;
    taken = queue.wait(out, Duration::max());
  });
  while (!core_of(agent)->lane.led()) std::this_thread::yield();
  EXPECT_TRUE(agent.close(30s).ok());
  waiting.join();
  EXPECT_EQ(taken, 0u);
}

TEST(Closing, APeerThatIsGoneGetsNoSessionByALookAtItsPlans) {
  Agent there = open_by_tcp("there"), here = open_by_tcp("here");
  std::vector<std::byte> memory(64);
  const Region ours = here.add_region({.name = "ours", .bytes = memory}).value();
  const Region theirs = there.add_region({.name = "theirs", .bytes = memory}).value();
  const Peer peer = here.add_peer(there.card().value()).value();
  const LocalRange from = ours.range(0, 64);
  const RemoteRange to = peer.range("theirs", 0, 64);
  const Plan plan = here.plan_write(peer, {&from, 1}, {&to, 1}).value();
  ASSERT_TRUE(here.invalidate(peer).ok());
  static_cast<void>(here.poll());
  ASSERT_TRUE(here.counters().peers.empty());
  EXPECT_NE(here.explain(plan).find("peer 'there' was forgotten"), std::string::npos) << here.explain(plan);
  EXPECT_FALSE(inner::moves_in_submit(plan));
  constexpr int kTurns = 32;  // One that finds nothing may be cut short.
  for (int i = 0; i < kTurns; ++i) static_cast<void>(here.poll());
  EXPECT_TRUE(here.counters().peers.empty());
}

// It waits for a word, and so nobody has wanted the peer yet.
TEST(Closing, AHeldTransferEndsWithItsPeer) {
  Agent there = open_by_tcp("there"), here = open_by_tcp("here");
  std::vector<std::byte> memory(64);
  std::vector<std::uint64_t> words(1);
  const Region ours = here.add_region({.name = "ours", .bytes = memory}).value();
  const Region gate = here.add_region({.name = "gate", .bytes = std::as_writable_bytes(std::span(words))}).value();
  const Region theirs = there.add_region({.name = "theirs", .bytes = memory}).value();
  const Peer peer = here.add_peer(there.card().value()).value();
  const LocalRange from = ours.range(0, 64);
  const RemoteRange to = peer.range("theirs", 0, 64);
  const Plan plan = here.plan_write(peer, {&from, 1}, {&to, 1}).value();
  const SignalWord word{.word = gate.range(0, 8), .value = 1};
  Transfer held = plan.submit({.after = &word}).value();
  static_cast<void>(here.poll());
  ASSERT_FALSE(held.done());
  ASSERT_TRUE(here.invalidate(peer).ok());
  const Status end = held.wait(Duration::zero());
  EXPECT_EQ(end.code(), Code::kDisconnected) << end.to_string();
  EXPECT_EQ(end.buffer(), BufferState::kUntouched) << end.to_string();
}

// Somebody looks just when the peer goes, and then the agent closes: that session ends twice.
TEST(Closing, ASessionThatIsMadeForAPeerThatIsGoneIsBuriedOnce) {
  Agent there = open_by_tcp("there"), here = open_by_tcp("here");
  const Peer peer = here.add_peer(there.card().value()).value();
  ASSERT_TRUE(here.invalidate(peer).ok());
  while (!here.counters().peers.empty()) static_cast<void>(here.poll());
  Core& core = *core_of(here);
  core.lane.lock();
  Session& late = core.engine.sessions().of(core_of(peer));
  core.engine.connector().invalidate(late, Status(Code::kDisconnected, "told once more"), core.now());
  core.lane.unlock();
  EXPECT_TRUE(here.close(20s).ok());
  EXPECT_TRUE(here.counters().peers.empty());
}

/// One without threads of its own, as a folder: whoever waits does the work, as long as there is time.
class Unhurried final : public Directory {
 public:
  std::string_view kind() const override { return "unhurried"; }
  Ticket put(std::string_view key, std::string_view value, const PutOptions&) override {
    return ask([this, key = std::string(key), value = std::string(value)] {
      values[key] = value;
      return DirectoryEvent();
    });
  }
  Ticket erase(std::string_view key, const EraseOptions&) override {
    return ask([this, key = std::string(key)] {
      values.erase(key);
      return DirectoryEvent();
    });
  }
  Ticket get(std::string_view key) override {
    return ask([this, key = std::string(key)] {
      const auto found = values.find(key);
      if (found == values.end()) return DirectoryEvent{.status = Status(Code::kNotFound, "no such key")};
      return DirectoryEvent{.entries = {{.key = key, .value = found->second, .version = 1}}};
    });
  }
  Ticket list(std::string_view) override { return 0; }
  Ticket watch(std::string_view) override { return 0; }
  void cancel(Ticket ticket) override { asked_.erase(ticket); }
  bool run_job(Instant now, Instant deadline) override {
    if (asked_.empty() || now >= deadline) return false;
    const auto first = asked_.begin();
    answers_[first->first] = first->second();
    asked_.erase(first);
    return true;
  }
  std::optional<DirectoryEvent> poll(Ticket ticket) override {
    const auto found = answers_.find(ticket);
    if (found == answers_.end()) return std::nullopt;
    DirectoryEvent answer = std::move(found->second);
    answers_.erase(found);
    return answer;
  }
  std::vector<std::string> warnings() const override { return {}; }

  std::map<std::string, std::string> values;

 private:
  Ticket ask(std::function<DirectoryEvent()> what) {
    asked_[++last_] = std::move(what);
    return last_;
  }
  std::map<Ticket, std::function<DirectoryEvent()>> asked_;
  std::map<Ticket, DirectoryEvent> answers_;
  Ticket last_ = 0;
};

class ShortClose : public testing::Test {
 protected:
  const std::shared_ptr<Unhurried> directory_ = std::make_shared<Unhurried>();
  Agent agent_ = std::move(open_with({.name = "a", .directory = directory_}, {backend::loopback_factory()}).value());
};

TEST_F(ShortClose, ItsCardIsTakenAwayByTheNextOne) {
  ASSERT_EQ(directory_->values.size(), 1u);
  static_cast<void>(agent_.close(0s).ok());
  EXPECT_TRUE(agent_.close(20s).ok());
  EXPECT_TRUE(directory_->values.empty());
}

TEST_F(ShortClose, ItsCardIsTakenAwayWithTheHandle) {
  ASSERT_EQ(directory_->values.size(), 1u);
  static_cast<void>(agent_.close(0s).ok());
  agent_ = Agent();
  EXPECT_TRUE(directory_->values.empty());
}

}  // namespace
}  // namespace hawser::agent
