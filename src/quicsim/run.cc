#include "quicsim/run.h"

#include <fmt/format.h>
#include <sodium.h>

#include <memory>

#include "quicsim/mishaps.h"

namespace hawser::quicsim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// From the calm on all that nobody holds up must be done within that.
constexpr Duration kCalmMax = seconds(60);
/// The world's events; more means that something is done in a loop.
constexpr std::uint64_t kStepsMax = 4'000'000;
constexpr Duration kLastWords = seconds(5);

class Simulation {
 public:
  explicit Simulation(const RunOptions& options)
      : world_({.seed = options.seed, .trace = options.trace}),
        settings_(draw_settings(world_.rng(), options.seed)),
        net_(world_),
        judge_(world_, settings_) {
    world_.note(describe(settings_), "settings");
    net_.on_lost = [this](std::size_t, const Route& route) { note_lost(route); };
    for (std::size_t i = 0; i < settings_.openers; ++i) add_host(Side::kOpener, i);
    for (std::size_t i = 0; i < settings_.acceptors; ++i) add_host(Side::kAcceptor, i);
    mishaps_ = std::make_unique<QuicMishaps>(world_, net_, judge_, settings_, hosts_);
  }

  Run run() {
    play();
    Run result;
    result.ok = !judge_.failed();
    result.failure = judge_.failure();
    result.hash = world_.trace_hash();
    result.steps = world_.steps();
    result.bytes = judge_.bytes();
    result.streams = judge_.streams();
    result.connections = settings_.connections;
    result.faults = mishaps_->struck();
    result.coverage = mishaps_->coverage();
    return result;
  }

 private:
  void add_host(Side side, std::size_t index) {
    const bool is_opener = side == Side::kOpener;
    const Weather none = {.latency = Duration(0)};
    hosts_.push_back(std::make_unique<QuicHost>(
        world_, net_, judge_, settings_,
        QuicHost::Place{
            .name = fmt::format("{}{}", is_opener ? "o" : "a", index),
            .address = base::numeric_address({fmt::format("10.{}.0.{}", is_opener ? 1 : 0, index + 1), 0}).value(),
            .up = is_opener ? settings_.up : none,
            .down = is_opener ? settings_.down : none,
            .side = side,
            .seed = world_.rng().u64()},
        *backend::quic::ngtcp2().value()));
  }

  /// Openers' ports tell which connection it was.
  void note_lost(const Route& route) {
    const bool is_up = route.local.port() % PacketNet::kNatStep != kAcceptorsPort;
    const std::uint16_t port = is_up ? route.local.port() : route.remote.port();
    const std::size_t number = port % PacketNet::kNatStep - kPortBase;
    if (number >= settings_.connections) return;
    judge_.talk(number).end(is_up ? Side::kAcceptor : Side::kOpener).lost = world_.now();
  }

  void play() {
    base::Rng& rng = world_.rng();
    for (std::size_t i = 0; i < settings_.connections; ++i) {
      QuicHost& opener = *hosts_[rng.below(settings_.openers)];
      QuicHost& acceptor = *hosts_[settings_.openers + rng.below(settings_.acceptors)];
      opener.expect(i, acceptor.key());
      acceptor.expect(i, opener.key());
      base::SocketAddress address = net_.address(acceptor.number());
      address.set_port(kAcceptorsPort);
      world_.after(Duration(rng.range(0, Duration(milliseconds(200)).count())),
                   [&opener, i, address] { opener.connect(i, address); });
    }
    const Instant calm = world_.now() + settings_.calm_after;
    look_for_faults(calm);
    world_.run_until(calm, [this] { return is_stopped(); });
    if (judge_.failed()) return;
    begin_calm();
    world_.run_until(world_.now() + kCalmMax, [this] { return is_stopped() || is_settled(); });
    if (judge_.failed()) return;
    if (!judge_.is_settled()) return judge_.fail("all is calm, and still: " + judge_.unsettled() + conditions());
    check_end();
  }

  /// Of all connections that are up.
  std::string conditions() const {
    std::string all;
    for (const auto& host : hosts_) {
      for (const auto& line : host->lines()) {
        const std::string one = line->connection().condition();
        if (!one.empty()) all += "\n  " + line->name() + ": " + one;
      }
    }
    return all;
  }

  bool is_stopped() {
    if (world_.steps() > kStepsMax) judge_.fail("there is no end of events");
    return judge_.failed();
  }

  /// Asked after each event, so looked into seldom.
  bool is_settled() {
    if (world_.now() < settle_look_) return false;
    settle_look_ = world_.now() + milliseconds(5);
    return judge_.is_settled();
  }

  void look_for_faults(Instant until) {
    if (world_.now() >= until || judge_.failed()) return;
    mishaps_->look();
    world_.after(Duration(world_.rng().range(Duration(microseconds(20)).count(), Duration(milliseconds(2)).count())),
                 [this, until] { look_for_faults(until); });
  }

  void begin_calm() {
    world_.note("calm", "all");
    net_.on_sent = nullptr;
    net_.calm();
    for (const auto& host : hosts_) host->calm();
  }

  /// Streams that both ends have left are gone, and who is told goodbye hears it.
  void check_end() {
    world_.run_for(kLastWords);
    for (const auto& host : hosts_) {
      for (const auto& line : host->lines()) check_flows(*line);
    }
    for (const auto& host : hosts_) {
      if (host->side() != Side::kOpener || judge_.failed()) continue;
      for (const auto& line : host->lines()) line->close(false, false, world_.now());
      host->wake();
    }
    world_.run_for(kLastWords);
    for (std::size_t i = 0; i < settings_.connections; ++i) {
      const Talk& talk = judge_.talk(i);
      if (talk.is_over(Side::kOpener) && talk.end(Side::kAcceptor).is_up && !talk.is_over(Side::kAcceptor) &&
          talk.end(Side::kOpener).closed != Parting::kNone) {
        judge_.fail(fmt::format("connection {}: was closed, and the acceptor does not know it", i));
      }
    }
  }

  void check_flows(const Line& line) {
    if (judge_.talk(line.number()).is_over(other_of(line.side()))) return;
    for (const auto& flow : line.connection().flows()) {
      const bool is_left = judge_.half(line.number(), flow->id, Side::kOpener).parting != Parting::kNone &&
                           judge_.half(line.number(), flow->id, Side::kAcceptor).parting != Parting::kNone;
      if (is_left) judge_.fail(fmt::format("{}: both ends have left stream {}, and it stays", line.name(), flow->id));
    }
  }

  sim::World world_;
  const Settings settings_;
  PacketNet net_;
  QuicJudge judge_;
  std::vector<std::unique_ptr<QuicHost>> hosts_;
  std::unique_ptr<QuicMishaps> mishaps_;
  Instant settle_look_ = Instant::min();
};

}  // namespace

Status is_ready() {
  if (sodium_init() < 0) return Status(Code::kUnsupported, "libsodium does not start");
  const auto library = backend::quic::ngtcp2();
  return library ? Status() : library.error();
}

Run run_seed(const RunOptions& options) {
  const base::PlantedScope planted(options.plant);
  return Simulation(options).run();
}

}  // namespace hawser::quicsim
