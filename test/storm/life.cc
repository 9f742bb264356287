#include "life.h"

#include <algorithm>
#include <sstream>
#include <thread>
#include <utility>

#include "base/format.h"
#include "pattern.h"

namespace hawser::storm {
namespace {

constexpr std::size_t kGravesMax = 3, kDropsMax = 6;
constexpr auto kNap = std::chrono::milliseconds(1);

}  // namespace

AgentOptions Life::options_of(const StormOptions& options, std::size_t worker, bool driven) {
  AgentOptions its;
  its.name = base::format("w{}", worker);
  std::stringstream names(options.backends);
  for (std::string name; std::getline(names, name, ',');) its.backends.push_back({name, {}});
  its.driven = driven;
  its.adopt = options.adopts;
  its.peer_timeout = std::chrono::seconds(2);
  its.heartbeat = std::chrono::milliseconds(250) * HAWSER_TIMEOUT_SCALE;
  return its;
}

Life::Life(Board& board, const StormOptions& options, std::size_t worker, std::uint64_t seed)
    : board_(board), options_(options), worker_(worker), rng_(seed) {
  const bool driven = rng_.chance(0.6);
  Result<Agent> opened = Agent::open(options_of(options, worker, driven));
  if (!opened) fail("open: " + opened.error().to_string());
  agent_ = std::move(*opened);
  if (driven) {
    Result<Driver> driver = Driver::start({});
    if (!driver) fail("Driver::start: " + driver.error().to_string());
    driver_.emplace(std::move(*driver));
    if (const Status status = driver_->attach(agent_); !status.ok()) fail("attach: " + status.to_string());
  }
  ++board_.posts[worker_].lives;
  ++board_.tally.agents;
  open_region();
  for (std::size_t i = 0; i < kPlayers; ++i) {
    players_.push_back(std::make_unique<Player>(agent_, closing_, board_, options_, worker_, i, rng_.u64()));
  }
}

Life::~Life() = default;

void Life::fail(const std::string& what) {
  board_.fail(base::format("worker {}: {}", worker_, what));
  throw Fault();
}

void Life::open_region() {
  region_name_ = base::format("in.{}", board_.new_uid());
  const std::size_t size = options_.workers * kPlayers * kSliceSize;
  if (!options_.allocated) storage_.resize(size);
  Result<Region> made = options_.allocated ? agent_.allocate({.name = region_name_, .size = size})
                                           : agent_.add_region({.name = region_name_, .bytes = storage_, .device = {}});
  if (!made) fail("a region cannot be made: " + made.error().to_string());
  region_ = std::move(*made);
  const Result<std::string> card = agent_.card();
  if (!card) fail("card: " + card.error().to_string());
  board_.posts[worker_].put(*card);
}

void Life::close_region() {
  const std::uint32_t stops = board_.posts[worker_].stops;
  Status status;
  for (int tries = 0; tries < 4; ++tries) {
    status = region_.close(options_.slack);
    if (status.ok()) break;
  }
  if (!status.ok() && stops == board_.posts[worker_].stops) fail("its region cannot be closed: " + status.to_string());
  ++board_.tally.closed;
  region_ = Region();
  if (!options_.allocated) bury(std::exchange(storage_, {}));
}

void Life::drop_region() {
  region_ = Region();
  ++board_.tally.dropped;
  if (!options_.allocated) dropped_.push_back(std::exchange(storage_, {}));
}

void Life::bury(std::vector<std::byte> memory) {
  look_at_graves();
  if (graves_.size() == kGravesMax) graves_.erase(graves_.begin());
  graves_.push_back({.memory = std::move(memory), .scribble = board_.new_uid()});
  fill(graves_.back().memory, graves_.back().scribble);
}

void Life::look_at_graves() {
  for (const Grave& grave : graves_) {
    const std::size_t same = matching(grave.memory, grave.scribble);
    if (same < grave.memory.size()) {
      fail(base::format("memory of a closed region changed at byte {} of {}", same, grave.memory.size()));
    }
  }
}

void Life::take_news() {
  while (auto note = agent_.take_notification()) on_note(note->text);
  while (agent_.take_event()) {
  }
}

void Life::on_note(const std::string& text) {
  std::istringstream words(text);
  std::uint64_t uid = 0;
  std::size_t worker = 0;
  std::uint32_t lives = 0;
  std::string region;
  words >> uid >> worker >> lives >> region;
  if (!words || uid == 0 || worker >= options_.workers) fail("a notification that nobody sent: '" + text + "'");
  if (!notes_.insert(uid).second) fail(base::format("notification {} came twice", uid));
  std::size_t at = 0, size = 0;
  char colon = ':';
  while (region == region_name_ && words >> at >> colon >> size) {
    const std::size_t same = matching(region_.bytes().subspan(at, size), uid);
    // Its sender may have given it up and written something else, or another agent of that worker has.
    const bool is_old = board_.is_withdrawn(uid) || board_.posts[worker].lives != lives;
    if (same != size && !is_old)
      fail(base::format("notification {} came before byte {} of {} at {}", uid, same, size, at));
  }
  board_.acknowledge(uid);
}

void Life::play(std::size_t number) try {
  while (board_.phase.load() == Phase::kStorm && !closing_ && !board_.failed()) {
    players_[number]->act();
    if (driver_) std::this_thread::yield();
    static_cast<void>(agent_.wait(Duration::zero()));
  }
} catch (const Fault&) {
}

/// What the main thread does while the others play.
void Life::storm() {
  const auto lifetime = std::chrono::milliseconds(rng_.range(200, 4000));
  const Instant end = Clock::steady().now() + lifetime;
  Instant renew = Clock::steady().now() + std::chrono::milliseconds(rng_.range(20, 600));
  while (board_.phase.load() == Phase::kStorm && !board_.failed()) {
    static_cast<void>(agent_.wait(kNap));
    take_news();
    const Instant now = Clock::steady().now();
    if (now > end) break;
    if (now < renew) continue;
    renew = now + std::chrono::milliseconds(rng_.range(20, 600));
    dropped_.size() < kDropsMax&& rng_.chance(0.3) ? drop_region() : close_region();
    open_region();
  }
}

void Life::run() {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kPlayers; ++i) threads.emplace_back([this, i] { play(i); });
  try {
    storm();
    closing_ = board_.phase.load() == Phase::kStorm;
    // Half of the time it closes under those who play.
    if (closing_ && rng_.chance(0.5)) static_cast<void>(agent_.close(std::chrono::milliseconds(rng_.range(0, 50))));
  } catch (const Fault&) {
  }
  for (std::thread& thread : threads) thread.join();
  if (board_.failed()) throw Fault();
  if (!closing_) calm();
  end();
}

