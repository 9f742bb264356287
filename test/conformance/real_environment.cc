#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <thread>

#include "environment.h"

namespace hawser::conformance {
namespace {

constexpr Duration kNap = std::chrono::microseconds(20);

class RealEnvironment final : public Environment {
 public:
  explicit RealEnvironment(RealOptions options) : options_(std::move(options)) {}
  ~RealEnvironment() override {
    while (!members_.empty()) drop(members_.back()->agent.get());
  }

  Result<Agent*> open(AgentOptions options) override { return open_with(std::move(options), options_.backends); }
  Result<Agent*> open_without(AgentOptions options) override { return open_with(std::move(options), options_.others); }

  void drop(Agent* agent) override {
    const auto at = place_of(agent);
    if (at == members_.end()) return;
    if (is_driven(**at)) (void)(*at)->driver->detach(*agent);
    members_.erase(at);
  }

  void freeze(Agent* agent) override {
    Member& member = **place_of(agent);
    if (is_driven(member)) (void)member.driver->detach(*agent);
    member.frozen = true;
  }
  void thaw(Agent* agent) override {
    Member& member = **place_of(agent);
    if (member.frozen && member.driver) (void)member.driver->attach(*agent);
    member.frozen = false;
  }

  Instant now() const override { return Clock::steady().now(); }

  void pass() override {
    if (work(nullptr) == 0 || options_.driven) std::this_thread::sleep_for(kNap);
  }

  bool eventually(const std::function<bool()>& done, Duration timeout) override {
    const Instant deadline = now() + timeout;
    while (!done()) {
      if (now() >= deadline) return done();
      pass();
    }
    return true;
  }

  void blocking(Agent& on, const std::function<void()>& call) override {
    if (options_.driven) return call();
    std::atomic<bool> over{false};
    std::thread others([&] {
      while (!over.load(std::memory_order_acquire)) {
        if (work(&on) == 0) std::this_thread::sleep_for(kNap);
      }
    });
    call();
    over.store(true, std::memory_order_release);
    others.join();
  }

 private:
  struct Member {
    std::unique_ptr<Agent> agent;
    std::optional<Driver> driver;
    bool frozen = false;
  };

  static bool is_driven(const Member& member) { return member.driver && !member.frozen; }

  std::vector<std::unique_ptr<Member>>::iterator place_of(const Agent* agent) {
    return std::ranges::find_if(members_, [&](const auto& member) { return member->agent.get() == agent; });
  }

  Result<Agent*> open_with(AgentOptions options, const std::vector<BackendSpec>& backends) {
    if (options.backends.empty()) options.backends = backends;
    options.driven = options_.driven;
    if (!options_.devices.empty()) give_device(options);
    Result<Agent> opened = options_.open_agent(std::move(options));
    if (!opened) return opened.error();
    auto member = std::make_unique<Member>();
    member->agent = std::make_unique<Agent>(std::move(*opened));
    if (options_.driven) {
      Result<Driver> driver = Driver::start();
      if (!driver) return driver.error();
      member->driver.emplace(std::move(*driver));
      if (Status attached = member->driver->attach(*member->agent); !attached.ok()) return attached;
    }
    members_.push_back(std::move(member));
    return members_.back()->agent.get();
  }

  /// A name that comes again, as of a restarted peer, has its device again.
  void give_device(AgentOptions& options) {
    const auto place = places_.try_emplace(options.name, places_.size()).first->second;
    for (BackendSpec& backend : options.backends) {
      if (backend.name == "verbs") backend.params["devices"] = options_.devices[place % options_.devices.size()];
    }
  }

  /// Polls all but `except` where no driver does.
  std::size_t work(const Agent* except) {
    if (options_.driven) return 0;
    std::size_t done = 0;
    for (const auto& member : members_) {
      if (member->agent.get() != except && !member->frozen) done += member->agent->poll();
    }
    return done;
  }

  const RealOptions options_;
  std::vector<std::unique_ptr<Member>> members_;
  std::map<std::string, std::size_t> places_;  ///< Names of agents, in the order in which they came.
};

}  // namespace

std::unique_ptr<Environment> make_real_environment(RealOptions options) {
  return std::make_unique<RealEnvironment>(std::move(options));
}

}  // namespace hawser::conformance
