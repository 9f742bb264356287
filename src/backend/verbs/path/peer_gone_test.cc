// The peer's process is killed, or stopped, while a queue pair of this end is being mended: in each phase of that, at
// the end that opened the path and at the other. That an idle, a busy and a connecting one are told of it is in
// port_test.cc.

#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

constexpr Duration kGoneSlack = std::chrono::milliseconds(100);

/// A phase is held by a call that fails, or by a peer that takes no turns.
struct GoneCase {
  std::string phase;  ///< State of the survivor's queue pair.
  bool at_opener = true;
  bool killed = true;  ///< Else stopped.
};
void PrintTo(const GoneCase& each, std::ostream* out) { *out << each.phase; }

class PeerGone : public VerbsPair, public ::testing::WithParamInterface<GoneCase> {
 protected:
  Side& survivor() { return GetParam().at_opener ? *a : *b; }
  std::string device() const { return GetParam().at_opener ? "mock0" : "mock1"; }
  Path& path() { return *(GetParam().at_opener ? to_b : b->up); }
  std::string state() { return path().counters().queue_pairs.at(0).state; }

  void start_writing() {
    start();
    connect();
    if (!GetParam().at_opener) {
      binding = *path().bind(ref_of(*mine, a->extra));
      ASSERT_NE(region, nullptr);
    }
    fabric.hold = true;
    const Piece piece[] = {{survivor().memory.data(), 0, 4096}};
    const Chunk write = chunk(Operation::kWrite, piece, 1);
    ASSERT_EQ(path().submit({&write, 1}, now).taken, 1u);
  }
  void reach_phase() {
    const std::string& phase = GetParam().phase;
    Side& other = GetParam().at_opener ? *b : *a;
    if (phase == "draining") fabric.fail_always("modify_qp", EIO);  // What was posted does not come back.
    if (phase == "backoff") fabric.fail_always("create_qp", ENOMEM);
    fabric.raise(device(), IBV_EVENT_PORT_ERR);
    if (phase == "accepted") {
      ASSERT_TRUE(run([&] { return to_b->counters().queue_pairs.at(0).state == "backoff"; }));
      ASSERT_TRUE(run_alone(other, [&] { return to_b->counters().queue_pairs.at(0).state == "connecting"; }));
      run_alone(
          other, [] { return false; }, kStep, 20);  // Until its Connect is under way.
    }
    ASSERT_TRUE(run_alone(survivor(), [&] { return state() == phase; })) << path().describe();
  }
  bool is_over() {
    return !survivor().down.empty() && std::ranges::any_of(survivor().done, [](const auto& d) { return d.first == 1; });
  }
  /// The path went down with the peer's name, what was in flight ended so, and the killed end left nothing.
  void expect_told() {
    const std::string name = GetParam().at_opener ? "b" : "a";
    // Silence proves no death, and is told as what it is.
    const Code code = GetParam().killed ? Code::kDisconnected : Code::kTimedOut;
    EXPECT_EQ(survivor().down.at(0).code(), code) << survivor().down.at(0).to_string();
    EXPECT_NE(survivor().down.at(0).to_string().find(name), std::string::npos) << survivor().down.at(0).to_string();
    ASSERT_EQ(survivor().done.size(), 1u);
    EXPECT_FALSE(survivor().done.at(0).second.ok());
    EXPECT_NE(survivor().done.at(0).second.buffer(), BufferState::kComplete);
  }
  /// A new path, and bytes over it.
  void expect_meets_again() {
    survivor().done.clear();
    const int ups = a->ups;
    to_b = open();
    ASSERT_TRUE(run_slow([&] { return a->ups > ups; })) << to_b->describe();
    region = region == nullptr ? b->add_region() : region;
    binding = bind(*region, b->extra);
    const Piece piece[] = {{a->memory.data(), 8192, 4096}};
    ASSERT_EQ(submit(Operation::kWrite, piece, 2).taken, 1u);
    ASSERT_TRUE(run_slow([&] { return is_done(2); })) << to_b->describe();
    EXPECT_TRUE(outcome(2).ok()) << outcome(2).to_string();
    EXPECT_TRUE(std::equal(a->memory.begin(), a->memory.begin() + 4096, b->memory.begin() + 8192));
  }
  void restart_victim() {
    if (GetParam().at_opener) {
      b = std::make_unique<Side>(fabric, network, "b", std::vector<std::string>{"mock1"}, options, 222);
      region = nullptr;
    } else {
      a = std::make_unique<Side>(fabric, network, "a", std::vector<std::string>{"mock0"}, options, 111);
      mine = a->add_region();
    }
  }
};

TEST_P(PeerGone, IsToldInTimeAndWhoComesBackIsMetAgain) {
  start_writing();
  if (HasFatalFailure()) return;
  reach_phase();
  if (HasFatalFailure()) return;
  const Instant gone_at = now;
  if (GetParam().killed) (GetParam().at_opener ? b : a).reset();
  ASSERT_TRUE(run_alone(
      survivor(), [&] { return is_over(); }, std::chrono::milliseconds(1)))
      << path().describe();
  // Of one that is killed its socket tells, of one that is stopped three heartbeats.
  EXPECT_LT(now - gone_at,
            GetParam().killed ? std::chrono::milliseconds(500) : 3 * survivor().context->heartbeat + kGoneSlack);
  expect_told();
  if (HasFatalFailure()) return;
  fabric.fail_no_more();
  fabric.hold = false;
  survivor().memory[0] = std::byte{0x77};  // Its own again: nobody may see it from now on.
  fabric.deliver();
  if (GetParam().killed) restart_victim();
  expect_meets_again();
  Side& other = GetParam().at_opener ? *b : *a;
  EXPECT_NE(other.memory[0], std::byte{0x77}) << "it landed after its end";
}

std::vector<GoneCase> gone_cases() {
  std::vector<GoneCase> all;
  for (const bool killed : {true, false}) {
    for (const char* phase : {"draining", "backoff", "connecting"}) all.push_back({phase, true, killed});
    for (const char* phase : {"draining", "accepted"}) all.push_back({phase, false, killed});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Phases, PeerGone, ::testing::ValuesIn(gone_cases()), [](const auto& test) {
  return test.param.phase + (test.param.at_opener ? "_opener_" : "_other_") +
         (test.param.killed ? "killed" : "stopped");
});

}  // namespace
}  // namespace hawser::backend::verbs
