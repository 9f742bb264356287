#include "agent/process_status.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <hawser/hawser.h>
#include <nlohmann/json.hpp>

#include "agent/core.h"
#include "agent/metrics_source.h"
#include "agent/open.h"
#include "agent/status_answers.h"
#include "backend/shm/factory.h"
#include "base/inside.h"
#include "base/left_file.h"
#include "base/test_folder.h"
#include "base/user_socket.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;
using Line = nlohmann::json;

class ProcessStatusTest : public testing::Test {
 protected:
  Agent open(const std::string& name, bool socket = true) {
    return open_with({.name = name, .backends = {{"shm", {}}}, .status_page = folder_.path(), .status_socket = socket},
                     {backend::shm_factory()})
        .value();
  }
  std::vector<std::string> sockets() const { return base::list_left_files(folder_.path(), ".ask"); }
  std::string socket_of(const Agent& agent) const {
    return folder_.path(core_of(agent)->status_teller.seat().socket_name());
  }
  base::Fd call(const std::string& request, const std::string& socket = {}) const {
    const std::string path = socket.empty() ? sockets().at(0) : socket;
    Result<base::Fd> connected = base::connect_to_user_socket(path);
    for (const Instant limit = Clock::steady().now() + 10s;
         !connected && connected.error().code() == Code::kBusy && Clock::steady().now() < limit;) {
      connected = base::connect_to_user_socket(path);
    }
    base::Fd caller = std::move(connected.value());
    const std::string line = request + "\n";
    EXPECT_EQ(::send(caller.get(), line.data(), line.size(), MSG_NOSIGNAL), static_cast<ssize_t>(line.size()));
    return caller;
  }
  /// Reads what has come. True: the desk has ended the connection.
  static bool read(const base::Fd& caller, std::string* answer) {
    std::array<char, 65536> bytes;
    for (;;) {
      const ssize_t got = ::recv(caller.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) return false;
      if (got <= 0) return true;
      answer->append(bytes.data(), static_cast<std::size_t>(got));
    }
  }
  /// Asks and polls these agents until the answer is whole.
  std::string ask(const std::string& request, std::vector<Agent*> agents) const {
    const base::Fd caller = call(request, socket_of(*agents.at(0)));
    std::string answer;
    const Instant end = Clock::steady().now() + 20s;
    while (!read(caller, &answer) && Clock::steady().now() < end) {
      for (Agent* agent : agents) (void)agent->poll();
    }
    return answer;
  }
  /// As ask, by a caller that waits; somebody else turns the lanes.
  std::string ask_driven(const std::string& request) const {
    const base::Fd caller = call(request);
    std::string answer;
    const Instant end = Clock::steady().now() + 20s;
    while (!read(caller, &answer) && Clock::steady().now() < end) {
      pollfd entry{.fd = caller.get(), .events = POLLIN, .revents = 0};
      (void)::poll(&entry, 1, 100);
    }
    return answer;
  }
  static std::vector<Line> lines_of(const std::string& answer) {
    std::vector<Line> lines;
    for (std::size_t at = 0, end = 0; (end = answer.find('\n', at)) != std::string::npos; at = end + 1) {
      lines.push_back(Line::parse(answer.substr(at, end - at)));
    }
    return lines;
  }
  static std::size_t count(const std::vector<Line>& lines, const char* key) {
    return static_cast<std::size_t>(std::ranges::count_if(lines, [&](const Line& line) { return line.contains(key); }));
  }
  /// Eight bytes from one to the other.
  static void write_once(Agent& from, Agent& to) {
    const Region source = from.allocate({.name = "source", .size = 4096}).value();
    const Region target = to.allocate({.name = "target", .size = 4096}).value();
    const Peer peer = from.add_peer(to.card().value()).value();
    const LocalRange local = source.range(0, 8);
    const RemoteRange remote = peer.range("target", 0, 8);
    Transfer sent = from.plan_write(peer, {&local, 1}, {&remote, 1}).value().submit({.deadline = 20s}).value();
    const Instant end = Clock::steady().now() + 20s;
    while (!sent.done() && Clock::steady().now() < end) {
      (void)from.poll();
      (void)to.poll();
    }
    ASSERT_TRUE(sent.wait(1s).ok());
  }
  bool is_asleep(const std::string& name) const {
    for (const std::string& page : base::list_status_pages(folder_.path())) {
      const base::StatusReading reading = base::read_status_page(page).value();
      if (Line::parse(reading.text)["agent"] == name) return reading.is_asleep;
    }
    return false;
  }
  /// Of this thread: what others on the machine take is not in it.
  static Duration processor_time() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }
  static std::string incarnation(const Agent& agent) { return base::to_hex(core_of(agent)->identity.incarnation); }
  static bool is_host(const Agent& agent) { return core_of(agent)->status_teller.seat().is_host(); }

  const base::TestFolder folder_;
};

