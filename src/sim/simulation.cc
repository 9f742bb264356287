#include "sim/simulation.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/chaos.h"
#include "sim/copies.h"
#include "sim/strangers.h"
#include "sim/theater.h"
#include "sim/user.h"

namespace hawser::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// After all is healed, everything that can still happen happens within this.
constexpr Duration kSettleMax = seconds(6);
constexpr Duration kTick = milliseconds(2);
/// A better path is tried again after one second, two, four: so that it may come back and go once more.
constexpr Duration kBusyWithDevices = milliseconds(2500);
/// A cut that is longer than peer_timeout, and time to go on after it. Deadlines come later than its end.
constexpr Duration kBusyWithCuts = milliseconds(1500);
constexpr Duration kDeadlineWithCuts = milliseconds(1500);
/// And is back so long after all is healed and quiet.
constexpr Duration kBetterMax = seconds(20);
/// Whether all are silent is listened to for so long, which is more than an idle heartbeat.
constexpr Duration kListen = milliseconds(200);
/// A session that came up says and acknowledges within that what it has to say.
constexpr Duration kTellMax = milliseconds(50);

Settings draw_settings(base::Rng& rng, const RunOptions& options) {
  Settings settings;
  settings.seed = options.seed;
  settings.mode = options.mode;
  settings.nodes = 2 + rng.below(rng.chance(0.3) ? 4 : 2);
  settings.driven = rng.chance(0.8);
  settings.lies = rng.chance(0.4);
  settings.chunk_bytes = rng.chance(0.5) ? 16 * 1024 : rng.chance(0.5) ? 3000 : 700;
  settings.connections = 1 + static_cast<unsigned>(rng.below(3));
  settings.channel_credit = rng.chance(0.3) ? 2 : 16;
  settings.notification_bytes = rng.chance(0.3) ? 65'600 : 256 * 1024;
  settings.actions = 60 + rng.below(300);
  // Not by the dice: the other seeds stay what they were.
  settings.devices = options.seed % 8 == 3;
  if (settings.devices) settings.busy_time = kBusyWithDevices;
  settings.late = options.mode == sim::Mode::kStream && options.seed % 8 == 5;
  settings.doubled = settings.late && options.seed % 16 == 5;
  settings.cuts = options.mode == sim::Mode::kStream && options.seed % 8 == 4;
  if (settings.cuts) settings.busy_time = kBusyWithCuts;
  if (settings.cuts) settings.default_deadline = kDeadlineWithCuts;
  settings.drops = options.seed % 8 == 2;
  settings.copies = options.seed % 8 == 0;
  settings.strangers = options.mode == sim::Mode::kStream && options.seed % 8 == 6;
  settings.narrow = options.mode == sim::Mode::kMapped && options.seed % 8 == 5;
  settings.spare = options.mode == sim::Mode::kMapped && options.seed % 8 == 1;
  settings.breaks = settings.spare || (options.mode == sim::Mode::kMapped && options.seed % 8 == 6);
  settings.apart = options.mode == sim::Mode::kStream && options.seed / 8 % 2 == 1;
  return settings;
}

std::string describe(const Settings& settings) {
  return fmt::format("{} nodes, {}{}{}, {} connections{}, chunks of {}, credit {}, inboxes of {}, about {} actions",
                     settings.nodes, settings.driven ? "driven" : "polled", settings.lies ? ", lies" : "",
                     settings.devices     ? ", devices"
                     : settings.doubled   ? ", doubled"
                     : settings.late      ? ", late"
                     : settings.cuts      ? ", cuts"
                     : settings.narrow    ? ", narrow"
                     : settings.spare     ? ", breaks and a spare"
                     : settings.breaks    ? ", breaks"
                     : settings.drops     ? ", drops"
                     : settings.copies    ? ", copies"
                     : settings.strangers ? ", strangers"
                                          : "",
                     settings.connections, settings.apart ? " and streams of links" : "", settings.chunk_bytes,
                     settings.channel_credit, settings.notification_bytes, settings.actions);
}

void draw_network(base::Rng& rng, const Settings& settings, sim::Universe& universe) {
  sim::LinkOptions link;
  link.latency = microseconds(rng.range(2, 200));
  link.bytes_per_ns = rng.chance(0.3) ? 0.02 : 1.0;
  link.jitter_max = rng.chance(0.5) ? Duration::zero() : Duration(link.latency.count() * rng.range(1, 5));
  link.loss = rng.chance(0.3) ? 0.01 : 0;
  universe.net.fabric().set_default(link);
  sim::NetOptions& net = universe.net.options();
  net.pipe.by_reference = rng.chance(0.7);
  net.pipe.segment_bytes = rng.chance(0.3) ? 700 : 16 * 1024;
  net.pipe.capacity_bytes = rng.chance(0.2) ? 3000 : 256 * 1024;
  net.pipe.short_chance = rng.chance(0.5) ? 0.1 : 0;
  net.keep_arrived_on_reset = rng.chance(0.7);
  net.connect_timeout = milliseconds(200);
  sim::MappedOptions& mapped = universe.hub.options();
  mapped = mapped_options(settings);
  mapped.step_bytes = rng.chance(0.5) ? 512 : 4096;
  mapped.inline_bytes = rng.chance(0.5) ? 256 : 0;
  mapped.death_notice_max = milliseconds(rng.range(0, 40));
}

