#include "worldsim/run.h"

#include <memory>

#include "worldsim/mishaps.h"
#include "worldsim/player.h"

namespace hawser::worldsim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// By then all ranks have left their last world.
constexpr Duration kRunMax = seconds(120);

class Simulation {
 public:
  explicit Simulation(const RunOptions& options)
      : universe_({.seed = options.seed, .trace = options.trace}),
        judge_(universe_),
        settings_(draw_settings(universe_.world.rng(), options.seed, options.mode)) {
    draw_network(universe_.world.rng(), settings_, universe_);
    stage_ = std::make_unique<Stage>(universe_, judge_, settings_);
  }

  Run run() {
    universe_.world.note("settings", describe(settings_));
    if (stage_->open()) play();
    Run result;
    result.ok = !judge_.failed();
    result.failure = judge_.failure();
    result.hash = universe_.world.trace_hash();
    result.steps = universe_.world.steps();
    result.deeds = judge_.deeds();
    result.good = judge_.good();
    result.bad = judge_.bad();
    result.ranks = settings_.ranks;
    result.sparse = is_sparse(settings_) ? 1 : 0;
    result.worlds = judge_.realms().size();
    if (mishaps_ == nullptr) return result;
    result.faults = mishaps_->struck();
    result.coverage = mishaps_->coverage();
    return result;
  }

 private:
  void play() {
    player_ = std::make_unique<Player>(*stage_);
    mishaps_ = std::make_unique<Mishaps>(*stage_);
    stage_->on_turned([this](Actor& actor) { player_->observe(actor); });
    player_->begin();
    const Instant end = universe_.world.now() + kRunMax;
    universe_.world.run_until(end, [this] {
      mishaps_->look();
      return judge_.failed() || player_->are_all_out();
    });
    if (!judge_.failed() && !player_->are_all_out()) tell_who_waits();
    if (judge_.failed()) return;
    universe_.world.run_for(milliseconds(50));  // What is still on its way arrives now.
    judge_.check_end();
  }

  void tell_who_waits() {
    std::string all;
    for (const auto& actor : stage_->actors()) all += "\n  " + describe(*actor);
    judge_.fail("the ranks do not come to an end. Who waits for whom:" + all);
  }

  sim::Universe universe_;
  WorldJudge judge_;
  const Settings settings_;
  std::unique_ptr<Stage> stage_;
  std::unique_ptr<Player> player_;
  std::unique_ptr<Mishaps> mishaps_;
};

}  // namespace

Run run_seed(const RunOptions& options) {
  const base::PlantedScope planted(options.plant);
  return Simulation(options).run();
}

}  // namespace hawser::worldsim