TEST_F(ProcessStatusTest, AProcessHasOneSocketWhichGoesWithItsLastAgent) {
  {
    std::vector<Agent> agents;
    for (int i = 0; i < 20; ++i) agents.push_back(open("agent" + std::to_string(i)));
    EXPECT_EQ(sockets().size(), 1u);
    const std::vector<Line> lines = lines_of(ask("describe", {&agents[0]}));
    EXPECT_EQ(lines.at(0)["schema"], "hawser.describe/1");
    EXPECT_EQ(lines.at(0)["process"], ::getpid());
    EXPECT_EQ(lines.at(0)["agents"], 20u);
    EXPECT_EQ(count(lines, "agent"), 20u);
    EXPECT_TRUE(lines.back().contains("end"));
  }
  EXPECT_TRUE(sockets().empty());
}

TEST_F(ProcessStatusTest, ThePageNamesTheSocket) {
  const Agent agent = open("a");
  const auto page = base::read_status_page(base::list_status_pages(folder_.path()).at(0)).value();
  EXPECT_EQ(folder_.path(Line::parse(page.text)["socket"].get<std::string>()), sockets().at(0));
}

TEST_F(ProcessStatusTest, AnAgentWithoutASocketIsNotToldOf) {
  Agent a = open("a"), quiet = open("quiet", false);
  EXPECT_EQ(count(lines_of(ask("describe", {&a})), "agent"), 1u);
  const std::vector<Line> lines = lines_of(ask("describe " + incarnation(quiet), {&a}));
  EXPECT_EQ(lines.at(0)["agents"], 0u);
  EXPECT_TRUE(lines.back().contains("end"));
}

TEST_F(ProcessStatusTest, RequestsThatAreNoneAreRefused) {
  Agent a = open("a");
  for (const char* const request : {"", "descr", "describe ", "describe 12", "describe x y", "metrics nonsense"}) {
    EXPECT_NE(ask(request, {&a}).find("no such request"), std::string::npos) << request;
  }
}

TEST_F(ProcessStatusTest, ItTellsOfAllPeersAndAllThatWaits) {
  constexpr std::size_t kPeers = StatusTeller::kRowsMax + 5;
  Agent here = open("here");
  const Region from = here.allocate({.name = "from", .size = 4096}).value();
  std::vector<Agent> others;
  std::vector<Transfer> sent;
  for (std::size_t i = 0; i < kPeers; ++i) {
    Agent& other = others.emplace_back(open("peer" + std::to_string(i), false));
    const Region to = other.allocate({.name = "to", .size = 4096}).value();
    const Peer peer = here.add_peer(other.card().value()).value();
    const LocalRange local = from.range(0, 8);
    const RemoteRange remote = peer.range("to", 0, 8);
    const SignalWord never{.word = from.range(8, 8), .value = 1};
    const Plan plan = here.plan_write(peer, {&local, 1}, {&remote, 1}).value();
    sent.push_back(plan.submit({.deadline = 100s, .after = &never}).value());
  }
  const std::vector<Line> lines = lines_of(ask("describe " + incarnation(here), {&here}));
  std::set<std::string> peers, waiting;
  for (const Line& line : lines) {
    if (line.contains("peer")) {
      EXPECT_TRUE(line["peer"].contains("ways"));
      peers.insert(line["peer"]["peer"]);
    }
    if (line.contains("waiting") && line["waiting"]["who"] == "transfers") {
      EXPECT_GT(line["waiting"]["until_ns"], line["waiting"]["since_ns"]);
      waiting.insert(line["waiting"]["peer"]);
    }
  }
  EXPECT_EQ(peers.size(), kPeers);
  EXPECT_EQ(waiting.size(), kPeers);
  EXPECT_EQ(lines.at(1)["agent"]["in_flight"], kPeers);
  for (Transfer& each : sent) each.cancel();
}

TEST_F(ProcessStatusTest, NoPieceHoldsItsThreadForLong) {
  Agent here = open("here", false);
  std::vector<Agent> others;
  for (int i = 0; i < 64; ++i) {
    others.push_back(open(std::string(100, 'x') + std::to_string(i), false));
    write_once(here, others.back());
  }
  StatusRoster roster;
  roster.add(core_of(here)->identity.incarnation, *core_of(here));
  for (const char* const request : {"describe", "metrics"}) {
    constexpr int kTries = 10;
    Duration best = Duration::max();
    std::string answer;
    for (int i = 0; i < kTries; ++i) {
      const std::unique_ptr<StatusAnswer> pieces = answer_to(request, roster);
      Duration longest{};
      answer.clear();
      for (auto step = StatusAnswer::Step::kMore; step != StatusAnswer::Step::kEnd;) {
        const Duration before = processor_time();
        step = pieces->next(answer, Clock::steady().now());
        longest = std::max(longest, processor_time() - before);
      }
      best = std::min(best, longest);
    }
    RecordProperty(std::string(request) + "_longest_us", static_cast<int>(best / 1us));
    RecordProperty(std::string(request) + "_bytes", static_cast<int>(answer.size()));
    EXPECT_LT(best, 50ms) << request;
  }
}

