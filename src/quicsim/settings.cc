#include "quicsim/settings.h"

#include <fmt/format.h>

#include <algorithm>

namespace hawser::quicsim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

Duration draw(base::Rng& rng, Duration least, Duration most) {
  return Duration(rng.range(least.count(), most.count()));
}

/// Small ones as often as large ones.
Duration draw_even(base::Rng& rng, Duration least, unsigned doublings) {
  return draw(rng, least, 2 * least) * (std::int64_t{1} << rng.below(doublings));
}

Weather draw_weather(base::Rng& rng, bool is_clean) {
  Weather weather;
  weather.latency = draw_even(rng, microseconds(10), 12);
  if (rng.chance(0.5)) weather.jitter = draw(rng, microseconds(1), weather.latency);
  if (rng.chance(0.6)) {
    weather.bytes_per_ns = 0.0005 * static_cast<double>(1u << rng.below(11));  // 0.5 to 512 bytes per us.
    weather.queue_bytes = (16u * 1024) << rng.below(5);
  }
  weather.datagram_max = 1200 + rng.below(400);
  weather.lateness = draw_even(rng, milliseconds(1), 6);
  if (is_clean) return weather;
  const auto some = [&rng](double most) { return rng.chance(0.5) ? rng.unit() * most : 0.0; };
  weather.lost = some(0.05);
  weather.doubled = some(0.05);
  weather.changed = some(0.03);
  weather.cut = some(0.02);
  weather.late = some(0.1);
  return weather;
}

}  // namespace

Settings draw_settings(base::Rng& rng, std::uint64_t seed) {
  Settings settings;
  settings.seed = seed;
  settings.openers = 1 + rng.below(3);
  settings.acceptors = 1 + rng.below(2);
  settings.connections = 1 + rng.below(4);
  settings.streams = 1 + rng.below(6);
  settings.bytes = 1000u << rng.below(8);
  if (seed % 16 == 7) settings.bytes = 700'000, settings.streams = 2, settings.connections = 1;
  settings.is_tight = seed % 4 == 3;
  const bool is_clean = seed % 8 == 1;
  settings.up = draw_weather(rng, is_clean);
  settings.down = draw_weather(rng, is_clean);
  auto& options = settings.options;
  constexpr std::array kCongestions = {backend::quic::Congestion::kCubic, backend::quic::Congestion::kReno,
                                       backend::quic::Congestion::kBbr};
  options.congestion = kCongestions[rng.below(kCongestions.size())];
  options.is_paced = rng.chance(0.7);
  options.is_probed = rng.chance(0.7);
  options.datagram_max = options.is_probed ? 1200 + rng.below(253) : 1200;
  if (rng.chance(0.1)) {  // As on loopback.
    options.is_probed = false;
    options.datagram_max = 16 * 1024;
    settings.up.datagram_max = settings.down.datagram_max = 65'507;
  }
  options.window = (1ull << 20) << rng.below(5);
  options.stream_window = options.window / 8;
  options.unread_max = settings.is_tight ? (32ull << 10) << rng.below(3) : 16ull << 20;
  settings.hoards = seed % 16 == 11;
  if (settings.hoards) {
    settings.streams = 14;
    settings.connections = 1;
    settings.bytes = 32'000;
    options.window = 128ull << 10;
    options.stream_window = 64ull << 10;
    options.unread_max = 32ull << 10;
  }
  options.idle_timeout = milliseconds(rng.range(2000, 8000));  // QUIC tells it in ms.
  options.keep_alive = options.idle_timeout / 24;              // As heartbeats of an idle agent are to 60 s.
  options.handshake_timeout = milliseconds(rng.range(2000, 6000));
  if (rng.chance(0.5)) settings.look_max = draw_even(rng, microseconds(1), 8);
  settings.inbox_bytes = (64u * 1024) << rng.below(6);
  settings.certificate = rng.below(3000);
  settings.asks = rng.chance(0.3);
  // No seed of quic_regressions: their course stays.
  settings.is_placed = seed % 6 == 3 || seed % 6 == 4;
  options.is_lent = seed % 11 == 0 || seed % 11 == 5 || seed % 11 >= 9;
  settings.faults = is_clean ? 0 : 1 + rng.below(4);
  settings.calm_after = draw(rng, milliseconds(300), milliseconds(3000));
  return settings;
}

std::string describe(const Settings& settings) {
  const auto& options = settings.options;
  return fmt::format(
      "{} openers, {} acceptors, {} connections of {} streams of about {} bytes, congestion {}, datagrams of {}{}{}, "
      "window {}, unread {}, idle {} ms, handshake {} ms, up {} us {} B/ns, down {} us {} B/ns, look {} us, {} faults, "
      "calm after {} ms{}{}",
      settings.openers, settings.acceptors, settings.connections, settings.streams, settings.bytes,
      static_cast<int>(options.congestion), options.datagram_max, options.is_probed ? ", probed" : "",
      options.is_paced ? ", paced" : "", options.window, options.unread_max, options.idle_timeout.count() / 1'000'000,
      options.handshake_timeout.count() / 1'000'000, settings.up.latency.count() / 1000, settings.up.bytes_per_ns,
      settings.down.latency.count() / 1000, settings.down.bytes_per_ns, settings.look_max.count() / 1000,
      settings.faults, settings.calm_after.count() / 1'000'000, settings.is_placed ? ", taken as it comes" : "",
      options.is_lent ? ", lent" : "");
}

Plan plan_of(const Settings& settings, std::size_t connection, std::int64_t stream, bool is_opener) {
  base::Rng rng(settings.seed * 1'000'003 + connection * 1009 + static_cast<std::uint64_t>(stream) * 2 +
                (is_opener ? 1 : 0));
  Plan plan;
  plan.bytes = rng.chance(0.1) ? rng.below(3) : rng.below(2 * settings.bytes);
  const double reads = rng.unit(), leaves = rng.unit();
  if (reads < 0.25) plan.reading = Plan::Reading::kSlow;
  if (reads < 0.1) plan.reading = Plan::Reading::kStuck;
  if (settings.hoards && !is_opener) plan.reading = Plan::Reading::kStuck;
  plan.is_stuck_for_good = plan.reading == Plan::Reading::kStuck && !settings.is_tight && rng.chance(0.5);
  if (leaves < 0.3) plan.leaving = Plan::Leaving::kAtOnce;
  if (leaves < 0.2) plan.leaving = Plan::Leaving::kAborts;
  if (leaves < 0.1) plan.leaving = Plan::Leaving::kStays;
  plan.abort_after = draw(rng, Duration(1), settings.calm_after);
  return plan;
}

}  // namespace hawser::quicsim
