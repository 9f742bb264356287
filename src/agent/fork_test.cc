// A fork while another thread is at work in the agent: no lock of it is ever free again in the child.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/core.h"
#include "agent/open.h"
#include "backend/loopback/factory.h"
#include "base/inside.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

/// What is left of an agent in the child. One that hangs is ended by its alarm.
class Forked : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__) || defined(HAWSER_SANITIZE_THREAD)
    GTEST_SKIP() << "ThreadSanitizer does not follow a child of a process with threads";
#endif
    region_ = agent_.add_region({.name = "data", .bytes = std::as_writable_bytes(std::span(data_))}).value();
    const LocalRange from = region_.range(0, 64);
    const RemoteRange to = agent_.self().range("data", 64, 64);
    plan_ = agent_.plan_write(agent_.self(), {&from, 1}, {&to, 1}).value();
    queue_ = agent_.make_queue(8).value();
    EXPECT_TRUE(plan_.submit({.queue = &queue_}).value().wait(10s).ok());
    EXPECT_TRUE(agent_.self().notify("there").ok());
  }
  bool is_refused(const Status& status) const {
    const bool is = status.code() == Code::kInvalid && status.to_string().find(opener_) != std::string::npos;
    return is || (std::fprintf(stderr, "the child was told: %s\n", status.to_string().c_str()), false);
  }
  /// Which of them was wrong; 0: none was.
  template <typename Calls>
  int in_child(Calls calls) {
    constexpr unsigned kPatience = 20;
    core_of(agent_)->lane.lock();
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(kPatience);
      ::_exit(calls());
    }
    core_of(agent_)->lane.unlock();
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  const std::string opener_ = std::to_string(::getpid());
  std::vector<std::uint64_t> data_ = std::vector<std::uint64_t>(16);
  Agent agent_ = std::move(open_with({.name = "a"}, {backend::loopback_factory()}).value());
  Region region_;
  Plan plan_;
  CompletionQueue queue_;
};

TEST_F(Forked, EachCallAnswersAtOnce) {
  const Peer self = agent_.self();
  const std::uint32_t index = 0;
  const auto calls = [&] {
    if (!is_refused(agent_.card().error())) return 1;
    if (!is_refused(agent_.partial_card({&index, 1}).error())) return 2;
    if (!is_refused(agent_.card_delta(1).error())) return 3;
    if (!is_refused(agent_.invalidate(self))) return 4;
    if (!is_refused(agent_.end(1).error())) return 5;
    if (!is_refused(agent_.require_backend("loopback"))) return 6;
    if (!is_refused(agent_.read_signal(region_.range(0, 8)).error())) return 7;
    if (!is_refused(agent_.wait_signal(region_.range(0, 8), 1, 1s))) return 8;
    if (!is_refused(agent_.open_channel(20))) return 9;
    if (!agent_.peers().empty() || !agent_.backends().empty()) return 10;
    if (agent_.take_notification() || agent_.take_event() || agent_.take_message(20)) return 11;
    if (agent_.event_fd() >= 0) return 12;
    if (agent_.counters().agent != "a" || !agent_.counters().peers.empty()) return 13;
    if (agent_.explain(plan_).find(opener_) == std::string::npos) return 14;
    if (!is_refused(self.region("data").error()) || !is_refused(self.region(0).error())) return 15;
    if (!self.region_names().empty() || self.range("data", 0, 8).region) return 16;
    if (!is_refused(self.table("data", 8).status())) return 17;
    Completion one;
    if (queue_.poll({&one, 1}) != 0 || queue_.wait({&one, 1}, 1s) != 0 || queue_.event_fd() >= 0) return 18;
    if (!is_refused(region_.close(1s)) || !is_refused(agent_.close(1s))) return 19;
    return 0;
  };
  EXPECT_EQ(in_child(calls), 0);
}

TEST_F(Forked, TheDescriptorsOfTheParentStayAsTheyAre) {
  ASSERT_GE(agent_.event_fd(), 0);
  ASSERT_GE(queue_.event_fd(), 0);
  const auto calls = [&] { return agent_.event_fd() >= 0 || queue_.event_fd() >= 0 ? 1 : 0; };
  EXPECT_EQ(in_child(calls), 0);
  std::array<Completion, 8> out;
  EXPECT_GE(queue_.poll(out), 1u);
}

TEST_F(Forked, ADriverRunsNothingAndEndsInTheChild) {
#ifdef HAWSER_SANITIZE_ADDRESS_UNDEFINED
  GTEST_SKIP() << "the driver's thread may hold a lock of this sanitizer's heap when the process forks";
#endif
  Driver driver = Driver::start().value();
  ASSERT_TRUE(driver.attach(agent_).ok());
  const auto calls = [&] {
    Agent own = std::move(open_with({.name = "child"}, {backend::loopback_factory()}).value());
    if (!is_refused(driver.attach(own))) return 1;
    if (!is_refused(driver.detach(own)) || !is_refused(driver.detach(agent_))) return 2;
    { const Driver gone = std::move(driver); }
    return 0;
  };
  EXPECT_EQ(in_child(calls), 0);
}

}  // namespace
}  // namespace hawser::agent
