// Paths are lost while writes are under way on each, and none is left: nothing goes on by the next one before all of
// them are dead at the peer, and then everything does. Whole agents by sockets, in time that passes as the test says.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <hawser/hawser.h>

#include "agent/open.h"
#include "backend/tcp/factory.h"
#include "backend/test_removable.h"
#include "base/test_clock.h"

namespace hawser::agent {
namespace {

using namespace std::chrono_literals;

using backend::Removable;

/// An agent with two backends that may go away, the better one first.
struct End {
  End(const std::string& name, std::shared_ptr<const Clock> clock) {
    better->counts_bytes = lesser->counts_bytes = true;
    AgentOptions options;
    options.name = name;
    options.backends = {{"device", {}}, {"tcp", {}}};
    options.driven = true;
    options.clock = std::move(clock);
    options.default_deadline = 1h;
    const backend::Factory tcp = backend::tcp_factory();
    agent = open_with(std::move(options), {backend::removable_factory("device", 50, tcp, better),
                                           backend::removable_factory("tcp", 10, tcp, lesser)})
                .value();
  }
  const std::shared_ptr<Removable> better = std::make_shared<Removable>(), lesser = std::make_shared<Removable>();
  Agent agent;
};

class FencedAgents : public testing::Test {
 protected:
  FencedAgents() {
    from_ = here_.agent.add_region({.name = "source", .bytes = source_}).value();
    to_ = there_.agent.add_region({.name = "target", .bytes = target_}).value();
    peer_ = here_.agent.add_peer(there_.agent.card().value()).value();
  }
  Transfer write(std::size_t size) {
    const LocalRange from = from_.range(0, size);
    const RemoteRange to = peer_.range("target", 0, size);
    return here_.agent.plan_write(peer_, {&from, 1}, {&to, 1}).value().submit().value();
  }
  template <typename Done>
  bool pass_until(Done&& done, Duration most = 5s) {
    for (const Instant end = clock_->now_ + most; clock_->now_ < end; clock_->now_ = clock_->now_ + 100us) {
      static_cast<void>(here_.agent.poll());
      static_cast<void>(there_.agent.poll());
      if (done()) return true;
    }
    return false;
  }

  std::vector<std::byte> source_ = std::vector<std::byte>(std::size_t{64} << 20, std::byte{5});
  std::vector<std::byte> target_ = std::vector<std::byte>(source_.size());
  const std::shared_ptr<base::TestClock> clock_ = std::make_shared<base::TestClock>();
  End here_{"here", clock_}, there_{"there", clock_};
  Region from_, to_;
  Peer peer_;
};

TEST_F(FencedAgents, OfTwoThatAreLostTogetherEachIsFencedOnceAPathIsThereAgain) {
  here_.better->is_away = true;
  Transfer first = write(4096);
  ASSERT_TRUE(pass_until([&] { return first.done(); }));
  here_.better->is_away = false;
  ASSERT_TRUE(peer_.reconnect().ok());
  Transfer by_lesser = write(source_.size());
  const std::uint64_t before = here_.better->bytes_out;
  ASSERT_TRUE(pass_until([&] {
    Transfer small = write(4096);
    return pass_until([&] { return small.done(); }, 1s) && here_.better->bytes_out >= before + 4096;
  }));
  ASSERT_FALSE(by_lesser.done());
  Transfer by_better = write(source_.size());
  static_cast<void>(here_.agent.poll());
  ASSERT_FALSE(by_lesser.done() || by_better.done());
  here_.better->is_away = here_.lesser->is_away = true;
  ASSERT_TRUE(pass_until([&] { return here_.agent.counters().paths.empty(); }));
  pass_until([] { return false; }, 50ms);
  here_.better->is_away = here_.lesser->is_away = false;
  ASSERT_TRUE(pass_until([&] { return by_lesser.done() && by_better.done(); }))
      << "a path is up, and nothing goes by it";
  for (const Transfer* each : {&by_lesser, &by_better}) EXPECT_TRUE(each->status().ok()) << each->status().to_string();
  EXPECT_EQ(target_, source_);
}

}  // namespace
}  // namespace hawser::agent