/// All players prove that all works, one after the other, while this agent goes on serving the others.
void Life::calm() {
  std::atomic<bool> proven = false;
  std::thread prover([this, &proven] {
    try {
      for (const auto& player : players_) player->prove();
    } catch (const Fault&) {
    }
    proven = true;
  });
  while (!proven && !board_.failed()) {
    static_cast<void>(agent_.wait(kNap));
    take_news();
  }
  prover.join();
  ++board_.posts[worker_].calm;
  while (!is_over() && !board_.failed()) {
    static_cast<void>(agent_.wait(kNap));
    take_news();
  }
  if (board_.failed()) throw Fault();
}

void Life::end() {
  closing_ = true;
  Status status;
  for (int tries = 0; tries < 4; ++tries) {
    const Instant before = Clock::steady().now();
    status = agent_.close(options_.slack);
    if (status.ok()) break;
    if (Clock::steady().now() - before > 3 * options_.slack) fail("close came back long after its deadline");
  }
  if (!status.ok()) fail("its agent cannot be closed: " + status.to_string());
  for (const auto& player : players_) player->finish();  // Final they are, and judged now.
  for (auto& memory : dropped_) bury(std::move(memory));
  if (!options_.allocated) bury(std::exchange(storage_, {}));
  dropped_.clear();
  look_at_graves();
}

}  // namespace hawser::storm
