// Atomic operations between processes: sums that are exact, and what is left of them when a process dies or stops.

#include <algorithm>
#include <atomic>
#include <thread>

#include "real_test.h"

namespace hawser::real {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr int kAdds = 1000, kSwaps = 100, kInFlight = 8;

std::atomic_ref<std::uint64_t> word(Memory& memory, std::size_t index) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory.bytes.data() + kWord * index));
}

/// A process that knows the agent here, as `name_here`.
struct Adder {
  Adder(Here& here, const Way& way, const std::string& name) : process(PeerProcess::start(peer_line(way, name))) {
    peer = here.meet(process, &name_here);
  }
  std::string line(const std::string& verb, int count) {
    return verb + " " + name_here + " sums " + std::to_string(count);
  }

  PeerProcess process;
  Peer peer;
  std::string name_here;
};

TEST_P(RealTest, SumsOfTwoProcessesAndTheOwnerAreExact) {
  Here here(GetParam(), quick("here"));
  Memory& sums = here.add("sums", 4096);
  Adder one(here, GetParam(), "one"), two(here, GetParam(), "two");
  one.process.send(one.line("add", kAdds));
  two.process.send(two.line("add", kAdds));
  for (int i = 0; i < kAdds; ++i) word(sums, 0).fetch_add(1);
  one.process.answer();
  two.process.answer();
  EXPECT_EQ(word(sums, 0).load(), 3U * kAdds);

  one.process.send(one.line("swap", kSwaps));
  two.process.send(two.line("swap", kSwaps));
  one.process.answer();
  two.process.answer();
  EXPECT_EQ(word(sums, 1).load(), 2U * kSwaps);
}

TEST_P(RealTest, NothingIsAddedByAProcessThatIsGone) {
  for (const Duration delay : {0us, 700us, 5000us}) {
    Here here(GetParam(), quick("here"));
    Memory& sums = here.add("sums", 4096);
    Adder killed(here, GetParam(), "killed"), other(here, GetParam(), "other");
    killed.process.ask(killed.line("add", 0));
    ASSERT_TRUE(eventually([&] { return word(sums, 0).load() > kInFlight; }));
    const Instant from = now();
    eventually([&] { return now() - from >= delay; });
    killed.process.kill();
    ASSERT_TRUE(here.await_down(killed.peer, now(), 10s));
    const std::uint64_t then = word(sums, 0).load();
    other.process.ask(other.line("add", kAdds));
    EXPECT_EQ(word(sums, 0).load(), then + kAdds);
  }
}

struct Ends {
  std::uint64_t good = 0, unknown = 0;
};

/// Each ended well with a value of its own, or badly with one of `codes`, knowing what is known of the word.
Ends count_ends(std::vector<AtomicOp>& ops, const std::vector<Code>& codes) {
  Ends ends;
  std::vector<std::uint64_t> found;
  for (AtomicOp& op : ops) {
    EXPECT_TRUE(eventually([&] { return op.done(); }));
    if (op.status().ok()) {
      ++ends.good;
      found.push_back(op.found());
      continue;
    }
    EXPECT_NE(std::ranges::find(codes, op.status().code()), codes.end()) << op.status().to_string();
    EXPECT_NE(op.status().buffer(), BufferState::kComplete) << op.status().to_string();
    ends.unknown += op.status().buffer() == BufferState::kUnknown ? 1 : 0;
  }
  std::ranges::sort(found);
  EXPECT_EQ(std::ranges::adjacent_find(found), found.end());
  return ends;
}

TEST_P(RealTest, OperationsOnWordsOfADeadOwnerEnd) {
  Here here(GetParam(), quick("here"));
  PeerProcess owner = PeerProcess::start(peer_line(GetParam(), "owner"));
  owner.ask("region sums 4096 foreign");
  const Peer peer = here.meet(owner);
  const RemoteRange sum = peer.range("sums", 0, kWord);
  must(must(fetch_add(here.agent(), sum, 1)).wait(kPatience));
  std::vector<AtomicOp> ops;
  for (int i = 0; i < kAdds; ++i) {
    if (i == kAdds / 2) owner.stop();
    ops.push_back(must(fetch_add(here.agent(), sum, 1)));
  }
  owner.kill();
  const Ends ends = count_ends(ops, {Code::kDisconnected, Code::kTimedOut});
  EXPECT_LE(ends.good, kAdds / 2U);
  const Result<AtomicOp> after = fetch_add(here.agent(), sum, 1);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code(), Code::kDisconnected);
}

TEST_P(RealTest, OperationsOnWordsOfAStoppedOwnerTimeOutAndMayBeDoneLater) {
  AgentOptions patient = quick("here");
  patient.peer_timeout = kPatience;
  Here here(GetParam(), patient);
  PeerProcess owner = PeerProcess::start(peer_line(GetParam(), "owner", "driven=1 timeout_ms=30000"));
  owner.ask("region sums 4096 foreign");
  const RemoteRange sum = here.meet(owner).range("sums", 0, kWord);
  must(must(fetch_add(here.agent(), sum, 1)).wait(kPatience));
  owner.stop();
  std::vector<AtomicOp> ops;
  for (int i = 0; i < kInFlight; ++i) ops.push_back(must(fetch_add(here.agent(), sum, 1, {.deadline = 100ms})));
  const Ends ends = count_ends(ops, {Code::kTimedOut});
  EXPECT_EQ(ends.good, 0U);
  owner.resume();
  AtomicOp last = must(fetch_add(here.agent(), sum, 1));
  must(last.wait(kPatience));
  EXPECT_GE(last.found(), 1U);
  EXPECT_LE(last.found(), 1 + ends.unknown);
  EXPECT_EQ(owner.ask("word sums"), std::to_string(last.found() + 1));
}

}  // namespace
}  // namespace hawser::real
