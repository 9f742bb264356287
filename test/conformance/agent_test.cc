// Agents as a whole: backends named, added and explained; counters; closing; joins and leaves.

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "../sanitized.h"
#include "agent_suite.h"

namespace hawser::conformance {
namespace {

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

TEST_P(Conformance, AnAgentKnowsItsBackends) {
  open_pair();
  EXPECT_TRUE(a().has_backend(backend()));
  EXPECT_TRUE(a().has_backend(upper(backend())));
  EXPECT_TRUE(a().require_backend(backend()).ok());
  EXPECT_TRUE(says(a().require_backend("carrier-pigeon"), Code::kNotFound, {"a", "carrier-pigeon", backend()}));
  const auto reports = a().backends();
  const auto ours = std::ranges::find_if(reports, [&](const BackendReport& each) { return each.name == backend(); });
  ASSERT_NE(ours, reports.end());
  EXPECT_TRUE(ours->open);
  EXPECT_TRUE(ours->cause.ok());
  EXPECT_FALSE(ours->address.empty());
  EXPECT_TRUE(says(a().add_backend(GetParam().backend), Code::kInvalid, {backend(), "open already"}));
}

TEST_P(Conformance, UnknownBackendsAreNamed) {
  open_pair();
  EXPECT_TRUE(says(a().add_backend({"carrier-pigeon", {}}), Code::kNotFound, {"carrier-pigeon", backend()}));
  EXPECT_FALSE(a().has_backend("carrier-pigeon"));
  const auto reports = a().backends();
  const auto failed = std::ranges::find_if(reports, [](const auto& each) { return each.name == "carrier-pigeon"; });
  ASSERT_NE(failed, reports.end());
  EXPECT_FALSE(failed->open);
  EXPECT_EQ(failed->cause.code(), Code::kNotFound);
  AgentOptions strict = options("strict");
  strict.backends = {GetParam().backend, {"carrier-pigeon", {}}, {"drum", {}}};
  EXPECT_TRUE(says(env().open(strict).error(), Code::kNotFound, {"carrier-pigeon", "drum"}));
  strict.mode = OpenMode::kLenient;
  Agent* const lenient = must(env().open(strict));
  EXPECT_TRUE(lenient->has_backend(backend()));
  EXPECT_TRUE(says(lenient->require_backend("drum"), Code::kNotFound, {"drum"}));
}

TEST_P(Conformance, ABackendAddedLaterServesWhatIsThere) {
  HAWSER_NEEDS_TWO_AGENTS();
  const Result<Agent*> bare_a = env().open_without(options("a")), bare_b = env().open_without(options("b"));
  if (!bare_a || !bare_b) GTEST_SKIP() << bare_a.error().to_string();
  a_ = *bare_a;
  b_ = *bare_b;
  Area source = add(a(), "source", 300'000), target = add(b(), "target", 300'000);
  fill(source.bytes, 1);
  Peer peer = a_to_b();
  const Status early = run(must(a().plan_write(peer, {{source.range(0, 100)}}, {{peer.range("target", 0, 100)}})));
  EXPECT_FALSE(early.ok());
  EXPECT_TRUE(early.to_string().find("b") != std::string::npos) << early.to_string();
  const auto fall_asleep = [this] { (void)env().eventually([] { return false; }, std::chrono::milliseconds(10)); };
  fall_asleep();  // A driver that sleeps must hear of the new port.
  must(a().add_backend(GetParam().backend));
  fall_asleep();
  must(b().add_backend(GetParam().backend));
  peer = a_to_b();
  must(run(must(a().plan_write(peer, {{source.range(0, 300'000)}}, {{peer.range("target", 0, 300'000)}})),
           {.notify = "late"}));
  EXPECT_TRUE(holds(target.bytes, 1));
  EXPECT_EQ(next_notification(b()).text, "late");
}

TEST_P(Conformance, ExplainNamesThePathAndTheOthers) {
  open_pair();
  Area source = add(a(), "source", 1 << 20), target = add(b(), "target", 1 << 20);
  const Peer peer = a_to_b();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 1 << 20)}}, {{peer.range("target", 0, 1 << 20)}}));
  EXPECT_NE(a().explain(plan).find(backend()), std::string::npos) << a().explain(plan);
  must(run(plan));
  (void)a().add_backend({"carrier-pigeon", {}});
  const std::string text = a().explain(plan);
  EXPECT_NE(text.find(backend()), std::string::npos) << text;
  EXPECT_NE(text.find("carrier-pigeon"), std::string::npos) << text;
  EXPECT_FALSE(a().explain(Plan()).empty());
}