class Simulation {
 public:
  explicit Simulation(const RunOptions& options)
      : universe_({.seed = options.seed, .trace = options.trace}),
        judge_(universe_, options.mode == sim::Mode::kStream),
        settings_(draw_settings(universe_.world.rng(), options)) {
    draw_network(universe_.world.rng(), settings_, universe_);
    judge_.reasons().expect_patience(settings_.peer_timeout / 2);
    theater_ = std::make_unique<Theater>(universe_, judge_, settings_);
    user_ = std::make_unique<User>(*theater_);
    if (settings_.strangers) strangers_ = std::make_unique<Strangers>(*theater_);
    if (settings_.copies) copies_ = std::make_unique<Copies>(*theater_);
    chaos_ = std::make_unique<Chaos>(*theater_, universe_.world.rng().below(6));
    chaos_->on_gone_on([this](Life& from, Life& to, Instant lost) {
      if (busy_ && !judge_.failed()) user_->write_again(from, to, lost);
    });
    theater_->on_pause([this] { chaos_->look(); });
  }

  Run run() {
    universe_.world.note("settings", describe(settings_));
    introduce_all();
    busy();
    settle();
    verify();
    Run result;
    result.ok = !judge_.failed();
    result.failure = judge_.failure();
    result.hash = universe_.world.trace_hash();
    result.steps = universe_.world.steps();
    result.transfers = judge_.transfers().count();
    result.good_transfers = judge_.transfers().good();
    result.atomics = judge_.atomics().count();
    result.good_atomics = judge_.atomics().good();
    result.lives = theater_->lives().size();
    result.faults = chaos_->struck();
    result.coverage = chaos_->coverage();
    return result;
  }

 private:
  void introduce_all() {
    for (std::size_t a = 0; a < theater_->nodes(); ++a) {
      for (std::size_t b = 0; b < theater_->nodes(); ++b) {
        if (a != b && universe_.world.rng().chance(0.7)) theater_->introduce(theater_->at(a), theater_->at(b));
      }
      plan_action(a);
    }
    if (!settings_.doubled) return;
    for (std::size_t a = 0; a < theater_->nodes(); ++a) {
      for (std::size_t b = 0; b < a; ++b) connect_at_once(theater_->at(a), theater_->at(b));
    }
  }

  /// Each opens a path to the other before it hears of the other's: there are two between them from then on.
  void connect_at_once(Life& one, Life& other) {
    for (const auto& [from, to] : {std::pair(&one, &other), std::pair(&other, &one)}) {
      theater_->introduce(*from, *to);
      if (Bond& bond = from->bonds[to]; bond.known) static_cast<void>(bond.peer.reconnect());
    }
  }

