#pragma once

// Queue pairs of two ends over a fabric in memory, without a port, a path or a control stream: for tests.
//
// Thread rule: one thread.

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/verbs/mock/mock_backend.h"
#include "backend/verbs/mock/mock_verbs.h"
#include "backend/verbs/path/path_pair.h"

namespace hawser::backend::verbs {

/// One end: an owner of queue pairs that keeps what they say and what became of them.
class TestEnd final : public PairOwner {
 public:
  TestEnd(MockFabric& fabric, const std::string& name, const std::vector<std::string>& devices, std::uint64_t seed)
      : name_(name),
        context_{.identity = identity_,
                 .regions = table_,
                 .log = log_,
                 .rng = base::Rng(seed),
                 .heartbeat = std::chrono::milliseconds(250),
                 .clock = Clock::steady()},
        shared{.context = context_,
               .options = options,
               .pairing = pairing_,
               .lanes = lanes,
               .events = events_,
               .host = 0,
               .rng = base::Rng(seed)} {
    options.pair.messages = options.pair.immediates = 0;
    const auto verbs = std::make_shared<MockVerbs>(fabric);
    for (const std::string& device : devices) {
      const DeviceInfo info = mock_device_info(fabric.device(device));
      auto nic = open_nic(
          verbs, {.device = &info, .port = &info.ports[0], .path = {.mbit_per_s = info.ports[0].mbit_per_s}}, options);
      EXPECT_TRUE(nic.has_value()) << (nic ? "" : nic.error().to_string());
      auto queues = CqPool::open((*nic)->domain, options.pair.send_depth + 1);
      EXPECT_TRUE(queues.has_value()) << (queues ? "" : queues.error().to_string());
      lanes.push_back(std::make_unique<NicLane>(*nic, *std::move(queues)));
    }
  }

  bool is_down() const override { return down; }
  const std::string& peer_name() const override { return name_; }
  std::uint8_t count_of_pairs() const override { return 1; }
  void say(const wire::QueuePairMessage& message) override { said.push_back(message); }
  Status make(PathPair& pair) override {
    pair.ways().begin();
    return pair.qp().make(pair.epoch(), shared.rng);
  }
  void before_reset(PathPair&) override { ++resets; }
  void after_reset(PathPair& pair, std::vector<Flight> back, Instant now) override {
    pair.lost().add(std::move(back), pair.qp().epoch(), now, options.patience);
  }
  void on_ready(PathPair&) override { ++ready; }
  void on_lost(PathPair&, bool has_worked, Instant) override {
    ++lost;
    worked += has_worked;
  }
  void on_fenced(PathPair& pair) override { fenced += pair.lost().take_all().size(); }
  void on_failed(PathPair&) override { ++failed; }

  /// What came of what was posted, as a path takes it.
  void complete(PathPair& pair, Instant now) {
    std::array<ibv_wc, 16> completions;
    const int count = lanes[pair.lane()]->queues->poll(completions);
    for (int i = 0; i < count; ++i) {
      const Completed each = pair.qp().on_completion(completions[static_cast<std::size_t>(i)]);
      if (each.kind == Completed::Kind::kProved) pair.feed(proto::QueuePairEvent::kProved, now);
      if (each.kind == Completed::Kind::kFault) pair.fault(each.cause, now);
      pair.settle(now);
    }
  }
  /// The first thing that it said and that was not taken yet.
  template <typename Message>
  Message take() {
    EXPECT_FALSE(said.empty()) << "nothing was said";
    if (said.empty()) return {};
    const auto* const first = std::get_if<Message>(&said.front());
    EXPECT_NE(first, nullptr) << "another thing was said: " << said.front().index();
    const Message message = first == nullptr ? Message{} : *first;
    said.pop_front();
    return message;
  }

 private:
  std::string name_;
  Identity identity_;
  RegionTable table_{4};
  base::Logger log_;
  Context context_;
  Pairing pairing_;
  stream::EventQueue events_;

 public:
  VerbsOptions options;
  std::vector<std::unique_ptr<NicLane>> lanes;
  PortShared shared;
  bool down = false;
  std::deque<wire::QueuePairMessage> said;
  int resets = 0, ready = 0, lost = 0, worked = 0, failed = 0;
  std::size_t fenced = 0;
};

/// Two ends, one queue pair each, and the messages between them.
class TwoPairs : public ::testing::Test {
 protected:
  void TearDown() override {
    active.reset();
    passive.reset();
    a.reset();
    b.reset();
    EXPECT_EQ(fabric.counts, MockCounts{}) << "something leaked";
  }
  static std::unique_ptr<PathPair> pair_of(TestEnd& end, proto::QueuePairRole role, PairPlace place = {}) {
    return std::make_unique<PathPair>(end.shared, end, role, place);
  }
  /// Goes through the whole handshake.
  static void connect(TestEnd& from, PathPair& opener, TestEnd& to, PathPair& other, Instant now) {
    other.on_connect(from.take<wire::QueuePairConnect>(), now);
    opener.on_accept(to.take<wire::QueuePairAccept>(), now);
    from.complete(opener, now);
    other.on_ready_heard(from.take<wire::QueuePairReady>(), now);
    EXPECT_TRUE(opener.is_ready());
    EXPECT_TRUE(other.is_ready());
  }
  void connect() {
    active->feed(proto::QueuePairEvent::kWant, now);
    connect(*a, *active, *b, *passive, now);
  }

  MockFabric fabric{{"mock0", "mock1"}};
  Instant now = Instant::min() + std::chrono::seconds(1000);
  std::unique_ptr<TestEnd> a = std::make_unique<TestEnd>(fabric, "b", std::vector<std::string>{"mock0"}, 11);
  std::unique_ptr<TestEnd> b = std::make_unique<TestEnd>(fabric, "a", std::vector<std::string>{"mock1"}, 22);
  std::unique_ptr<PathPair> active = pair_of(*a, proto::QueuePairRole::kActive);
  std::unique_ptr<PathPair> passive = pair_of(*b, proto::QueuePairRole::kPassive);
};

}  // namespace hawser::backend::verbs
