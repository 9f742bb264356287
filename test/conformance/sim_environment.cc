#include "sim_environment.h"

#include <algorithm>

#include "agent/core.h"
#include "agent/open.h"
#ifdef HAWSER_WITH_LOOPBACK
#include "backend/loopback/factory.h"
#include "base/inside.h"
#endif

namespace hawser::conformance {
namespace {

/// A turn that found nothing, but may not sleep, looks again after this.
constexpr Duration kLookAgain = std::chrono::microseconds(20);
constexpr Duration kStep = std::chrono::microseconds(1);
constexpr Duration kSlice = std::chrono::microseconds(50);

class SimEnvironment final : public Environment {
 public:
  explicit SimEnvironment(sim::Mode mode) : universe_(sim::WorldOptions{.seed = 7}), mode_(mode) {}
  ~SimEnvironment() override {
    while (!members_.empty()) drop(members_.back()->agent.get());
  }

  Result<Agent*> open(AgentOptions options) override {
    if (options.backends.empty()) options.backends = {{"sim", {}}};
    return open_any(std::move(options));
  }
  Result<Agent*> open_without(AgentOptions options) override {
#ifdef HAWSER_WITH_LOOPBACK
    options.backends = {{ "loopback", {} }};
    return open_any(std::move(options));
#else
    return Status(Code::kUnsupported, "no other backend was built for agent '" + options.name + "'");
#endif
  }

  void drop(Agent* agent) override {
    const auto at = place_of(agent);
    if (at == members_.end()) return;
    const std::unique_ptr<Member> member = std::move(*at);
    member->host->set_turn(nullptr);
    member->agent.reset();
    members_.erase(at);
    member->host->die();
  }

  void freeze(Agent* agent) override { (*place_of(agent))->host->stop(); }
  void thaw(Agent* agent) override { (*place_of(agent))->host->resume(); }

  Instant now() const override { return universe_.world.now(); }

  void pass() override {
    wake_all();
    universe_.world.run_for(kSlice);
  }

  bool eventually(const std::function<bool()>& done, Duration timeout) override {
    const Instant deadline = now() + timeout;
    while (!done()) {
      if (now() >= deadline) return done();
      // What the test itself did may have left work that no event tells of.
      wake_all();
      if (universe_.world.run_until(std::min(deadline, now() + kSlice), done)) return true;
    }
    return true;
  }

  void blocking(Agent&, const std::function<void()>& call) override {
    wake_all();
    call();
  }

 private:
  struct Member {
    std::unique_ptr<Agent> agent;
    std::shared_ptr<sim::Host> host;
  };

  std::vector<std::unique_ptr<Member>>::iterator place_of(const Agent* agent) {
    return std::ranges::find_if(members_, [&](const auto& member) { return member && member->agent.get() == agent; });
  }

  void wake_all() {
    for (const auto& member : members_) {
      if (member) member->host->wake();
    }
  }

  std::vector<backend::Factory> factories(const sim::Seat& seat) {
    std::vector<backend::Factory> all{sim::make_factory(universe_, seat)};
#ifdef HAWSER_WITH_LOOPBACK
    all.push_back(backend::loopback_factory());
#endif
    return all;
  }

  Result<Agent*> open_any(AgentOptions options) {
    auto member = std::make_unique<Member>();
    const std::uint32_t number = next_number_++;
    member->host = sim::Host::create(universe_.world, options.name, number);
    options.driven = true;
    options.clock = universe_.world.clock();
    if (options.seed == 0) options.seed = universe_.world.rng().u64() | 1;
    const sim::Seat seat{.host = member->host, .mode = mode_, .address = "sim:" + std::to_string(number)};
    Result<Agent> opened =
        agent::open_with(std::move(options), factories(seat), {.pause = [this](Instant until) { pause(until); }});
    if (!opened) return opened.error();
    member->agent = std::make_unique<Agent>(std::move(*opened));
    member->host->set_turn([this, raw = member->agent.get()](Instant) { return turn(*raw); });
    member->host->wake();
    members_.push_back(std::move(member));
    return members_.back()->agent.get();
  }

  sim::Host::Turned turn(Agent& agent) {
    const std::size_t work = agent.poll();
    if (work > 0) return {.more = true};
    Instant next = Instant::max();
    agent::Lane& lane = core_of(agent)->lane;
    if (!core_of(agent)->is_closed() && !lane.arm(&next)) return {.more = false, .next = now() + kLookAgain};
    lane.disarm();
    return {.more = false, .next = next};
  }

  /// What a blocking call does instead of sleeping.
  void pause(Instant until) {
    wake_all();
    bool moved = false;
    // A timer that is due already must not stop the clock.
    const Instant at_most = std::max(std::min(until, now() + kSlice), now() + kStep);
    universe_.world.run_until(at_most, [&] { return std::exchange(moved, true); });
  }

  sim::Universe universe_;
  const sim::Mode mode_;
  std::uint32_t next_number_ = 0;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace

std::unique_ptr<Environment> make_sim_environment(sim::Mode mode) { return std::make_unique<SimEnvironment>(mode); }

}  // namespace hawser::conformance