  /// Users act on their own, at random times; a stopped one cannot.
  void plan_action(std::size_t node) {
    const auto mean = settings_.busy_time.count() * static_cast<std::int64_t>(theater_->nodes()) /
                      static_cast<std::int64_t>(settings_.actions);
    // Often in bursts, which is what makes things overlap.
    const Duration pause(universe_.world.rng().chance(0.5) ? universe_.world.rng().range(0, 20'000)
                                                           : universe_.world.rng().range(0, 4 * mean));
    universe_.world.after(pause, [this, node] {
      if (!busy_ || judge_.failed()) return;
      Life& life = theater_->at(node);
      if (life.alive && !life.closing && life.host->running()) {
        if (universe_.world.rng().chance(0.006) && !theater_->closing_one()) {
          restart(life);
        } else {
          user_->act(life);
        }
      }
      plan_action(node);
    });
  }

  /// An orderly end, and a successor.
  void restart(Life& life) {
    user_->read(life);
    static_cast<void>(theater_->close(life));  // A peer that is stopped may hold it up.
    if (judge_.failed()) return;
    universe_.world.after(Duration(universe_.world.rng().range(0, 5'000'000)), [this, node = life.node] {
      if (!theater_->at(node).alive) theater_->begin(node);
    });
  }

  void plan_tick() {
    universe_.world.after(kTick, [this] {
      theater_->tick();
      if (busy_ && copies_) copies_->act();
      if (busy_ && strangers_) strangers_->act();
      if (!busy_) {
        for (std::size_t node = 0; node < theater_->nodes(); ++node) user_->read(theater_->at(node));
      }
      if (!judge_.failed()) plan_tick();
    });
  }

  void busy() {
    plan_tick();
    const Instant end = universe_.world.now() + settings_.busy_time;
    universe_.world.run_until(end, [this] {
      chaos_->look();
      return judge_.failed();
    });
    busy_ = false;
  }

  bool all_closed() {
    for (const auto& life : theater_->lives()) {
      for (const auto& area : life->areas) {
        if (life->alive && area->closing && !area->closed) return false;
      }
    }
    return true;
  }

  void settle() {
    if (judge_.failed()) return;
    chaos_->heal();
    const Instant end = universe_.world.now() + kSettleMax;
    universe_.world.run_until(
        end, [this] { return judge_.failed() || (all_closed() && judge_.settled(theater_->lives())); });
    if (judge_.failed()) return;
    if (!all_closed())
      return judge_.fail(theater_->at(0), "a region's close did not end though all is healed and quiet");
    judge_.check_settled(theater_->lives());
    universe_.world.note("settled", {});
    if (settings_.devices) come_back();
    if (strangers_) send_away();
    // What is still on its way, though it should not be, arrives now.
    universe_.world.run_for(milliseconds(100));
    // Who tried in vain before it was healed may have come up only now, and asked for a card.
    const Instant told = universe_.world.now() + kTellMax;
    universe_.world.run_until(told, [this] { return judge_.failed() || judge_.books().all_told(theater_->lives()); });
    if (!judge_.failed()) listen();
  }

  /// Whether an agent takes a peer for suspect. It asks such a peer at each heartbeat, so it is not silent.
  bool has_suspects() const {
    return std::ranges::any_of(theater_->lives(), [](const auto& life) {
      if (!life->alive) return false;
      const AgentCounters counters = life->agent.counters();
      return std::ranges::any_of(counters.peers, [](const auto& peer) { return peer.state == "suspect"; });
    });
  }

  void listen() {
    const Instant decided = universe_.world.now() + 2 * settings_.peer_timeout;
    while (has_suspects() && universe_.world.now() < decided) universe_.world.run_for(milliseconds(10));
    std::vector<std::uint64_t> before;
    for (std::size_t node = 0; node < theater_->nodes(); ++node) {
      before.push_back(universe_.world.sends(static_cast<std::uint32_t>(node)));
    }
    universe_.world.run_for(kListen);
    for (std::size_t node = 0; node < theater_->nodes(); ++node) {
      judge_.books().check_silent(theater_->at(node),
                                  universe_.world.sends(static_cast<std::uint32_t>(node)) - before[node],
                                  kListen / settings_.heartbeat);
    }
  }

  void send_away() {
    universe_.world.run_until(strangers_->all_out_by(), [this] { return judge_.failed() || strangers_->are_out(); });
    if (!judge_.failed()) strangers_->check();
    universe_.world.note("strangers are out", {});
  }

  void come_back() {
    const Instant end = universe_.world.now() + kBetterMax;
    universe_.world.run_until(end, [this] { return judge_.failed() || judge_.books().all_go_best(theater_->lives()); });
    if (!judge_.failed()) judge_.books().check_best(theater_->lives());
    universe_.world.note("came back", {});
  }

  void verify() {
    if (judge_.failed()) return;
    for (std::size_t node = 0; node < theater_->nodes(); ++node) {
      Life& life = theater_->at(node);
      user_->read(life);
      if (life.alive && !judge_.failed()) judge_.books().check_counters(life);
    }
    judge_.check_memory(theater_->lives());
    if (!judge_.failed()) judge_.books().check_books(theater_->lives());
    if (!judge_.failed()) user_->try_stale_plans();
    for (std::size_t node = 0; node < theater_->nodes() && !judge_.failed(); ++node) {
      Life& life = theater_->at(node);
      if (!life.alive) continue;
      const Status closed = theater_->close(life);
      if (!closed.ok()) judge_.fail(life, "its close did not end well though all is healed: " + closed.to_string());
    }
    if (judge_.failed()) return;
    universe_.world.run_for(milliseconds(50));
    judge_.check_memory(theater_->lives());
  }

  sim::Universe universe_;
  Judge judge_;
  const Settings settings_;
  std::unique_ptr<Theater> theater_;
  std::unique_ptr<User> user_;
  std::unique_ptr<Chaos> chaos_;
  std::unique_ptr<Strangers> strangers_;  ///< Null in most runs.
  std::unique_ptr<Copies> copies_;        ///< Null in most runs.
  bool busy_ = true;
};

}  // namespace

Run run_seed(const RunOptions& options) {
  const base::PlantedScope planted(options.plant);
  return Simulation(options).run();
}

}  // namespace hawser::simulation