TEST_F(ProcessStatusTest, MetricsAreTextForPrometheus) {
  Agent here = open("here"), there = open("there");
  write_once(here, there);
  const std::string one = ask("metrics " + incarnation(here), {&here, &there});
  EXPECT_NE(one.find("hawser_agent_bytes_total{agent=\"here\",operation=\"write\"} 8\n"), std::string::npos) << one;
  EXPECT_NE(one.find("hawser_peer_bytes_total{agent=\"here\",peer=\"there\",operation=\"write\"} 8\n"),
            std::string::npos);
  EXPECT_NE(one.find("hawser_paths_up{agent=\"here\",peer=\"there\",backend=\"shm\"} 1\n"), std::string::npos);
  EXPECT_EQ(one.find("agent=\"there\""), std::string::npos);
  EXPECT_TRUE(one.ends_with("\n# EOF\n"));
  metrics::Exposition scraped;
  add_metrics(here.counters(), scraped);
  EXPECT_EQ(one, scraped.text() + "# EOF\n") << "a scrape over HTTP gives the same";
  const std::string all = ask("metrics", {&here, &there});
  EXPECT_NE(all.find("hawser_agent_info{agent=\"here\""), std::string::npos);
  EXPECT_NE(all.find("hawser_agent_info{agent=\"there\""), std::string::npos);
  EXPECT_EQ(ask("metrics " + std::string(32, '0'), {&here}), "# EOF\n");
}

TEST_F(ProcessStatusTest, AnotherAgentAnswersWhenTheHostCloses) {
  Agent first = open("first"), second = open("second");
  EXPECT_TRUE(is_host(first));
  EXPECT_FALSE(is_host(second));
  const base::Fd caller = call("describe");
  ASSERT_TRUE(first.close(10s).ok());
  EXPECT_TRUE(is_host(second));
  std::string answer;
  const Instant end = Clock::steady().now() + 20s;
  while (!read(caller, &answer) && Clock::steady().now() < end) (void)second.poll();
  EXPECT_EQ(count(lines_of(answer), "agent"), 1u);
}

TEST_F(ProcessStatusTest, AnAgentThatIsTurnedTakesOverFromOneThatIsNot) {
  Agent still = open("still"), turned = open("turned");
  EXPECT_TRUE(is_host(still));
  Core& core = *core_of(turned);
  const auto beat = [&](Duration later) {
    core.lane.lock();
    core.status_teller.seat().beat(core.now() + later);
    core.lane.unlock();
  };
  beat(ProcessStatus::kHostPatience / 2);
  EXPECT_TRUE(is_host(still));
  beat(ProcessStatus::kHostPatience + 1s);
  EXPECT_FALSE(is_host(still));
  EXPECT_TRUE(is_host(turned));
  EXPECT_EQ(count(lines_of(ask("describe", {&turned})), "agent"), 2u) << "it tells of the other one, too";
}

TEST_F(ProcessStatusTest, AnAgentWhoseLaneIsHeldIsToldAsBusy) {
  Agent host = open("host"), held = open("held");
  core_of(held)->lane.lock();
  std::vector<Line> lines;
  std::string figures;
  std::thread([&] {  // A thread that has a lock may not try it again.
    lines = lines_of(ask("describe", {&host}));
    figures = ask("metrics", {&host});
  })
      .join();
  core_of(held)->lane.unlock();
  EXPECT_EQ(count(lines, "agent"), 1u);
  ASSERT_EQ(count(lines, "busy"), 1u);
  const auto busy = std::ranges::find_if(lines, [](const Line& line) { return line.contains("busy"); });
  EXPECT_EQ((*busy)["busy"]["agent"], "held");
  EXPECT_EQ((*busy)["busy"]["incarnation"], incarnation(held));
  EXPECT_TRUE(figures.starts_with("# busy held\n")) << figures;
}

