// Two agents that connected to each other at once have two paths and one session. When the path that carries its
// messages ends, they go on over the other one, whoever hears of it first.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sim/theater.h"

namespace hawser::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kChannel = kChannels[0];

struct TwoPaths {
  sim::Universe universe{{.seed = 7, .trace = {}}};
  Judge judge{universe};
  std::unique_ptr<Theater> theater;

  /// agent-1 connects `later` than agent-0, which decides over which path each sends its messages.
  explicit TwoPaths(Duration later) {
    sim::LinkOptions link;
    link.latency = 100us;
    universe.net.fabric().set_default(link);
    theater = std::make_unique<Theater>(universe, judge, Settings{.nodes = 2, .connections = 1});
    theater->introduce(a(), b());
    theater->introduce(b(), a());
    connect(a(), b());
    universe.world.run_for(later);
    connect(b(), a());
    universe.world.run_for(20ms);
  }

  Life& a() { return theater->at(0); }
  Life& b() { return theater->at(1); }
  auto connections() { return universe.net.between(0, 1); }
  static void connect(Life& from, Life& to) {
    // Whatever asks for a path.
    static_cast<void>(from.bonds[&to].peer.notify("hello"));
    from.host->wake();
  }
  bool arrives(Life& from, Life& to) {
    if (!from.bonds[&to].peer.send(kChannel, {})) return false;
    from.host->wake();
    return universe.world.run_until(universe.world.now() + 1s,
                                    [&] { return to.agent.take_message(kChannel).has_value(); });
  }
};

TEST(GreetingTest, MessagesGoOnWhenEitherPathEndsAtEitherSide) {
  for (int i = 0; i < 32; ++i) {
    const std::size_t lost = i % 2;
    const std::uint32_t from = i / 2 % 2;
    const Duration later = i / 4 % 4 * 60us;
    const bool stops = i >= 16;
    SCOPED_TRACE("connection " + std::to_string(lost) + " ends at agent-" + std::to_string(from) + ", " +
                 std::to_string(later.count()) + " ns");
    TwoPaths two(later);
    ASSERT_EQ(two.connections().size(), 2U);
    ASSERT_TRUE(two.arrives(two.a(), two.b()));
    ASSERT_TRUE(two.arrives(two.b(), two.a()));
    two.universe.net.half_close(two.connections()[lost], from);
    sim::Host& late = *two.theater->at(from).host;
    if (stops) late.stop();  // And hears all at once.
    two.universe.world.run_for(5ms);
    late.resume();
    EXPECT_TRUE(two.arrives(two.a(), two.b()));
    EXPECT_TRUE(two.arrives(two.b(), two.a()));
  }
}

}  // namespace
}  // namespace hawser::simulation