TEST_P(Conformance, ExplainTellsWhatWasMeasured) {
  open_pair();
  Area source = add(a(), "source", 1 << 20), target = add(b(), "target", 1 << 20);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 1 << 20)}}, {{peer.range("target", 0, 1 << 20)}}));
  EXPECT_EQ(a().explain(plan).find("measured"), std::string::npos) << a().explain(plan);
  for (int i = 0; i < 16; ++i) must(run(plan));  // Of those that are over within submit one in eight is timed.
  EXPECT_NE(a().explain(plan).find("measured"), std::string::npos) << a().explain(plan);
}

TEST_P(Conformance, TotalsKeepWhatForgottenPeersTook) {
  HAWSER_NEEDS_TWO_AGENTS();
  AgentOptions few = options("a");
  few.limits.events = 1;
  open_pair(few, options("b"));
  Area source = add(a(), "source", 100'000), target = add(b(), "target", 100'000);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 100'000)}}, {{peer.range("target", 0, 100'000)}}));
  for (int i = 0; i < 16; ++i) must(run(plan));
  const std::uint64_t timed = a().counters().total.latency.count;
  EXPECT_GE(timed, 2U);
  must(a().invalidate(peer));
  EXPECT_TRUE(env().eventually([&] { return a().counters().peers.empty(); }));
  const AgentCounters counters = a().counters();
  EXPECT_EQ(counters.total.writes, 16U);
  EXPECT_EQ(counters.total.latency.count, timed);
  EXPECT_GE(counters.events_dropped, 1U);  // It came up and went, and there is room for one event.
  EXPECT_NE(to_json(counters).find("\"events_dropped\":"), std::string::npos);
}