TEST_F(ProcessStatusTest, ADriverAnswersForAnAgentThatSleeps) {
  Driver driver = Driver::start({.threads = 1}).value();
  Agent a = open("a"), b = open("b");
  ASSERT_TRUE(driver.attach(a).ok() && driver.attach(b).ok());
  for (int i = 0; i < 3; ++i) {
    while (!is_asleep("a") || !is_asleep("b")) std::this_thread::yield();
    const Instant before = Clock::steady().now();
    EXPECT_EQ(count(lines_of(ask_driven("describe")), "agent"), 2u);
    EXPECT_LT(Clock::steady().now() - before, 500ms) << "the call wakes it";
  }
}

TEST_F(ProcessStatusTest, OneWhoWaitsAnswersMeanwhile) {
  Agent a = open("a");
  std::vector<Line> lines;
  std::atomic<bool> done = false;
  std::thread caller([&] {
    lines = lines_of(ask_driven("describe"));
    done.store(true);
  });
  const Instant end = Clock::steady().now() + 20s;
  while (!done.load() && Clock::steady().now() < end) (void)a.wait(50ms);
  caller.join();
  EXPECT_EQ(count(lines, "agent"), 1u);
}

TEST_F(ProcessStatusTest, AnEventDescriptorTellsOfACall) {
  Agent a = open("a");
  const int fd = a.event_fd();
  const auto is_readable = [&](int wait_ms) {
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, wait_ms) == 1;
  };
  while (is_readable(0)) (void)a.poll();
  const base::Fd caller = call("describe");
  std::string answer;
  bool is_whole = false;
  while (!is_whole) {
    ASSERT_TRUE(is_readable(10'000));
    (void)a.poll();
    is_whole = read(caller, &answer);
  }
  EXPECT_EQ(count(lines_of(answer), "agent"), 1u);
  int polls = 0;
  for (; is_readable(0); ++polls) (void)a.poll();
  EXPECT_LT(polls, 100) << "and then it is silent again";
}

TEST_F(ProcessStatusTest, ACallerThatNeverReadsIsDroppedAndTheLaneSleeps) {
  Driver driver = Driver::start({.threads = 1}).value();
  Agent a = open("a");
  ASSERT_TRUE(driver.attach(a).ok());
  const base::Fd silent = base::connect_to_user_socket(sockets().at(0)).value();
  pollfd entry{.fd = silent.get(), .events = POLLIN, .revents = 0};
  const Instant before = Clock::steady().now();
  EXPECT_EQ(::poll(&entry, 1, 20'000), 1) << "the end of the connection";
  EXPECT_GE(Clock::steady().now() - before, StatusDesk::kRequestTime / 2);
}

TEST_F(ProcessStatusTest, AForkedChildHasASocketOfItsOwn) {
  Agent a = open("a");
  const pid_t child = ::fork();
  if (child == 0) {
    Agent ours = open("child");
    const bool are_two = sockets().size() == 2;
    ::_exit(are_two && socket_of(ours) != socket_of(a) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(count(lines_of(ask("describe " + incarnation(a), {&a})), "agent"), 1u) << "the parent's is untouched";
}

TEST_F(ProcessStatusTest, WhereThereCanBeNoneTheLogSaysWhyAndTheAgentWorks) {
  const std::string deep = folder_.path(std::string(100, 'x'));
  std::string lines;
  AgentOptions options{.name = "a", .backends = {{"shm", {}}}, .status_page = deep};
  options.log = {.level = LogLevel::kWarn, .sink = [&](LogLevel, std::string_view line) { lines += line; }};
  Agent a = open_with(std::move(options), {backend::shm_factory()}).value();
  EXPECT_NE(lines.find("no status socket"), std::string::npos) << lines;
  EXPECT_NE(lines.find("too long"), std::string::npos) << lines;
  EXPECT_EQ(base::list_status_pages(deep).size(), 1u) << "it has its page";
}

TEST_F(ProcessStatusTest, ManyAskWhileAgentsComeGoAndWrite) {
  Driver driver = Driver::start({.threads = 2}).value();
  Agent here = open("here"), there = open("there");
  ASSERT_TRUE(driver.attach(here).ok() && driver.attach(there).ok());
  std::atomic<bool> stop = false;
  std::atomic<int> whole = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      while (!stop.load()) {
        const std::string answer = ask_driven(i % 2 == 0 ? "describe" : "metrics");
        if (answer.ends_with(i % 2 == 0 ? "{\"end\":true}\n" : "# EOF\n")) whole.fetch_add(1);
      }
    });
  }
  std::thread rude([&] {
    while (!stop.load()) (void)base::connect_to_user_socket(sockets().at(0)).has_value();
  });
  for (int i = 0; i < 50 || whole.load() < 20; ++i) {
    write_once(here, there);
    Agent guest = open("guest");
    ASSERT_TRUE(driver.attach(guest).ok());
  }
  stop.store(true);
  for (std::thread& each : callers) each.join();
  rude.join();
}

}  // namespace
}  // namespace hawser::agent