TEST_P(Conformance, CountersAgreeWithWhatWasDone) {
  open_pair();
  Area source = add(a(), "source", 100'000), target = add(b(), "target", 100'000), words = add(a(), "words", 64);
  std::ranges::fill(words.bytes, std::byte{0});
  const Peer peer = meet();
  const std::vector<LocalRange> ours = {source.range(0, 70'000)};
  const std::vector<RemoteRange> theirs = {peer.range("target", 0, 70'000)};
  const Plan write = must(a().plan_write(peer, ours, theirs)), read = must(a().plan_read(peer, theirs, ours));
  for (int i = 0; i < 7; ++i) must(run(write));
  for (int i = 0; i < 5; ++i) must(run(read));
  const SignalWord never{.word = words.range(0, 8), .value = 1};
  EXPECT_EQ(run(write, {.deadline = 5ms, .after = &never}).code(), Code::kTimedOut);
  Transfer cancelled = must(write.submit({.after = &never}));
  cancelled.cancel();
  EXPECT_EQ(finish(cancelled).code(), Code::kCancelled);
  const AgentCounters counters = a().counters();
  EXPECT_EQ(counters.agent, a().name());
  EXPECT_EQ(counters.incarnation, to_string(a().incarnation()));
  const FlowCounters& total = counters.total;
  EXPECT_EQ(total.writes, 7U);
  EXPECT_EQ(total.reads, 5U);
  EXPECT_EQ(total.bytes_written, 7U * 70'000);
  EXPECT_EQ(total.bytes_read, 5U * 70'000);
  EXPECT_EQ(total.errors, 2U);
  EXPECT_EQ(total.timeouts, 1U);
  EXPECT_EQ(total.cancels, 1U);
  EXPECT_EQ(total.latency.count, 12U);
  EXPECT_LE(total.latency.p50_ns, total.latency.p99_ns);
  EXPECT_LE(total.latency.p99_ns, total.latency.max_ns);
  EXPECT_EQ(counters.transfers_in_flight_gauge, 0U);
  ASSERT_EQ(counters.peers.size(), 1U);
  EXPECT_EQ(counters.peers[0].peer, b().name());
  EXPECT_EQ(counters.peers[0].state, "up");
  EXPECT_EQ(counters.peers[0].flow.writes, 7U);
  ASSERT_EQ(counters.paths.size(), 1U);
  EXPECT_EQ(counters.paths[0].backend, backend());
  EXPECT_GE(counters.paths[0].bytes_out, 7U * 70'000);
  EXPECT_GE(counters.paths[0].bytes_in, 5U * 70'000);
  EXPECT_EQ(counters.paths[0].latency.count, 12U);
  EXPECT_EQ(counters.paths[0].latency.max_ns, total.latency.max_ns);
  EXPECT_EQ(counters.paths[0].errors, 0U);
  EXPECT_EQ(counters.paths[0].retries, 0U);
  EXPECT_EQ(counters.events_dropped, 0U);
  const auto json = nlohmann::json::parse(to_json(counters));
  EXPECT_NE(json.dump().find("490000"), std::string::npos) << json.dump();
}

TEST_P(Conformance, NothingWorksAfterClose) {
  open_pair();
  Area source = add(a(), "source", 4096), target = add(b(), "target", 4096);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 4096)}}, {{peer.range("target", 0, 4096)}}));
  must(run(plan));
  CompletionQueue queue = must(a().make_queue(16));
  Status closed;
  env().blocking(a(), [&] { closed = a().close(kPatience); });
  must(closed);
  EXPECT_TRUE(a().close(0s).ok());
  const auto refused = [&](const Status& status, std::string_view call) {
    EXPECT_TRUE(says(status, Code::kInvalid, {call, "a", "closed"}));
  };
  refused(plan.submit().error(), "submit");
  refused(a().add_region({.name = "x", .bytes = source.bytes, .device = {}}).error(), "add_region");
  refused(a().allocate({.name = "x", .size = 64}).error(), "allocate");
  refused(a().add_peer("").error(), "add_peer");
  refused(a().find_peer("b", 0s).error(), "find_peer");
  refused(a().add_backend(GetParam().backend), "add_backend");
  refused(a().make_queue().error(), "make_queue");
  refused(a().open_channel(16), "open_channel");
  refused(a().plan_write(peer, {{source.range(0, 8)}}, {{peer.range("target", 0, 8)}}).error(), "plan_write");
  EXPECT_FALSE(peer.notify("x").ok());
  EXPECT_FALSE(peer.connect(0s).ok());
  EXPECT_EQ(a().poll(), 0U);
  EXPECT_FALSE(a().wait(0s));
  EXPECT_FALSE(a().take_notification());
  std::array<Completion, 4> out;
  (void)queue.wait(out, 0s);
  EXPECT_TRUE(source.region.close(0s).ok());
  EXPECT_FALSE(a().explain(plan).empty());
  (void)a().counters();
  (void)a().card();
}

TEST_P(Conformance, CloseEndsWhatIsInFlight) {
  open_pair();
  constexpr std::size_t kSize = 8 << 20;
  for (int moments : {0, 2, 5}) {
    Agent* const from = open(options("from"));
    Area source = add(*from, "source", kSize);
    Agent& to = self() ? *from : b();
    Area target = add(to, "target " + std::to_string(moments), kSize);
    const Peer peer = know(*from, to);
    const Plan plan = must(from->plan_write(peer, {{source.range(0, kSize)}}, {{peer.range(target.name(), 0, kSize)}}));
    std::ranges::fill(source.bytes, std::byte{1});
    Transfer sent = must(plan.submit({.notify = "x"}));
    pass(moments);
    Status closed;
    env().blocking(*from, [&] { closed = from->close(kPatience); });
    must(closed);
    EXPECT_TRUE(sent.done());
    std::ranges::fill(source.bytes, std::byte{0xca});
    pass(10);
    EXPECT_EQ(count_while_landing(target.bytes, std::byte{0xca}), 0);
    env().drop(from);
  }
}

TEST_P(Conformance, HandlesMayOutliveTheirAgent) {
  HAWSER_NEEDS_TWO_AGENTS();
  open_pair();
  Area source = add(a(), "source", 4096), target = add(b(), "target", 4096);
  const Peer peer = meet();
  const Plan plan = must(a().plan_write(peer, {{source.range(0, 4096)}}, {{peer.range("target", 0, 4096)}}));
  const RangeTable table = source.region.table(64), remote = peer.table("target", 64);
  CompletionQueue queue = must(a().make_queue(16));
  Transfer done = must(plan.submit({.queue = &queue}));
  must(finish(done));
  Transfer flying = must(plan.submit({.queue = &queue}));
  drop(a_);
  EXPECT_TRUE(done.done());
  EXPECT_TRUE(flying.done());
  EXPECT_TRUE(done.wait(0s).ok());
  EXPECT_EQ(table.size(), 64U);
  EXPECT_EQ(remote.size(), 64U);
  EXPECT_FALSE(plan.submit().error().ok());
  std::array<Completion, 4> out;
  EXPECT_GE(queue.poll(out), 1U);
  EXPECT_FALSE(peer.notify("x").ok());
  EXPECT_EQ(peer.name(), "b");
  EXPECT_TRUE(env().eventually([&] { return b().peers().empty(); }));
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

/// A visitor comes, is written `size` bytes to and writes 4 KiB, and goes.
void visit(Environment& env, Agent& host, Area& area, std::size_t size, const std::function<AgentOptions()>& options) {
  Agent* const guest = must(env.open(options()));
  std::vector<std::byte> memory(size);
  Region region = must(guest->add_region({.name = "guest", .bytes = memory, .device = {}}));
  const Peer to_guest = must(host.add_peer(must(guest->card()))), to_host = must(guest->add_peer(must(host.card())));
  Transfer there = must(must(host.plan_write(to_guest, {{area.range(0, size)}}, {{to_guest.range("guest", 0, size)}}))
                            .submit({.notify = "welcome"}));
  Transfer back = must(must(guest->plan_write(to_host, {{region.range(0, 4096)}}, {{to_host.range("host", 0, 4096)}}))
                           .submit({.notify = "thanks"}));
  bool thanked = false;
  if (!env.eventually([&] {
        thanked = thanked || host.take_notification().has_value();
        return there.done() && back.done() && thanked;
      })) {
    throw std::runtime_error("a visit did not end");
  }
  must(there.status());
  must(back.status());
  Status closed;
  env.blocking(*guest, [&] { closed = guest->close(kPatience); });
  must(closed);
  region = Region();
  env.drop(guest);
  env.eventually([&] { return host.peers().empty(); });
}

/// HAWSER_FLAT_ROUNDS=10000 for the whole of it. With a sanitizer, whose heap is not malloc's, only descriptors count.
TEST_P(Conformance, MemoryStaysFlatOverJoinsAndLeaves) {
  HAWSER_NEEDS_TWO_AGENTS();
  const char* const wanted = std::getenv("HAWSER_FLAT_ROUNDS");
  const int rounds = wanted != nullptr ? std::atoi(wanted) : kIsSanitized ? 15 : 60;
  const int warm = kIsSanitized ? 5 : 30;
  a_ = open(options("host"));
  Area area = add(a(), "host", kLeftToDriver);
  std::size_t bytes = 0, descriptors = 0;
  for (int round = 0; round < warm + rounds; ++round) {
    if (round == warm) {
      bytes = ::mallinfo2().uordblks;
      descriptors = open_descriptors();
    }
    visit(env(), a(), area, round == 0 ? kLeftToDriver : 4096, [&] { return options("guest"); });
    while (a().take_event()) {
    }
  }
  const std::size_t growth_max = 64U * 1024 + static_cast<std::size_t>(rounds) * 64;
  std::size_t growth = 0, opened = 0;
  // What the last visitors left behind may be on its way out still: a lost path's message slots, a socket.
  env().eventually([&] {
    const std::size_t now = ::mallinfo2().uordblks;
    growth = now > bytes ? now - bytes : 0;
    opened = open_descriptors();
    return growth <= growth_max && opened <= descriptors + 2;
  });
  RecordProperty("bytes_per_round", static_cast<int>(growth / static_cast<std::size_t>(rounds)));
  EXPECT_LE(growth, growth_max) << "after " << rounds << " rounds";
  EXPECT_LE(opened, descriptors + 2);
  EXPECT_TRUE(a().peers().empty());
}

}  // namespace
}  // namespace hawser::conformance
